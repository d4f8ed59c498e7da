/* SPDX-License-Identifier: MIT
 * range_push_plain and range_pop_plain are the hot path of the whole library: a lookup in the
 * thread's cache, a time stamp, and one word written.
 */
#include "collector/stream/ranges.h"

#include "collector/process/clock.h"
#include "collector/file/dictionary.h"
#include "collector/stream/held_records.h"
#include "collector/stream/unrecorded_ranges.h"
#include "collector/stream/range_records.h"
#include "collector/stream/range_stack.h"
#include "collector/stream/node_cache.h"
#include "collector/file/trace_file.h"

#include <string.h>

static void fill_range(struct trace_range *record, uint32_t domain, uint32_t name, const char *text,
	size_t inline_bytes, const struct range_attributes *attributes)
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

/* Appends a PUSH, START or MARK at the current time. `name` 0: the text is stored in the record,
 * and cut if it is too long. Returns NULL if there is no room. */
static struct trace_range *append_range(enum trace_kind kind, uint32_t domain, uint32_t name,
	const char *text, const struct range_attributes *attributes)
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

/* Returns the node for pushes whose texts get no id: each parent has one such child. Returns the
 * parent itself if even that child gets no id. */
static uint32_t nameless_child(const struct stream *s, uint32_t domain)
{
	uint32_t node = node_id(s->node, 0, domain, TRACE_NODE_RANGE);

	return node ? node : s->node;
}

static __attribute__((noinline)) int push_record(struct stream *s, uint32_t node, uint32_t domain,
	const char *text, const struct range_attributes *attributes)
{
	uint32_t name = node ? name_id(text, strlen(text)) : 0;
	struct trace_range *record;
	int level;

	if (!node)
		node = nameless_child(s, domain);
	record = append_range(TRACE_PUSH, domain, name, text, attributes);
	if (record)
		record->head.node = node;
	level = range_open_frame(s, node, domain);
	if (record)
		stream_publish(s);
	return level;
}

static int push_plain(struct stream *s, uint32_t node, uint32_t domain)
{
	range_write_push(s, node);
	return range_open_frame(s, node, domain);
}

/* Counts a push beyond the deepest frame, so that its pop is recognised. */
static int push_too_deep(struct stream *s, uint32_t domain)
{
	s->too_deep++;
	stream_update_limits(s);
	/* Not a loss of the stream: its range stack stays correct. */
	trace_lose(TRACE_LOST_TOO_DEEP, 1);
	return (int)(range_level(s, domain) + s->too_deep - 1);
}

int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	struct stream *s = range_begin();
	uint32_t node;
	int level;

	if (!s) {
		stream_tls.refused_ranges++;
		return RANGE_REFUSED;
	}
	if (!text)
		text = "";
	if (s->too_deep || (s->top == s->top_limit && !stream_grow_frames(s))) {
		level = push_too_deep(s, domain);
	} else if (recording_is_paused()) {
		level = range_push_unrecorded(s, domain, text);
	} else {
		node = domain < CACHED_DOMAINS
			       ? range_child_node(s, domain, text)
			       : range_resolve_child(s, domain, TRACE_NODE_RANGE, text);
		level = attributes || !node ? push_record(s, node, domain, text, attributes)
					    : push_plain(s, node, domain);
	}
	stream_finish();
	return level;
}

/* Releases the stream and takes the slow path. `owner_word`: that of the acquired stream. */
static __attribute__((noinline)) int push_slow(const char *text, char *owner_word)
{
	stream_tls.owner_word = owner_word;
	return range_push(0, text, NULL);
}

/* The hot path, without a call. Reading the counter waits for earlier loads, so only the cache
 * lookup comes before it. The text is compared and all else loaded after it, overlapping the
 * program's next work. Nothing is stored before the last check, so each failed check can fall back
 * to push_slow(). */
int range_push_plain(const char *text)
{
	struct stream *s = stream_acquire();
	const struct cached_child *child;
	const struct trace_block *slot;
	struct range_frame *top;
	uint64_t now, gap, used;
	uint32_t node;

	if (__builtin_expect(!s, 0))
		return range_push(0, text, NULL);
	if (__builtin_expect(!text || !(child = lookup_child(s, 0, text)), 0))
		return push_slow(text, stream_owner_word(s));
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!matches_text_fast(child->chars, child->bytes, text) || !slot, 0))
		return push_slow(text, stream_owner_word(s));
	gap = now - s->last;
	node = child->node;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= 1 << 14 || used + sizeof(uint32_t) > stream_fast_room(s) ||
				     node > 0xFFFF || top == s->top_limit || top->domain + 1 > 1,
		    0))
		return push_slow(text, stream_owner_word(s));
	s->last = now;
	stream_put_word_at(s->slot, used, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	top[1].begin = now;
	top[1].node = s->node = node;
	top[1].domain = 0;
	top[1].level = top->level + 1;
	s->top = top + 1;
	stream_release(s);
	return (int)top[1].level;
}

/* Closes a range of `domain` that is below open ranges of other domains. */
static int pop_not_innermost(struct stream *s, uint32_t domain)
{
	struct range_frame *frame = s->top;

	while (frame > s->frames && frame->domain != domain &&
		frame->domain != (domain | FRAME_UNRECORDED))
		frame--;
	if (frame == s->frames) {
		if (stream_tls.refused_ranges)
			stream_lose_refused_end();
		else if (!recording_is_paused())
			range_write_unmatched_pop(s);
		return RANGE_REFUSED;
	}
	return frame->domain == domain ? range_pop_frame(s, frame) : range_pop_unrecorded(s, frame);
}

int range_pop(uint32_t domain)
{
	struct stream *s = range_begin();
	int level;

	if (!s) {
		stream_tls.refused_ranges -= stream_tls.refused_ranges > 0;
		return RANGE_REFUSED;
	}
	if (s->too_deep) {
		level = (int)(range_level(s, domain) + --s->too_deep);
		stream_update_limits(s);
		trace_lose(TRACE_LOST_TOO_DEEP, 1); /* an event like its push */
	} else if (s->top->domain == domain) {
		level = range_pop_innermost(s);
	} else {
		level = pop_not_innermost(s, domain);
	}
	stream_finish();
	return level;
}

static __attribute__((noinline)) int pop_slow(char *owner_word)
{
	stream_tls.owner_word = owner_word;
	return range_pop(0);
}

int range_pop_plain(void)
{
	struct stream *s = stream_acquire();
	struct trace_block *slot;
	struct range_frame *top;
	uint64_t now, gap, used;

	if (__builtin_expect(!s, 0))
		return range_pop(0);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!slot, 0))
		return pop_slow(stream_owner_word(s));
	gap = now - s->last;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= STREAM_GAP_MAX ||
				     used + sizeof(uint32_t) > stream_fast_room(s) ||
				     top->domain != 0,
		    0))
		return pop_slow(stream_owner_word(s));
	s->last = now;
	stream_put_word_at(slot, used, (uint32_t)gap << 2 | FORM_POP4);
	stream_set_top(s, top - 1);
	stream_release(s);
	return (int)top->level;
}

/* Counts a start/end range or mark as skipped and releases the stream. */
static void skip_range(struct stream *s)
{
	stream_skip_end(s, TRACE_SKIPPED_OTHERS, stream_skip_begin(s, TRACE_SKIPPED_OTHERS));
	stream_finish();
}

static void record_start_or_mark(enum trace_kind kind, uint64_t id, uint32_t domain,
	const char *text, const struct range_attributes *attributes)
{
	struct stream *s = range_begin();
	struct signal_guard guard;
	struct trace_range *record;
	uint32_t name;

	if (!s)
		return;
	if (recording_scheduled &&
		(kind == TRACE_START ? !recording_begin_async(id) : recording_is_paused())) {
		skip_range(s);
		return;
	}
	if (!text)
		text = "";
	name = name_id(text, strlen(text));
	if (kind == TRACE_START)
		held_records_lock(&guard);
	record = append_range(kind, domain, name, text, attributes);
	if (record) {
		record->id = id;
		if (kind == TRACE_START)
			held_records_set(id, record);
		stream_publish(s);
	}
	if (kind == TRACE_START)
		held_records_unlock(&guard);
	stream_finish();
}

void range_start_as(
	uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	record_start_or_mark(TRACE_START, id, domain, text, attributes);
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
	struct stream *s = range_begin();
	struct signal_guard guard;
	struct trace_end *record;

	if (!s)
		return;
	if (recording_scheduled && !recording_end_async(id)) {
		skip_range(s);
		return;
	}
	held_records_lock(&guard);
	record = stream_record(TRACE_END, sizeof *record);
	if (record) {
		record->id = id;
		stream_publish(s);
	}
	held_records_remove(TRACE_START, id);
	held_records_unlock(&guard);
	stream_finish();
}

void range_mark(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	record_start_or_mark(TRACE_MARK, 0, domain, text, attributes);
}
