/* SPDX-License-Identifier: MIT
 * trace_turn.c: whose turn it is. Streams wait in a heap, each with the stamp of its next record. The first one runs until its
 * next record would be later than what the second one waits with, or than the end of the clock's present piece: struct
 * trace_reader has what it needs for that, so that the common records never leave the header.
 */
#include "report/trace_state.h"

#include "report/fatal.h"

static bool earlier(const struct waiting *a, const struct waiting *b)
{
	return a->stamp != b->stamp ? a->stamp < b->stamp : a->ordinal < b->ordinal;
}

static void sift_down(struct reader_state *state, uint32_t at)
{
	struct waiting *heap = state->heap, moved = heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= state->heap_count)
			break;
		if (child + 1 < state->heap_count && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void sift_up(struct reader_state *state, uint32_t at)
{
	struct waiting *heap = state->heap, moved = heap[at];

	while (at && earlier(&moved, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = moved;
}

void turn_wait(struct reader_state *state, uint32_t ordinal, uint64_t stamp)
{
	state->heap[state->heap_count++] = (struct waiting){ stamp, ordinal };
	sift_up(state, state->heap_count - 1);
}

/* How far the present stream may run: before the first that waits, within the present piece of the clock. */
static void set_until(struct trace_reader *reader)
{
	const struct reader_state *state = reader->state;
	const struct clock_map *clock = &state->clock;
	uint64_t until = UINT64_MAX;

	if (state->heap_count)
		until = state->heap[0].stamp - (state->heap[0].ordinal < reader->stream->ordinal && state->heap[0].stamp);
	if (state->piece + 1 < clock->count && clock->pieces[state->piece + 1].raw <= until)
		until = clock->pieces[state->piece + 1].raw - 1;
	reader->until = until;
}

void turn_reach(struct trace_reader *reader, uint64_t stamp)
{
	struct reader_state *state = reader->state;
	const struct clock_piece *piece;

	state->piece = clock_find(&state->clock, stamp, state->piece);
	piece = &state->clock.pieces[state->piece];
	reader->clock_raw = piece->raw;
	reader->clock_ns = piece->ns;
	reader->clock_scale = piece->scale;
	set_until(reader);
}

static void take_turn(struct trace_reader *reader, uint32_t ordinal, uint64_t stamp)
{
	struct reader_state *state = reader->state;
	struct trace_stream *stream = &state->streams[ordinal];
	struct stream_cursor *cursor = stream->cursor;

	if (!cursor) {
		cursor = stream->cursor = need(sizeof *cursor);
		cursor->next = stream->block;
		cursor->stamp = stamp < STAMP_END ? stamp : STAMP_END;
	}
	reader->stream = stream;
	reader->word = cursor->word;
	reader->end = cursor->word ? (const uint32_t *)(const void *)cursor->payload.bytes + cursor->payload.used / 4 : NULL;
	reader->stamp = cursor->stamp;
	reader->ranges = cursor->ranges;
	reader->room = (uint32_t)cursor->room;
	reader->depth = cursor->depth;
	if (stamp > state->now && stamp < STAMP_END)
		state->now = stamp;
	turn_reach(reader, stamp < STAMP_END ? stamp : state->now);
}

static void save(struct trace_reader *reader)
{
	struct stream_cursor *cursor = reader->stream->cursor;

	cursor->word = reader->word;
	cursor->stamp = reader->stamp;
	cursor->depth = reader->depth;
}

/* The present stream waits until `stamp`; the first one in the row goes on. */
static void give_turn(struct trace_reader *reader, uint64_t stamp)
{
	struct reader_state *state = reader->state;
	struct waiting first = state->heap[0];

	save(reader);
	state->heap[0] = (struct waiting){ stamp, reader->stream->ordinal };
	sift_down(state, 0);
	take_turn(reader, first.ordinal, first.stamp);
}

bool turn_is_mine(struct trace_reader *reader, uint64_t stamp)
{
	const struct reader_state *state = reader->state;
	struct waiting mine = { stamp, reader->stream->ordinal };

	if (__builtin_expect(stamp <= reader->until, 1))
		return true;
	if (state->heap_count && earlier(&state->heap[0], &mine)) {
		give_turn(reader, stamp);
		return false;
	}
	turn_reach(reader, stamp);
	return true;
}

bool turn_take(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;
	struct waiting first;

	if (state->heap_count == 0)
		return false;
	first = state->heap[0];
	state->heap[0] = state->heap[--state->heap_count];
	if (state->heap_count)
		sift_down(state, 0);
	take_turn(reader, first.ordinal, first.stamp);
	return true;
}
