/* SPDX-License-Identifier: MIT
 * Visits all idle time of the GPUs in parts, each with one cause (gap_cause.h). Launch-bound time
 * in which the launching thread fetched a batch or compiled is split off (host_ranges.h), and so is
 * time in slow first calls (first_calls.h), whatever the thread did in them: a library that
 * allocates once, or a driver that loads a kernel, is nothing that recurs. Every view of idle time
 * is made from these parts, so that views agree. The lengths of a device's parts sum to its idle
 * time: the span from its first operation to its last, without busy and unknown time.
 *
 * With --steps or PPERF_SCHEDULE a part has the length of what is inside the selected time.
 */
#ifndef PPERF_REPORT_ANALYSIS_IDLE_PARTS_H
#define PPERF_REPORT_ANALYSIS_IDLE_PARTS_H

#include "report/analysis/gap_cause.h"

struct idle_part {
	struct gap_part part;
	uint64_t length_ns;
	/* of the whole gap: set for its last part that has a length, else 0 */
	uint64_t gap_ns;
	const struct activity *ended_by; /* valid during the visit */
};

/* Returns what visits the parts, for activities_visit, in the order in which their gaps end. It is
 * freed at the end of the list. Other analyses may read `activities` before this returns. */
struct activity_visitor idle_parts_begin(struct process *process, struct activities *activities,
	void (*visit)(void *context, const struct idle_part *part), void *context);
/* Visits the parts. Rewinds `activities` first. */
void idle_parts_visit(struct process *process, struct activities *activities,
	void (*visit)(void *context, const struct idle_part *part), void *context);

#endif
