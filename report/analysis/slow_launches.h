/* SPDX-License-Identifier: MIT
 *
 * Finds single launches that take far longer than the others of a run with steps: the first launch
 * of a kernel that the driver loads late, or an outlier. What recurs in half of the steps is the
 * way of the run, and is not among them.
 *
 * Memory: 8 bytes for each kernel's name, 40 for each launch of SLOW_LAUNCH_NS_MIN or more, and the
 * histogram of stats/percentiles.h.
 */
#ifndef PPERF_REPORT_ANALYSIS_SLOW_LAUNCHES_H
#define PPERF_REPORT_ANALYSIS_SLOW_LAUNCHES_H

#include "report/analysis/first_calls.h"

/* A launch is slow if it takes so many times the median of all launches, and as long as this. */
#define SLOW_LAUNCH_RATIO FIRST_CALL_RATIO
#define SLOW_LAUNCH_NS_MIN FIRST_CALL_NS_MIN

/* Adds the slow launches of a process to `found`, with `of_launches`. Reads the trace once more. */
void slow_launches_find(struct process *process, struct first_calls *found);

#endif
