/* SPDX-License-Identifier: MIT
 *
 * Reads the collectives of one process. Those of one communicator come in the same order in every
 * process.
 *
 * - GPU: the kernels of NCCL or RCCL. PyTorch gives each communicator a CUDA stream of its own, so
 *   the stream identifies it. The name of its process group is known only if the trace has it
 *   (torch.profiler). In pperf's own traces, the call of NCCL has the key of the communicator.
 * - CPU, if there are no such kernels: the ranges that PyTorch makes for collectives
 *   (gloo:all_reduce). All of them are one communicator.
 *
 * All kernels made of sends and receives have one name. The call of NCCL, or else the range of the
 * launch, decides what they are:
 *
 * | range around the launch               | read as                                            |
 * |---------------------------------------|----------------------------------------------------|
 * | a collective (nccl:all_to_all)        | that collective                                    |
 * | two ranks (nccl:send 0->1,            | a pair, compared between these two in a            |
 * | nccl:recv 1<-0)                       | communicator of its own                            |
 * | other                                 | the other rank is unknown; counted in `pairs`      |
 *
 * On the simulated device a collective waits for the others in the call and not in the kernel.
 * There it begins with that call of NCCL, or if that is not known with the range in which it was
 * launched.
 *
 * Memory: 80 bytes a collective; 56 more until they are taken. Nothing refers to the reader
 * afterwards.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVES_H
#define PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVES_H

#include "report/analysis/shared_pass.h"

#define COLLECTIVE_KINDS(X)                                                           \
	/* name, part of a kernel's name, part of a range's name, all end together */ \
	X(REDUCE_SCATTER, "reduce-scatter", "ReduceScatter", "reduce_scatter", true)  \
	X(ALL_REDUCE, "all-reduce", "AllReduce", "all_reduce", true)                  \
	X(ALL_REDUCE_CPU, "all-reduce", NULL, "allreduce", true)                      \
	X(ALL_GATHER, "all-gather", "AllGather", "all_gather", true)                  \
	X(ALL_GATHER_CPU, "all-gather", NULL, "allgather", true)                      \
	X(ALL_TO_ALL, "all-to-all", "AllToAll", "all_to_all", true)                   \
	X(BARRIER, "barrier", "Barrier", "barrier", true)                             \
	X(BROADCAST, "broadcast", "Broadcast", "broadcast", false)                    \
	X(GATHER, "gather", "Gather", "gather", false)                                \
	X(SCATTER, "scatter", "Scatter", "scatter", false)                            \
	X(REDUCE, "reduce", "Reduce", "reduce", false)

enum collective_kind {
#define X(id, name, kernel, range, together) COLLECTIVE_##id,
	COLLECTIVE_KINDS(X)
#undef X
		COLLECTIVE_OTHER, /* of NCCL, with a name that does not show the kind */
	COLLECTIVE_PAIR,          /* send or receive, between two ranks */
};

struct collective {
	int64_t start_ns, end_ns; /* CLOCK_REALTIME of its process */
	/* Nanoseconds since the start of the trace; UINT64_MAX: unknown.
	 *
	 * | field        | time                                                              |
	 * |--------------|-------------------------------------------------------------------|
	 * | launched_ns  | begin of the launching call                                       |
	 * | requested_ns | the same; if the call waits, begin of the range around the launch | */
	uint64_t launched_ns, requested_ns;
	/* The part in which the device computes nothing. Time in which several collectives of a
	 * device run belongs to the one that began first. 0 for ranges. */
	uint64_t exposed_ns;
	/* Its size, as struct collective_size has it. 0: not known. */
	uint64_t bytes, bus_bytes;
	uint64_t correlation;  /* of a range: its id */
	uint32_t communicator; /* index in `communicators` */
	/* Name of the kernel, and node of the trace around its launch (0: unknown, or launched by a
	 * CUDA graph). */
	uint32_t kernel, launch_node;
	uint32_t place;   /* call path that launched it, set by ranks_find_stragglers; 0: unknown */
	uint32_t outcome; /* for the caller; UINT32_MAX at first */
	uint8_t kind;
};

/* A CUDA stream with collectives, or the sends and receives of two ranks on it. Its collectives are
 * `first` to `first + count - 1`, sorted by start. */
struct communicator {
	uint32_t device, stream; /* stream: UINT32_MAX if `key` is known; it may use several */
	uint32_t low, high; /* of a pair: its ranks in the process group, low < high; else both 0 */
	uint64_t key;       /* of NCCL's communicator, equal on all its ranks; 0: unknown */
	char *name;         /* the memory of `group`; owned */
	size_t first, count;
	/* PyTorch's number of the first collective in the process group; -1: unknown. */
	int64_t sequence;
	/* Name and ranks of the process group, or the key, if the trace has them. */
	struct trace_text group;
};

/* Whether it replaces a collective whose record is lost. Its other members but `kind` and
 * `communicator` say nothing. */
static inline bool collective_is_lost(const struct collective *collective)
{
	return collective->end_ns == INT64_MIN;
}

/* Whether the communicator holds the sends and receives of two ranks. */
static inline bool communicator_is_pair(const struct communicator *communicator)
{
	return communicator->high != 0;
}

struct collectives {
	struct collective *all; /* sorted by communicator, then start */
	size_t count, room;
	struct communicator *communicators;
	size_t communicator_count, communicator_room;
	/* Left out: sends and receives with an unknown rank; collectives without times. */
	uint64_t pairs, untimed;
	bool ranges;        /* CPU ranges, not kernels */
	bool waits_in_call; /* kernels that begin with the range in which they were launched */
};

/* Reads the collectives of a process in a pass, unless they are read. */
void collectives_read_in(struct shared_pass *pass);
/* Returns the collectives of a process, which the caller frees by collectives_free. To be called
 * once. Reads the trace once more for them, unless they were read in a pass before; and for the
 * ranges around launches on the simulated device, unless all calls of NCCL are known. */
struct collectives collectives_take(struct process *process);
/* Inserts `count` lost collectives before collective `index` of a communicator, of the kinds
 * `alike`. */
void collectives_insert_lost(struct collectives *collectives, uint32_t communicator, size_t index,
	const struct collective *alike, size_t count);
void collectives_free(struct collectives *collectives);

/* Returns the kind of the kernel `name`, or -1 if it is not of NCCL or RCCL. Communication of other
 * libraries is not matched between ranks, because its kernels share CUDA streams. */
int collective_kernel(struct trace_text name);
/* Whether a range with this name is a collective of a library (nccl:all_reduce, gloo:broadcast). */
bool collective_is_range(struct trace_text name);
const char *collective_name(enum collective_kind kind);
/* Whether all members end at the same time. */
bool collective_together(enum collective_kind kind);

#endif
