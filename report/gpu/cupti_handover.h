/* SPDX-License-Identifier: MIT
 * away.h: when CUPTI was another client's (PPERF_CUPTI=yield). What the GPU did then is not known: it was not idle.
 *
 * Memory: 48 bytes each time.
 */
#ifndef PPERF_REPORT_GPU_CUPTI_HANDOVER_H
#define PPERF_REPORT_GPU_CUPTI_HANDOVER_H

#include "report/trace/trace_reader.h"

enum handover_axis {
	HANDOVER_TRACE_TIME,
	HANDOVER_REALTIME,
	HANDOVER_AXES
}; /* ns since the trace's start; CLOCK_REALTIME, as the GPU's records */

struct handover_span {
	uint64_t begin_ns, end_ns; /* UINT64_MAX: it did not end */
	uint64_t before_ns;        /* length of all before it */
};

struct handover_list {
	struct handover_span *spans[HANDOVER_AXES]; /* by time */
	size_t count, room[HANDOVER_AXES];
	uint64_t ns; /* together, up to the end of the trace */
	bool open;   /* the last one did not end */
};

/* NULL: never. Reads the trace through if not. */
struct handover_list *handover_list_read(struct trace_reader *reader);
void handover_list_free(struct handover_list *handovers);

/* How much of the time between two moments it was. away NULL: nothing. */
uint64_t handover_list_overlap_ns(const struct handover_list *handovers, enum handover_axis axis,
	uint64_t from_ns, uint64_t to_ns);

#endif
