/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_reader_state.h"

#include "report/base/alloc.h"

#include <stdlib.h>

int decoder_next_any(struct event_decoder *decoder, struct trace_event *event)
{
	return decoder->state->ring.used ? ring_window_next(decoder, event)
					 : decoder_next_raw(decoder, event);
}

int decoder_next_raw(struct event_decoder *decoder, struct trace_event *event)
{
	struct reader_state *state = decoder->state;
	int status = 0;

	if (state->ended_stream) {
		stream_free(state->ended_stream);
		state->ended_stream = NULL;
	}
	/* until 0: the range stack is compared first */
	if (__builtin_expect(decoder->until != 0, 1)) {
		if (decoder->run->word != decoder->run->end && *decoder->run->word == 0 &&
			!state->failed)
			decoder->run->word++; /* padding */
		if (decoder->run->word != decoder->run->end && stream_step_fast(decoder, event))
			return 1;
	}
	merge_switch_if_due(decoder);
	if (decoder_next_short(decoder, event))
		return 1;
	while (status == 0 && !state->failed) {
		if (!decoder->run->stream && !merge_take_next(decoder))
			return 0;
		status = stream_step(decoder, event);
	}
	return state->failed ? -1 : status;
}

uint64_t decoder_time(const struct event_decoder *decoder, uint64_t stamp)
{
	return clock_ns(&decoder->state->clock, stamp);
}

static void free_streams(struct reader_state *state)
{
	for (uint32_t i = 0; i < state->stream_count; i++)
		stream_free(&state->streams[i]);
}

static void list_streams(struct reader_state *state)
{
	const struct trace_blocks *blocks = &state->blocks;
	struct trace_stream *stream = NULL;

	state->stream_count = (uint32_t)blocks->layout.streams;
	state->streams = xcalloc(state->stream_count * sizeof *state->streams);
	state->heap = xcalloc(((size_t)state->stream_count + 1) * sizeof *state->heap);
	for (uint32_t i = 0, count = 0; i < blocks->streams_end; i++) {
		if (!stream || blocks->entries[i].stream != stream->stream) {
			stream = &state->streams[count];
			stream->stream = blocks->entries[i].stream;
			stream->block = i;
			stream->ordinal = count++;
		}
		stream->blocks++;
	}
}

/* Returns the smallest base stamp of the stream's blocks. The first one may be damaged and too
 * large. The stream would then wait too long and all its events would be late. */
static uint64_t first_stamp(const struct reader_state *state, const struct trace_stream *stream)
{
	const struct block_entry *entry = &state->blocks.entries[stream->block];
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < stream->blocks; i++)
		least = entry[i].base_stamp < least ? entry[i].base_stamp : least;
	return least;
}

void decoder_open(struct event_decoder *decoder, struct reader_state *state)
{
	decoder->state = state;
	decoder->node_last = state->dictionary.node_end - 1;
	list_streams(state);
}

void decoder_close(struct event_decoder *decoder)
{
	struct reader_state *state = decoder->state;

	if (!state)
		return;
	free_streams(state);
	free(state->streams);
	free(state->heap);
}

void decoder_rewind(struct event_decoder *decoder)
{
	struct reader_state *state = decoder->state;

	free_streams(state);
	if (decoder->batch)
		decoder->batch->tid_count = 0;
	state->warnings = state->warnings_at_open;
	state->heap_count = 0;
	state->heap[0] = MERGE_KEY_NONE;
	for (uint32_t i = 0; i < state->stream_count; i++)
		merge_push(state, &state->streams[i], first_stamp(state, &state->streams[i]));
	state->piece = 0;
	state->last_stamp = state->streams_lost = 0;
	state->ended_stream = NULL;
	state->tensor_totals = (struct tensor_totals){ .devices[0].allocated = 0 };
	decoder->run = &state->idle;
	decoder->until = decoder->clock_raw = state->piece_end = 0;
	ring_window_rewind(decoder);
}
