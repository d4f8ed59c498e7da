/* SPDX-License-Identifier: MIT
 * view_cost.h: Measures the processor time and memory of pperf-report as a whole process.
 */
#ifndef PPERF_TESTS_SUPPORT_VIEW_COST_H
#define PPERF_TESTS_SUPPORT_VIEW_COST_H

#include <stdbool.h>
#include <stddef.h>

#define VIEW_WORDS 4

struct view_cost {
	double seconds; /* CPU time, user and system */
	long kib;       /* peak memory */
};

/* Runs `report` with the words, up to the first NULL, and the trace. Its output is discarded.
 * Returns false if it failed. Ends the program if it cannot be run. */
bool view_run(const char *report, const char *const words[VIEW_WORDS], const char *trace,
	struct view_cost *cost);

/* Returns the CPU time of this process so far. */
double view_own_seconds(void);

/* Returns the median, and sorts the values. */
double view_median(double *values, size_t count);

/* Returns the minimum. Other processes can only add to a time, so the minimum is the best
 * estimate. */
double view_minimum(const double *values, size_t count);

#endif
