/* SPDX-License-Identifier: MIT
 * range_nodes.c: see range_nodes.h. What the caches do not have.
 */
#include "collector/stream/node_cache.h"

#include "collector/file/dictionary.h"

static uint32_t cached_bytes(size_t bytes)
{
	return bytes < CACHED_SHORT_OF ? (uint32_t)bytes : CACHED_LONG;
}

/* Where two children of a parent would have the same place near it, all of them go where there is more room. So it is with the root soon. */
static void cache_child(struct stream *s, const char *text, struct cached_child child)
{
	struct cached_child *near = near_place(s, s->node, text);

	if (near->key == child.key)
		*near = (struct cached_child){.key = CACHED_MANY, .node = s->node & 0xFFFFF};
	if (near->key == CACHED_MANY && near->node == s->node)
		*far_place(s, s->node, text) = child;
	else
		*near = child;
}

uint32_t range_find_child(struct stream *s, uint32_t domain, enum trace_node_kind kind, const char *text)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	return name ? node_id(s->node, name, domain, kind) : 0;
}

static uint32_t find_and_cache(struct stream *s, uint32_t sort, const char *text)
{
	const bool is_domain = sort < CACHED_DOMAINS;
	uint32_t node = range_find_child(s, is_domain ? sort : 0, is_domain ? TRACE_NODE_RANGE : (enum trace_node_kind)(sort - CACHED_DOMAINS), text);
	size_t bytes = strlen(text);

	if (node)
		cache_child(s, text, (struct cached_child){name_text(name_id(text, bytes), &bytes), CACHED_KEY(s->node, sort),
							   cached_bytes(bytes) & 0xFFF, node & 0xFFFFF});
	return node;
}

uint32_t range_child_node(struct stream *s, uint32_t sort, const char *text)
{
	const struct cached_child *near = near_place(s, s->node, text), *far = far_place(s, s->node, text);
	uint32_t key = CACHED_KEY(s->node, sort);

	if (is_child(near, key, text))
		return near->node;
	return is_child(far, key, text) ? far->node : find_and_cache(s, sort, text);
}

static __attribute__((noinline)) uint32_t find_place(struct cached_place *place, const char *text, struct cached_place wanted)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);

	if (!name)
		return 0;
	wanted.node = node_id_about(wanted.parent, name, (enum trace_node_kind)wanted.kind, wanted.link, wanted.detail);
	wanted.chars = name_text(name, &bytes);
	wanted.bytes = cached_bytes(bytes);
	if (wanted.node)
		*place = wanted;
	return wanted.node;
}

uint32_t range_place_node(struct stream *s, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct cached_place *place = cached_place(s, text, link, detail);
	const struct cached_place wanted = {.parent = s->node, .kind = (uint32_t)kind, .link = link, .detail = detail};

	if (is_place(place, s->node, kind, link, detail) && is_kept(place->chars, place->bytes, text))
		return place->node;
	return find_place(place, text, wanted);
}
