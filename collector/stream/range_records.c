/* SPDX-License-Identifier: MIT */
#include "collector/stream/range_records.h"

#include "collector/process/clock.h"
#include "collector/stream/range_stack.h"

/* Reserves `bytes` for a short form, then computes the gap since the last stamp. In this order,
 * because making room may write a stamp. Writes a CLOCK record before a gap that is too long. The
 * gap is 0 if the clock seems to go backwards. Returns false if there is no room; the event is then
 * lost. */
static bool reserve_short(struct stream *s, size_t bytes, uint64_t *gap)
{
	bool room = stream_reserve(s, bytes);
	uint64_t now = clock_now();

	if (room && now > s->last && now - s->last >= STREAM_GAP_MAX) {
		stream_write_clock(s);
		room = stream_reserve(s, bytes);
		now = clock_now();
	}
	*gap = now > s->last ? now - s->last : 0;
	/* Stopped for long since the CLOCK record: the event gets that record's time. */
	if (room && *gap >= STREAM_GAP_MAX)
		*gap = 0;
	s->last += *gap;
	return room;
}

void range_write_push(struct stream *s, uint32_t node)
{
	uint64_t gap;
	uint32_t words[2];
	bool wide;

	if (!reserve_short(s, sizeof words, &gap))
		return;
	wide = node > 0xFFFF || gap >= 1 << 14;
	words[0] = wide ? node << 2 | FORM_PUSH8 : node << 16 | (uint32_t)gap << 2 | FORM_PUSH4;
	words[1] = (uint32_t)gap;
	stream_put_words(s, words, wide ? sizeof words : sizeof words[0]);
}

static uint32_t recorded_below(const struct stream *s, const struct range_frame *frame)
{
	uint32_t count = 0;

	while (--frame > s->frames)
		count += frame_is_recorded(frame);
	return count;
}

int range_pop_frame(struct stream *s, struct range_frame *frame)
{
	struct trace_pop_at *record = stream_record(TRACE_POP_AT, sizeof *record);
	int level = (int)frame->level;

	if (record) {
		record->head.node = frame->node;
		record->index = recorded_below(s, frame);
		stream_publish(s);
	}
	range_remove_frame(s, frame);
	return level;
}

void range_write_unmatched_pop(struct stream *s)
{
	struct trace_pop_at *record = stream_record(TRACE_POP_AT, sizeof *record);

	if (!record)
		return;
	record->index = UINT32_MAX;
	stream_publish(s);
}

/* Writes the pop before it removes the frame: if this seals the slot, the new payload begins with
 * the range still open. */
int range_pop_innermost(struct stream *s)
{
	uint64_t gap;
	uint32_t word;
	int level;

	if (reserve_short(s, sizeof word, &gap)) {
		word = (uint32_t)gap << 2 | FORM_POP4;
		stream_put_words(s, &word, sizeof word);
	}
	level = (int)s->top->level;
	stream_set_top(s, s->top - 1);
	return level;
}
