/* SPDX-License-Identifier: MIT */
#include "report/profile/profile_state.h"

uint32_t profile_event_node(struct profile *profile, const struct trace_event *event)
{
	const uint32_t node = event->node ? profile->state->nodes[event->node] : 0;
	struct profile_thread *thread = profile_thread_of(profile, event);

	profile_require_instances(profile);
	profile->state->now_ns = event->time_ns;
	if (!event->node || (node == NODE_UNRESOLVED && !thread->depth))
		return profile_unattributed_node(profile, profile->state->nodes[0]);
	if (node == NODE_UNRESOLVED)
		return thread->frames[thread->depth - 1].node;
	return node;
}
