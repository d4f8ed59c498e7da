/* SPDX-License-Identifier: MIT
 *
 * Counts what a process requested of each communicator of NCCL, from the COLLECTIVE records. A
 * request counts when its call begins, so also if no kernel of it has started.
 *
 * All ranks of a communicator have equal counts in the end. Collectives are counted together: all
 * ranks call them in one order. Sends and receives are counted for each two ranks and direction.
 *
 * Memory: 56 bytes for each communicator, and for up to REQUEST_PAIRS_MAX pairs of ranks.
 */
#ifndef PPERF_REPORT_ANALYSIS_COMMUNICATOR_REQUESTS_H
#define PPERF_REPORT_ANALYSIS_COMMUNICATOR_REQUESTS_H

#include "report/trace/trace_reader.h"
#include <stdbool.h>
#include <stddef.h>

#define REQUEST_PAIRS_MAX 64u

struct communicator_request {
	uint64_t key; /* of the communicator, equal on all its ranks; 0: unknown */
	char *name;   /* that it was given, terminated; NULL: none; of collectives only; owned */
	/* Of sends and receives: the ranks in the communicator. Else both are UINT32_MAX. */
	uint32_t from, to;
	uint32_t ranks, rank;
	/* Requests. Of collectives the communicator itself is the first one. */
	uint64_t count;
	uint64_t pairs;        /* sends and receives of the communicator */
	uint32_t operation;    /* enum trace_nccl_operation of the last one */
	uint32_t communicator; /* id in the trace */
	bool is_being_made;    /* the call that makes the communicator did not return */
};

struct communicator_requests {
	/* The communicators in the order in which they were added, then the pairs. */
	struct communicator_request *all;
	size_t count, room;
	size_t pair_count;
	bool has_more_pairs; /* than REQUEST_PAIRS_MAX */
};

/* Names of the functions of NCCL, by enum trace_nccl_operation. */
extern const char *const nccl_operation_names[TRACE_NCCL_SPLIT + 1];
/* NULL: unknown. */
const char *nccl_operation_name(uint32_t operation);

/* Adds a communicator. All are added before records are counted. */
void communicator_requests_add(struct communicator_requests *requests,
	const struct trace_communicator *communicator, struct trace_text name);
/* Counts a record. `communicator`: that of the record, the `index`-th that was added. */
void communicator_requests_count(struct communicator_requests *requests, size_t index,
	const struct trace_communicator *communicator, const struct trace_collective *record);
/* Copies `requests`. The caller frees the copy. */
struct communicator_requests communicator_requests_copy(
	const struct communicator_requests *requests);
void communicator_requests_free(struct communicator_requests *requests);

#endif
