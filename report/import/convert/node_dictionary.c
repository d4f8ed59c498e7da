/* SPDX-License-Identifier: MIT
 * kineto_places.c: the trace's dictionary: names, and the places of ranges.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

uint32_t kineto_name(struct kineto_build *build, uint32_t id)
{
	const struct text text = text_of(build->kineto->texts, id);

	if (!id)
		return 0;
	grow(&build->names, &build->name_room, (size_t)id + 1, sizeof *build->names);
	if (!build->names[id])
		build->names[id] = writer_name(build->writer, text.bytes, text.length);
	return build->names[id];
}

static struct node_slot *slot_of(const struct kineto_build *build, const struct node_slot *wanted)
{
	uint64_t hash = ((uint64_t)wanted->parent << 32 | wanted->name) * 0x9e3779b97f4a7c15u;
	size_t i;

	hash ^= ((uint64_t)wanted->link << 8 | wanted->kind) * 0xc2b2ae3d27d4eb4fu ^ wanted->detail * 0x9fb21c651e98df25u;
	for (i = (hash >> 24) & (build->node_slots - 1); build->nodes[i].node; i = (i + 1) & (build->node_slots - 1))
		if (build->nodes[i].parent == wanted->parent && build->nodes[i].name == wanted->name &&
			build->nodes[i].link == wanted->link && build->nodes[i].kind == wanted->kind &&
			build->nodes[i].domain == wanted->domain && build->nodes[i].detail == wanted->detail)
			break;
	return &build->nodes[i];
}

static void widen_nodes(struct kineto_build *build)
{
	struct node_slot *old = build->nodes;
	const size_t slots = build->node_slots;

	build->node_slots = slots ? slots * 2 : 1024;
	build->nodes = need(build->node_slots * sizeof *build->nodes);
	for (size_t i = 0; i < slots; i++)
		if (old[i].node)
			*slot_of(build, &old[i]) = old[i];
	free(old);
}

/* The class in a module's name, `ViTLayer_3`: its length, 0 if it is not of that form. */
static uint32_t class_length(struct text text)
{
	uint32_t length = text.length;

	while (length > 0 && text.bytes[length - 1] >= '0' && text.bytes[length - 1] <= '9')
		length--;
	return length >= 2 && length < text.length && text.bytes[length - 1] == '_' ? length - 1 : 0;
}

/* Kineto numbers the modules of a class as it meets them, and does not know their paths. `ViTLayer.3` folds as a path
 * does that ends in a number. */
static void name_module(struct kineto_build *build, uint32_t id, struct trace_node *node)
{
	struct texts *texts = build->kineto->texts;
	const struct text text = text_of(texts, id);
	const uint32_t length = class_length(text);
	char name[256];

	node->name = kineto_name(build, id);
	if (!length || text.length >= sizeof name)
		return;
	memcpy(name, text.bytes, text.length);
	node->detail = kineto_name(build, text_id(texts, name, length));
	name[length] = '.';
	node->name = kineto_name(build, text_id(texts, name, text.length));
}

uint32_t kineto_domain(const struct kineto *kineto, uint32_t domain)
{
	return domain ? kineto->domains[domain - 1].name : 0;
}

uint32_t kineto_node(struct kineto_build *build, uint32_t parent, const struct kineto_range *range, uint32_t link)
{
	struct node_slot wanted = { parent, range->name, link, range->kind, kineto_domain(build->kineto, range->domain),
		range->kind == TRACE_NODE_OP ? range->shapes : 0, 0 }, *slot;
	struct trace_node node;

	if (build->node_count * 2 >= build->node_slots)
		widen_nodes(build);
	slot = slot_of(build, &wanted);
	if (slot->node)
		return slot->node;
	node = (struct trace_node){ .parent = parent, .kind = range->kind, .link = link };
	node.domain = kineto_name(build, wanted.domain);
	node.detail = kineto_name(build, wanted.detail);
	if (range->kind == TRACE_NODE_MODULE)
		name_module(build, range->name, &node);
	else
		node.name = kineto_name(build, range->name);
	wanted.node = writer_node(build->writer, &node);
	build->node_count++;
	*slot = wanted;
	return wanted.node;
}
