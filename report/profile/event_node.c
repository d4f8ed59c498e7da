/* SPDX-License-Identifier: MIT */
#include "report/profile/profile_state.h"

uint32_t fold_place(struct fold *fold, const struct trace_event *event)
{
	const uint32_t node = event->node ? fold->state->nodes[event->node] : 0;
	struct thread *thread = fold_thread(fold, event);

	fold_become_rich(fold);
	fold->state->now_ns = event->time_ns;
	if (!event->node || (node == NAMES_OPEN && !thread->depth))
		return fold_unattributed(fold, fold->state->nodes[0]);
	if (node == NAMES_OPEN)
		return thread->frames[thread->depth - 1].node;
	return node;
}
