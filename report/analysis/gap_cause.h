/* SPDX-License-Identifier: MIT
 *
 * Finds why a GPU was idle until an operation began, from the calls of the thread that launched it.
 *
 * The first rule that applies:
 *
 * | cause           | rule                                                                    |
 * |-----------------|-------------------------------------------------------------------------|
 * | unknown         | the launching call is not in the trace                                  |
 * | copy            | the operation is a copy whose call was running when the GPU became idle |
 * | dependency      | launched before the GPU was idle; waited for a stream, event or device  |
 * | synchronisation | half of the gap or more was spent in calls that wait                    |
 * | allocation      | the same, in calls that allocate or free memory                         |
 * | copy            | the same, in copy calls                                                 |
 * | (one of the 3)  | the thread was in such a call when the GPU became idle, see below       |
 * | launch-bound    | not launched yet: the program was slower than the GPU                   |
 *
 * For the last but one, let t be the time for which the call had been running when the GPU became
 * idle. The thread must have launched no later than t after the call returned. Without the call it
 * could have launched in time. A copy call applies only if its copy was the GPU's last operation.
 *
 * The call of the second rule prepares memory before the copy starts.
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
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	uint64_t last_correlation; /* of the GPU operation before the gap */
	enum gap_cause cause;
	uint32_t blocked_by; /* text: the call that caused the gap; 0: none */
};

/* The last calls of each thread that can block it: a bounded number. */
struct gap_calls;

struct gap_calls *gap_calls_new(const struct string_table *texts);
void gap_calls_free(struct gap_calls *calls);

/* Adds a call. Calls must come in the order in which they begin. */
void gap_calls_add(struct gap_calls *calls, const struct activity *call);
/* Sets cause and blocked_by of `gap`. `work` is the operation that ended the gap. */
void gap_explain(const struct gap_calls *calls, const struct activity *work, struct gap *gap);

const char *gap_cause_name(enum gap_cause cause);

#endif
