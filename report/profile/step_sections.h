/* SPDX-License-Identifier: MIT
 * sections.h: the parts of a tree whose steps were found: `step`, `step (warm-up)`, `step (unfinished)`, and `(before
 * first step)`, `(between steps)`, `(after last step)`. Only the fold includes it.
 *
 * On the thread of the steps, a section is an open range like others, put into its row of open ranges when its time
 * comes, in the ranges around several steps that are open then (`train`, `epoch 3`). Those stand above the sections
 * wherever they begin and end: outside of a step, the section makes way for them and begins anew inside. A range that
 * reaches over the edge of a section stays below the one in which it began. All that begins or is launched in a
 * section, on whatever thread, stands below it. Steps that are ranges of the program itself keep their row; only what
 * lies around them is put into sections.
 */
#ifndef PPERF_REPORT_PROFILE_STEP_SECTIONS_H
#define PPERF_REPORT_PROFILE_STEP_SECTIONS_H

#include "report/profile/profile_state.h"

/* Takes the steps of fold->options.found. */
void sections_begin(struct fold *fold);
void sections_free(struct sections *sections);

/* The event is beyond what is in force (fold_state.edge_ns): goes on to the section that it lies in. */
void sections_go_on(struct fold *fold, const struct trace_event *event);

/* A thread ends. */
void sections_part(struct fold *fold, struct thread *thread, uint64_t now_ns);

/* Before a range opens or closes at `index` of its thread's row: whether its section was closed to make way. Then
 * sections_come_back is due, after it. place: of the range that opens; 0: one closes. Only where there are sections. */
bool sections_make_way_on(struct fold *fold, struct thread *thread, uint32_t index, uint32_t place, uint64_t now_ns);
static inline bool sections_make_way(struct fold *fold, struct thread *thread, uint32_t index, uint32_t place, uint64_t now_ns)
{
	return thread == fold->state->section_thread && sections_make_way_on(fold, thread, index, place, now_ns);
}
void sections_come_back(struct fold *fold, uint64_t now_ns);

/* Where the section, or the step, is open in which things happen now, on whatever thread: the thread that it is on, and
 * where in its row. NULL: nowhere. */
static inline struct thread *sections_frame(const struct fold *fold, uint32_t *index)
{
	struct thread *of = fold->state->section_thread;

	if (!of)
		return NULL;
	*index = of->inserted != NOT_INSERTED ? of->inserted : fold->state->section_own;
	return *index < of->depth ? of : NULL;
}

#endif
