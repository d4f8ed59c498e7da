/* SPDX-License-Identifier: MIT
 * Reads a trace whose older records were overwritten (PPERF_RING; trace_format.h describes the
 * ring). Leaves out what is before the window, and what memory records restate, except at the
 * begin of the window. Only for trace_reader.c and stream_merge.c.
 *
 * At the begin of the window come these events, all at the same time:
 *   EVENT_RESUMED  for each range that is open there, thread by thread
 *   ALLOC, TENSOR  what is held
 *   WINDOW         with the edge BEGINS
 */
#ifndef PPERF_REPORT_TRACE_RING_WINDOW_H
#define PPERF_REPORT_TRACE_RING_WINDOW_H

#include "report/trace/trace_reader.h"

struct ring_window {
	bool used;       /* the trace has a ring: reader_next_any calls ring_window_next */
	bool unreadable; /* nothing was found that begins a window; all there is is read */
	uint64_t stamp;  /* where the window begins; 0: nothing was overwritten */
	/* State of the pass. */
	bool awaits_begin;      /* nothing of the window was read yet */
	bool restating;         /* what is held at its begin is being read */
	uint32_t stream, depth; /* next range to report as resumed */
	uint64_t begin_ns;      /* once it was reached */
	uint64_t first_call;    /* smallest correlation id of a call in the window */
	uint64_t early_gpu;     /* GPU records of calls before the window, left out */
	struct trace_window begins;
};

/* Prepares a pass. */
void ring_window_rewind(struct trace_reader *reader);

/* Returns as reader_next_any does. */
int ring_window_next(struct trace_reader *reader, struct trace_event *event);

#endif
