/* SPDX-License-Identifier: MIT */
#include "report/analysis/communicator_requests.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

const char *const nccl_operation_names[] = { NULL, "ncclGroupEnd", "ncclAllReduce", "ncclAllGather",
	"ncclReduceScatter", "ncclBroadcast", "ncclReduce", "ncclAlltoAll", "ncclGather",
	"ncclScatter", "ncclSend", "ncclRecv", "ncclCommInitRank", "ncclCommSplit" };

const char *nccl_operation_name(uint32_t operation)
{
	return operation < sizeof nccl_operation_names / sizeof *nccl_operation_names
		       ? nccl_operation_names[operation]
		       : NULL;
}

static struct communicator_request *add_request(struct communicator_requests *requests,
	const struct trace_communicator *communicator, uint32_t from, uint32_t to)
{
	struct communicator_request *one = ARRAY_ADD(
		requests->all, requests->room, requests->count);

	*one = (struct communicator_request){ .key = communicator->key,
		.from = from,
		.to = to,
		.ranks = communicator->ranks,
		.rank = communicator->rank,
		.communicator = communicator->communicator };
	return one;
}

static char *copy_name(const char *bytes, size_t length)
{
	char *copy = xcalloc(length + 1);

	memcpy(copy, bytes, length);
	return copy;
}

void communicator_requests_add(struct communicator_requests *requests,
	const struct trace_communicator *communicator, struct trace_text name)
{
	struct communicator_request *one = add_request(
		requests, communicator, UINT32_MAX, UINT32_MAX);

	one->count = 1;
	one->operation = TRACE_NCCL_INIT;
	if (communicator->name && name.known)
		one->name = copy_name(name.bytes, name.length);
}

/* Returns the request of a pair. Adds it, or returns NULL if there are too many. */
static struct communicator_request *find_pair(struct communicator_requests *requests,
	const struct trace_communicator *communicator, uint32_t from, uint32_t to)
{
	for (size_t i = requests->count - requests->pair_count; i < requests->count; i++) {
		struct communicator_request *one = &requests->all[i];

		if (one->communicator == communicator->communicator && one->from == from &&
			one->to == to)
			return one;
	}
	if (requests->pair_count == REQUEST_PAIRS_MAX) {
		requests->has_more_pairs = true;
		return NULL;
	}
	requests->pair_count++;
	return add_request(requests, communicator, from, to);
}

static void count_pair(struct communicator_requests *requests,
	const struct trace_communicator *communicator, const struct trace_collective *record)
{
	const bool is_send = record->operation == TRACE_NCCL_SEND;
	struct communicator_request *one = find_pair(requests, communicator,
		is_send ? communicator->rank : record->peer,
		is_send ? record->peer : communicator->rank);

	if (!one)
		return;
	one->count++;
	one->operation = record->operation;
}

/* Whether the record is the one that counts: that of the begin, or the only one of a call in a
 * group. */
static bool is_request(const struct trace_collective *record)
{
	return record->head.flags & (TRACE_COLLECTIVE_BEGIN | TRACE_COLLECTIVE_GROUPED) &&
	       record->operation != TRACE_NCCL_GROUP;
}

void communicator_requests_count(struct communicator_requests *requests, size_t index,
	const struct trace_communicator *communicator, const struct trace_collective *record)
{
	struct communicator_request *one = &requests->all[index];

	if (record->operation == TRACE_NCCL_INIT) {
		one->is_being_made = record->head.flags & TRACE_COLLECTIVE_BEGIN;
		return;
	}
	if (!is_request(record))
		return;
	if (record->operation == TRACE_NCCL_SEND || record->operation == TRACE_NCCL_RECV) {
		one->pairs++;
		count_pair(requests, communicator, record);
		return;
	}
	/* The sequence counts all calls, also those that are not in the trace. */
	one->count = record->sequence + 2 - (one->pairs <= record->sequence ? one->pairs : 0);
	one->operation = record->operation;
}

struct communicator_requests communicator_requests_copy(
	const struct communicator_requests *requests)
{
	struct communicator_requests copy = *requests;

	copy.room = copy.count + 1;
	copy.all = xcalloc(copy.room * sizeof *copy.all);
	if (copy.count)
		memcpy(copy.all, requests->all, copy.count * sizeof *copy.all);
	for (size_t i = 0; i < copy.count; i++)
		if (copy.all[i].name)
			copy.all[i].name = copy_name(copy.all[i].name, strlen(copy.all[i].name));
	return copy;
}

void communicator_requests_free(struct communicator_requests *requests)
{
	for (size_t i = 0; i < requests->count; i++)
		free(requests->all[i].name);
	free(requests->all);
	*requests = (struct communicator_requests){ .count = 0 };
}
