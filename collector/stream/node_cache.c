/* SPDX-License-Identifier: MIT
 * Resolves what the caches do not have, and adds it to them.
 */
#include "collector/stream/node_cache.h"

#include "collector/file/dictionary.h"

static uint32_t cached_bytes(size_t bytes)
{
	return bytes < CACHED_INLINE_BYTES ? (uint32_t)bytes : CACHED_LONG;
}

/* Stores `child` in its slot of by_parent. If another child of the same parent is there, the slot
 * is marked CACHED_MANY. The children of this parent then go to by_text, which has more room. The
 * root's children soon do. */
static void cache_child(struct stream *s, const char *text, struct cached_child child)
{
	struct cached_child *by_parent = by_parent_slot(s, s->node, text);

	if (by_parent->key == child.key)
		*by_parent = (struct cached_child){ .key = CACHED_MANY, .node = s->node & 0xFFFFF };
	if (by_parent->key == CACHED_MANY && by_parent->node == s->node)
		*by_text_slot(s, s->node, text) = child;
	else
		*by_parent = child;
}

uint32_t range_resolve_child(
	struct stream *s, uint32_t domain, enum trace_node_kind kind, const char *text)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	return name ? node_id(s->node, name, domain, kind) : 0;
}

static uint32_t resolve_and_cache_child(struct stream *s, uint32_t domain_or_kind, const char *text)
{
	const bool is_domain = domain_or_kind < CACHED_DOMAINS;
	uint32_t node = range_resolve_child(s, is_domain ? domain_or_kind : 0,
		is_domain ? TRACE_NODE_RANGE
			  : (enum trace_node_kind)(domain_or_kind - CACHED_DOMAINS),
		text);
	size_t bytes = strlen(text);

	if (node)
		cache_child(s, text,
			(struct cached_child){ name_text(name_id(text, bytes), &bytes),
				CACHED_KEY(s->node, domain_or_kind), cached_bytes(bytes) & 0xFFF,
				node & 0xFFFFF });
	return node;
}

uint32_t range_child_node(struct stream *s, uint32_t domain_or_kind, const char *text)
{
	const struct cached_child *by_parent = by_parent_slot(s, s->node, text),
				  *by_text = by_text_slot(s, s->node, text);
	uint32_t key = CACHED_KEY(s->node, domain_or_kind);

	if (is_cached_child(by_parent, key, text))
		return by_parent->node;
	return is_cached_child(by_text, key, text)
		       ? by_text->node
		       : resolve_and_cache_child(s, domain_or_kind, text);
}

static __attribute__((noinline)) uint32_t resolve_linked_child(
	struct cached_linked_child *slot, const char *text, struct cached_linked_child wanted)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	if (!name)
		return 0;
	wanted.node = node_id_linked(
		wanted.parent, name, (enum trace_node_kind)wanted.kind, wanted.link, wanted.detail);
	wanted.chars = name_text(name, &bytes);
	wanted.bytes = cached_bytes(bytes);
	if (wanted.node)
		*slot = wanted;
	return wanted.node;
}

uint32_t range_linked_child_node(struct stream *s, const char *text, enum trace_node_kind kind,
	uint32_t link, uint32_t detail)
{
	struct cached_linked_child *slot = linked_child_slot(s, text, link, detail);
	const struct cached_linked_child wanted = {
		.parent = s->node, .kind = (uint32_t)kind, .link = link, .detail = detail
	};

	if (is_linked_child(slot, s->node, kind, link, detail) &&
		matches_text(slot->chars, slot->bytes, text))
		return slot->node;
	return resolve_linked_child(slot, text, wanted);
}
