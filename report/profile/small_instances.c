/* SPDX-License-Identifier: MIT */
#include "report/profile/small_instances.h"
#include "report/base/alloc.h"
#include "report/profile/node_placement.h"
#include <stdlib.h>

/* What autograd's engine runs is not kept where it ran (fold_critical.c). */
static bool has_backward(const struct fold *fold)
{
	for (uint32_t id = 1; id < fold->tree->count; id++)
		if (fold->tree->nodes[id].beside)
			return true;
	for (uint32_t place = 1; place < reader_nodes(fold->reader); place++)
		if (placement_is_engine(fold->reader, place))
			return true;
	return false;
}

struct gather *gather_new(const struct fold *fold)
{
	const struct fold_target *target = fold->options.target;
	const struct tree *known = target ? target->known : NULL;
	const long double least = target ? fold_critical_least(fold) : 0;
	struct gather *gather;

	if (!known || known->count < fold->tree->count || fold->state->rich || has_backward(fold))
		return NULL;
	gather = need(sizeof *gather);
	gather->count = fold->tree->count;
	gather->around = need(gather->count * sizeof *gather->around);
	for (uint32_t id = 0; id < gather->count; id++) {
		const struct node *node = &known->nodes[id];
		const bool small = (long double)node->max_ns < least && node->depth < TREE_DEEPEST;

		gather->around[id] = small ? node->parent : GATHER_NONE;
	}
	return gather;
}

void gather_free(struct gather *gather)
{
	if (!gather)
		return;
	free(gather->around);
	free(gather->into);
	free(gather);
}

void gather_resume(struct fold *fold)
{
	const struct fold_state *state = fold->state;
	struct gather *gather = state->gather;
	struct instance *innermost;

	gather->thread = NULL;
	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		thread->gathered = thread->depth;
		if (thread->stream != fold->options.target->stream || !thread->depth)
			continue;
		gather->thread = thread;
		grow(&gather->into, &gather->room, thread->room, sizeof(struct instance *));
		innermost = thread->more[thread->depth - 1].instance;
		gather->into[thread->depth - 1] = innermost && innermost->keep ? innermost : NULL;
	}
}

void gather_pause(struct fold *fold)
{
	const struct fold_state *state = fold->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
		for (uint32_t depth = thread->gathered; depth < thread->depth; depth++) {
			thread->more[depth] = (struct frame_more){ .label = NULL };
			fold_keep_wanted(fold, thread, depth);
		}
		thread->gathered = thread->depth;
	}
}
