/* SPDX-License-Identifier: MIT */
#include "report/instance.h"
#include "report/fatal.h"
#include <stdlib.h>

struct instance *instance_new(struct instances *instances, struct instance *parent, uint32_t node, uint64_t begin_ns)
{
	struct instance *instance = need(sizeof *instance);

	instance->parent = parent;
	instance->node = node;
	instance->begin_ns = instance->end_ns = begin_ns;
	instance->references = 1;
	instances->live++;
	if (parent)
		parent->references++;
	return instance;
}

void instance_hold(struct instance *instance)
{
	instance->references++;
}

/* Kept children are a row through `next`; a tree can be as deep as the program's ranges, so no recursion. */
void instance_free(struct instance *instance)
{
	struct instance *next, *last;

	if (instance)
		instance->next = NULL;
	for (; instance; instance = next) {
		if (instance->kids) {
			for (last = instance->kids; last->next; last = last->next)
				;
			last->next = instance->next;
			instance->next = instance->kids;
		}
		next = instance->next;
		free(instance->label);
		free(instance->kernel);
		free(instance);
	}
}

bool instance_worse(const struct instance *a, const struct instance *b)
{
	if (a->value != b->value)
		return a->value > b->value;
	return a->begin_ns > b->begin_ns || (a->begin_ns == b->begin_ns && a->node > b->node);
}

static void keep(struct instance *parent, struct instance *instance)
{
	struct instance **link = &parent->kids, *last;
	unsigned index = 0;

	while (*link && !instance_worse(instance, *link)) {
		link = &(*link)->next;
		index++;
	}
	if (index >= INSTANCE_KEPT) {
		instance_free(instance);
		return;
	}
	instance->next = *link;
	*link = instance;
	if (++parent->kept <= INSTANCE_KEPT)
		return;
	while ((*link)->next)
		link = &(*link)->next;
	last = *link;
	*link = NULL;
	parent->kept--;
	instance_free(last);
}

void instance_release(struct instances *instances, struct instance *instance)
{
	while (instance && --instance->references == 0) {
		struct instance *parent = instance->parent;
		const bool wanted = instances->final(instances->context, instance);

		instances->live--;
		instance->parent = NULL;
		if (parent)
			parent->gpu_ns += instance->gpu_ns;
		if (parent && parent->keep && wanted)
			keep(parent, instance);
		else if (!wanted || parent)
			instance_free(instance);
		instance = parent;
	}
}
