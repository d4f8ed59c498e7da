/* SPDX-License-Identifier: MIT
 *
 * Finds for how long the first operation of each GPU waited on the GPU after its launch. That time
 * is before the GPU's span, so it is neither busy nor idle: the GPU may have run work from before
 * the trace.
 */
#ifndef PPERF_REPORT_ANALYSIS_FIRST_WAIT_H
#define PPERF_REPORT_ANALYSIS_FIRST_WAIT_H

#include "report/analysis/gap_cause.h"
#include "report/gpu/device_timeline.h"

/* A shorter wait may be the loading of a kernel. */
#define FIRST_WAIT_MIN_NS 500000u

struct first_wait {
	uint64_t begin_ns; /* trace time, from which the GPU could have started it */
	struct activity work;
};

/* Stores the waits of FIRST_WAIT_MIN_NS or more, at most one for each GPU, and returns their
 * number. With --steps or PPERF_SCHEDULE there are none. Rewinds `activities`. */
size_t first_waits_find(const struct process *process, struct activities *activities,
	struct first_wait waits[TIMELINE_DEVICES]);

#endif
