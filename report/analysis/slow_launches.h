/* SPDX-License-Identifier: MIT
 *
 * Finds single launches that take far longer than the others of a run with steps: the first launch
 * of a kernel that the driver loads late, or an outlier. What recurs in half of the steps is the
 * way of the run, and is not among them.
 *
 * Memory: 8 bytes for each kernel's name, 56 for each launch of SLOW_LAUNCH_NS_MIN or more, and the
 * histogram of stats/percentiles.h.
 */
#ifndef PPERF_REPORT_ANALYSIS_SLOW_LAUNCHES_H
#define PPERF_REPORT_ANALYSIS_SLOW_LAUNCHES_H

#include "report/analysis/first_calls.h"

/* A launch is slow if it takes so many times the median of all launches, and as long as this. */
#define SLOW_LAUNCH_RATIO FIRST_CALL_RATIO
#define SLOW_LAUNCH_NS_MIN FIRST_CALL_NS_MIN

/* Observes the launches in a pass that other analyses share, which may be the one that makes the
 * profile. slow_launches_end adds the slow ones to `found`, with `of_launches`. */
struct slow_launches_pass;

struct slow_launches_pass *slow_launches_begin(
	struct process *process, struct profile_observer *observer);
struct process *slow_launches_process(const struct slow_launches_pass *pass);
void slow_launches_end(struct slow_launches_pass *pass, struct first_calls *found);

#endif
