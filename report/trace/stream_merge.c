/* SPDX-License-Identifier: MIT
 * Waiting streams are in a heap, keyed by the stamp of their next record. The current stream runs
 * until its next record would come after the first waiting one, or after the end of the clock
 * piece. struct event_decoder holds this limit, so common records are decoded by the inline
 * functions of its header.
 */
#include "report/trace/trace_reader_state.h"

#include "report/base/alloc.h"
#include "report/base/heap.h"

static inline bool is_before(const wide_uint *a, const wide_uint *b)
{
	return *a < *b;
}

DEFINE_HEAP(turns, wide_uint, is_before)

void merge_push(struct reader_state *state, struct trace_stream *stream, uint64_t stamp)
{
	turns_up(state->heap, state->heap_count++, MERGE_KEY(stamp, stream));
}

/* Sets how far the current stream may run: up to the first waiting stream and the end of the
 * clock piece. The limit is 0 while the OPENs of a payload are compared. */
static inline void set_run_limit(struct event_decoder *decoder, const struct stream_cursor *cursor)
{
	const struct reader_state *state = decoder->state;
	wide_uint first = state->heap[0],
		  mine = MERGE_KEY(MERGE_KEY_STAMP(first), cursor->run.stream);
	uint64_t until = MERGE_KEY_STAMP(first) - (first < mine && MERGE_KEY_STAMP(first));

	until = until < state->piece_end ? until : state->piece_end;
	decoder->until = cursor->opening ? 0 : until;
}

static void load_clock_piece(struct event_decoder *decoder, uint64_t stamp)
{
	struct reader_state *state = decoder->state;
	const struct clock_map *clock = &state->clock;
	const struct clock_piece *piece;

	state->piece = clock_find(clock, stamp, state->piece);
	piece = &clock->pieces[state->piece];
	state->piece_end = state->piece + 1 < clock->count ? piece[1].raw - 1 : UINT64_MAX;
	decoder->clock_raw = piece->raw;
	decoder->clock_ns = piece->ns;
	decoder->clock_scale = piece->scale;
}

static inline void advance_clock(
	struct event_decoder *decoder, const struct stream_cursor *cursor, uint64_t stamp)
{
	if (stamp > decoder->state->piece_end || stamp < decoder->clock_raw)
		load_clock_piece(decoder, stamp);
	set_run_limit(decoder, cursor);
}

static struct stream_cursor *get_cursor(struct trace_stream *stream, uint64_t stamp)
{
	struct stream_cursor *cursor = stream->cursor;

	if (__builtin_expect(!cursor, 0)) {
		cursor = stream->cursor = xcalloc(sizeof *cursor);
		cursor->run.stream = stream;
		cursor->run.stamp = stamp < STAMP_END ? stamp : STAMP_END;
		cursor->next = stream->block;
	}
	return cursor;
}

/* Makes the stream with the merge key `waiting` the current one. */
static inline void switch_to_stream(struct event_decoder *decoder, wide_uint waiting)
{
	struct reader_state *state = decoder->state;
	uint64_t stamp = MERGE_KEY_STAMP(waiting);
	struct stream_cursor *cursor = get_cursor(MERGE_KEY_STREAM(waiting), stamp);

	decoder->run = &cursor->run;
	if (stamp < STAMP_END)
		state->last_stamp = stamp > state->last_stamp ? stamp : state->last_stamp;
	advance_clock(decoder, cursor, stamp < STAMP_END ? stamp : state->last_stamp);
}

void merge_advance_clock(struct event_decoder *decoder, uint64_t stamp)
{
	advance_clock(decoder, decoder->run->stream->cursor, stamp);
}

static inline bool switch_if_earlier(struct event_decoder *decoder, uint64_t stamp)
{
	struct reader_state *state = decoder->state;
	wide_uint mine = MERGE_KEY(stamp, decoder->run->stream), first = state->heap[0];

	if (mine <= first)
		return false;
	turns_down(state->heap, state->heap_count, mine);
	switch_to_stream(decoder, first);
	return true;
}

bool merge_may_continue(struct event_decoder *decoder, uint64_t stamp)
{
	if (__builtin_expect(stamp <= decoder->until, 1))
		return true;
	/* What is restated is one moment of the trace, although writing it took a while. */
	if (decoder->state->ring.restating && stamp != UINT64_MAX) {
		merge_advance_clock(decoder, stamp);
		return true;
	}
	if (switch_if_earlier(decoder, stamp))
		return false;
	merge_advance_clock(decoder, stamp);
	return true;
}

/* Returns the ticks between the last record and the short one that comes next. */
static uint32_t short_record_ticks(const struct stream_run *run)
{
	const uint32_t *word = run->word;

	if ((*word & 3) == FORM_PUSH8)
		return run->end - word >= 2 ? word[1] : 0;
	return (*word & 3) == FORM_POP4 ? *word >> 2 : *word >> 2 & 0x3fff;
}

void merge_switch_if_due(struct event_decoder *decoder)
{
	const struct stream_run *run = decoder->run;
	uint64_t stamp;

	if (run->word == run->end || decoder->until == 0 || (*run->word & 3) == FORM_STRUCT)
		return;
	stamp = run->stamp + short_record_ticks(run);
	if (stamp > decoder->until)
		switch_if_earlier(decoder, stamp);
}

bool merge_take_next(struct event_decoder *decoder)
{
	struct reader_state *state = decoder->state;
	wide_uint first = state->heap[0], last;

	if (state->heap_count == 0)
		return false;
	last = state->heap[--state->heap_count];
	turns_down(state->heap, state->heap_count, state->heap_count ? last : MERGE_KEY_NONE);
	switch_to_stream(decoder, first);
	return true;
}
