/* SPDX-License-Identifier: MIT
 * Lists the times during which CUPTI was handed over to another client (PPERF_CUPTI=yield). What
 * the GPU did then is unknown, which is different from idle.
 *
 * Memory: 48 bytes per handover.
 */
#ifndef PPERF_REPORT_GPU_CUPTI_HANDOVER_H
#define PPERF_REPORT_GPU_CUPTI_HANDOVER_H

#include "report/trace/trace_reader.h"

/* The time axis of a span. HANDOVER_TRACE_TIME: nanoseconds since the start of the trace.
 * HANDOVER_REALTIME: CLOCK_REALTIME, as in GPU records. */
enum handover_axis { HANDOVER_TRACE_TIME, HANDOVER_REALTIME, HANDOVER_AXES };

struct handover_span {
	uint64_t begin_ns, end_ns; /* end_ns is UINT64_MAX if it did not end */
	uint64_t before_ns;        /* total length of all earlier spans */
};

struct handover_list {
	struct handover_span *spans[HANDOVER_AXES]; /* in time order */
	size_t count, room[HANDOVER_AXES];
	uint64_t ns; /* total length, up to the end of the trace */
	bool open;   /* the last one did not end */
};

/* Reads the handovers from the whole trace. Rewinds `reader` first and leaves it at the end.
 * Returns NULL without reading if CUPTI was never handed over. */
struct handover_list *handover_list_read(struct trace_reader *reader);
void handover_list_free(struct handover_list *handovers);

/* Returns how much of the time from `from_ns` to `to_ns` was handed over. `handovers` may be
 * NULL: 0. */
uint64_t handover_list_overlap_ns(const struct handover_list *handovers, enum handover_axis axis,
	uint64_t from_ns, uint64_t to_ns);

#endif
