/* SPDX-License-Identifier: MIT
 * ranges.c: see ranges.h. range_push and range_pop are the hot path of the whole library: one look into the thread's cache, one stamp, one word.
 */
#include "ranges.h"

#include "clock.h"
#include "dictionary.h"
#include "stream_state.h"

#include <errno.h>
#include <string.h>

/* The short forms of trace_format.h. */
#define FORM_PUSH4 1u
#define FORM_POP4 2u
#define FORM_PUSH8 3u

static inline void put_word(struct stream *s, uint32_t word)
{
	memcpy(s->cursor, &word, sizeof word);
	s->cursor += sizeof word;
}

/* Now, and the ticks since the last stamp; a counter that seems to step back stands still. */
static inline uint64_t advance(struct stream *s)
{
	uint64_t now = clock_now(), last = s->last;

	if (__builtin_expect(now <= last, 0))
		return 0;
	s->last = now;
	return now - last;
}

/* Room for a short form and the ticks that it shall hold, in this order: making room may stamp. After a long gap the clocks are
 * noted first. false: no room, the event is lost (but timed, as the range goes on). */
static __attribute__((noinline)) bool prepare_after_gap(struct stream *s, size_t bytes, uint64_t *gap)
{
	stream_clock(s);
	if (!stream_room(s, bytes))
		return false;
	*gap = advance(s);
	if (*gap >= STREAM_GAP_MOST) /* halted for long between two lines: the next CLOCK sets it right */
		*gap = STREAM_GAP_MOST - 1;
	return true;
}

static inline bool prepare_short(struct stream *s, size_t bytes, uint64_t *gap)
{
	bool room = stream_room(s, bytes);
	uint64_t before = s->last;

	*gap = advance(s);
	if (__builtin_expect(*gap < STREAM_GAP_MOST, 1))
		return room;
	s->last = before;
	return room && prepare_after_gap(s, bytes, gap);
}

/* ---- which node ---- */

static struct cached_child *cache_line(struct stream *s, const char *text)
{
	uint64_t key = ((uint64_t)(uintptr_t)text ^ (uint64_t)s->node << 3) * 0x9E3779B97F4A7C15u;

	return &s->cache[key >> 52];
}
static_assert(STREAM_CACHE == 4096, "cache_line takes 12 bits");

/* By content: names and nodes are looked up, or made. 0: it gets no id of its own. */
static __attribute__((noinline)) uint32_t find_child(struct stream *s, uint32_t domain, const char *text)
{
	size_t bytes = strlen(text);
	uint32_t name = name_id(text, bytes);
	uint32_t node = name ? node_id(s->node, name, domain, TRACE_NODE_RANGE) : 0;

	if (node && bytes <= TRACE_TEXT_MAX)
		*cache_line(s, text) = (struct cached_child){text, name_text(name, &bytes), s->node, domain, node, 0};
	return node;
}

/* The pointer alone is no key: programs reuse their buffers. */
static inline uint32_t child_node(struct stream *s, uint32_t domain, const char *text)
{
	const struct cached_child *line = cache_line(s, text);

	if (__builtin_expect(line->text == text && line->parent == s->node && line->domain == domain, 1) && !strcmp(line->chars, text))
		return line->node;
	return find_child(s, domain, text);
}

/* ---- the row of open ranges ---- */

static uint32_t level_in_domain(const struct stream *s, uint32_t domain)
{
	for (uint32_t i = s->depth; i-- > 0;)
		if (s->frames[i].domain == domain)
			return s->frames[i].level + 1;
	return 0;
}

/* The new innermost range. Its level. There is room. */
static inline int open_frame(struct stream *s, uint32_t node, uint32_t domain)
{
	struct frame *frame = &s->frames[s->depth];
	uint32_t level;

	if (__builtin_expect(s->depth && frame[-1].domain == domain, 1))
		level = frame[-1].level + 1;
	else
		level = level_in_domain(s, domain);
	*frame = (struct frame){s->last, node, domain, level, 0};
	s->depth++;
	s->node = node;
	return (int)level;
}

/* ---- records with attributes or inline text ---- */

static void fill_range(struct trace_range *record, uint32_t domain, uint32_t name, const char *text, size_t inline_bytes,
		       const struct range_attributes *attributes)
{
	record->domain = domain;
	record->name = name;
	if (attributes) {
		record->head.flags = (uint8_t)attributes->flags;
		record->category = attributes->category;
		record->color = attributes->color;
		record->payload_type = attributes->payload_type;
		record->payload = attributes->payload;
	}
	if (!name) {
		record->head.flags |= TRACE_HAS_TEXT;
		record->text_bytes = (uint32_t)inline_bytes;
		memcpy(record + 1, text, inline_bytes);
	}
}

/* A PUSH, START or MARK at the present stamp. `name` 0: the text goes along, cut if it must be. NULL: no room. */
static struct trace_range *put_range(enum trace_kind kind, uint32_t domain, uint32_t name, const char *text,
				     const struct range_attributes *attributes)
{
	size_t bytes = name ? 0 : strlen(text);
	struct trace_range *record;

	if (bytes > TRACE_TEXT_MAX)
		bytes = TRACE_TEXT_MAX;
	record = stream_record(kind, sizeof *record + ((bytes + 7) & ~(size_t)7));
	if (record)
		fill_range(record, domain, name, text, bytes, attributes);
	return record;
}

/* The node of pushes whose texts get no ids: one below each parent, or the parent itself at the very end. */
static uint32_t nameless_child(const struct stream *s, uint32_t domain)
{
	uint32_t node = node_id(s->node, 0, domain, TRACE_NODE_RANGE);

	return node ? node : s->node;
}

static __attribute__((noinline)) int push_record(struct stream *s, uint32_t node, uint32_t domain, const char *text,
						 const struct range_attributes *attributes)
{
	uint32_t name = node ? name_id(text, strlen(text)) : 0;
	struct trace_range *record;
	int level;

	if (!node)
		node = nameless_child(s, domain);
	record = put_range(TRACE_PUSH, domain, name, text, attributes);
	if (record)
		record->head.node = node;
	level = open_frame(s, node, domain);
	if (record)
		stream_publish(s);
	return level;
}

static __attribute__((noinline)) int push_wide(struct stream *s, uint32_t node, uint32_t domain, uint64_t gap)
{
	put_word(s, node << 2 | FORM_PUSH8);
	put_word(s, (uint32_t)gap);
	stream_publish(s);
	return open_frame(s, node, domain);
}

/* Deeper than anything we keep: only counted, so that its pop is known again. */
static __attribute__((noinline)) int push_beyond(struct stream *s, uint32_t domain)
{
	s->beyond++;
	stream_lose(s, TRACE_LOST_TOO_DEEP);
	return (int)(level_in_domain(s, domain) + s->beyond - 1);
}

static inline int push_plain(struct stream *s, uint32_t node, uint32_t domain)
{
	uint64_t gap;

	if (__builtin_expect(!prepare_short(s, 8, &gap), 0))
		return open_frame(s, node, domain);
	if (__builtin_expect(gap >= 1u << 14 || node >= 1u << 16, 0))
		return push_wide(s, node, domain, gap);
	put_word(s, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	stream_publish(s);
	return open_frame(s, node, domain);
}

int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = stream_begin();
	uint32_t node;
	int level;

	if (!s)
		return RANGE_REFUSED;
	if (!text)
		text = "";
	if (__builtin_expect(s->beyond || (s->depth == s->frames_room && !stream_grow_frames(s)), 0)) {
		level = push_beyond(s, domain);
	} else {
		node = child_node(s, domain, text);
		if (__builtin_expect(!attributes && node, 1))
			level = push_plain(s, node, domain);
		else
			level = push_record(s, node, domain, text, attributes);
	}
	stream_leave();
	return level;
}

/* ---- closing ---- */

/* A range of `domain` under open ones of other domains. */
static __attribute__((noinline)) int pop_below(struct stream *s, uint32_t domain)
{
	uint32_t i = s->depth;
	struct trace_pop_at *record;
	int level;

	while (i > 0 && s->frames[i - 1].domain != domain)
		i--;
	if (!i--)
		return RANGE_REFUSED;
	record = stream_record(TRACE_POP_AT, sizeof *record);
	if (record) {
		record->head.node = s->frames[i].node;
		record->index = i;
	}
	level = (int)s->frames[i].level;
	memmove(&s->frames[i], &s->frames[i + 1], (s->depth - i - 1) * sizeof *s->frames);
	s->depth--;
	if (record)
		stream_publish(s);
	return level;
}

static inline int pop_innermost(struct stream *s)
{
	const struct frame *frame = &s->frames[s->depth - 1];
	uint64_t gap;

	/* Before the frame goes: if this seals, the new payload begins with the range still open. */
	if (__builtin_expect(prepare_short(s, 4, &gap), 1)) {
		put_word(s, (uint32_t)gap << 2 | FORM_POP4);
		stream_publish(s);
	}
	s->depth--;
	s->node = s->depth ? frame[-1].node : 0;
	return (int)frame->level;
}

int range_pop(uint32_t domain)
{
	struct stream *s = stream_begin();
	int level;

	if (!s)
		return RANGE_REFUSED;
	if (__builtin_expect(s->beyond, 0))
		level = (int)(level_in_domain(s, domain) + --s->beyond);
	else if (__builtin_expect(s->depth && s->frames[s->depth - 1].domain == domain, 1))
		level = pop_innermost(s);
	else
		level = pop_below(s, domain);
	stream_leave();
	return level;
}

/* ---- start/end and marks ---- */

static void put_plain(enum trace_kind kind, uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = stream_begin();
	struct trace_range *record;

	if (!s)
		return;
	if (!text)
		text = "";
	record = put_range(kind, domain, name_id(text, strlen(text)), text, attributes);
	if (record) {
		record->id = id;
		stream_publish(s);
	}
	stream_leave();
}

void range_start_as(uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	put_plain(TRACE_START, id, domain, text, attributes);
}

uint64_t range_start(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	static uint64_t last;
	uint64_t id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);

	range_start_as(id, domain, text, attributes);
	return id;
}

void range_end(uint64_t id)
{
	struct stream *s = stream_begin();
	struct trace_end *record;

	if (!s)
		return;
	record = stream_record(TRACE_END, sizeof *record);
	if (record) {
		record->id = id;
		stream_publish(s);
	}
	stream_leave();
}

void range_mark(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	put_plain(TRACE_MARK, 0, domain, text, attributes);
}
