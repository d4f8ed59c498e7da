/* SPDX-License-Identifier: MIT
 * Implements --steps: counts from the begin of the first chosen step to the end of the last one.
 * Ranges around them count for that time only. Recording windows limit the counting in the same
 * way.
 */
#include "report/profile/profile_state.h"
#include "report/text/label_pattern.h"
#include <string.h>
#include <strings.h>

static void observe_counting(const struct profile *profile)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->counting)
		observer->counting(
			observer->context, profile->state->counting, profile->state->now_ns);
}

/* Adds the GPU's times since counting began. */
static void add_counted_gpu_times(struct profile *profile)
{
	const struct profile_state *state = profile->state;
	struct profile_totals *totals = &profile->totals;
	struct timeline *timeline = profile->timeline;
	const uint64_t now_ns = state->now_ns;

	totals->gpu_busy_ns += timeline_busy(timeline, now_ns) - state->busy_at_begin_ns;
	totals->gpu_idle_ns += timeline_idle(timeline, now_ns) - state->idle_at_begin_ns;
	totals->gpu_unknown_ns += timeline_unknown(timeline, now_ns) - state->unknown_at_begin_ns;
}

void profile_stop_counting(struct profile *profile)
{
	struct profile_state *state = profile->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		for (uint32_t depth = thread->depth; depth > 0; depth--)
			profile_count_until(profile, thread, depth - 1, state->now_ns);
	}
	if (state->counting) {
		state->counting = false;
		observe_counting(profile);
		state->counted_ns += state->now_ns - state->counting_begin_ns;
		if (profile->timeline)
			add_counted_gpu_times(profile);
	}
}

static bool is_chosen(const struct profile *profile, uint64_t number)
{
	return profile->options.steps && number >= profile->options.first_step &&
	       number <= profile->options.last_step;
}

void profile_step_end(struct profile *profile, uint64_t number)
{
	struct profile_state *state = profile->state;

	if (state->chosen_open && is_chosen(profile, number))
		state->chosen_open--;
	if (profile->options.steps && state->counting && !state->chosen_open &&
		state->step >= profile->options.last_step)
		profile_stop_counting(profile);
}

void profile_step_range_end(
	struct profile *profile, const struct profile_thread *thread, uint32_t depth)
{
	struct profile_state *state = profile->state;

	if (thread != state->step_thread || depth != state->step_depth)
		return;
	state->step_thread = NULL;
	profile_step_end(profile, state->step);
}

/* Counts from now on. Open ranges count for the rest of their time. */
static void start_counting(struct profile *profile)
{
	struct profile_state *state = profile->state;

	state->counting = true;
	observe_counting(profile);
	state->counting_begin_ns = state->now_ns;
	if (profile->timeline) {
		state->busy_at_begin_ns = timeline_busy(profile->timeline, state->now_ns);
		state->idle_at_begin_ns = timeline_idle(profile->timeline, state->now_ns);
		state->unknown_at_begin_ns = timeline_unknown(profile->timeline, state->now_ns);
	}
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = 0; depth < state->threads[i]->depth; depth++) {
			state->threads[i]->frames[depth].begin_ns = state->now_ns;
			profile_restart_frame(profile, &state->threads[i]->frames[depth],
				&state->threads[i]->details[depth]);
			profile_track_target_children(profile, state->threads[i], depth);
		}
}

bool profile_is_partial(const struct profile *profile)
{
	return profile->options.steps || profile->options.windows;
}

/* With --steps, the steps inside the recording window start and stop the counting. What was not
 * recorded before the window is not missing. If the steps have nodes of their own, all are in
 * one node. Then warm-up steps, which averages leave out, are not counted. */
void profile_recording_window(struct profile *profile, const struct trace_event *event)
{
	const struct trace_window *record = event->record;

	if (!profile->options.windows)
		return;
	profile->state->now_ns = event->time_ns;
	profile_thread_of(profile, event);
	if (record->edge == TRACE_WINDOW_BEGINS) {
		if (!profile->options.windows->ring) { /* what is held was restated */
			reader_run_deferred(profile->reader);
			memory_owners_resume(profile->memory);
			profile_observe_memory_mark(profile, event);
		}
		profile->state->warming_up = record->warmup && profile->state->sections &&
					     profile->options.found_steps->own_ranges;
		if (!profile->options.steps && !profile->state->counting &&
			!profile->state->warming_up)
			start_counting(profile);
	} else if (record->edge == TRACE_WINDOW_ENDS && profile->state->counting) {
		profile_stop_counting(profile);
	}
}

void profile_warm_up_end(struct profile *profile)
{
	if (profile->state->warming_up && !profile->options.steps && !profile->state->counting)
		start_counting(profile);
	profile->state->warming_up = false;
}

/* Starts counting if step `number` is chosen, and stops it after the last chosen step. */
void profile_step_begin(struct profile *profile, uint64_t number)
{
	struct profile_state *state = profile->state;

	if (!profile->counts.steps++ || number < profile->counts.lowest_step)
		profile->counts.lowest_step = number;
	if (number > profile->counts.highest_step)
		profile->counts.highest_step = number;
	profile->counts.chosen_steps += is_chosen(profile, number);
	state->step = number;
	if (!profile->options.steps)
		return;
	if (state->counting && !state->chosen_open && number > profile->options.last_step)
		profile_stop_counting(profile);
	if (!is_chosen(profile, number))
		return;
	state->chosen_open += steps_overlap(profile->options.found_steps);
	if (!state->counting)
		start_counting(profile);
}

/* The range of a step begins. */
void profile_step_range_begin(
	struct profile *profile, const struct trace_event *event, struct profile_thread *thread)
{
	const struct trace_text text = reader_event_text(profile->reader, event);
	uint64_t number = profile->counts.steps;

	label_number(text.bytes, text.length, &number);
	profile->state->step_thread = thread;
	profile->state->step_depth = event->depth;
	profile_step_begin(profile, number);
}

/* If the trace has no ranges of kind step, ranges whose label begins with one of `words` are
 * steps. */
bool profile_is_step(const struct profile *profile, const struct trace_event *event)
{
	static const char *const words[] = { "step", "iter", "profilerstep", "profilestep", "batch",
		"epoch" };
	struct trace_text text;

	if (profile->state->step_thread || profile->state->sections)
		return false;
	if (profile->state->has_step_kind)
		return reader_node(profile->reader, event->node)->kind == TRACE_NODE_STEP;
	text = reader_event_text(profile->reader, event);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text.length >= strlen(words[i]) &&
			strncasecmp(text.bytes, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}
