/* SPDX-License-Identifier: MIT
 * Ranges that belong to an object of the program, recorded or only counted. Their fast paths work
 * as those of ranges.c.
 */
#include "collector/stream/ranges.h"

#include "collector/process/clock.h"
#include "collector/stream/unrecorded_ranges.h"
#include "collector/stream/range_records.h"
#include "collector/stream/range_stack.h"
#include "collector/stream/node_cache.h"
#include "collector/file/trace_file.h"

static void push_object(struct stream *s, uint32_t node, const void *object)
{
	range_write_push(s, node);
	range_open_frame(s, node, FRAME_OBJECT);
	s->top->object = object;
}

static inline void push_counted(struct stream *s, uint32_t node, const void *object, uint64_t now)
{
	struct range_frame *frame = s->top + 1;

	frame->begin = now;
	frame->node = s->node = node;
	frame->domain = FRAME_COUNTED;
	frame->object = object;
	s->top = frame;
}

/* Counts a lost range. A range that is only counted is not lost to the stream, whose records stay
 * correct. */
static void lose_object_range(struct stream *s, uint32_t domain, enum trace_loss reason)
{
	if (domain == FRAME_OBJECT && !recording_is_paused())
		stream_lose(s, reason);
	else
		trace_lose(reason, 1);
}

/* Opens a range of an object where the fast path could not. `domain`: FRAME_OBJECT or
 * FRAME_COUNTED. */
static __attribute__((noinline)) uint32_t open_object_slow(const void *object, const char *text,
	enum trace_node_kind kind, uint32_t link, uint32_t detail, uint32_t domain)
{
	struct stream *s = range_begin();
	uint32_t node = 0;

	if (!s)
		return 0;
	if (s->top == s->top_limit && !stream_grow_frames(s)) {
		lose_object_range(s, domain, TRACE_LOST_TOO_DEEP);
	} else if (recording_is_paused()) {
		range_open_unrecorded(s, object, text, kind, link, detail);
	} else {
		node = link || detail ? range_linked_child_node(s, text, kind, link, detail)
				      : range_child_node(s, CACHED_KIND(kind), text);
		if (!node)
			lose_object_range(s, domain, TRACE_LOST_NO_MEMORY);
		else if (domain == FRAME_OBJECT)
			push_object(s, node, object);
		else
			push_counted(s, node, object, clock_now());
	}
	stream_finish();
	return node;
}

bool range_is_innermost(uint32_t node)
{
	const struct stream *s = stream_tls.mine;

	return s && s->slot && s->node == node;
}

/* Works as range_push_plain. */
uint32_t range_open(const void *object, const char *text, enum trace_node_kind kind, uint32_t link,
	uint32_t detail)
{
	struct stream *s = link | detail ? NULL : stream_acquire();
	const struct cached_child *child;
	const struct trace_block *slot;
	struct range_frame *top;
	uint64_t now, gap, used;
	uint32_t node;

	if (__builtin_expect(!s, 0))
		return open_object_slow(object, text, kind, link, detail, FRAME_OBJECT);
	child = lookup_child(s, CACHED_KIND(kind), text);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(
		    !child || !slot || !matches_text_fast(child->chars, child->bytes, text), 0))
		goto slow_path;
	gap = now - s->last;
	node = child->node;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= 1 << 14 || used + sizeof(uint32_t) > stream_fast_room(s) ||
				     node > 0xFFFF || top == s->top_limit,
		    0))
		goto slow_path;
	s->last = now;
	stream_put_word_at(s->slot, used, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	top[1] = (struct range_frame){
		.begin = now, .node = node, .domain = FRAME_OBJECT, .object = object
	};
	stream_set_top(s, top + 1);
	stream_release(s);
	return node;
slow_path:
	stream_release(s);
	return open_object_slow(object, text, kind, link, detail, FRAME_OBJECT);
}

/* Opens a counted range with a link or a detail: mostly operators of the backward pass. */
static __attribute__((noinline)) uint32_t open_counted_linked(const void *object, const char *text,
	enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s = stream_acquire();
	const struct cached_linked_child *linked;
	uint64_t now;

	if (__builtin_expect(!s, 0))
		return open_object_slow(object, text, kind, link, detail, FRAME_COUNTED);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	linked = linked_child_slot(s, text, link, detail);
	if (__builtin_expect(!stream_fast_room(s) || s->top == s->top_limit ||
				     !is_linked_child(linked, s->node, kind, link, detail) ||
				     !matches_text_fast(linked->chars, linked->bytes, text),
		    0)) {
		stream_release(s);
		return open_object_slow(object, text, kind, link, detail, FRAME_COUNTED);
	}
	push_counted(s, linked->node, object, now);
	stream_release(s);
	return linked->node;
}

/* Works as range_push_plain, but writes no record. */
uint32_t range_open_counted(const void *object, const char *text, enum trace_node_kind kind,
	uint32_t link, uint32_t detail)
{
	struct stream *s;
	const struct cached_child *child;
	uint64_t now;

	if (link | detail)
		return open_counted_linked(object, text, kind, link, detail);
	s = stream_acquire();
	if (__builtin_expect(!s, 0))
		return open_object_slow(object, text, kind, link, detail, FRAME_COUNTED);
	child = lookup_child(s, CACHED_KIND(kind), text);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!child || !stream_fast_room(s) || s->top == s->top_limit ||
				     !matches_text_fast(child->chars, child->bytes, text),
		    0)) {
		stream_release(s);
		return open_object_slow(object, text, kind, link, detail, FRAME_COUNTED);
	}
	push_counted(s, child->node, object, now);
	stream_release(s);
	return child->node;
}

static inline bool is_object_frame(const struct range_frame *frame, const void *object)
{
	return frame->domain == FRAME_OBJECT && frame->object == object;
}

static inline bool is_counted_frame(const struct range_frame *frame, const void *object)
{
	return frame->domain == FRAME_COUNTED && frame->object == object;
}

/* Adds a counted range to its row, which may have to be created, and removes its frame. A stream
 * without records still writes a CLOCK record at times, so that ticks have a rate. */
static void count_closed_frame(struct stream *s, struct range_frame *frame)
{
	const uint64_t now = clock_now();
	enum trace_loss reason;
	struct trace_total *row = totals_row(&s->totals, frame->node, &reason);

	if (row)
		total_add(row, now > frame->begin ? now - frame->begin : 0);
	else
		trace_lose(reason, 1);
	range_remove_frame(s, frame);
	if (now > s->last && now - s->last >= STREAM_COUNTED_GAP_MAX) {
		stream_write_clock(s);
		totals_write_back(&s->totals);
	}
}

static void close_object_frame(struct stream *s, struct range_frame *frame)
{
	if (frame->domain == FRAME_COUNTED)
		count_closed_frame(s, frame);
	else if (frame->domain == FRAME_UNRECORDED_OBJECT)
		range_pop_unrecorded(s, frame);
	else if (frame == s->top)
		range_pop_innermost(s);
	else
		range_pop_frame(s, frame);
}

static __attribute__((noinline)) bool close_object_slow(const void *object)
{
	struct stream *s = stream_tls.mine;
	struct range_frame *frame;
	bool found;

	/* A thread without a slot, as in a forked child, has no open range. Then no file is
	 * made. */
	if (!s || !s->slot || !(s = range_begin()))
		return false;
	frame = s->top;
	while (frame > s->frames &&
		!(frame->object == object && frame->domain >= FRAME_UNRECORDED_OBJECT &&
			frame->domain <= FRAME_OBJECT))
		frame--;
	found = frame > s->frames;
	if (found && frame == s->top && __atomic_load_n(&s->frames_due, __ATOMIC_RELAXED))
		frame_request_answer(s);
	if (found)
		close_object_frame(s, frame);
	stream_finish();
	return found;
}

bool range_close(const void *object)
{
	struct stream *s = stream_acquire();
	struct trace_block *slot;
	struct range_frame *top;
	uint64_t now, gap, used;

	if (__builtin_expect(!s, 0))
		return close_object_slow(object);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	top = s->top;
	if (__builtin_expect(!slot || !is_object_frame(top, object), 0))
		goto slow_path;
	gap = now - s->last;
	used = slot->used;
	if (__builtin_expect(
		    gap >= STREAM_GAP_MAX || used + sizeof(uint32_t) > stream_fast_room(s), 0))
		goto slow_path;
	s->last = now;
	stream_put_word_at(slot, used, (uint32_t)gap << 2 | FORM_POP4);
	stream_set_top(s, top - 1);
	stream_release(s);
	return true;
slow_path:
	stream_release(s);
	return close_object_slow(object);
}

bool range_close_counted(const void *object)
{
	struct stream *s = stream_acquire();
	struct trace_total *row;
	struct range_frame *top;
	uint64_t now;

	if (__builtin_expect(!s, 0))
		return close_object_slow(object);
	now = clock_now_fast();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	top = s->top;
	if (__builtin_expect(!stream_fast_room(s) || !is_counted_frame(top, object) ||
				     now - s->last >= STREAM_COUNTED_GAP_MAX || now < top->begin,
		    0))
		goto slow_path;
	row = totals_row_cached(&s->totals, top->node);
	if (__builtin_expect(!row, 0))
		goto slow_path;
	total_add(row, now - top->begin);
	stream_set_top(s, top - 1);
	stream_release(s);
	return true;
slow_path:
	stream_release(s);
	return close_object_slow(object);
}
