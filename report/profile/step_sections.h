/* SPDX-License-Identifier: MIT
 * Makes sections of the tree from the steps that were found.
 *
 * A section is a part of the run: a step, or what is before, between or after the steps. The nodes
 * are `step`, `step (warm-up)`, `step (unfinished)`, `step (capture)`, `(before first step)`,
 * `(between steps)` and `(after last step)`. Steps that are ranges of the program keep the nodes of
 * these ranges.
 *
 * On the steps' thread, a section has a frame on the range stack. It is the range of the program
 * that is the step (profile_state.step_frame), or else a frame that is inserted when the section
 * begins (profile_thread.section_frame). Ranges around several steps ("train", "epoch 3") stay
 * above the sections wherever they begin and end. Outside a step, the section is closed before such
 * a range opens or closes, and opened again after it. A range that extends beyond a section stays
 * below the section in which it began. All that begins or is launched in a section, on any thread,
 * is below it.
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

/* Closes the section of `thread`, which ends, if it is the thread with the steps. */
void step_sections_thread_end(
	struct profile *profile, struct profile_thread *thread, uint64_t now_ns);

/* Called before a range opens or closes at frame `index`. Returns whether the section was closed
 * for it. Then the caller calls step_sections_resume afterwards. `trace_node`: the node of the
 * range that opens; 0: a range closes. Only if there are sections. */
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
