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

/* The node of the innermost open range is that of its frame, not of its trace node: a range may be
 * in a section of the run. */
void profile_cpu_sample(struct profile *profile, const struct trace_event *event)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct profile_thread *thread = event->stream->user;
	struct observed_sample sample = { .event = event };

	if (!observer || !observer->sample)
		return;
	for (uint32_t depth = thread ? thread->depth : 0; depth-- > 0 && !sample.node;)
		if (thread->frames[depth].trace_node)
			sample.node = thread->frames[depth].node;
	observer->sample(observer->context, &sample);
}
