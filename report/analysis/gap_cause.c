/* SPDX-License-Identifier: MIT */
#include "report/analysis/gap_cause.h"
#include "report/analysis/stream_waits.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

#define CALLS_KEPT 64u /* of a thread: calls that can block it */
#define THREADS_MAX 65536u

/* A call that can block its thread. */
struct recent_call {
	uint64_t begin_ns, end_ns, correlation;
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
		.correlation = call->correlation,
		.cause = cause,
		.name = call->name,
		.owner = call->owner
	};
}

/* Time of the call between `from_ns` and `to_ns`. */
static uint64_t overlap_ns(const struct recent_call *call, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t begin = call->begin_ns > from_ns ? call->begin_ns : from_ns,
		       end = call->end_ns < to_ns ? call->end_ns : to_ns;

	return end > begin ? end - begin : 0;
}

static const struct recent_call *nth_recent_call(const struct thread_calls *caller, uint64_t back)
{
	return back < caller->count && back < CALLS_KEPT
		       ? &caller->calls[(caller->count - 1 - back) % CALLS_KEPT]
		       : NULL;
}

struct cause_time {
	uint64_t sum_ns, longest_ns;
	uint32_t name, owner; /* of the longest call */
};

/* Adds a thread's recent calls in an interval, by cause. */
static void add_recent_calls(const struct thread_calls *caller, uint64_t from_ns, uint64_t to_ns,
	struct cause_time *times)
{
	const struct recent_call *call;

	for (uint64_t back = 0; (call = nth_recent_call(caller, back)); back++) {
		const uint64_t part = overlap_ns(call, from_ns, to_ns);
		struct cause_time *time = &times[call->cause];

		time->sum_ns += part;
		if (part > time->longest_ns) {
			time->longest_ns = part;
			time->name = call->name;
			time->owner = call->owner;
		}
	}
}

/* Finds the kind of call that took at least half of the part before the launch. Returns false if
 * there is none. */
static bool explain_by_time(const struct thread_calls *caller, struct gap_part *part)
{
	struct cause_time times[GAP_CAUSE_COUNT] = { { 0 } };
	enum gap_cause most = GAP_SYNC;

	add_recent_calls(caller, part->begin_ns, part->end_ns, times);
	for (enum gap_cause cause = GAP_ALLOCATION; cause <= GAP_COPY; cause++)
		if (times[cause].sum_ns > times[most].sum_ns)
			most = cause;
	if (times[most].sum_ns < (part->end_ns - part->begin_ns + 1) / 2 || !times[most].sum_ns)
		return false;
	part->cause = most;
	part->blocked_by = times[most].name;
	part->blocked_owner = times[most].owner;
	return true;
}

/* Blames the call in which the thread was when the GPU became idle. Had the call not been there,
 * the thread could have launched in time, unless its work after the call was longer. */
static void explain_by_begin(
	const struct thread_calls *caller, uint64_t last_correlation, struct gap_part *part)
{
	const struct recent_call *call;

	for (uint64_t back = 0; (call = nth_recent_call(caller, back)); back++) {
		if (call->begin_ns > part->begin_ns || call->end_ns < part->begin_ns ||
			(call->cause == GAP_COPY &&
				(!call->correlation || call->correlation != last_correlation)))
			continue;
		if (part->end_ns > call->end_ns &&
			part->end_ns - call->end_ns > part->begin_ns - call->begin_ns)
			return;
		part->cause = call->cause;
		part->blocked_by = call->name;
		part->blocked_owner = call->owner;
		return;
	}
}

/* The part before the launch. */
static struct gap_part part_before(const struct gap_calls *calls, const struct activity *work,
	const struct gap *gap, uint64_t until_ns)
{
	const struct thread_calls *caller = thread_calls_of(calls, work->tid);
	struct gap_part part = {
		.begin_ns = gap->begin_ns, .end_ns = until_ns, .cause = GAP_LAUNCH
	};

	if (caller && !explain_by_time(caller, &part))
		explain_by_begin(caller, gap->last_correlation, &part);
	return part;
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
	struct cause_time times[GAP_CAUSE_COUNT] = { { 0 } };
	uint64_t longest_ns = (part->end_ns - part->begin_ns) / 2;
	uint32_t name = 0;

	if (caller)
		add_recent_calls(caller, part->begin_ns, part->end_ns, times);
	for (unsigned cause = 0; cause < GAP_CAUSE_COUNT; cause++)
		if (times[cause].longest_ns > longest_ns) {
			longest_ns = times[cause].longest_ns;
			name = times[cause].name;
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
	size_t count = 0;

	if (!work->has_call) {
		parts[0] = (struct gap_part){
			.begin_ns = gap->begin_ns, .end_ns = gap->end_ns, .cause = GAP_UNKNOWN
		};
		return 1;
	}
	if (launch_ns > gap->begin_ns)
		parts[count++] = part_before(calls, work, gap, launch_ns);
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
