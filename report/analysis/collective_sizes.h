/* SPDX-License-Identifier: MIT
 *
 * Finds the size of a collective from the operator record_param_comms around its launch. PyTorch
 * describes the collective there: the elements in and out, their type, and the number of ranks.
 * Older versions only have the sizes of tensors: of what goes in, and of what comes out at the
 * operator around it, whose name begins with `c10d::`. Which collective it is, is then the name of
 * the range in it, such as `nccl:all_reduce`. In pperf's own traces it is the call of NCCL that
 * says the size (collective_calls.h).
 */
#ifndef PPERF_REPORT_ANALYSIS_COLLECTIVE_SIZES_H
#define PPERF_REPORT_ANALYSIS_COLLECTIVE_SIZES_H

#include "report/trace/trace_reader.h"

/* X(NAME, words, parts of its names in files, share): `share` of the bytes is what each of the
 * other ranks adds to the slowest link of a ring, as nccl-tests computes it; 0: all bytes pass it
 * once. The first that matches counts. */
#define SIZED_OPERATIONS(X)                                          \
	X(REDUCE_SCATTER, "reduce-scatter", "reduce_scatter", "", 1) \
	X(ALLREDUCE, "all-reduce", "allreduce", "all_reduce", 2)     \
	X(ALLGATHER, "all-gather", "allgather", "all_gather", 1)     \
	X(ALLTOALL, "all-to-all", "alltoall", "all_to_all", 1)       \
	X(BROADCAST, "broadcast", "broadcast", "", 0)                \
	X(REDUCE, "reduce", "reduce", "", 0)                         \
	X(SEND, "send", "send", "", 0)                               \
	X(RECEIVE, "receive", "recv", "", 0)

enum sized_operation {
	SIZED_OTHER,
#define X(operation, words, name, other, share) SIZED_##operation,
	SIZED_OPERATIONS(X)
#undef X
};

const char *sized_operation_name(enum sized_operation operation);

struct collective_size {
	/* Bytes of one rank: the larger of what goes in and what comes out. 0: not known. */
	uint64_t bytes;
	/* Modelled, by the formulas of nccl-tests: the bytes that pass the slowest link of a rank.
	 * 0: the number of ranks or the algorithm is not known. */
	uint64_t bus_bytes;
	uint32_t ranks; /* 0: not known */
	enum sized_operation operation;
};

/* Returns a size with its bus_bytes. `ranks`: 0 if not known. */
struct collective_size collective_size_of(
	enum sized_operation operation, uint64_t bytes, uint64_t ranks);

struct collective_sizes;

struct collective_sizes *collective_sizes_new(struct trace_reader *reader);
void collective_sizes_free(struct collective_sizes *sizes); /* NULL is allowed */
/* Returns the size of a collective that was launched in the range of `trace_node`. */
struct collective_size collective_sizes_of(struct collective_sizes *sizes, uint32_t trace_node);

#endif
