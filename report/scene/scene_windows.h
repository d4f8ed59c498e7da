/* SPDX-License-Identifier: MIT
 *
 * Lists the parts of a run that a picture shows in detail: certain steps, the peak of memory, and
 * what findings are about.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_WINDOWS_H
#define PPERF_REPORT_SCENE_SCENE_WINDOWS_H

#include "report/table/view.h"

#define SCENE_WINDOWS_MAX 10u
#define SCENE_FINDINGS_MAX 5u /* findings with a window */

/* Why a window is shown. Several may be or-ed. */
enum scene_window_kind {
	SCENE_WORST_STEP = 1,     /* the longest steady-state step */
	SCENE_MEDIAN_STEP = 2,    /* of the steady-state steps: the one of median duration */
	SCENE_FIRST_USUAL = 4,    /* the first steady-state step */
	SCENE_MEMORY_PEAK = 8,    /* 2 % of the run around the peak of memory */
	SCENE_FINDING = 16,       /* around an instance of what a finding is about */
	SCENE_OUT_OF_MEMORY = 32, /* before memory ran out */
};

struct scene_window {
	uint64_t begin_ns, end_ns;
	unsigned kinds;    /* enum scene_window_kind, or-ed */
	uint64_t step;     /* number of the step, for the three kinds of steps */
	uint64_t findings; /* SCENE_FINDING: bit i is set for the finding of index i */
};

struct scene_window_list {
	struct scene_window windows[SCENE_WINDOWS_MAX];
	size_t count;
};

/* Adds a window. One with the same interval is used again: its kinds and findings are or-ed.
 * Windows beyond SCENE_WINDOWS_MAX are dropped. Returns false for one that is dropped or empty. */
bool scene_windows_add(struct scene_window_list *list, const struct scene_window *window);
/* Adds the window of finding `index` (below 64): the step around `at_ns`, or 2 % of the run around
 * it without steps. */
bool scene_windows_add_finding(struct scene_window_list *list, const struct process *process,
	unsigned index, uint64_t at_ns);
/* Adds the windows of steps, of the peak, and of the last time out of memory. */
void scene_windows_add_usual(struct scene_window_list *list, const struct process *process);
/* Adds the windows of the first findings in the rows of the view `diagnose`, as far as these say
 * when it happened. The index of a finding counts all rows that are findings. */
void scene_windows_add_findings(struct scene_window_list *list, const struct process *process,
	const struct rows *diagnose_rows);

#endif
