/* SPDX-License-Identifier: MIT
 * fold_ranges.c: ranges that open and close on a thread.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/profile/counted_ranges.h"
#include "report/profile/step_sections.h"
#include <stdlib.h>
#include <string.h>

void fold_close_at(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct fold_state *state = fold->state;
	const struct frame *frame = &thread->frames[depth];

	if (end_ns < frame->begin_ns)
		end_ns = frame->begin_ns;
	if (state->counting) {
		fold_count_range(fold, thread, frame, end_ns);
		fold_count_member(fold, frame, end_ns - frame->begin_ns);
		fold_tell_part(fold, thread, frame, end_ns);
		if (state->counted)
			counted_range(fold, frame, end_ns - frame->begin_ns, end_ns - frame->begin_ns - frame->child_ns);
		if (depth > 0 && !counted_around(fold, frame))
			thread->frames[depth - 1].child_ns += end_ns - frame->begin_ns;
	}
	if (!state->rich && state->counting && fold->options.observer) {
		fold_tell_closed(fold, thread, frame, end_ns);
		fold_tell_timed(fold, thread, frame, end_ns);
	}
	if (!state->rich)
		return;
	if (state->counting)
		fold_close_instance(fold, thread, depth, end_ns);
	else
		instance_release(&state->instances, thread->more[depth].instance);
	free(thread->more[depth].label);
	thread->more[depth].label = NULL;
}

void fold_open(struct fold *fold, const struct trace_event *event)
{
	struct fold_state *state = fold->state;
	struct thread *thread = fold_thread(fold, event);
	uint32_t node = state->nodes[event->node], depth;
	const bool own_label = node == NAMES_OPEN,
		   made_way = state->sections && sections_make_way(fold, thread, 0, event->node, event->time_ns);

	state->now_ns = event->time_ns;
	depth = thread->depth = fold_frame(thread, event->depth);
	if (__builtin_expect(own_label, 0)) {
		fold_become_rich(fold);
		node = names_open_node(fold->names, depth ? thread->frames[depth - 1].node : state->nodes[0], event->node,
			event);
	}
	if (__builtin_expect(depth >= thread->room, 0))
		grow(&thread->frames, &thread->room, (size_t)depth + 1, sizeof *thread->frames);
	if (__builtin_expect(fold->options.steps, 0) && fold_is_step(fold, event))
		fold_step_begins(fold, event, thread);
	thread->frames[depth] = (struct frame){ .node = node, .place = event->node, .begin_ns = event->begin_ns };
	if (__builtin_expect(state->target_ns == event->begin_ns, 0) && fold_is_target(fold, thread, &thread->frames[depth]))
		fold_enrich_target(fold);
	thread->depth = depth + 1;
	if (state->rich)
		fold_open_instance(fold, event, thread, own_label);
	if (made_way)
		sections_come_back(fold, event->time_ns);
}

/* A range closes that has others inside, of other domains: they stay open and move out by one. Their time up to here
 * was its children's; what they take from here on is its parent's. */
static void close_inner(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t now_ns)
{
	struct frame *frames = thread->frames;
	const uint32_t inner = depth + 1;
	const uint64_t inside_ns = counted_around(fold, &frames[inner]) ? 0 : now_ns - frames[inner].begin_ns;

	frames[depth].child_ns += inside_ns;
	fold_close_at(fold, thread, depth, now_ns);
	if (depth > 0)
		frames[depth - 1].child_ns -= inside_ns;
	memmove(&frames[depth], &frames[inner], (thread->depth - inner) * sizeof *frames);
	if (fold->state->rich)
		memmove(&thread->more[depth], &thread->more[inner], (thread->depth - inner) * sizeof *thread->more);
	thread->depth--;
	if (thread->inserted != NOT_INSERTED && thread->inserted > depth)
		thread->inserted--;
}

void fold_close_frame(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	if (__builtin_expect(depth + 1 < thread->depth, 0)) {
		close_inner(fold, thread, depth, fold->state->now_ns);
		return;
	}
	thread->depth = depth;
	fold_close_at(fold, thread, depth, end_ns);
}

void fold_close(struct fold *fold, const struct trace_event *event, uint64_t end_ns)
{
	struct thread *thread = fold_thread(fold, event);
	const uint32_t depth = fold_frame(thread, event->depth);
	bool made_way;

	fold->state->now_ns = event->time_ns;
	if (__builtin_expect(depth >= thread->depth, 0))
		return;
	made_way = fold->state->sections && sections_make_way(fold, thread, depth, 0, event->time_ns);
	fold_close_frame(fold, thread, depth, end_ns);
	if (__builtin_expect(fold->options.steps, 0))
		fold_step_ends(fold, thread, depth);
	if (made_way)
		sections_come_back(fold, event->time_ns);
	if (__builtin_expect(fold->state->rich_for_target && fold->target, 0))
		fold_impoverish(fold->state);
}

/* A range whose end was lost: how long it took is not known, so it has no instance. */
void fold_forget(struct fold *fold, struct thread *thread, uint32_t depth)
{
	struct frame_more *more;

	thread->depth = depth;
	if (!fold->state->rich)
		return;
	fold_step_ends(fold, thread, depth);
	more = &thread->more[depth];
	free(more->label);
	if (more->instance)
		more->instance->begin_ns = more->instance->end_ns;
	instance_release(&fold->state->instances, more->instance);
	*more = (struct frame_more){ .label = NULL };
}

void fold_drop(struct fold *fold, const struct trace_event *event)
{
	struct thread *thread = fold_thread(fold, event);
	const uint32_t depth = fold_frame(thread, event->depth);
	bool made_way;

	if (depth >= thread->depth)
		return;
	made_way = fold->state->sections && sections_make_way(fold, thread, depth, 0, event->time_ns);
	if (depth + 1 == thread->depth)
		fold_forget(fold, thread, depth);
	else /* a step goes on in which the range around it was lost */
		fold_close_frame(fold, thread, depth, event->last_ns);
	if (made_way)
		sections_come_back(fold, event->time_ns);
}

void fold_left_open(struct fold *fold, const struct trace_event *event)
{
	const struct thread *thread = fold_thread(fold, event);

	if (fold_frame(thread, event->depth) < thread->depth)
		fold->tree->nodes[thread->frames[fold_frame(thread, event->depth)].node].left_open = true;
	fold_close(fold, event, event->last_ns);
}
