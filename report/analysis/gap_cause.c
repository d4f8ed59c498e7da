/* SPDX-License-Identifier: MIT */
#include "report/analysis/gap_cause.h"
#include "report/analysis/stream_waits.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

#define CALLS_KEPT GAP_CALLS_MAX /* of a thread: calls that can block it */
#define THREADS_MAX 65536u

/* A call that can block its thread. */
struct recent_call {
	uint64_t begin_ns, end_ns;
	enum gap_cause cause;
	uint32_t name, owner;
};

struct thread_calls {
	struct recent_call calls[CALLS_KEPT]; /* ring buffer */
	uint64_t count;
	uint32_t tid;
};

struct gap_calls {
	const struct string_table *texts;
	struct stream_waits *waits;
	struct thread_calls **threads;
	size_t count, room;
};

const char *gap_cause_name(enum gap_cause cause)
{
	static const char *const names[] = {
#define X(cause, text) text,
		GAP_CAUSES(X)
#undef X
	};

	return names[cause];
}

const char *gap_event_name(enum gap_event event)
{
	static const char *const names[] = {
#define X(event, text) text,
		GAP_EVENTS(X)
#undef X
	};

	return names[event];
}

struct gap_calls *gap_calls_new(const struct string_table *texts)
{
	struct gap_calls *calls = xcalloc(sizeof *calls);

	calls->texts = texts;
	calls->waits = stream_waits_new();
	return calls;
}

void gap_calls_free(struct gap_calls *calls)
{
	for (size_t i = 0; i < calls->count; i++)
		free(calls->threads[i]);
	free(calls->threads);
	stream_waits_free(calls->waits);
	free(calls);
}

static struct thread_calls *thread_calls_of(const struct gap_calls *calls, uint32_t tid)
{
	for (size_t i = 0; i < calls->count; i++)
		if (calls->threads[i]->tid == tid)
			return calls->threads[i];
	return NULL;
}

static bool function_name_contains(struct string_view name, const char *part)
{
	return memmem(name.bytes, name.length, part, strlen(part)) != NULL;
}

/* Finds the cause of a call for which the trace has only the name. */
static enum gap_cause cause_by_name(struct string_view name)
{
	if (function_name_contains(name, "Synchronize"))
		return GAP_SYNC;
	if (function_name_contains(name, "Memcpy"))
		return GAP_COPY;
	if (function_name_contains(name, "Malloc") || function_name_contains(name, "Free") ||
		function_name_contains(name, "MemAlloc") ||
		function_name_contains(name, "HostAlloc") ||
		function_name_contains(name, "MemCreate") ||
		function_name_contains(name, "MemMap") ||
		function_name_contains(name, "MemUnmap") ||
		function_name_contains(name, "MemRelease"))
		return GAP_ALLOCATION;
	return GAP_UNKNOWN;
}

/* Returns GAP_UNKNOWN for a call that does not block its thread. */
static enum gap_cause blocking_cause(const struct gap_calls *calls, const struct activity *call)
{
	switch (call->kind) {
	case ACTIVITY_WAIT:
		return GAP_SYNC;
	case ACTIVITY_ALLOC:
	case ACTIVITY_FREE:
		return GAP_ALLOCATION;
	case ACTIVITY_COPY_CALL:
		return activity_copies_on_device(call) ? GAP_UNKNOWN : GAP_COPY;
	case ACTIVITY_OTHER_CALL:
		return cause_by_name(string_table_get(calls->texts, call->name));
	default:
		return GAP_UNKNOWN;
	}
}

void gap_calls_add(struct gap_calls *calls, const struct activity *call)
{
	const enum gap_cause cause = blocking_cause(calls, call);
	struct thread_calls *caller;

	stream_waits_add(calls->waits, call);
	if (cause == GAP_UNKNOWN || calls->count >= THREADS_MAX)
		return;
	caller = thread_calls_of(calls, call->tid);
	if (!caller) {
		array_grow_zeroed(&calls->threads, &calls->room, calls->count + 1,
			sizeof(struct thread_calls *));
		caller = calls->threads[calls->count++] = xcalloc(sizeof *caller);
		caller->tid = call->tid;
	}
	caller->calls[caller->count++ % CALLS_KEPT] = (struct recent_call){
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns,
		.cause = cause,
		.name = call->name,
		.owner = call->owner
	};
}

/* Time of the call between `from_ns` and `to_ns`. */
static uint64_t overlap_ns(const struct recent_call *call, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t begin = max_u64(call->begin_ns, from_ns), end = min_u64(call->end_ns, to_ns);

	return end > begin ? end - begin : 0;
}

/* Returns the number of the oldest call of a thread that is kept. */
static uint64_t oldest_call(const struct thread_calls *caller)
{
	return caller->count > CALLS_KEPT ? caller->count - CALLS_KEPT : 0;
}

static const struct recent_call *nth_call(const struct thread_calls *caller, uint64_t number)
{
	return &caller->calls[number % CALLS_KEPT];
}

static size_t add_host_part(
	struct gap_part *parts, size_t count, uint64_t begin_ns, uint64_t end_ns)
{
	if (end_ns <= begin_ns)
		return count;
	parts[count] = (struct gap_part){
		.begin_ns = begin_ns, .end_ns = end_ns, .cause = GAP_LAUNCH
	};
	return count + 1;
}

/* Splits the part of a gap before the launch at the begin and the return of each blocking call of
 * the thread. Returns the number of parts. */
static size_t split_before(const struct thread_calls *caller, uint64_t from_ns, uint64_t until_ns,
	struct gap_part parts[GAP_PARTS_MAX])
{
	size_t count = 0;

	for (uint64_t i = caller ? oldest_call(caller) : 0; caller && i < caller->count; i++) {
		const struct recent_call *call = nth_call(caller, i);
		const uint64_t begin_ns = max_u64(call->begin_ns, from_ns);

		if (!overlap_ns(call, from_ns, until_ns))
			continue;
		count = add_host_part(parts, count, from_ns, begin_ns);
		from_ns = min_u64(call->end_ns, until_ns);
		parts[count++] = (struct gap_part){ .begin_ns = begin_ns,
			.end_ns = from_ns,
			.cause = call->cause,
			.blocked_by = call->name,
			.blocked_owner = call->owner };
	}
	return add_host_part(parts, count, from_ns, until_ns);
}

/* Returns true if the gap is between two operations of one graph launch. */
static bool is_within_graph(const struct activity *work, const struct gap *gap)
{
	return work->of_graph && work->correlation == gap->last_correlation;
}

uint64_t gap_wait_begin(uint64_t begin_ns, uint64_t call_end_ns, uint64_t start_ns)
{
	const uint64_t ready_ns = max_u64(begin_ns, call_end_ns);

	return start_ns <= ready_ns || start_ns - ready_ns <= START_MAX_NS ? start_ns : ready_ns;
}

/* The cause of the part until the work began to wait. */
static enum gap_cause starting_cause(
	const struct activity *work, const struct gap *gap, uint64_t from_ns)
{
	if (is_within_graph(work, gap))
		return GAP_KERNELS;
	if (work->kind == ACTIVITY_COPY && !activity_copies_on_device(work) &&
		work->call_end_ns > from_ns)
		return GAP_COPY;
	return max_u64(work->call_begin_ns, work->call_end_ns) > gap->begin_ns ? GAP_LATENCY
									       : GAP_KERNELS;
}

/* Returns the name of the call that a thread was in for half or more of a part, or 0. */
static uint32_t longest_call_during(const struct thread_calls *caller, const struct gap_part *part)
{
	uint64_t longest_ns = (part->end_ns - part->begin_ns) / 2;
	uint32_t name = 0;

	for (uint64_t i = caller ? oldest_call(caller) : 0; caller && i < caller->count; i++) {
		const struct recent_call *call = nth_call(caller, i);
		const uint64_t ns = overlap_ns(call, part->begin_ns, part->end_ns);

		if (ns > longest_ns) {
			longest_ns = ns;
			name = call->name;
		}
	}
	return name;
}

/* The part in which the work waited for something else than its launch. */
static struct gap_part waiting_part(const struct gap_calls *calls, const struct activity *work,
	const struct gap *gap, uint64_t from_ns)
{
	struct gap_part part = { .begin_ns = from_ns,
		.end_ns = gap->end_ns,
		.cause = GAP_UNEXPLAINED,
		.launched = true };

	struct stream_wait wait;

	if (!is_within_graph(work, gap) && stream_waits_before(calls->waits, work, &wait)) {
		part.cause = wait.recorded ? GAP_EVENT : GAP_UNEXPLAINED;
		part.blocked_by = wait.recorded ? wait.name : 0;
		part.event = wait.recorded                 ? GAP_EVENT_KNOWN
			     : wait.at_ns >= gap->begin_ns ? GAP_EVENT_UNLIKELY
							   : GAP_EVENT_POSSIBLE;
	} else if (work->nodes_unknown || gap->after_unknown_nodes)
		part.cause = GAP_UNKNOWN;
	part.host_call = longest_call_during(thread_calls_of(calls, work->tid), &part);
	return part;
}

size_t gap_split(const struct gap_calls *calls, const struct activity *work, const struct gap *gap,
	struct gap_part parts[GAP_PARTS_MAX])
{
	const uint64_t launch_ns = max_u64(
		gap->begin_ns, min_u64(work->call_begin_ns, gap->end_ns));
	const bool in_graph = is_within_graph(work, gap);
	uint64_t wait_ns;
	size_t count;

	if (!work->has_call) {
		parts[0] = (struct gap_part){
			.begin_ns = gap->begin_ns, .end_ns = gap->end_ns, .cause = GAP_UNKNOWN
		};
		return 1;
	}
	count = split_before(thread_calls_of(calls, work->tid), gap->begin_ns, launch_ns, parts);
	wait_ns = gap_wait_begin(launch_ns, in_graph ? 0 : work->call_end_ns, gap->end_ns);
	if (wait_ns > launch_ns)
		parts[count++] = (struct gap_part){ .begin_ns = launch_ns,
			.end_ns = wait_ns,
			.cause = starting_cause(work, gap, launch_ns),
			.launched = true };
	if (gap->end_ns > wait_ns || !count)
		parts[count++] = waiting_part(calls, work, gap, wait_ns);
	return count;
}
