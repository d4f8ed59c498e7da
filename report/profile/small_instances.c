/* SPDX-License-Identifier: MIT */
#include "report/profile/small_instances.h"
#include "report/base/alloc.h"
#include "report/profile/node_placement.h"
#include <stdlib.h>

/* Whether something runs backward. Such work is not kept where it ran (critical_children.c). */
static bool has_backward(const struct profile *profile)
{
	for (uint32_t id = 1; id < profile->tree->count; id++)
		if (profile->tree->nodes[id].forward_node)
			return true;
	for (uint32_t trace_node = 1; trace_node < reader_node_count(profile->reader); trace_node++)
		if (node_placement_is_engine(profile->reader, trace_node))
			return true;
	return false;
}

struct small_instances *small_instances_new(const struct profile *profile)
{
	const struct profile_target *target = profile->options.target;
	const struct tree *known = target ? target->previous_tree : NULL;
	const long double least = target ? profile_critical_min(profile) : 0;
	struct small_instances *small_instances;

	if (!known || known->count < profile->tree->count || profile->state->tracks_instances ||
		has_backward(profile))
		return NULL;
	small_instances = xcalloc(sizeof *small_instances);
	small_instances->count = profile->tree->count;
	small_instances->around = xcalloc(small_instances->count * sizeof *small_instances->around);
	for (uint32_t id = 0; id < small_instances->count; id++) {
		const struct node *node = &known->nodes[id];
		const bool small = (long double)node->max_ns < least &&
				   node->depth < TREE_DEPTH_MAX;

		small_instances->around[id] = small ? node->parent : SMALL_INSTANCES_NONE;
	}
	return small_instances;
}

void small_instances_free(struct small_instances *small_instances)
{
	if (!small_instances)
		return;
	free(small_instances->around);
	free(small_instances->groups);
	free(small_instances);
}

void small_instances_resume(struct profile *profile)
{
	const struct profile_state *state = profile->state;
	struct small_instances *small_instances = state->small_instances;
	struct instance *innermost;

	small_instances->thread = NULL;
	for (size_t i = 0; i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		thread->small_from_depth = thread->depth;
		if (thread->stream != profile->options.target->stream || !thread->depth)
			continue;
		small_instances->thread = thread;
		array_grow_zeroed(&small_instances->groups, &small_instances->room, thread->room,
			sizeof(struct instance *));
		innermost = thread->details[thread->depth - 1].instance;
		small_instances->groups[thread->depth - 1] = innermost && innermost->keep
								     ? innermost
								     : NULL;
	}
}

void small_instances_pause(struct profile *profile)
{
	const struct profile_state *state = profile->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		ARRAY_GROW(thread->details, thread->details_room, thread->depth);
		for (uint32_t depth = thread->small_from_depth; depth < thread->depth; depth++) {
			thread->details[depth] = (struct open_range_details){ .label = NULL };
			profile_track_target_children(profile, thread, depth);
		}
		thread->small_from_depth = thread->depth;
	}
}
