/* SPDX-License-Identifier: MIT
 * owned_ranges.c: ranges that an object stands for, recorded or only counted: see ranges.h. The quick ways are those of ranges.c.
 */
#include "collector/stream/ranges.h"

#include "collector/process/clock.h"
#include "collector/stream/unrecorded_ranges.h"
#include "collector/stream/range_records.h"
#include "collector/stream/range_stack.h"
#include "collector/stream/node_cache.h"
#include "collector/file/trace_file.h"

static void put_owned(struct stream *s, uint32_t node, const void *owner)
{
	range_put_push(s, node);
	range_open_frame(s, node, FRAME_OWNED);
	s->top->owner = owner;
}

static inline void put_counted(struct stream *s, uint32_t node, const void *owner, uint64_t now)
{
	struct frame *frame = s->top + 1;

	frame->begin = now;
	frame->node = s->node = node;
	frame->domain = FRAME_COUNTED;
	frame->owner = owner;
	s->top = frame;
}

/* No event of the stream is lost with what is only counted: its records stay right. */
static void lose_owned(struct stream *s, uint32_t domain, enum trace_loss reason)
{
	if (domain == FRAME_OWNED && !window_is_shut())
		stream_lose(s, reason);
	else
		trace_lose(reason, 1);
}

/* domain: FRAME_OWNED or FRAME_COUNTED. */
static __attribute__((noinline)) uint32_t open_slowly(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail,
						      uint32_t domain)
{
	struct stream *s = range_begin();
	uint32_t node = 0;

	if (!s)
		return 0;
	if (s->top == s->top_most && !stream_grow_frames(s)) {
		lose_owned(s, domain, TRACE_LOST_TOO_DEEP);
	} else if (window_is_shut()) {
		range_open_quietly(s, owner, text, kind, link, detail);
	} else {
		node = link || detail ? range_place_node(s, text, kind, link, detail) : range_child_node(s, CACHED_SORT(kind), text);
		if (!node)
			lose_owned(s, domain, TRACE_LOST_NO_MEMORY);
		else if (domain == FRAME_OWNED)
			put_owned(s, node, owner);
		else
			put_counted(s, node, owner, clock_now());
	}
	stream_finish();
	return node;
}

bool range_is_in(uint32_t node)
{
	const struct stream *s = stream_here.mine;

	return s && s->slot && s->node == node;
}

/* As range_push_plain. */
uint32_t range_open(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s = link | detail ? NULL : stream_take();
	const struct cached_child *child;
	const struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;
	uint32_t node;

	if (__builtin_expect(!s, 0))
		return open_slowly(owner, text, kind, link, detail, FRAME_OWNED);
	child = likely_child(s, CACHED_SORT(kind), text);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	if (__builtin_expect(!child || !slot || !is_kept_at_once(child->chars, child->bytes, text), 0))
		goto slowly;
	gap = now - s->last;
	node = child->node;
	top = s->top;
	used = slot->used;
	if (__builtin_expect(gap >= 1 << 14 || used + sizeof(uint32_t) > stream_quick_room(s) || node > 0xFFFF || top == s->top_most, 0))
		goto slowly;
	s->last = now;
	stream_put_word_at(s->slot, used, node << 16 | (uint32_t)gap << 2 | FORM_PUSH4);
	top[1] = (struct frame){.begin = now, .node = node, .domain = FRAME_OWNED, .owner = owner};
	stream_set_top(s, top + 1);
	stream_give_back(s);
	return node;
slowly:
	stream_give_back(s);
	return open_slowly(owner, text, kind, link, detail, FRAME_OWNED);
}

/* What runs backward, mostly. */
static __attribute__((noinline)) uint32_t open_counted_about(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link,
							     uint32_t detail)
{
	struct stream *s = stream_take();
	const struct cached_place *place;
	uint64_t now;

	if (__builtin_expect(!s, 0))
		return open_slowly(owner, text, kind, link, detail, FRAME_COUNTED);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	place = cached_place(s, text, link, detail);
	if (__builtin_expect(!stream_quick_room(s) || s->top == s->top_most || !is_place(place, s->node, kind, link, detail) ||
			     !is_kept_at_once(place->chars, place->bytes, text), 0)) {
		stream_give_back(s);
		return open_slowly(owner, text, kind, link, detail, FRAME_COUNTED);
	}
	put_counted(s, place->node, owner, now);
	stream_give_back(s);
	return place->node;
}

/* As range_push_plain, and nothing is written. */
uint32_t range_open_counted(const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	struct stream *s;
	const struct cached_child *child;
	uint64_t now;

	if (link | detail)
		return open_counted_about(owner, text, kind, link, detail);
	s = stream_take();
	if (__builtin_expect(!s, 0))
		return open_slowly(owner, text, kind, link, detail, FRAME_COUNTED);
	child = likely_child(s, CACHED_SORT(kind), text);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!child || !stream_quick_room(s) || s->top == s->top_most || !is_kept_at_once(child->chars, child->bytes, text), 0)) {
		stream_give_back(s);
		return open_slowly(owner, text, kind, link, detail, FRAME_COUNTED);
	}
	put_counted(s, child->node, owner, now);
	stream_give_back(s);
	return child->node;
}

static inline bool is_owned_by(const struct frame *frame, const void *owner)
{
	return frame->domain == FRAME_OWNED && frame->owner == owner;
}

static inline bool is_counted_for(const struct frame *frame, const void *owner)
{
	return frame->domain == FRAME_COUNTED && frame->owner == owner;
}

/* Its row may have to be made. A stream without records notes the clocks now and then all the same. */
static void count_frame(struct stream *s, struct frame *frame)
{
	const uint64_t now = clock_now();
	enum trace_loss reason;
	struct trace_total *row = totals_row(&s->totals, frame->node, &reason);

	if (row)
		total_add(row, now > frame->begin ? now - frame->begin : 0);
	else
		trace_lose(reason, 1);
	range_take_out(s, frame);
	if (now > s->last && now - s->last >= STREAM_COUNTED_GAP_MOST) {
		stream_clock(s);
		totals_write_back(&s->totals);
	}
}

static void close_frame(struct stream *s, struct frame *frame)
{
	if (frame->domain == FRAME_COUNTED)
		count_frame(s, frame);
	else if (frame->domain == FRAME_PASSED)
		range_pop_quietly(s, frame);
	else if (frame == s->top)
		range_pop_innermost(s);
	else
		range_pop_frame(s, frame);
}

static __attribute__((noinline)) bool close_slowly(const void *owner)
{
	struct stream *s = stream_here.mine;
	struct frame *frame;
	bool found;

	if (!s || !s->slot || !(s = range_begin())) /* where nothing is open, as in a forked child, no file is begun either */
		return false;
	frame = s->top;
	while (frame > s->frames && !(frame->owner == owner && frame->domain >= FRAME_PASSED && frame->domain <= FRAME_OWNED))
		frame--;
	found = frame > s->frames;
	if (found)
		close_frame(s, frame);
	stream_finish();
	return found;
}

bool range_close(const void *owner)
{
	struct stream *s = stream_take();
	struct trace_block *slot;
	struct frame *top;
	uint64_t now, gap, used;

	if (__builtin_expect(!s, 0))
		return close_slowly(owner);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = s->slot;
	top = s->top;
	if (__builtin_expect(!slot || !is_owned_by(top, owner), 0))
		goto slowly;
	gap = now - s->last;
	used = slot->used;
	if (__builtin_expect(gap >= STREAM_GAP_MOST || used + sizeof(uint32_t) > stream_quick_room(s), 0))
		goto slowly;
	s->last = now;
	stream_put_word_at(slot, used, (uint32_t)gap << 2 | FORM_POP4);
	stream_set_top(s, top - 1);
	stream_give_back(s);
	return true;
slowly:
	stream_give_back(s);
	return close_slowly(owner);
}

bool range_close_counted(const void *owner)
{
	struct stream *s = stream_take();
	struct trace_total *row;
	struct frame *top;
	uint64_t now;

	if (__builtin_expect(!s, 0))
		return close_slowly(owner);
	now = clock_quick();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	top = s->top;
	if (__builtin_expect(!stream_quick_room(s) || !is_counted_for(top, owner) || now - s->last >= STREAM_COUNTED_GAP_MOST || now < top->begin, 0))
		goto slowly;
	row = totals_row_at_once(&s->totals, top->node);
	if (__builtin_expect(!row, 0))
		goto slowly;
	total_add(row, now - top->begin);
	stream_set_top(s, top - 1);
	stream_give_back(s);
	return true;
slowly:
	stream_give_back(s);
	return close_slowly(owner);
}
