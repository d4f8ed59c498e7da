/* SPDX-License-Identifier: MIT */
#include "report/analysis/collective_calls.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include <stdlib.h>
#include <string.h>

/* Bytes of the calls of one communicator and CUDA stream, which are one kernel. */
struct call_sum {
	const struct trace_communicator *communicator; /* NULL: unknown */
	uint64_t stream, bytes, bus_bytes;
	/* of sends and receives: in all, and between different ranks */
	uint64_t sent, received, sent_away, received_away, peers;
	enum sized_operation operation;
	uint32_t peer; /* UINT32_MAX: none yet */
	bool to_itself, several_peers, is_known;
};

#define LAUNCHES_KEPT 64u /* more are too many for any call or group */

/* What a thread has done since its last call or group ended. */
struct thread_calls {
	struct call_sum *sums;
	size_t count, room;
	uint64_t launches[LAUNCHES_KEPT]; /* begins of the last ones; a ring */
	size_t launch_count;
};

struct calls_pass {
	struct trace_reader *reader;
	struct collective_calls *found;
	const struct trace_communicator **communicators; /* sorted by id */
	size_t communicator_count;
	struct thread_calls *threads; /* by the ordinal of their streams */
};

static int by_communicator_id(const void *a, const void *b)
{
	const struct trace_communicator *const *left = a, *const *right = b;

	return COMPARE((*left)->communicator, (*right)->communicator);
}

DEFINE_COUNT_WHILE(
	communicators_before, struct trace_communicator *const, (*item)->communicator < limit)

static void list_communicators(struct calls_pass *pass)
{
	const uint32_t count = reader_dictionary_count(pass->reader, TRACE_COMMUNICATOR);

	pass->communicators = xcalloc((count + 1) * sizeof *pass->communicators);
	for (uint32_t i = 0; i < count; i++)
		pass->communicators[i] = reader_dictionary(pass->reader, TRACE_COMMUNICATOR, i);
	pass->communicator_count = count;
	qsort(pass->communicators, count, sizeof *pass->communicators, by_communicator_id);
}

static void list_requests(struct calls_pass *pass)
{
	for (size_t i = 0; i < pass->communicator_count; i++)
		communicator_requests_add(&pass->found->requests, pass->communicators[i],
			reader_name(pass->reader, pass->communicators[i]->name));
}

/* Returns the index of a communicator; their number if its record is missing. */
static size_t find_communicator_index(const struct calls_pass *pass, uint32_t id)
{
	const size_t at = communicators_before(
		(void *)pass->communicators, pass->communicator_count, id);

	return at < pass->communicator_count && pass->communicators[at]->communicator == id
		       ? at
		       : pass->communicator_count;
}

static const struct trace_communicator *find_communicator_record(
	const struct calls_pass *pass, uint32_t id)
{
	const size_t at = find_communicator_index(pass, id);

	return at < pass->communicator_count ? pass->communicators[at] : NULL;
}

static void count_communicator_request(
	struct calls_pass *pass, const struct trace_collective *record)
{
	const size_t at = find_communicator_index(pass, record->communicator);

	if (at < pass->communicator_count)
		communicator_requests_count(
			&pass->found->requests, at, pass->communicators[at], record);
}

static uint64_t add_bytes(uint64_t sum, uint64_t bytes)
{
	return sum + min_u64(bytes, UINT64_MAX - sum);
}

static uint64_t times_ranks(uint64_t bytes, uint64_t ranks)
{
	uint64_t product;

	return __builtin_mul_overflow(bytes, ranks, &product) ? UINT64_MAX : product;
}

/* Returns the size of a call that is no send or receive. The bytes are 0 if the number of ranks is
 * needed and not known. */
static struct collective_size size_of_call(
	const struct trace_collective *call, const struct trace_communicator *communicator)
{
	const uint32_t ranks = communicator ? communicator->ranks : 0;
	const uint64_t all = times_ranks(call->bytes, ranks);
	const bool is_root = communicator && communicator->rank == call->peer;

	switch (call->operation) {
	case TRACE_NCCL_ALL_REDUCE:
		return collective_size_of(SIZED_ALLREDUCE, call->bytes, ranks);
	case TRACE_NCCL_ALL_GATHER:
		return collective_size_of(SIZED_ALLGATHER, all, ranks);
	case TRACE_NCCL_REDUCE_SCATTER:
		return collective_size_of(SIZED_REDUCE_SCATTER, all, ranks);
	case TRACE_NCCL_BROADCAST:
		return collective_size_of(SIZED_BROADCAST, call->bytes, ranks);
	case TRACE_NCCL_REDUCE:
		return collective_size_of(SIZED_REDUCE, call->bytes, ranks);
	case TRACE_NCCL_ALL_TO_ALL:
		return collective_size_of(SIZED_ALLTOALL, all, ranks);
	default: /* gather, scatter */
		return collective_size_of(SIZED_OTHER, is_root ? all : call->bytes, ranks);
	}
}

static void add_to_peer(struct call_sum *sum, const struct trace_collective *call)
{
	const bool is_send = call->operation == TRACE_NCCL_SEND,
		   is_own = sum->communicator && sum->communicator->rank == call->peer;
	uint64_t *all = is_send ? &sum->sent : &sum->received,
		 *away = is_send ? &sum->sent_away : &sum->received_away;

	*all = add_bytes(*all, call->bytes);
	*away = add_bytes(*away, is_own ? 0 : call->bytes);
	sum->to_itself |= is_own;
	sum->several_peers |= is_own || (sum->peer != UINT32_MAX && sum->peer != call->peer);
	sum->peer = call->peer;
	sum->peers += is_send && !is_own;
}

static struct call_sum *call_sum_of(
	struct thread_calls *thread, const struct trace_communicator *communicator, uint64_t stream)
{
	struct call_sum *sum;

	for (size_t i = 0; i < thread->count; i++)
		if (thread->sums[i].communicator == communicator &&
			thread->sums[i].stream == stream)
			return &thread->sums[i];
	sum = ARRAY_ADD(thread->sums, thread->room, thread->count);
	*sum = (struct call_sum){
		.communicator = communicator, .stream = stream, .peer = UINT32_MAX, .is_known = true
	};
	return sum;
}

/* Adds a call to the ones that are one kernel with it. Different collectives have no common kind.
 */
static void add_to_sum(
	struct calls_pass *pass, struct thread_calls *thread, const struct trace_collective *call)
{
	const struct trace_communicator *communicator = find_communicator_record(
		pass, call->communicator);
	struct call_sum *sum = call_sum_of(thread, communicator, call->stream);
	struct collective_size size;

	if (call->operation == TRACE_NCCL_SEND || call->operation == TRACE_NCCL_RECV) {
		add_to_peer(sum, call);
		return;
	}
	size = size_of_call(call, communicator);
	sum->is_known &= size.bytes || !call->bytes;
	sum->operation = !sum->bytes || sum->operation == size.operation ? size.operation
									 : SIZED_OTHER;
	sum->bytes = add_bytes(sum->bytes, size.bytes);
	sum->bus_bytes = add_bytes(sum->bus_bytes, size.bus_bytes);
}

/* Returns what sends and receives are together: as an all-to-all is made of them, or of one
 * direction. */
static enum sized_operation operation_to_peers(const struct call_sum *sum)
{
	const uint64_t ranks = sum->communicator ? sum->communicator->ranks : 0;

	return !sum->received                                                      ? SIZED_SEND
	       : !sum->sent                                                        ? SIZED_RECEIVE
	       : ranks && sum->peers + 1 >= ranks && (sum->to_itself || ranks > 2) ? SIZED_ALLTOALL
										   : SIZED_OTHER;
}

static struct collective_size size_of_sum(const struct call_sum *sum)
{
	struct collective_size size = { .bytes = sum->bytes,
		.bus_bytes = sum->bus_bytes,
		.operation = sum->operation,
		.ranks = sum->communicator ? sum->communicator->ranks : 0 };

	if (!sum->is_known)
		return (struct collective_size){ .bytes = 0 };
	if (!sum->sent && !sum->received)
		return size;
	size.operation = sum->bytes ? SIZED_OTHER : operation_to_peers(sum);
	size.bytes = add_bytes(size.bytes, max_u64(sum->sent, sum->received));
	size.bus_bytes = add_bytes(size.bus_bytes, max_u64(sum->sent_away, sum->received_away));
	return size;
}

/* Counts the launches of a thread from `begin_ns` on, and forgets them all. */
static size_t take_launches(struct thread_calls *thread, uint64_t begin_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->launch_count && i < LAUNCHES_KEPT; i++)
		count += thread->launches[i] >= begin_ns;
	thread->launch_count = 0;
	return count;
}

/* Ends a call or a group, in which its calls were launched. */
static void end_calls(struct calls_pass *pass, struct thread_calls *thread,
	const struct trace_event *event, bool has_result)
{
	const struct trace_collective *record = event->record;
	const uint64_t took = reader_duration(pass->reader, record->stamp, record->duration),
		       begin_ns = event->time_ns - min_u64(took, event->time_ns);
	const bool too_many = take_launches(thread, begin_ns) > thread->count;

	for (size_t i = 0; i < thread->count && has_result; i++) {
		const struct trace_communicator *communicator = thread->sums[i].communicator;
		struct collective_call *call = ARRAY_ADD(
			pass->found->calls, pass->found->room, pass->found->count);

		*call = (struct collective_call){ .begin_ns = begin_ns,
			.end_ns = event->time_ns,
			.tid = event->stream->tid,
			.device = communicator ? communicator->device : UINT32_MAX,
			.key = communicator ? communicator->key : 0,
			.ranks = communicator ? communicator->ranks : 0,
			.rank = communicator ? communicator->rank : 0,
			.peer = thread->sums[i].several_peers ? UINT32_MAX : thread->sums[i].peer };
		if (!too_many)
			call->size = size_of_sum(&thread->sums[i]);
	}
	thread->count = 0;
}

static void add_collective_record(void *context, const struct trace_event *event)
{
	struct calls_pass *pass = context;
	const struct trace_collective *record = event->record;
	struct thread_calls *thread;

	if (event->kind != TRACE_COLLECTIVE)
		return;
	thread = &pass->threads[event->stream->ordinal];
	count_communicator_request(pass, record);
	if (record->head.flags & TRACE_COLLECTIVE_BEGIN || record->operation >= TRACE_NCCL_INIT)
		return;
	if (record->operation == TRACE_NCCL_GROUP) {
		end_calls(pass, thread, event, record->result == 0);
	} else if (record->head.flags & TRACE_COLLECTIVE_GROUPED) {
		if (record->result == 0)
			add_to_sum(pass, thread, record);
	} else {
		thread->count = 0; /* a group whose end is missing */
		add_to_sum(pass, thread, record);
		end_calls(pass, thread, event, record->result == 0);
	}
}

static void add_launch_begin(void *context, const struct observed_call *call)
{
	struct calls_pass *pass = context;
	struct thread_calls *thread;

	if (call->event->kind != TRACE_LAUNCH)
		return;
	thread = &pass->threads[call->event->stream->ordinal];
	thread->launches[thread->launch_count++ % LAUNCHES_KEPT] = call->begin_ns;
}

static void restart_calls(void *context)
{
	struct calls_pass *pass = context;

	for (uint32_t i = 0; i < reader_stream_count(pass->reader); i++)
		pass->threads[i].count = pass->threads[i].launch_count = 0;
	communicator_requests_free(&pass->found->requests);
	list_requests(pass);
	pass->found->count = 0;
}

COMPARE_BY_THREE(by_thread_and_begin, struct collective_call, tid, begin_ns, device)

static void end_calls_pass(void *context, const struct profile *profile)
{
	struct calls_pass *pass = context;
	struct collective_calls *found = pass->found;

	(void)profile;
	if (found->count)
		qsort(found->calls, found->count, sizeof *found->calls, by_thread_and_begin);
	for (uint32_t i = 0; i < reader_stream_count(pass->reader); i++)
		free(pass->threads[i].sums);
	free(pass->threads);
	free(pass->communicators);
	free(pass);
}

static const char calls_key;

static void free_collective_calls(void *data)
{
	struct collective_calls *calls = data;

	free(calls->calls);
	communicator_requests_free(&calls->requests);
	free(calls);
}

/* Returns new calls, which belong to the process, and adds what finds them to the pass. */
static struct collective_calls *add_calls_pass(struct shared_pass *shared)
{
	struct trace_reader *reader = shared->process->reader;
	struct calls_pass *pass = xcalloc(sizeof *pass);

	pass->reader = reader;
	pass->found = xcalloc(sizeof *pass->found);
	pass->threads = xcalloc((reader_stream_count(reader) + 1) * sizeof *pass->threads);
	list_communicators(pass);
	process_attach(shared->process, &calls_key, pass->found, free_collective_calls);
	shared_pass_add(shared,
		&(struct profile_observer){ .context = pass,
			.restart = restart_calls,
			.call = add_launch_begin,
			.record = add_collective_record },
		end_calls_pass);
	return pass->found;
}

const struct collective_calls *collective_calls_read_in(struct shared_pass *pass)
{
	static const struct collective_calls none;
	const struct collective_calls *known = process_attached(pass->process, &calls_key);

	if (known)
		return known;
	return reader_dictionary_count(pass->process->reader, TRACE_COMMUNICATOR)
		       ? add_calls_pass(pass)
		       : &none;
}

const struct collective_calls *collective_calls_of(struct process *process)
{
	struct shared_pass pass = { .process = process };
	const struct collective_calls *calls = collective_calls_read_in(&pass);

	shared_pass_run(&pass);
	return calls;
}

/* A thread, and a time on it, as one number for the search: calls of later threads, and later ones
 * of the thread, are behind it. */
static size_t calls_begun(const struct collective_calls *calls, uint32_t tid, uint64_t at_ns)
{
	size_t low = 0, high = calls->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct collective_call *call = &calls->calls[middle];

		if (call->tid < tid || (call->tid == tid && call->begin_ns <= at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct collective_call *collective_calls_find(
	const struct collective_calls *calls, uint32_t tid, uint64_t at_ns, uint32_t device)
{
	const struct collective_call *found = NULL;

	for (size_t i = calls_begun(calls, tid, at_ns); i-- > 0;) {
		const struct collective_call *call = &calls->calls[i];

		/* The calls of a thread do not overlap, those of a group have one time. */
		if (call->tid != tid || call->end_ns < at_ns)
			break;
		if (call->device != device && call->device != UINT32_MAX)
			continue;
		if (found)
			return NULL;
		found = call;
	}
	return found;
}
