/* SPDX-License-Identifier: MIT
 * range_frames.c: see range_frames.h.
 */
#include "range_frames.h"

#include "clock.h"

#include <string.h>

uint32_t range_level(const struct stream *s, uint32_t domain)
{
	for (const struct frame *frame = s->top; frame > s->frames; frame--)
		if (frame->domain == domain || frame->domain == (domain ^ FRAME_QUIET))
			return frame->level + 1;
	return 0;
}

/* Ticks from the last stamp to `now`; a counter that seems to step back stands still. */
static inline uint64_t advance(struct stream *s, uint64_t now)
{
	uint64_t gap = now > s->last ? now - s->last : 0;

	s->last += gap;
	return gap;
}

/* Room for a short form, and the gap that it shall hold, in this order: making room may stamp. After a long gap the clocks are noted
 * first. false: no room, the event is lost. */
static bool prepare_short(struct stream *s, size_t bytes, uint64_t *gap)
{
	bool room = stream_room(s, bytes);

	if (room && clock_now() - s->last >= STREAM_GAP_MOST && clock_now() > s->last) {
		stream_clock(s);
		room = stream_room(s, bytes);
	}
	*gap = advance(s, clock_now());
	if (*gap >= STREAM_GAP_MOST) /* halted for long between two lines: the next CLOCK sets it right */
		*gap = STREAM_GAP_MOST - 1;
	return room;
}

void range_put_push(struct stream *s, uint32_t node)
{
	uint64_t gap;
	uint32_t words[2];
	bool wide;

	if (!prepare_short(s, sizeof words, &gap))
		return;
	wide = node > 0xFFFF || gap >= 1 << 14;
	words[0] = wide ? node << 2 | FORM_PUSH8 : node << 16 | (uint32_t)gap << 2 | FORM_PUSH4;
	words[1] = (uint32_t)gap;
	stream_put_words(s, words, wide ? sizeof words : sizeof words[0]);
}

void range_take_out(struct stream *s, struct frame *frame)
{
	memmove(frame, frame + 1, (size_t)(s->top - frame) * sizeof *frame);
	stream_set_top(s, s->top - 1);
}

static uint32_t recorded_below(const struct stream *s, const struct frame *frame)
{
	uint32_t count = 0;

	while (--frame > s->frames)
		count += frame_is_recorded(frame);
	return count;
}

int range_pop_frame(struct stream *s, struct frame *frame)
{
	struct trace_pop_at *record = stream_record(TRACE_POP_AT, sizeof *record);
	int level = (int)frame->level;

	if (record) {
		record->head.node = frame->node;
		record->index = recorded_below(s, frame);
		stream_publish(s);
	}
	range_take_out(s, frame);
	return level;
}

/* Before the frame goes: if this seals, the new payload begins with the range still open. */
int range_pop_innermost(struct stream *s)
{
	uint64_t gap;
	uint32_t word;
	int level;

	if (prepare_short(s, sizeof word, &gap)) {
		word = (uint32_t)gap << 2 | FORM_POP4;
		stream_put_words(s, &word, sizeof word);
	}
	level = (int)s->top->level;
	stream_set_top(s, s->top - 1);
	return level;
}
