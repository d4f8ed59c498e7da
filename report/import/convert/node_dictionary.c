/* SPDX-License-Identifier: MIT
 * Writes the trace's dictionary: names and nodes.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

uint32_t convert_name(struct conversion *conversion, uint32_t id)
{
	const struct string_view text = string_table_get(conversion->imported->texts, id);

	if (!id)
		return 0;
	array_grow_zeroed(&conversion->names, &conversion->name_room, (size_t)id + 1,
		sizeof *conversion->names);
	if (!conversion->names[id])
		conversion->names[id] = writer_name(conversion->writer, text.bytes, text.length);
	return conversion->names[id];
}

static struct conversion_node *find_node_slot(
	const struct conversion *conversion, const struct conversion_node *wanted)
{
	uint64_t hash = ((uint64_t)wanted->parent << 32 | wanted->name) * 0x9e3779b97f4a7c15u;
	size_t i;

	hash ^= ((uint64_t)wanted->link << 8 | wanted->kind) * 0xc2b2ae3d27d4eb4fu ^
		wanted->detail * 0x9fb21c651e98df25u;
	for (i = (hash >> 24) & (conversion->node_slots - 1); conversion->nodes[i].node;
		i = (i + 1) & (conversion->node_slots - 1))
		if (conversion->nodes[i].parent == wanted->parent &&
			conversion->nodes[i].name == wanted->name &&
			conversion->nodes[i].link == wanted->link &&
			conversion->nodes[i].kind == wanted->kind &&
			conversion->nodes[i].domain == wanted->domain &&
			conversion->nodes[i].detail == wanted->detail)
			break;
	return &conversion->nodes[i];
}

static void grow_node_slots(struct conversion *conversion)
{
	struct conversion_node *old = conversion->nodes;
	const size_t slots = conversion->node_slots;

	conversion->node_slots = slots ? slots * 2 : 1024;
	conversion->nodes = xcalloc(conversion->node_slots * sizeof *conversion->nodes);
	for (size_t i = 0; i < slots; i++)
		if (old[i].node)
			*find_node_slot(conversion, &old[i]) = old[i];
	free(old);
}

/* Returns the length of the class in a module's name such as `ViTLayer_3`, or 0 if it has
 * another form. */
static uint32_t module_class_length(struct string_view text)
{
	uint32_t length = text.length;

	while (length > 0 && text.bytes[length - 1] >= '0' && text.bytes[length - 1] <= '9')
		length--;
	return length >= 2 && length < text.length && text.bytes[length - 1] == '_' ? length - 1
										    : 0;
}

/* Kineto numbers the modules of a class in order of appearance and does not know their paths.
 * The name `ViTLayer.3` merges with its siblings like a path that ends in a number. */
static void name_module(struct conversion *conversion, uint32_t id, struct trace_node *node)
{
	struct string_table *texts = conversion->imported->texts;
	const struct string_view text = string_table_get(texts, id);
	const uint32_t length = module_class_length(text);
	char name[256];

	node->name = convert_name(conversion, id);
	if (!length || text.length >= sizeof name)
		return;
	memcpy(name, text.bytes, text.length);
	node->detail = convert_name(conversion, string_table_intern(texts, name, length));
	name[length] = '.';
	node->name = convert_name(conversion, string_table_intern(texts, name, text.length));
}

uint32_t convert_domain_name(const struct event_rows *imported, uint32_t domain)
{
	return domain ? imported->domains[domain - 1].name : 0;
}

uint32_t convert_node(struct conversion *conversion, uint32_t parent,
	const struct imported_range *range, uint32_t link)
{
	struct conversion_node wanted = { parent, range->name, link, range->kind,
		convert_domain_name(conversion->imported, range->domain),
		range->kind == TRACE_NODE_OP ? range->shapes : 0, 0 },
			       *slot;
	struct trace_node node;

	if (conversion->node_count * 2 >= conversion->node_slots)
		grow_node_slots(conversion);
	slot = find_node_slot(conversion, &wanted);
	if (slot->node)
		return slot->node;
	node = (struct trace_node){ .parent = parent, .kind = range->kind, .link = link };
	node.domain = convert_name(conversion, wanted.domain);
	node.detail = convert_name(conversion, wanted.detail);
	if (range->kind == TRACE_NODE_MODULE)
		name_module(conversion, range->name, &node);
	else
		node.name = convert_name(conversion, range->name);
	wanted.node = writer_node(conversion->writer, &node);
	conversion->node_count++;
	*slot = wanted;
	return wanted.node;
}
