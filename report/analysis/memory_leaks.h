/* SPDX-License-Identifier: MIT
 *
 * Decides whether memory that grows is a leak, and names the call paths and the cause. The views
 * steps and memory, the first screen and diagnose all show this result.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_LEAKS_H
#define PPERF_REPORT_ANALYSIS_MEMORY_LEAKS_H

#include "report/analysis/memory_lifetimes.h"

/* Growth is a leak if it takes at least this much a step, or has taken LEAK_SHARE of the GPU's
 * memory. If the size of that is not known: LEAK_SHARE_OF_PEAK of the highest level. */
#define LEAK_BYTES_PER_STEP (1u << 20)
#define LEAK_SHARE 0.001
#define LEAK_SHARE_OF_PEAK 0.01
#define SCALAR_BYTES_MAX 512u /* PyTorch's allocator rounds sizes up to this */

enum leak_cause {
	LEAK_UNKNOWN, /* the program keeps it */
	LEAK_GRAPH,   /* outputs that autograd keeps for the backward pass */
	LEAK_SCALAR,  /* one scalar a step, which keeps the graph that made it */
	LEAK_PINNED,  /* pinned memory of the host */
	LEAK_MANAGED, /* managed memory */
	LEAK_CUDA,    /* device memory that the program allocated by a CUDA call */
};

struct leak_path {
	const struct memory_path *path;
	enum leak_cause cause;
};

/* Memory of one kind on one device that grows. */
struct memory_leak {
	const struct memory_held *held;
	struct leak_path *paths; /* those that grow, the fastest first */
	size_t path_count;
	enum leak_cause cause; /* LEAK_SCALAR and LEAK_GRAPH: of at least half of the growth */
	const struct memory_path *scalar; /* LEAK_SCALAR: the path of the scalar */
	uint64_t capacity_bytes;          /* of the device; 0: unknown */
	uint64_t left_bytes;              /* what steps left at the paths that grow */
	bool is_leak;
};

struct memory_leaks {
	struct memory_leak *leaks; /* those that are leaks first, then the fastest */
	size_t count;
};

/* Returns why leaks cannot be found, a sentence without a full stop. NULL: they can. Makes no
 * pass. */
const char *memory_leaks_unchecked(const struct process *process);
/* Returns what grows in a process, made at the first call and attached to the process. */
const struct memory_leaks *memory_leaks_of(struct process *process);
/* Returns whether so many blocks are held at the end that the late steps may have left some. Makes
 * no pass. */
bool memory_leaks_possible(const struct process *process);
/* Returns the fastest leak; NULL: there is none, or leaks cannot be found. Makes a pass only if
 * there may be one. */
const struct memory_leak *memory_leaks_worst(struct process *process);

/* Returns an array by node of the trace: whether it is an operator that created a backward
 * function. The caller frees it. */
uint8_t *operators_with_backward(struct trace_reader *reader);
/* Returns whether `node` of the trace, or an operator that called it, has a backward function, so
 * that autograd may keep what is allocated there. */
bool is_kept_by_graph(struct trace_reader *reader, const uint8_t *has_backward, uint32_t node);

/* Returns after how many more steps the device's memory is used up at this rate. 0: not known. */
uint64_t memory_leak_steps_left(const struct process *process, const struct memory_leak *leak);

#endif
