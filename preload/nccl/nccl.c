/* SPDX-License-Identifier: MIT
 * Interposes the functions of NCCL that communicate, that open and close groups, and that make
 * communicators. A wrapper calls the real function and then writes a COLLECTIVE record
 * (collector/trace_format.h), unless another wrapper of the thread encloses it: NCCL's own
 * functions may call each other through their symbols.
 *
 * Threads: any. Nothing here takes a lock. What was recorded of a call that failed has its result.
 */
#include "preload/nccl/communicators.h"

#include "collector/process/clock.h"
#include "collector/stream/stream.h"
#include "preload/cuda/traced_call.h"

#include <errno.h>
#include <time.h>

#define NO_PEER (-1)

struct nccl_call {
	enum trace_nccl_operation operation;
	size_t count;
	int type, peer;
	void *comm, *stream;
	uint32_t communicator; /* id; 0: unknown */
	uint64_t sequence;
};

static _Thread_local struct {
	uint32_t inside; /* wrappers that have begun */
	uint32_t groups; /* groups that are open */
	uint32_t calls;  /* recorded in the outermost group */
} nccl_tls;

/* Sizes of the elements, by the number of the data type in NCCL. */
static size_t element_size(int type)
{
	static const uint8_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && (size_t)type < sizeof sizes ? sizes[type] : 0;
}

static uint64_t message_bytes(const struct nccl_call *call)
{
	uint64_t bytes;

	return __builtin_mul_overflow(call->count, element_size(call->type), &bytes) ? 0 : bytes;
}

/* Writes a record of a call, or with `call` NULL of the end of a group. The caller commits it and
 * leaves the stream. Returns NULL if there is no space. */
static struct trace_collective *write_collective(const struct nccl_call *call)
{
	struct trace_collective *record = stream_record(TRACE_COLLECTIVE, sizeof *record);

	if (!record)
		return NULL;
	record->operation = call ? call->operation : TRACE_NCCL_GROUP;
	record->peer = UINT32_MAX;
	record->calls = call ? 0 : nccl_tls.calls;
	if (call) {
		record->bytes = message_bytes(call);
		record->stream = (uintptr_t)call->stream;
		record->data_type = (uint32_t)call->type;
		record->peer = (uint32_t)call->peer;
		record->communicator = call->communicator;
		record->sequence = call->sequence;
	}
	return record;
}

static bool is_grouped(const struct nccl_call *call)
{
	return call && nccl_tls.groups;
}

static void write_begin(const struct nccl_call *call)
{
	struct trace_collective *record = write_collective(call);

	if (!record)
		return;
	record->head.flags = TRACE_COLLECTIVE_BEGIN;
	stream_commit();
}

/* Begins a wrapper. Returns 0 if it is not recorded. */
static uint64_t begin_nccl_call(void)
{
	return nccl_tls.inside++ || !call_enabled ? 0 : clock_now();
}

/* Begins a call on a communicator, or with `call` NULL the end of a group. A call in a group has no
 * record of its begin, because it waits for nothing. Returns what begin_nccl_call() does. */
static uint64_t begin_recorded_call(struct nccl_call *call)
{
	const int saved = errno;
	const uint64_t begin = begin_nccl_call();
	struct nccl_communicator *communicator;

	if (!begin || !stream_enter())
		return begin;
	communicator = call ? nccl_communicator_of(call->comm) : NULL;
	if (communicator) {
		call->communicator = communicator->id;
		call->sequence = atomic_fetch_add(&communicator->sequence, 1);
	}
	if (!is_grouped(call) && (call || nccl_tls.calls))
		write_begin(call);
	stream_leave();
	errno = saved;
	return begin;
}

static void write_end(
	const struct nccl_real *real, const struct nccl_call *call, uint64_t begin, int result)
{
	struct nccl_communicator *communicator;
	struct trace_collective *record;

	if (!stream_enter())
		return;
	communicator = call && result == NCCL_SUCCESS ? nccl_communicator_find(call->comm) : NULL;
	if (communicator)
		nccl_communicator_write(real, call->comm, communicator, NULL);
	record = write_collective(call);
	if (record) {
		record->duration = record->stamp > begin ? record->stamp - begin : 0;
		record->result = (uint32_t)result;
		if (is_grouped(call)) {
			record->head.flags = TRACE_COLLECTIVE_GROUPED;
			nccl_tls.calls++;
		}
		stream_commit();
	}
	stream_leave();
}

/* Ends a wrapper, and writes its record if it is the outermost one. `begin`: what its begin
 * returned. Returns `result`. */
static int end_nccl_call(
	const struct nccl_real *real, const struct nccl_call *call, uint64_t begin, int result)
{
	const int saved = errno;

	nccl_tls.inside--;
	if (begin)
		write_end(real, call, begin, result);
	errno = saved;
	return result;
}

/* The body of a wrapper: calls the real function, records the call, and returns. `with`: the other
 * rank or the root. */
#define RECORD_CALL(name, arguments, kind, with)                                              \
	const struct nccl_real *real = nccl_real_of(CALLER);                                  \
	struct nccl_call call = { TRACE_NCCL_##kind, count, type, with, comm, stream, 0, 0 }; \
	const uint64_t begin = begin_recorded_call(&call);                                    \
                                                                                              \
	return end_nccl_call(real, &call, begin, real->name arguments)

int ncclAllReduce(
	const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
	RECORD_CALL(ncclAllReduce, (from, to, count, type, operation, comm, stream), ALL_REDUCE,
		NO_PEER);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
	RECORD_CALL(ncclAllGather, (from, to, count, type, comm, stream), ALL_GATHER, NO_PEER);
}

int ncclReduceScatter(
	const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
	RECORD_CALL(ncclReduceScatter, (from, to, count, type, operation, comm, stream),
		REDUCE_SCATTER, NO_PEER);
}

int ncclBroadcast(
	const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
	RECORD_CALL(ncclBroadcast, (from, to, count, type, root, comm, stream), BROADCAST, root);
}

int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
	RECORD_CALL(ncclBcast, (buffer, count, type, root, comm, stream), BROADCAST, root);
}

int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
	void *comm, void *stream)
{
	RECORD_CALL(
		ncclReduce, (from, to, count, type, operation, root, comm, stream), REDUCE, root);
}

int ncclAlltoAll(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
	RECORD_CALL(ncclAlltoAll, (from, to, count, type, comm, stream), ALL_TO_ALL, NO_PEER);
}

int ncclGather(
	const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
	RECORD_CALL(ncclGather, (from, to, count, type, root, comm, stream), GATHER, root);
}

int ncclScatter(
	const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
	RECORD_CALL(ncclScatter, (from, to, count, type, root, comm, stream), SCATTER, root);
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	RECORD_CALL(ncclSend, (from, count, type, peer, comm, stream), SEND, peer);
}

int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream)
{
	RECORD_CALL(ncclRecv, (to, count, type, peer, comm, stream), RECV, peer);
}

int ncclGroupStart(void)
{
	const int result = nccl_real_of(CALLER)->ncclGroupStart();

	if (!nccl_tls.inside && result == NCCL_SUCCESS)
		nccl_tls.groups++;
	return result;
}

/* Leaves a group. Returns true if calls were recorded in it and it was the outermost one. */
static bool leave_group(void)
{
	return nccl_tls.groups && --nccl_tls.groups == 0 && nccl_tls.calls;
}

/* Begins the end of a group. Only that of the outermost group is recorded. */
static uint64_t begin_group_end(void)
{
	return nccl_tls.groups == 1 ? begin_recorded_call(NULL) : begin_nccl_call();
}

static int end_group(const struct nccl_real *real, uint64_t begin, int result)
{
	if (nccl_tls.inside == 1 && leave_group()) {
		end_nccl_call(real, NULL, begin, result);
		nccl_tls.calls = 0;
	} else {
		nccl_tls.inside--;
	}
	return result;
}

int ncclGroupEnd(void)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const uint64_t begin = begin_group_end();

	return end_group(real, begin, real->ncclGroupEnd());
}

/* Ends a group without running it. */
int ncclGroupSimulateEnd(void *information)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const uint64_t begin = begin_group_end();

	return end_group(real, begin, real->ncclGroupSimulateEnd(information));
}

static bool was_made(int result, void *const *comm)
{
	return (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS) && comm && *comm;
}

/* A communicator that is being made from unique ids. */
struct nccl_init {
	struct nccl_call call;
	uint64_t begin, key;
	int ranks, rank;
};

/* Records that a communicator is being made, so that a rank that waits there for others is known. A
 * group makes it only at its end. */
static struct nccl_init begin_init(
	const nccl_id *ids, int count, int ranks, int rank, const struct nccl_config *config)
{
	const int saved = errno;
	struct nccl_init init = { .call = { .operation = TRACE_NCCL_INIT, .peer = NO_PEER },
		.begin = begin_nccl_call(),
		.ranks = ranks,
		.rank = rank };

	if (!init.begin || !ids || count <= 0 || ranks <= 0 || rank < 0 || !stream_enter())
		return init;
	init.key = nccl_key(0, ids, (size_t)count * sizeof *ids);
	init.call.communicator = nccl_communicator_announce(
		init.key, (uint32_t)ranks, (uint32_t)rank, nccl_config_name(config));
	if (!nccl_tls.groups)
		write_begin(&init.call);
	stream_leave();
	errno = saved;
	return init;
}

static int end_init(
	const struct nccl_real *real, const struct nccl_init *init, int result, void *const *comm)
{
	const bool is_recorded = init->call.communicator != 0;

	if (is_recorded && was_made(result, comm))
		nccl_communicator_add(*comm, init->call.communicator, init->key,
			(uint32_t)init->ranks, (uint32_t)init->rank);
	return end_nccl_call(
		real, &init->call, is_recorded && !nccl_tls.groups ? init->begin : 0, result);
}

int ncclCommInitRank(void **comm, int ranks, nccl_id id, int rank)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const struct nccl_init init = begin_init(&id, 1, ranks, rank, NULL);

	return end_init(real, &init, real->ncclCommInitRank(comm, ranks, id, rank), comm);
}

int ncclCommInitRankConfig(void **comm, int ranks, nccl_id id, int rank, void *config)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const struct nccl_init init = begin_init(&id, 1, ranks, rank, config);

	return end_init(
		real, &init, real->ncclCommInitRankConfig(comm, ranks, id, rank, config), comm);
}

int ncclCommInitRankScalable(
	void **comm, int ranks, int rank, int count, nccl_id *ids, void *config)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const struct nccl_init init = begin_init(ids, count, ranks, rank, config);

	return end_init(real, &init,
		real->ncclCommInitRankScalable(comm, ranks, rank, count, ids, config), comm);
}

/* Adds a communicator whose record is not written, and writes it if it is ready. */
static void add_made(const struct nccl_real *real, int result, void *handle, uint64_t key,
	uint32_t ranks, uint32_t rank, const char *name)
{
	const int saved = errno;
	struct nccl_communicator *made;

	nccl_communicator_add(handle, 0, key, ranks, rank);
	made = nccl_communicator_find(handle);
	if (made && result == NCCL_SUCCESS && !nccl_tls.groups && call_enabled && stream_enter()) {
		nccl_communicator_write(real, handle, made, name);
		stream_leave();
	}
	errno = saved;
}

/* All ranks are in this process: their key need only differ from those of other processes. */
int ncclCommInitAll(void **comms, int count, const int *devices)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	const int result = real->ncclCommInitAll(comms, count, devices);
	struct timespec now;
	uint64_t key;

	if (result != NCCL_SUCCESS || !comms)
		return result;
	clock_gettime(CLOCK_REALTIME, &now);
	key = nccl_key(nccl_key(0, &now, sizeof now), &comms, sizeof comms);
	for (int i = 0; i < count; i++)
		if (comms[i])
			add_made(real, result, comms[i], key, (uint32_t)count, (uint32_t)i, NULL);
	return result;
}

int ncclCommSplit(void *comm, int color, int key, void **made, void *config)
{
	const struct nccl_real *real = nccl_real_of(CALLER);
	struct nccl_call call = { .operation = TRACE_NCCL_SPLIT, .peer = NO_PEER, .comm = comm };
	struct nccl_communicator *parent = nccl_communicator_find(comm);
	const uint32_t number = parent ? atomic_fetch_add(&parent->splits, 1) : 0;
	const uint64_t parent_key = parent ? parent->key : 0, begin = begin_recorded_call(&call),
		       part = (uint64_t)number << 32 | (uint32_t)color;
	const int result = real->ncclCommSplit(comm, color, key, made, config);

	if (was_made(result, made))
		add_made(real, result, *made,
			parent_key ? nccl_key(parent_key, &part, sizeof part) : 0, 0, 0,
			nccl_config_name(config));
	return end_nccl_call(real, &call, nccl_tls.groups ? 0 : begin, result);
}

int ncclCommDestroy(void *comm)
{
	nccl_communicator_remove(comm);
	return nccl_real_of(CALLER)->ncclCommDestroy(comm);
}

int ncclCommAbort(void *comm)
{
	nccl_communicator_remove(comm);
	return nccl_real_of(CALLER)->ncclCommAbort(comm);
}
