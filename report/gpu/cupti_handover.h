/* SPDX-License-Identifier: MIT
 * away.h: when CUPTI was another client's (PPERF_CUPTI=yield). What the GPU did then is not known: it was not idle.
 *
 * Memory: 48 bytes each time.
 */
#ifndef PPERF_REPORT_GPU_CUPTI_HANDOVER_H
#define PPERF_REPORT_GPU_CUPTI_HANDOVER_H

#include "report/trace/trace_reader.h"

enum away_axis { AWAY_TRACE, AWAY_REALTIME, AWAY_AXES }; /* ns since the trace's start; CLOCK_REALTIME, as the GPU's records */

struct away_span {
	uint64_t begin_ns, end_ns; /* UINT64_MAX: it did not end */
	uint64_t before_ns;        /* length of all before it */
};

struct away {
	struct away_span *spans[AWAY_AXES]; /* by time */
	size_t count, room[AWAY_AXES];
	uint64_t ns; /* together, up to the end of the trace */
	bool open;   /* the last one did not end */
};

/* NULL: never. Reads the trace through if not. */
struct away *away_read(struct trace_reader *reader);
void away_free(struct away *away);

/* How much of the time between two moments it was. away NULL: nothing. */
uint64_t away_within(const struct away *away, enum away_axis axis, uint64_t from_ns, uint64_t to_ns);

#endif
