/* SPDX-License-Identifier: MIT
 * Handles ranges that open and close on a thread, as frames of its range stack.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/profile/counted_ranges.h"
#include "report/profile/step_sections.h"
#include <stdlib.h>
#include <string.h>

void profile_count_until(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct profile_state *state = profile->state;
	const struct open_range *frame = &thread->frames[depth];

	if (end_ns < frame->begin_ns)
		end_ns = frame->begin_ns;
	if (state->counting) {
		profile_count_range(profile, thread, frame, end_ns);
		profile_count_module(profile, frame, end_ns - frame->begin_ns);
		profile_observe_segment(profile, thread, frame, end_ns);
		if (state->counted_ranges)
			counted_ranges_add(profile, frame, end_ns - frame->begin_ns,
				end_ns - frame->begin_ns - frame->child_ns);
		if (depth > 0 && !counted_ranges_contain(profile, frame))
			thread->frames[depth - 1].child_ns += end_ns - frame->begin_ns;
	}
	if (!state->tracks_instances && state->counting && profile->options.observer) {
		profile_observe_closed(profile, thread, frame, end_ns);
		profile_observe_timed(profile, thread, frame, end_ns);
	}
	if (!state->tracks_instances)
		return;
	if (state->counting)
		profile_close_instance(profile, thread, depth, end_ns);
	else
		instance_release(&state->instances, thread->details[depth].instance);
	free(thread->details[depth].label);
	thread->details[depth].label = NULL;
}

void profile_open_range(struct profile *profile, const struct trace_event *event)
{
	struct profile_state *state = profile->state;
	struct profile_thread *thread = profile_thread_of(profile, event);
	uint32_t node = state->nodes[event->node], depth;
	const bool own_label = node == NODE_UNRESOLVED,
		   suspended = state->sections && step_sections_suspend(profile, thread, 0,
							  event->node, event->time_ns);

	state->now_ns = event->time_ns;
	profile_note_activity(profile, event->time_ns);
	depth = thread->depth = profile_frame_index(thread, event->depth);
	if (__builtin_expect(own_label, 0)) {
		profile_require_instances(profile);
		node = node_names_resolve(profile->names,
			depth ? thread->frames[depth - 1].node : state->nodes[0], event->node,
			event);
	}
	if (__builtin_expect(depth >= thread->room, 0))
		ARRAY_GROW(thread->frames, thread->room, (size_t)depth + 1);
	if (__builtin_expect(profile->options.steps, 0) && profile_is_step(profile, event))
		profile_step_range_begin(profile, event, thread);
	thread->frames[depth] = (struct open_range){
		.node = node, .trace_node = event->node, .begin_ns = event->begin_ns
	};
	if (__builtin_expect(state->target_ns == event->begin_ns, 0) &&
		profile_is_target(profile, thread, &thread->frames[depth]))
		profile_track_target(profile);
	thread->depth = depth + 1;
	if (state->tracks_instances)
		profile_open_instance(profile, event, thread, own_label);
	if (suspended)
		step_sections_resume(profile, event->time_ns);
}

/* Closes a range that has others inside, of other domains. They stay open and move out by one
 * frame. Their time up to now was spent in the range that closes. Later time is spent in its
 * parent. */
static void close_outer_range(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t now_ns)
{
	struct open_range *frames = thread->frames;
	const uint32_t inner = depth + 1;
	const uint64_t inside_ns = counted_ranges_contain(profile, &frames[inner])
					   ? 0
					   : now_ns - frames[inner].begin_ns;

	frames[depth].child_ns += inside_ns;
	profile_count_until(profile, thread, depth, now_ns);
	if (depth > 0)
		frames[depth - 1].child_ns -= inside_ns;
	memmove(&frames[depth], &frames[inner], (thread->depth - inner) * sizeof *frames);
	if (profile->state->tracks_instances)
		memmove(&thread->details[depth], &thread->details[inner],
			(thread->depth - inner) * sizeof *thread->details);
	thread->depth--;
	if (thread->section_frame != NO_SECTION_FRAME && thread->section_frame > depth)
		thread->section_frame--;
}

void profile_remove_frame(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns)
{
	if (__builtin_expect(depth + 1 < thread->depth, 0)) {
		close_outer_range(profile, thread, depth, profile->state->now_ns);
		return;
	}
	thread->depth = depth;
	profile_count_until(profile, thread, depth, end_ns);
}

void profile_close_range(struct profile *profile, const struct trace_event *event, uint64_t end_ns)
{
	struct profile_thread *thread = profile_thread_of(profile, event);
	const uint32_t depth = profile_frame_index(thread, event->depth);
	bool suspended;

	profile->state->now_ns = event->time_ns;
	if (__builtin_expect(depth >= thread->depth, 0))
		return;
	suspended = profile->state->sections &&
		    step_sections_suspend(profile, thread, depth, 0, event->time_ns);
	profile_remove_frame(profile, thread, depth, end_ns);
	if (__builtin_expect(profile->options.steps, 0))
		profile_step_range_end(profile, thread, depth);
	if (suspended)
		step_sections_resume(profile, event->time_ns);
	if (__builtin_expect(profile->state->tracks_target_only && profile->target, 0))
		profile_drop_instances(profile->state);
}

/* The end of the range was lost, so its duration is not known. It is removed without an
 * instance. */
void profile_discard_frame(struct profile *profile, struct profile_thread *thread, uint32_t depth)
{
	struct open_range_details *details;

	thread->depth = depth;
	if (!profile->state->tracks_instances)
		return;
	profile_step_range_end(profile, thread, depth);
	details = &thread->details[depth];
	free(details->label);
	if (details->instance)
		details->instance->begin_ns = details->instance->end_ns;
	instance_release(&profile->state->instances, details->instance);
	*details = (struct open_range_details){ .label = NULL };
}

void profile_drop_range(struct profile *profile, const struct trace_event *event)
{
	struct profile_thread *thread = profile_thread_of(profile, event);
	const uint32_t depth = profile_frame_index(thread, event->depth);
	bool suspended;

	if (depth >= thread->depth)
		return;
	suspended = profile->state->sections &&
		    step_sections_suspend(profile, thread, depth, 0, event->time_ns);
	if (depth + 1 == thread->depth)
		profile_discard_frame(profile, thread, depth);
	else /* a step continues although the range around it was lost */
		profile_remove_frame(profile, thread, depth, event->last_ns);
	if (suspended)
		step_sections_resume(profile, event->time_ns);
}

void profile_end_open_range(struct profile *profile, const struct trace_event *event)
{
	const struct profile_thread *thread = profile_thread_of(profile, event);

	if (profile_frame_index(thread, event->depth) < thread->depth)
		profile->tree->nodes[thread->frames[profile_frame_index(thread, event->depth)].node]
			.left_open = true;
	profile_close_range(profile, event, event->last_ns);
}
