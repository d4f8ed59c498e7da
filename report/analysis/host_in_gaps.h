/* SPDX-License-Identifier: MIT
 *
 * Says what a thread did while a GPU waited for its next launch: the time of each gap is divided
 * among the innermost ranges and CUDA calls that were open on that thread. Where the trace has CPU
 * samples, they say which functions the thread was in meanwhile.
 *
 *	struct host_in_gaps *host = host_in_gaps_new(process);
 *
 *	host_in_gaps_add(host, tid, begin_ns, end_ns); ... each gap
 *	host_in_gaps_read(host);
 *	... host->nodes[i].self_ns ...
 *
 * Memory: 32 bytes for each gap, 16 for each range in one until the range around it closes, and 24
 * for each function that samples of a node name.
 */
#ifndef PPERF_REPORT_ANALYSIS_HOST_IN_GAPS_H
#define PPERF_REPORT_ANALYSIS_HOST_IN_GAPS_H

#include "report/run/process.h"

/* What a node's ranges or calls took of the gaps, without what was inside them. */
struct host_node_time {
	uint64_t self_ns, times;
	uint64_t samples; /* CPU samples in the gaps, in this node and in nothing inside it */
};

/* The samples of a node that name one function. Samples in a CUDA call have no function here,
 * because the call says what the thread did. */
struct host_function {
	uint32_t node;             /* 0: in no range and in no call */
	uint32_t function, module; /* names in the trace; 0: not known */
	uint64_t samples;
};

struct host_in_gaps {
	struct process *process;
	/* By node of the process's tree. Entry 0 has samples that are in no range and no call. */
	struct host_node_time *nodes;
	size_t room;
	uint64_t gaps, total_ns, longest_ns; /* of all gaps */
	uint64_t covered_ns;                 /* part of total_ns that a node has */
	uint64_t samples;                    /* in the gaps: those of all nodes */
	struct host_function *functions;     /* by node, then those with most samples first */
	size_t function_count, function_room;
	struct host_gap_thread *threads; /* private */
	struct host_events *events;      /* private: all of the gaps are kept; NULL: they are not */
	size_t thread_count, thread_room;
};

struct host_in_gaps *host_in_gaps_new(struct process *process);
void host_in_gaps_free(struct host_in_gaps *host);
/* Adds a gap, in nanoseconds since the start of the trace, before a launch of thread `tid`. Gaps of
 * several GPUs may overlap; each counts. */
void host_in_gaps_add(struct host_in_gaps *host, uint32_t tid, uint64_t begin_ns, uint64_t end_ns);
/* Fills `nodes` and `functions`. Called once, after the last gap. Makes one more pass over the
 * trace, unless the events in the gaps are kept (host_events.h). */
void host_in_gaps_read(struct host_in_gaps *host);

#endif
