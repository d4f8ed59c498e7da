/* SPDX-License-Identifier: MIT
 * Handles ranges with the least work for each, as long as no other event comes. The result must
 * equal that of range_stack.c. Test: tests/report/test_profile.c.
 */
#include "report/profile/small_instances.h"

static inline void observe_plain_range(const struct profile *profile,
	const struct profile_thread *thread, const struct open_range *frame, uint64_t end_ns)
{
	profile_observe_segment(profile, thread, frame, end_ns);
	profile_observe_closed(profile, thread, frame, end_ns);
}

/* What is done when a range closes.
 *
 *   counted   adds to the sums of its node
 *   modules   adds to its module instance: some module label patterns are shared
 *   observed  calls the observer's `segment` and `closed`
 *   timed     calls the observer's `instance` and `ended`
 *   grouped   the range may be a small instance (small_instances.h) */
struct close_actions {
	bool counted, modules, observed, timed, grouped;
};

/* Opens or closes a range in the usual way. Returns false, with nothing done, if `event` is not
 * of that kind. */
static inline __attribute__((always_inline)) bool fast_range_event(struct profile *profile,
	const struct trace_event *event, struct profile_thread **last,
	const struct close_actions actions)
{
	struct profile_thread *thread = *last;

	if (__builtin_expect(event->stream != thread->of, 0))
		*last = thread = profile_thread_of(profile, event);
	if (event->kind == TRACE_PUSH) {
		const uint32_t node = profile->state->nodes[event->node];

		if (__builtin_expect(node == NODE_UNRESOLVED || event->depth >= thread->room ||
					     event->begin_ns == profile->state->target_ns,
			    0))
			return false;
		if (actions.grouped &&
			__builtin_expect(!small_instances_open(profile->state->small_instances,
						 thread, event->depth, node),
				0))
			return false;
		thread->frames[event->depth] = (struct open_range){
			.node = node, .trace_node = event->node, .begin_ns = event->begin_ns
		};
		thread->depth = event->depth + 1;
		return true;
	}
	if (event->kind == EVENT_POP &&
		__builtin_expect(thread->frames && event->depth + 1 == thread->depth, 1)) {
		struct open_range *frame = &thread->frames[event->depth];

		if (actions.grouped &&
			__builtin_expect(!small_instances_close(profile->state->small_instances,
						 thread, event->depth, event->time_ns),
				0))
			return false;
		if (actions.counted)
			profile_count_range(profile, thread, frame, event->time_ns);
		if (actions.modules)
			profile_count_module(profile, frame, event->time_ns - frame->begin_ns);
		if (actions.observed)
			observe_plain_range(profile, thread, frame, event->time_ns);
		if (actions.timed)
			profile_observe_timed(profile, thread, frame, event->time_ns);
		if (event->depth > 0)
			frame[-1].child_ns += event->time_ns - frame->begin_ns;
		thread->depth = event->depth;
		return true;
	}
	return false;
}

/* Runs the fast path as long as the events are ranges. Returns like reader_next, with the first
 * event that others must handle. */
static inline __attribute__((always_inline)) int run_ranges_as(struct profile *profile,
	struct trace_event *event, uint64_t *events, const struct close_actions actions)
{
	/* The thread of the last event, which nearly always is that of the next one. */
	struct profile_thread no_thread = { .of = NULL }, *last = &no_thread;

	for (;; ++*events) {
		/* stays in registers, because its address does not escape */
		struct trace_event next;
		int status;

		if (__builtin_expect(reader_next_decoded(profile->reader, &next), 1)) {
			if (__builtin_expect(fast_range_event(profile, &next, &last, actions), 1))
				continue;
			*event = next;
			return 1;
		}
		status = reader_next_any(profile->reader, event);
		if (status <= 0 || (event->kind != TRACE_PUSH && event->kind != EVENT_POP) ||
			!fast_range_event(profile, event, &last, actions))
			return status;
	}
}

static int run_ranges(struct profile *profile, struct trace_event *event, uint64_t *events)
{
	return run_ranges_as(profile, event, events, (struct close_actions){ .counted = true });
}

static int run_ranges_with_modules(
	struct profile *profile, struct trace_event *event, uint64_t *events)
{
	return run_ranges_as(
		profile, event, events, (struct close_actions){ .counted = true, .modules = true });
}

static int run_ranges_observed(struct profile *profile, struct trace_event *event, uint64_t *events)
{
	return run_ranges_as(profile, event, events, (struct close_actions){ .observed = true });
}

static int run_ranges_unobserved(
	struct profile *profile, struct trace_event *event, uint64_t *events)
{
	return run_ranges_as(profile, event, events, (struct close_actions){ .counted = false });
}

static int run_ranges_all_observed(
	struct profile *profile, struct trace_event *event, uint64_t *events)
{
	return run_ranges_as(profile, event, events,
		(struct close_actions){
			.counted = true, .modules = true, .observed = true, .timed = true });
}

/* Runs the fast path for ranges inside the target, whose small instances are grouped. */
static int run_ranges_grouped(struct profile *profile, struct trace_event *event, uint64_t *events)
{
	int status;

	small_instances_resume(profile);
	status = run_ranges_as(profile, event, events, (struct close_actions){ .grouped = true });
	small_instances_pause(profile);
	return status;
}

int profile_run_ranges(struct profile *profile, struct trace_event *event, uint64_t *events)
{
	const struct profile_observer *observer = profile->options.observer;

	if (profile->state->small_instances && profile->state->tracks_target_only)
		return run_ranges_grouped(profile, event, events);
	if (profile_observes_values(&profile->options) && profile->options.metric != METRIC_GPU)
		return run_ranges_all_observed(profile, event, events);
	if (observer && profile->options.observer_joins)
		return run_ranges_all_observed(profile, event, events);
	if (observer && (observer->segment || observer->closed || observer->call))
		return run_ranges_observed(profile, event, events);
	if (profile->options.target)
		return run_ranges_unobserved(profile, event, events);
	if (node_names_module_group(profile->names)->count > 1)
		return run_ranges_with_modules(profile, event, events);
	return run_ranges(profile, event, events);
}
