/* SPDX-License-Identifier: MIT
 * gap_cause.h: why a GPU had nothing to do until a certain work began, from what the thread was doing that asked for it.
 *
 * In this order:
 *   unknown          the call that asked for it is not in the trace
 *   copy             it is a copy, and the thread was in the call already: memory was being made ready
 *   dependency       it was asked for before the GPU became idle, and waited for its stream, an event, the device itself
 *   synchronisation, allocation, copy
 *                    at least half of the gap the thread spent in calls that wait, take or give back memory, copy
 *                    the thread was in a call as the GPU became idle: in one that waits for it, takes or gives back memory, or
 *                    copies, if that copy was what the GPU did last; and what it did between that call and asking took
 *                    no longer than the call had: without it there need have been no gap
 *   launch-bound     it had not asked yet: the program was slower than the GPU
 */
#ifndef PPERF_REPORT_ANALYSIS_GAP_CAUSE_H
#define PPERF_REPORT_ANALYSIS_GAP_CAUSE_H

#include "report/analysis/activities.h"

#define GAP_CAUSES(X)               \
	X(LAUNCH, "launch-bound")   \
	X(SYNC, "synchronisation")  \
	X(ALLOCATION, "allocation") \
	X(COPY, "copy")             \
	X(DEPENDENCY, "dependency") \
	X(UNKNOWN, "unknown")

enum gap_cause {
#define X(cause, text) GAP_##cause,
	GAP_CAUSES(X)
#undef X
		GAP_CAUSE_COUNT
};

struct gap {
	uint64_t begin_ns, end_ns; /* since the trace's start */
	uint64_t last_correlation; /* of what the GPU did before it */
	enum gap_cause cause;
	uint32_t blocked_by; /* text: the call that it is put down to; 0: none */
};

/* What each thread did last, a bounded number of calls. */
struct gap_calls;

struct gap_calls *gap_calls_new(const struct string_table *texts);
void gap_calls_free(struct gap_calls *calls);

/* A call, in the order of its begin. */
void gap_calls_add(struct gap_calls *calls, const struct activity *call);
/* Fills in cause and blocked_by. work: what ended it. */
void gap_explain(const struct gap_calls *calls, const struct activity *work, struct gap *gap);

const char *gap_cause_name(enum gap_cause cause);

#endif
