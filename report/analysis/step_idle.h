/* SPDX-License-Identifier: MIT
 *
 * Sums idle time in the steady-state steps: that of the gaps, by cause, and the time of steps
 * before a GPU's first operation and after its last, in which the view `idle` has no gap. The
 * verdict (report/diagnose/run_bound.h) counts the same time, so that a finding and the view that
 * shows it have the same figure.
 *
 *	struct step_idle sums = step_idle_begin(process);
 *
 *	idle_parts_visit(...);  calls step_idle_add for each part
 *	step_idle_add_ends(&sums, activities);
 */
#ifndef PPERF_REPORT_ANALYSIS_STEP_IDLE_H
#define PPERF_REPORT_ANALYSIS_STEP_IDLE_H

#include "report/analysis/idle_parts.h"

struct step_idle {
	const struct process *process;
	/* Steady-state steps. 0: none, they overlap, or --steps selects some: then each sum is over
	 * the whole time between a GPU's first operation and its last. */
	size_t steps;
	uint64_t steps_ns; /* their duration */
	uint64_t ns[GAP_CAUSE_COUNT], gaps[GAP_CAUSE_COUNT];
	/* Before a GPU's first operation and after its last: GAP_DATA, GAP_COMPILATION, GAP_LAUNCH
	 * otherwise. */
	uint64_t ends_ns[GAP_CAUSE_COUNT];
	size_t devices; /* set by step_idle_add_ends */
};

struct step_idle step_idle_begin(const struct process *process);
void step_idle_add(struct step_idle *sums, const struct idle_part *part);
/* Reads `activities` once more if there are steps. */
void step_idle_add_ends(
	struct step_idle *sums, struct process *process, struct activities *activities);

#endif
