/* SPDX-License-Identifier: MIT
 * Finds the node that a range opens in the calling thread's own caches, by a few comparisons. Only
 * for ranges.c, object_ranges.c and unrecorded_ranges.c.
 */
#ifndef PPERF_COLLECTOR_STREAM_NODE_CACHE_H
#define PPERF_COLLECTOR_STREAM_NODE_CACHE_H

#include "collector/stream/stream_state.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Returns the child of the innermost open range for `text`. `domain_or_kind`: a domain below
 * CACHED_DOMAINS, or CACHED_KIND(kind). Returns 0 if the child gets no id of its own. */
uint32_t range_child_node(struct stream *s, uint32_t domain_or_kind, const char *text);

/* As range_child_node, for any domain and without the caches: looks the name and node up by
 * content, or adds them to the dictionary. */
uint32_t range_resolve_child(
	struct stream *s, uint32_t domain, enum trace_node_kind kind, const char *text);

/* As range_child_node, with a link and a detail (struct trace_node). */
uint32_t range_linked_child_node(struct stream *s, const char *text, enum trace_node_kind kind,
	uint32_t link, uint32_t detail);

static inline uint64_t hash_address(const char *text)
{
	return (uint64_t)(uintptr_t)text * 0x9E3779B97F4A7C15u;
}

static inline struct cached_child *by_parent_slot(
	struct stream *s, uint32_t parent, const char *text)
{
	return &s->by_parent[(parent * 2 + ((uintptr_t)text >> 4 & 1)) % STREAM_BY_PARENT];
}

static inline struct cached_child *by_text_slot(struct stream *s, uint32_t parent, const char *text)
{
	return &s->by_text[(uint32_t)(hash_address(text) >> 32) * (parent | 1) >> 18];
}
static_assert(STREAM_BY_TEXT == 1 << 14, "by_text_slot takes 14 bits");

#if defined(__SSE2__)
__attribute__((no_sanitize("address"))) static inline __m128i compare_16(
	const char *a, const char *b)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)a),
		y = _mm_loadu_si128((const __m128i *)(const void *)b);

	return _mm_cmpeq_epi8(x, y);
}

static inline bool all_equal(__m128i bytes)
{
	return _mm_movemask_epi8(bytes) == 0xFFFF;
}

/* True if `text` equals `cached`, whose length `bytes` is known. False also if that cannot be
 * decided here. Makes no call: most texts need one comparison of 16 bytes, or three that overlap.
 * If `text` is shorter than `cached`, bytes after its end are read, but only within the same
 * page. */
__attribute__((no_sanitize("address"))) static inline bool equal_fast(
	const char *cached, size_t bytes, const char *text)
{
	size_t last = bytes + 1 - 16, middle = last < 16 ? last : 16;
	__m128i first;

	/* Always true for CACHED_LONG. */
	if (__builtin_expect(((uintptr_t)text & 4095) + bytes + 16 > 4096, 0))
		return false;
	first = compare_16(cached, text);
	if (bytes < 15)
		return ((unsigned)_mm_movemask_epi8(first) + 1) % (2u << bytes) == 0;
	return all_equal(_mm_and_si128(_mm_and_si128(first, compare_16(cached + last, text + last)),
		compare_16(cached + middle, text + middle)));
}
#else
static inline bool equal_fast(const char *cached, size_t bytes, const char *text)
{
	return bytes < CACHED_INLINE_BYTES && !strncmp(cached, text, bytes + 1);
}
#endif

/* True if `text` equals the cached text. The content decides, because programs reuse their buffers.
 * `cached` is NULL if a fork has emptied the entry. */
static inline bool matches_text_fast(const char *cached, size_t bytes, const char *text)
{
	return cached && equal_fast(cached, bytes, text);
}

static inline bool matches_text(const char *cached, size_t bytes, const char *text)
{
	return cached && (equal_fast(cached, bytes, text) || !strcmp(cached, text));
}

static inline bool is_cached_child(const struct cached_child *slot, uint32_t key, const char *text)
{
	return slot->key == key && matches_text(slot->chars, slot->bytes, text);
}

/* Returns the cache entry whose key matches a child of s->node, or NULL. Its text is not compared
 * yet. */
static inline const struct cached_child *lookup_child(
	struct stream *s, uint32_t domain_or_kind, const char *text)
{
	const uint32_t key = CACHED_KEY(s->node, domain_or_kind);
	const struct cached_child *child = by_parent_slot(s, s->node, text);

	if (__builtin_expect(child->key == key, 1))
		return child;
	child = by_text_slot(s, s->node, text);
	return child->key == key ? child : NULL;
}

static inline struct cached_linked_child *linked_child_slot(
	struct stream *s, const char *text, uint32_t link, uint32_t detail)
{
	uint64_t hash = (hash_address(text) >> 32) * (s->node | 1) +
			(uint64_t)(link ^ detail << 8) * 0x9E3779B1u;

	return &s->linked[(hash >> 13 ^ hash) % STREAM_LINKED];
}

static inline bool is_linked_child(const struct cached_linked_child *slot, uint32_t parent,
	enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	return slot->parent == parent && slot->link == link && slot->kind == (uint32_t)kind &&
	       slot->detail == detail;
}

#endif
