/* SPDX-License-Identifier: MIT
 * fold_plain.c: ranges alone, as long as nothing else comes: the least work for each.
 */
#include "report/profile/small_instances.h"

static inline void tell_plain(const struct fold *fold, const struct thread *thread, const struct frame *frame, uint64_t end_ns)
{
	fold_tell_part(fold, thread, frame, end_ns);
	fold_tell_closed(fold, thread, frame, end_ns);
}

/* What is done with a range that closes. */
struct plain_way {
	bool counted, members, told, timed, gathered;
};

/* A range opens or closes in the usual way. False: nothing was done. counted: somebody reads what ranges come
 * to together; members: and some modules are folded. told: an observer is; timed: and of values. gathered: fold_gather.h. */
static inline __attribute__((always_inline)) bool plain_event(
	struct fold *fold, const struct trace_event *event, struct thread **last, const struct plain_way way)
{
	struct thread *thread = *last;

	if (__builtin_expect(event->stream != thread->of, 0))
		*last = thread = fold_thread(fold, event);
	if (event->kind == TRACE_PUSH) {
		const uint32_t node = fold->state->nodes[event->node];

		if (__builtin_expect(node == NAMES_OPEN || event->depth >= thread->room ||
					    event->begin_ns == fold->state->target_ns, 0))
			return false;
		if (way.gathered && __builtin_expect(!gather_opens(fold->state->gather, thread, event->depth, node), 0))
			return false;
		thread->frames[event->depth] = (struct frame){
			.node = node, .place = event->node, .begin_ns = event->begin_ns
		};
		thread->depth = event->depth + 1;
		return true;
	}
	if (event->kind == EVENT_POP && __builtin_expect(thread->frames && event->depth + 1 == thread->depth, 1)) {
		struct frame *frame = &thread->frames[event->depth];

		if (way.gathered && __builtin_expect(!gather_closes(fold->state->gather, thread, event->depth, event->time_ns), 0))
			return false;
		if (way.counted)
			fold_count_range(fold, thread, frame, event->time_ns);
		if (way.members)
			fold_count_member(fold, frame, event->time_ns - frame->begin_ns);
		if (way.told)
			tell_plain(fold, thread, frame, event->time_ns);
		if (way.timed)
			fold_tell_timed(fold, thread, frame, event->time_ns);
		if (event->depth > 0)
			frame[-1].child_ns += event->time_ns - frame->begin_ns;
		thread->depth = event->depth;
		return true;
	}
	return false;
}

/* Ranges alone, as long as nothing else comes: the least work for each. Returns as reader_next does, with an event
 * that is for others. */
static inline __attribute__((always_inline)) int run_plain_as(
	struct fold *fold, struct trace_event *event, uint64_t *events, const struct plain_way way)
{
	struct thread nobody = { .of = NULL }, *last = &nobody; /* of the last event: nearly always that of the next */

	for (;; ++*events) {
		struct trace_event next; /* in registers: its address goes nowhere */
		int status;

		if (__builtin_expect(reader_next_short(fold->reader, &next), 1)) {
			if (__builtin_expect(plain_event(fold, &next, &last, way), 1))
				continue;
			*event = next;
			return 1;
		}
		status = reader_next_any(fold->reader, event);
		if (status <= 0 || (event->kind != TRACE_PUSH && event->kind != EVENT_POP) || !plain_event(fold, event, &last, way))
			return status;
	}
}

static int run_plain(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	return run_plain_as(fold, event, events, (struct plain_way){ .counted = true });
}

static int run_plain_with_members(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	return run_plain_as(fold, event, events, (struct plain_way){ .counted = true, .members = true });
}

static int run_plain_and_tell(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	return run_plain_as(fold, event, events, (struct plain_way){ .told = true });
}

static int run_plain_and_wait(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	return run_plain_as(fold, event, events, (struct plain_way){ .counted = false });
}

static int run_plain_and_tell_all(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	return run_plain_as(fold, event, events, (struct plain_way){ .counted = true, .members = true, .told = true, .timed = true });
}

/* Inside of the target. */
static int run_gathering(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	int status;

	gather_resume(fold);
	status = run_plain_as(fold, event, events, (struct plain_way){ .gathered = true });
	gather_pause(fold);
	return status;
}

int fold_next(struct fold *fold, struct trace_event *event, uint64_t *events)
{
	const struct fold_observer *observer = fold->options.observer;

	if (fold->state->gather && fold->state->rich_for_target)
		return run_gathering(fold, event, events);
	if (fold->state->rich)
		return reader_next(fold->reader, event);
	if (fold_tells_values(&fold->options) && fold->options.metric != METRIC_GPU)
		return run_plain_and_tell_all(fold, event, events);
	if (observer && (observer->part || observer->closed || observer->call))
		return run_plain_and_tell(fold, event, events);
	if (fold->options.target)
		return run_plain_and_wait(fold, event, events);
	if (names_members(fold->names)->count > 1)
		return run_plain_with_members(fold, event, events);
	return run_plain(fold, event, events);
}
