/* SPDX-License-Identifier: MIT */
#include "report/profile/instance.h"
#include "report/base/alloc.h"
#include "report/gpu/launch_configs.h"
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_LISTED 16u /* more are found by a hash table */
#define ALIKE_MAX 3u      /* instances of one name that are listed one by one */
#define OUTLIER_FACTOR 3  /* times the mean of the others of its name: listed by itself */

#define CACHE_LINE_BYTES 64u
#define BLOCK_INSTANCES 1023u

static_assert(INSTANCE_LIVE_BYTES <= CACHE_LINE_BYTES, "a live instance is in one cache line");

/* Memory of instances without children, from the next multiple of a cache line on. */
struct instance_block {
	struct instance_block *next;
	unsigned char memory[(BLOCK_INSTANCES + 1) * CACHE_LINE_BYTES];
};

/* Instances between a prefetch and the use. */
#define REUSED_AHEAD 4u

static void add_instance_block(struct instances *instances)
{
	struct instance_block *block = xcalloc(sizeof *block);
	unsigned char *at = block->memory + CACHE_LINE_BYTES -
			    (uintptr_t)block->memory % CACHE_LINE_BYTES;

	block->next = instances->blocks;
	instances->blocks = block;
	instances->made += BLOCK_INSTANCES;
	/* All instances may be reusable at once. */
	ARRAY_GROW(instances->reusable, instances->reusable_room, instances->made);
	for (unsigned i = BLOCK_INSTANCES; i-- > 0;)
		instances->reusable[instances->reusable_count++] = (void *)(at +
									    i * CACHE_LINE_BYTES);
}

/* Returns an instance whose INSTANCE_LIVE_BYTES are zeros. The one that was released last is still
 * in the caches, but those before it may not be. */
static struct instance *reuse_instance(struct instances *instances)
{
	struct instance *instance;

	if (!instances->reusable_count)
		add_instance_block(instances);
	instance = instances->reusable[--instances->reusable_count];
	if (instances->reusable_count >= REUSED_AHEAD)
		instance_prefetch(instances->reusable[instances->reusable_count - REUSED_AHEAD]);
	memset(instance, 0, INSTANCE_LIVE_BYTES);
	return instance;
}

static struct instance *instance_with_children(void)
{
	struct instance *instance = xcalloc(sizeof *instance);

	instance->times = 1;
	return instance;
}

struct instance *instance_new(
	struct instances *instances, struct instance *parent, uint32_t node, uint64_t begin_ns)
{
	struct instance *instance = instances->keeps_children ? instance_with_children()
							      : reuse_instance(instances);

	instance->parent = parent;
	instance->node = node;
	instance->begin_ns = instance->end_ns = begin_ns;
	instance->references = 1;
	if (parent)
		parent->references++;
	return instance;
}

void instance_retain(struct instance *instance)
{
	instance->references++;
}

/* Appends the list `rest` to the list `first`. */
static struct instance *concat_instances(struct instance *first, struct instance *rest)
{
	struct instance *last = first;

	if (!first)
		return rest;
	while (last->next)
		last = last->next;
	last->next = rest;
	return first;
}

/* Without recursion, because a tree can be as deep as the program's ranges. */
void instance_free(struct instance *instance)
{
	struct instance *next;

	if (instance)
		instance->next = NULL;
	for (; instance; instance = next) {
		next = concat_instances(
			instance->children, concat_instances(instance->groups, instance->next));
		free(instance->slots);
		free(instance->label);
		free(instance->kernel);
		free(instance);
	}
}

void instances_free_blocks(struct instances *instances)
{
	struct instance_block *next;

	for (struct instance_block *block = instances->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(instances->reusable);
	*instances = (struct instances){ .final = NULL };
}

bool instance_worse(const struct instance *a, const struct instance *b)
{
	if (a->value != b->value)
		return a->value > b->value;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns > b->begin_ns;
	return a->node != b->node ? a->node > b->node : a->trace_node > b->trace_node;
}

static bool is_group_of(
	const struct instance *group, enum instance_form form, uint32_t node, uint32_t trace_node)
{
	if (group->form != form)
		return false;
	return form == INSTANCE_MANY || !trace_node
		       ? group->node == node && (form == INSTANCE_MANY || !group->trace_node)
		       : group->trace_node == trace_node;
}

/* The slot where the group is or belongs. */
static struct instance **group_slot(
	const struct instance *of, enum instance_form form, uint32_t node, uint32_t trace_node)
{
	const uint64_t key = (uint64_t)form << 32 |
			     (form == INSTANCE_MANY || !trace_node ? node : ~trace_node);
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (of->slot_count - 1);

	while (of->slots[i] && !is_group_of(of->slots[i], form, node, trace_node))
		i = (i + 1) & (of->slot_count - 1);
	return &of->slots[i];
}

/* The trace node by which a group is looked up. That of an INSTANCE_MANY group only names it. */
static uint32_t group_key_node(const struct instance *group)
{
	return group->form == INSTANCE_TRACE_NODE ? group->trace_node : 0;
}

static void grow_group_slots(struct instance *of)
{
	free(of->slots);
	of->slot_count = of->slot_count ? of->slot_count * 2 : GROUPS_LISTED * 4;
	of->slots = xcalloc(of->slot_count * sizeof(struct instance *));
	for (struct instance *group = of->groups; group; group = group->next)
		*group_slot(of, (enum instance_form)group->form, group->node,
			group_key_node(group)) = group;
}

static struct instance *find_group(
	const struct instance *of, enum instance_form form, uint32_t node, uint32_t trace_node)
{
	struct instance *group = of->groups;

	if (of->slots)
		return *group_slot(of, form, node, trace_node);
	while (group && !is_group_of(group, form, node, trace_node))
		group = group->next;
	return group;
}

/* Adds a group that is not in `of` yet. */
static void link_group(struct instance *of, struct instance *group)
{
	group->next = of->groups;
	of->groups = group;
	if (++of->group_count > GROUPS_LISTED && of->group_count * 2 > of->slot_count)
		grow_group_slots(of);
	else if (of->slots)
		*group_slot(of, (enum instance_form)group->form, group->node,
			group_key_node(group)) = group;
}

struct instance *instance_group(
	struct instance *of, enum instance_form form, uint32_t node, uint32_t trace_node)
{
	struct instance *group = find_group(of, form, node, trace_node);

	if (group)
		return group;
	group = xcalloc(sizeof *group);
	group->form = (uint8_t)form;
	group->node = node;
	group->trace_node = trace_node;
	link_group(of, group);
	return group;
}

/* A group of GPU work keeps its launch configuration as long as all of it has the same one. */
static void merge_shape(struct instance *group, const struct instance *one)
{
	if (group->times == 0 && one->kernel) {
		group->kernel = xcalloc(sizeof *group->kernel);
		*group->kernel = *one->kernel;
	} else if (group->kernel &&
		   (!one->kernel || !launch_config_equal(group->kernel, one->kernel))) {
		free(group->kernel);
		group->kernel = NULL;
	}
}

/* A group of several trace nodes is named after its tree node. */
static void merge_trace_node(struct instance *group, uint32_t trace_node)
{
	if (group->times == 0)
		group->trace_node = trace_node;
	else if (group->trace_node != trace_node)
		group->trace_node = 0;
}

void instance_add(struct instance *group, const struct instance *one)
{
	const bool first = group->times == 0;

	if (group->form == INSTANCE_MANY) {
		merge_shape(group, one);
		merge_trace_node(group, one->trace_node);
	}
	if (first || one->begin_ns < group->begin_ns) {
		group->begin_ns = one->begin_ns;
		group->level_before = one->level_before;
	}
	group->is_peak = one->is_peak;
	if (first || (one->is_peak ? one->level_after > group->level_after
				   : one->end_ns >= group->end_ns))
		group->level_after = one->level_after;
	if (first || one->end_ns >= group->end_ns)
		group->end_ns = one->end_ns;
	group->total_ns += one->total_ns;
	group->gpu_ns += one->gpu_ns;
	/* Peaks do not add up: a group rises from its first level to its highest one. */
	group->change = one->is_peak ? group->level_after - group->level_before
				     : group->change + one->change;
	group->value = one->is_peak ? group->change : group->value + one->value;
	group->times += group->form == INSTANCE_MANY && one->form == INSTANCE_TRACE_NODE
				? 1
				: one->times;
}

void instance_add_time(
	struct instance *group, uint32_t trace_node, uint64_t begin_ns, uint64_t end_ns)
{
	merge_trace_node(group, trace_node);
	if (group->times == 0 || begin_ns < group->begin_ns)
		group->begin_ns = begin_ns;
	if (end_ns > group->end_ns)
		group->end_ns = end_ns;
	group->total_ns += end_ns - begin_ns;
	group->value += end_ns - begin_ns;
	group->times++;
}

/* Inserts `one` into the list of children, by value. Returns false if it is not among the worst.
 * `*out`: the child that it replaces, or NULL. */
static bool insert_kept(struct instance *of, struct instance *one, struct instance **displaced)
{
	struct instance **link = &of->children;
	unsigned index = 0;

	*displaced = NULL;
	while (*link && !instance_worse(one, *link)) {
		link = &(*link)->next;
		index++;
	}
	if (index >= INSTANCE_KEPT)
		return false;
	one->next = *link;
	*link = one;
	if (++of->kept <= INSTANCE_KEPT)
		return true;
	while ((*link)->next)
		link = &(*link)->next;
	*displaced = *link;
	*link = NULL;
	of->kept--;
	return true;
}

static void add_to_group(struct instance *of, struct instance *one)
{
	struct instance *group = instance_group(of, INSTANCE_MANY, one->node, 0);

	instance_add(group, one);
	if (one->node == of->node) /* deeper than TREE_DEPTH_MAX: nodes are not distinguished */
		instance_free(one);
	else
		instance_merge(group, one);
}

void instance_adopt(struct instance *of, struct instance *one, bool large)
{
	struct instance *displaced = NULL;
	bool kept;

	one->parent = NULL;
	kept = large && insert_kept(of, one, &displaced);
	if (!kept)
		displaced = one;
	if (displaced)
		add_to_group(of, displaced);
}

/* Recursion is bounded by the depth of tree nodes (TREE_DEPTH_MAX). */
void instance_merge(struct instance *of, struct instance *one)
{
	struct instance *children = one->children, *groups = one->groups, *next;

	one->children = one->groups = NULL;
	instance_free(one);
	for (; children; children = next) {
		next = children->next;
		instance_adopt(of, children, true);
	}
	for (; groups; groups = next) {
		struct instance *known = find_group(
			of, (enum instance_form)groups->form, groups->node, group_key_node(groups));

		next = groups->next;
		if (!known) {
			link_group(of, groups);
			continue;
		}
		instance_add(known, groups);
		instance_merge(known, groups);
	}
}

static int by_worst_first(const void *a, const void *b)
{
	const struct instance *left = *(struct instance *const *)a,
			      *right = *(struct instance *const *)b;

	return instance_worse(left, right) ? -1 : instance_worse(right, left);
}

static bool is_small(const struct instance *group, long double least)
{
	return (group->value < 0 ? -group->value : group->value) < least;
}

/* Adds trace node groups below `least` to the groups of their tree nodes. */
static void group_small_trace_nodes(struct instance *of, long double least)
{
	struct instance *groups = of->groups, *next, *small = NULL;

	free(of->slots);
	of->slots = NULL;
	of->groups = NULL;
	of->group_count = of->slot_count = 0;
	for (; groups; groups = next) {
		next = groups->next;
		if (groups->form == INSTANCE_TRACE_NODE && is_small(groups, least)) {
			groups->next = small;
			small = groups;
		} else {
			link_group(of, groups);
		}
	}
	for (; small; small = next) {
		next = small->next;
		add_to_group(of, small);
	}
}

static bool same_name(const struct instance *a, const struct instance *b)
{
	return a->node == b->node && a->trace_node == b->trace_node && !a->label && !b->label;
}

/* Whether more than ALIKE_MAX instances have the name of `one`, and it is not much worse than
 * the others. */
static bool is_one_of_many(const struct instance *of, const struct instance *one)
{
	const struct instance *group = find_group(of, INSTANCE_MANY, one->node, 0);
	uint64_t times = group ? group->times : 0;
	long double value = group ? group->value : 0;

	for (const struct instance *child = of->children; child; child = child->next)
		if (same_name(child, one)) {
			times++;
			value += child->value;
		}
	return times > ALIKE_MAX &&
	       one->value * (long double)(times - 1) < OUTLIER_FACTOR * (value - one->value);
}

/* Groups rows that differ only in their order. Otherwise a reader has to count them, and does
 * not see their sum. */
static void group_alike(struct instance *of)
{
	struct instance *many[INSTANCE_KEPT], **link = &of->children;
	size_t count = 0;
	bool gathered[INSTANCE_KEPT], *next = gathered;

	for (const struct instance *child = of->children; child; child = child->next)
		*next++ = is_one_of_many(of, child);
	for (next = gathered; *link; next++)
		if (*next) {
			many[count++] = *link;
			*link = (*link)->next;
			of->kept--;
		} else {
			link = &(*link)->next;
		}
	for (size_t i = 0; i < count; i++)
		add_to_group(of, many[i]);
}

/* Makes one sorted list of children and groups. */
static void finish_one(struct instance *of, long double least)
{
	struct instance **all, *next;
	size_t count = 0;

	group_small_trace_nodes(of, least);
	if (least > 0)
		group_alike(of);
	all = xcalloc((of->kept + of->group_count + 1) * sizeof *all);
	for (struct instance *child = of->children; child; child = child->next)
		all[count++] = child;
	for (struct instance *group = of->groups; group; group = next) {
		next = group->next;
		if (is_small(group, least))
			instance_free(group);
		else
			all[count++] = group;
	}
	qsort(all, count, sizeof *all, by_worst_first);
	of->children = of->groups = NULL;
	free(of->slots);
	of->slots = NULL;
	of->kept = (uint32_t)count;
	of->group_count = of->slot_count = 0;
	while (count) {
		all[--count]->next = of->children;
		of->children = all[count];
	}
	free(all);
}

void instance_finish_children(struct instance *root, long double least)
{
	struct instance **waiting = NULL;
	size_t count = 1, room = 0;

	ARRAY_GROW(waiting, room, count);
	waiting[0] = root;
	while (count) {
		struct instance *of = waiting[--count];

		finish_one(of, least);
		for (struct instance *child = of->children; child; child = child->next) {
			*ARRAY_ADD(waiting, room, count) = child;
		}
	}
	free(waiting);
}

void instance_release(struct instances *instances, struct instance *instance)
{
	while (instance && --instance->references == 0) {
		struct instance *parent = instance->parent;

		if (parent)
			parent->gpu_ns += instance->gpu_ns;
		if (instances->final(instances->context, instance)) {
			instance = parent;
			continue;
		}
		if (instances->keeps_children) {
			instance_free(instance);
		} else {
			if (__builtin_expect(instance->label != NULL, 0))
				free(instance->label);
			instances->reusable[instances->reusable_count++] = instance;
		}
		instance = parent;
	}
}
