/* SPDX-License-Identifier: MIT
 * join.h: from a correlation id to the launch that it belongs to, while the GPU's record of it may still come; and
 * GPU records whose launch has not been seen yet.
 *
 * Bounded: JOIN_WAITING launches without a record; after their last record JOIN_REPLAYED graphs, which have many, and
 * JOIN_MATCHED other launches, which now and then have another one soon; JOIN_HELD records. What is pushed out, oldest first, is handed to `gone`, which counts it. Correlation ids are
 * looked up, never times.
 */
#ifndef PPERF_REPORT_GPU_CORRELATION_JOIN_H
#define PPERF_REPORT_GPU_CORRELATION_JOIN_H

#include "collector/trace_format.h"
#include <stdbool.h>

#define JOIN_WAITING 131072u
#define JOIN_REPLAYED 16384u
#define JOIN_MATCHED \
	2048u /* few, since a range is final when all of its launches are given up: what is held fits the processor's cache */
#define JOIN_HELD 16384u

struct instance;

/* A call that makes a GPU work. */
struct gpu_launch {
	uint64_t correlation, begin_ns, end_ns;
	struct instance
		*instance; /* of the range that it was made in, referenced; NULL: of no interest */
	uint32_t tid;      /* of the thread that called */
	uint32_t node;     /* of the tree: where it was made */
	uint32_t module;   /* the folded module it was made in, or 0 (members.h) */
	uint32_t graph_node;        /* of the tree: the graph that it launched; 0: it is no graph */
	uint32_t trace_node, stack; /* of the call, in the trace */
	uint32_t records;           /* that came for it */
	uint64_t
		first_ns; /* a graph: when the first of its work began, as far as records came; 0: none was timed */
	bool counts;   /* false: outside of what was asked for (--steps) */
	bool in_range; /* it was made in some range */
};

struct correlation_join;

struct correlation_join *join_new(void);
void join_free(struct correlation_join *join);

/* Adds a launch, a copy. One of the same id that is there is pushed out. */
void join_add(struct correlation_join *join, const struct gpu_launch *launch);
/* The launch of that id, which now has one record more; NULL: none is known. Lives until the next join_add. */
struct gpu_launch *join_match(struct correlation_join *join, uint64_t correlation);
/* The next launch that is given up: because there is no room, or (`all`) because nothing more will come. False: none. */
bool join_next_evicted(struct correlation_join *join, bool all, struct gpu_launch *launch);

/* It is time to ask for those that are given up. */
bool join_is_full(const struct correlation_join *join);

/* Keeps a copy of a GPU record (it begins with struct trace_gpu) until its launch is seen. */
void join_hold(struct correlation_join *join, const struct trace_gpu *record);
/* The next record that was held for this launch, in the order of coming; the caller frees it. NULL: none, or no more. */
struct trace_gpu *join_take_held(struct correlation_join *join, uint64_t correlation);
/* The next held record that is given up: the oldest of too many, or (`all`) whatever is left; the caller frees it.
 * NULL: none. */
struct trace_gpu *join_next_unmatched(struct correlation_join *join, bool all);

#endif
