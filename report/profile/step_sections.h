/* SPDX-License-Identifier: MIT
 * Makes sections of the tree from the steps that were found.
 *
 * The sections are `step`, `step (warm-up)`, `step (unfinished)`, `step (capture)`, `(before
 * first step)`, `(between steps)` and `(after last step)`.
 *
 * On the steps' thread a section is an open range like others. It is put onto the range stack
 * when it begins, inside the ranges around several steps that are open then (`train`, `epoch
 * 3`). Those stay above the sections wherever they begin and end. Outside a step, the section is
 * closed before such a range opens or closes, and opened again after it. A range that extends
 * beyond a section stays below the section in which it began. All that begins or is launched in
 * a section, on any thread, is below it. Steps that are ranges of the program itself keep their
 * nodes. Only what is around them is put into sections.
 *
 * If several threads have steps, which overlap in time, each of these threads is in a section of
 * its own, and what it does is below that section. Threads without steps are in the section
 * `(threads without steps)`.
 */
#ifndef PPERF_REPORT_PROFILE_STEP_SECTIONS_H
#define PPERF_REPORT_PROFILE_STEP_SECTIONS_H

#include "report/profile/profile_state.h"

#define STEP_SECTION_NO_STEPS "(threads without steps)"

/* Starts with the steps of profile_options.found_steps. */
void step_sections_begin(struct profile *profile);
void step_sections_free(struct step_sections *sections);

/* Moves to the section of `event`, which is at or after profile_state.section_end_ns. */
void step_sections_advance(struct profile *profile, const struct trace_event *event);

/* A thread ends. */
void step_sections_thread_end(
	struct profile *profile, struct profile_thread *thread, uint64_t now_ns);

/* Called before a range opens or closes at frame `index`. Returns whether the section was closed
 * for it. Then the caller calls step_sections_resume afterwards. `trace_node`: of the range that
 * opens; 0: one closes. Only if there are sections. */
bool step_sections_suspend_slow(struct profile *profile, struct profile_thread *thread,
	uint32_t index, uint32_t trace_node, uint64_t now_ns);
static inline bool step_sections_suspend(struct profile *profile, struct profile_thread *thread,
	uint32_t index, uint32_t trace_node, uint64_t now_ns)
{
	return thread == profile->state->sections_thread &&
	       step_sections_suspend_slow(profile, thread, index, trace_node, now_ns);
}
void step_sections_resume(struct profile *profile, uint64_t now_ns);

/* The thread and frame index of the section or step that is open now, for events of any thread
 * (if several threads have steps: of the thread of the last event).
 * NULL: none is. */
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
