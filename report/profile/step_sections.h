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
void step_sections_begin(struct profile *profile);
void step_sections_free(struct step_sections *sections);

/* The event is beyond what is in force (fold_state.edge_ns): goes on to the section that it lies in. */
void step_sections_advance(struct profile *profile, const struct trace_event *event);

/* A thread ends. */
void step_sections_thread_end(
	struct profile *profile, struct profile_thread *thread, uint64_t now_ns);

/* Before a range opens or closes at `index` of its thread's row: whether its section was closed to make way. Then
 * sections_come_back is due, after it. place: of the range that opens; 0: one closes. Only where there are sections. */
bool step_sections_suspend_slow(struct profile *profile, struct profile_thread *thread,
	uint32_t index, uint32_t trace_node, uint64_t now_ns);
static inline bool step_sections_suspend(struct profile *profile, struct profile_thread *thread,
	uint32_t index, uint32_t trace_node, uint64_t now_ns)
{
	return thread == profile->state->sections_thread &&
	       step_sections_suspend_slow(profile, thread, index, trace_node, now_ns);
}
void step_sections_resume(struct profile *profile, uint64_t now_ns);

/* Where the section, or the step, is open in which things happen now, on whatever thread: the thread that it is on, and
 * where in its row. NULL: nowhere. */
static inline struct profile_thread *step_sections_current(
	const struct profile *profile, uint32_t *index)
{
	struct profile_thread *of = profile->state->sections_thread;

	if (!of)
		return NULL;
	*index = of->section_frame != NO_SECTION_FRAME ? of->section_frame
						       : profile->state->step_frame;
	return *index < of->depth ? of : NULL;
}

#endif
