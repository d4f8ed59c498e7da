/* SPDX-License-Identifier: MIT
 * view_cost.h: Measures the processor time and memory of pperf-report as a whole process.
 */
#ifndef PPERF_TESTS_SUPPORT_VIEW_COST_H
#define PPERF_TESTS_SUPPORT_VIEW_COST_H

#include <stdbool.h>
#include <stddef.h>

#define VIEW_WORDS 4

struct view_cost {
	double seconds; /* user and system time */
	long kib;       /* peak resident memory */
};

/* Runs `report` with the words (up to the first NULL) and the trace, its output thrown away; ends
 * the program if it cannot be run. False: it failed. */
bool view_run(const char *report, const char *const words[VIEW_WORDS], const char *trace,
	struct view_cost *cost);

/* Returns the processor time of this process so far. */
double view_own_seconds(void);

/* Sorts the values and returns the middle one. */
double view_middle(double *values, size_t count);

/* The least one: of a time that others on the machine only add to, what comes nearest to its own.
 */
double view_least(const double *values, size_t count);

#endif
