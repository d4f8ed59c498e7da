/* SPDX-License-Identifier: MIT
 *
 * Reads the level of the program's counter in each step, for `steps -m NAME`: one more pass over
 * the trace.
 */
#ifndef PPERF_REPORT_ANALYSIS_STEP_LEVELS_H
#define PPERF_REPORT_ANALYSIS_STEP_LEVELS_H

#include "report/analysis/step_stats.h"

/* In the counter's own unit. */
struct step_level {
	double end, peak; /* at the end of the step; the highest value in it */
	bool known;       /* the counter had a value in the step or before it */
};

/* Returns an array by index of table->steps, to be freed, for the counter of
 * process->profile->options. Returns NULL if the metric is no counter of the trace. */
struct step_level *step_levels_read(const struct process *process, const struct step_table *table);

/* Robust statistics of the steady-state steps' levels. */
struct step_level_summary {
	struct step_level median, spread, slope; /* known: of at least two steps */
};
struct step_level_summary step_levels_summary(
	const struct step_table *table, const struct step_level *levels);

#endif
