/* SPDX-License-Identifier: MIT
 * Writes the trace's dictionary: names and nodes.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"

uint32_t convert_name(struct conversion *conversion, uint32_t id)
{
	const struct string_view text = string_table_get(conversion->imported->texts, id);

	if (!id)
		return 0;
	ARRAY_GROW(conversion->names, conversion->name_room, (size_t)id + 1);
	if (!conversion->names[id])
		conversion->names[id] = writer_name(conversion->writer, text.bytes, text.length);
	return conversion->names[id];
}

static uint64_t hash_node_key(const struct converted_node_key *key)
{
	uint64_t hash = hash_u64((uint64_t)key->parent << 32 | key->name);

	hash = hash_u64(hash ^ ((uint64_t)key->link << 8 | key->kind));
	return hash_u64(hash ^ ((uint64_t)key->detail << 32 | key->domain));
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
	const struct converted_node_key wanted = { parent, range->name, link, range->kind,
		convert_domain_name(conversion->imported, range->domain), range->shapes };
	const uint64_t hash = hash_node_key(&wanted);
	struct hash_slot *slot;
	struct trace_node node;
	uint32_t number;

	hash_index_reserve(&conversion->nodes);
	for (slot = hash_index_first(&conversion->nodes, hash); slot->number;
		slot = hash_index_next(&conversion->nodes, slot))
		if (!memcmp(&conversion->node_keys[slot->number], &wanted, sizeof wanted))
			return slot->number;
	node = (struct trace_node){ .parent = parent, .kind = range->kind, .link = link };
	node.domain = convert_name(conversion, wanted.domain);
	node.detail = convert_name(conversion, wanted.detail);
	if (range->kind == TRACE_NODE_MODULE)
		name_module(conversion, range->name, &node);
	else
		node.name = convert_name(conversion, range->name);
	number = writer_node(conversion->writer, &node);
	ARRAY_GROW(conversion->node_keys, conversion->node_key_room, (size_t)number + 1);
	conversion->node_keys[number] = wanted;
	hash_index_add(&conversion->nodes, slot, hash, number);
	return number;
}
