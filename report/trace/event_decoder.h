/* SPDX-License-Identifier: MIT
 * Decodes the payloads of all streams into one sequence of events in time order. It may run in
 * another thread than the reader's user (decode_ahead.h), so it changes nothing that the user sees:
 * neither struct trace_stream nor struct trace_reader. Only for the files of the reader.
 */
#ifndef PPERF_REPORT_TRACE_EVENT_DECODER_H
#define PPERF_REPORT_TRACE_EVENT_DECODER_H

#include "report/trace/short_records.h"
#include "report/trace/trace_clock.h"
#include "report/trace/trace_reader.h"

struct event_batch;

/* The read position of a stream. */
struct stream_run {
	const uint32_t *word, *end; /* next record; end of its payload */
	uint64_t stamp;             /* of the last record */
	struct trace_open_range *ranges;
	uint32_t depth, room; /* number of open ranges; capacity of `ranges` */
	struct trace_stream *stream;
};

struct event_decoder {
	struct stream_run *run; /* the current stream, whose records come next */
	/* The current stream may return records up to this stamp. After it another stream comes
	 * first, or the next clock piece begins. */
	uint64_t until;
	/* ns = clock_ns + (stamp - clock_raw) * clock_scale >> READER_SCALE_BITS */
	uint64_t clock_raw, clock_ns, clock_scale;
	uint32_t node_last; /* nodes 1 to node_last are in the table */
	uint32_t reserved;
	struct event_batch *batch; /* holds the next event, and what its record refers to */
	struct reader_state *state;
};

/* Lists the streams of the trace. */
void decoder_open(struct event_decoder *decoder, struct reader_state *state);
void decoder_close(struct event_decoder *decoder);
/* Starts a new pass at the first event. */
void decoder_rewind(struct event_decoder *decoder);

/* Decodes the next event. Returns as reader_next does. decoder_next_short is the faster way to a
 * short form. */
int decoder_next_any(struct event_decoder *decoder, struct trace_event *event);
/* As decoder_next_any, without the rules of the ring. */
int decoder_next_raw(struct event_decoder *decoder, struct trace_event *event);

static inline uint64_t decoder_stamp_time(const struct event_decoder *decoder, uint64_t stamp)
{
	return decoder->clock_ns + reader_scale(stamp - decoder->clock_raw, decoder->clock_scale);
}

/* Converts any stamp. */
uint64_t decoder_time(const struct event_decoder *decoder, uint64_t stamp);

static inline __attribute__((always_inline)) int decoder_short_push(struct event_decoder *decoder,
	struct trace_event *event, uint32_t node, uint64_t stamp, int words)
{
	struct stream_run *run = decoder->run;
	struct trace_open_range *range;
	uint64_t now;

	if (__builtin_expect(stamp > decoder->until || node - 1 >= decoder->node_last ||
				     run->depth >= run->room,
		    0))
		return 0;
	now = decoder_stamp_time(decoder, stamp);
	run->word += words;
	run->stamp = stamp;
	range = &run->ranges[run->depth];
	range->begin_ns = now;
	range->node = node;
	event->kind = TRACE_PUSH;
	event->node = node;
	event->depth = run->depth++;
	event->time_ns = event->begin_ns = now;
	event->record = NULL;
	event->stream = run->stream;
	return 1;
}

static inline __attribute__((always_inline)) int decoder_short_pop(
	struct event_decoder *decoder, struct trace_event *event, uint64_t stamp)
{
	struct stream_run *run = decoder->run;
	const struct trace_open_range *range;

	if (__builtin_expect(stamp > decoder->until || run->depth == 0, 0))
		return 0;
	run->word++;
	run->stamp = stamp;
	range = &run->ranges[--run->depth];
	event->kind = EVENT_POP;
	event->node = range->node;
	event->depth = run->depth;
	event->time_ns = decoder_stamp_time(decoder, stamp);
	event->begin_ns = range->begin_ns;
	event->record = NULL;
	event->stream = run->stream;
	return 1;
}

/* Returns 1 and the next event if it is a short form of the current stream that is due now.
 * Returns 0 otherwise, without a change: decoder_next_any must be called. */
static inline __attribute__((always_inline)) int decoder_next_short(
	struct event_decoder *decoder, struct trace_event *event)
{
	const struct stream_run *run = decoder->run;
	const uint32_t *word = run->word;
	uint32_t first;

	if (__builtin_expect(word == run->end, 0))
		return 0;
	first = *word;
	switch (first & 3) {
	case FORM_PUSH4:
		return decoder_short_push(
			decoder, event, first >> 16, run->stamp + (first >> 2 & 0x3fff), 1);
	case FORM_POP4:
		return decoder_short_pop(decoder, event, run->stamp + (first >> 2));
	case FORM_PUSH8:
		return run->end - word >= 2 &&
		       decoder_short_push(decoder, event, first >> 2, run->stamp + word[1], 2);
	default:
		return 0;
	}
}

#endif
