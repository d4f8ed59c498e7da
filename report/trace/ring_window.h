/* SPDX-License-Identifier: MIT
 * Reads a trace whose older records were overwritten (PPERF_RING; trace_format.h describes the
 * ring). Leaves out what is before the window, and what is restated, except at the
 * begin of the window. Only for the files of the reader.
 *
 * At the begin of the window come these events, all at the same time:
 *   what trace_format.h lists as restated
 *   EVENT_RESUMED  for each range that is open there, by its begin
 *   WINDOW         with the edge BEGINS
 */
#ifndef PPERF_REPORT_TRACE_RING_WINDOW_H
#define PPERF_REPORT_TRACE_RING_WINDOW_H

#include "report/trace/event_decoder.h"

struct ring_window {
	bool used;       /* the trace has a ring: decoder_next_any calls ring_window_next */
	bool unreadable; /* nothing was found that begins a window; all there is is read */
	uint64_t stamp;  /* where the window begins; 0: nothing was overwritten */
	/* State of the pass. */
	bool awaits_begin;   /* nothing of the window was read yet */
	bool restating;      /* what is held at its begin is being read */
	bool resuming;       /* its open ranges are being reported */
	uint64_t begin_ns;   /* once it was reached */
	uint64_t first_call; /* smallest correlation id of a call in the window */
	uint64_t early_gpu;  /* GPU records of calls before the window, left out */
	struct trace_window begins;
	/* The event after what was restated, and the stream that is read, meanwhile. */
	struct trace_event held;
	struct stream_run *run;
};

/* Prepares a pass. */
void ring_window_rewind(struct event_decoder *decoder);

/* Returns as decoder_next_any does. */
int ring_window_next(struct event_decoder *decoder, struct trace_event *event);

#endif
