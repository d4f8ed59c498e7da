/* SPDX-License-Identifier: MIT
 * collectives.h: what a process did together with others: the kernels of NCCL or RCCL, or, where there are none, the ranges that PyTorch marks its
 * collectives on the CPU with (gloo:all_reduce). Those of one communicator come in the same order in every process.
 *
 * PyTorch gives each communicator a stream of its own, so the stream stands for it; its name is known only where the trace says which process group
 * has the stream (torch.profiler). Ranges of the CPU are one communicator.
 *
 * NCCL has kernels of one name for all that is made of sends and receives. Those that were launched in a range of a collective
 * (nccl:all_to_all) are that; those of a range that names the two (nccl:send 0->1, nccl:recv 1<-0) are compared between these two, which
 * have a communicator for them beside the stream's; of others nobody knows with whom.
 *
 * Where the collective waits for the others in the call, not in the kernel, as on the simulated device, it begins with the range it was launched in.
 * Memory: 64 bytes a collective.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVES_H
#define PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVES_H

#include "report/trace/trace_reader.h"

#define COLLECTIVE_KINDS(X)                                                          \
	/* name, in a kernel's name, in a range's, all end together */               \
	X(REDUCE_SCATTER, "reduce-scatter", "ReduceScatter", "reduce_scatter", true) \
	X(ALL_REDUCE, "all-reduce", "AllReduce", "all_reduce", true)                 \
	X(ALL_REDUCE_CPU, "all-reduce", NULL, "allreduce", true)                     \
	X(ALL_GATHER, "all-gather", "AllGather", "all_gather", true)                 \
	X(ALL_GATHER_CPU, "all-gather", NULL, "allgather", true)                     \
	X(ALL_TO_ALL, "all-to-all", "AllToAll", "all_to_all", true)                  \
	X(BARRIER, "barrier", "Barrier", "barrier", true)                            \
	X(BROADCAST, "broadcast", "Broadcast", "broadcast", false)                   \
	X(GATHER, "gather", "Gather", "gather", false)                               \
	X(SCATTER, "scatter", "Scatter", "scatter", false)                           \
	X(REDUCE, "reduce", "Reduce", "reduce", false)

enum collective_kind {
#define X(id, name, kernel, range, together) COLLECTIVE_##id,
	COLLECTIVE_KINDS(X)
#undef X
		COLLECTIVE_OTHER, /* of NCCL, of a name that tells nothing */
	COLLECTIVE_PAIR,          /* send or receive: of two */
};

struct collective {
	int64_t start_ns, end_ns; /* CLOCK_REALTIME of its process */
	/* Since the trace's start; UINT64_MAX: not known. When the call that launched it began; when its process came to it, which is that too but where
	 * the call waits. */
	uint64_t launched_ns, requested_ns;
	uint64_t correlation;  /* of a range: its id */
	uint32_t communicator; /* index */
	uint32_t node;         /* of the report's tree: where it was launched; 0 not known */
	uint32_t outcome;      /* the caller's; UINT32_MAX at first */
	uint8_t kind;
};

/* A stream with collectives, or what two ranks send each other on it: rows `first` to `first + count - 1`, by start. */
struct communicator {
	uint32_t device, stream;
	uint32_t low, high; /* of two: their ranks in the process group; else both 0 */
	char *pair;         /* of two: what `group` lies in */
	size_t first, count;
	int64_t sequence; /* PyTorch's number of the first collective in the process group; -1: not known */
	struct trace_text
		group; /* its process group, name and ranks, where the trace has it; lives as long as the reader */
};

struct collectives {
	struct collective *all; /* by communicator, then start */
	size_t count, room;
	struct communicator *communicators;
	size_t communicator_count, communicator_room;
	uint64_t pairs,
		untimed; /* left out: sends and receives of nobody knows whom; kernels that were not timed */
	bool ranges;  /* not of kernels */
	bool in_call; /* of kernels, which begin with the range that they were launched in */
};

/* Reads the trace from its beginning, twice. in_call: it waits there. */
void collectives_read(struct collectives *collectives, struct trace_reader *reader, bool in_call);
void collectives_free(struct collectives *collectives);

/* The kind of a kernel of that name, -1: it is no communication. */
int collective_kernel(struct trace_text name);
const char *collective_name(enum collective_kind kind);
/* Whether all that take part end at the same moment. */
bool collective_together(enum collective_kind kind);

#endif
