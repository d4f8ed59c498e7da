/* SPDX-License-Identifier: MIT
 * Joins GPU records to the launches that issued them, by correlation id and never by time. Either
 * may come first: launches wait for their records, and records wait for their launch.
 *
 * Memory is bounded. The table holds at most:
 *
 *	JOIN_WAITING	launches without a record
 *	JOIN_REPLAYED	matched graph launches, which have many records
 *	JOIN_MATCHED	other matched launches, which rarely have a second record
 *	JOIN_HELD	records without a launch
 *
 * What exceeds these limits is evicted, oldest first. The caller fetches and counts it with
 * join_next_evicted and join_next_unmatched.
 */
#ifndef PPERF_REPORT_GPU_CORRELATION_JOIN_H
#define PPERF_REPORT_GPU_CORRELATION_JOIN_H

#include "collector/trace_format.h"
#include <stdbool.h>

#define JOIN_WAITING 131072u
#define JOIN_REPLAYED 16384u
/* Small, because a range is final only when all of its launches are evicted. The ranges that wait
 * then fit into the processor's cache. */
#define JOIN_MATCHED 2048u
#define JOIN_HELD 16384u

struct instance;

/* A call that issued GPU work. What each record needs comes first. */
struct gpu_launch {
	uint64_t correlation, begin_ns;
	/* Instance of the range that made the call, with a reference held. NULL: not needed. */
	struct instance *instance;
	uint32_t node; /* node of the call tree that made the call */
	/* index of the module (module_group.h) that made the call, or 0 */
	uint32_t module;
	/* node of the launched graph in the call tree; 0: not a graph launch */
	uint32_t graph_node;
	uint32_t records;           /* number of records matched so far */
	bool counts;                /* false: outside of the steps selected by --steps */
	bool in_range;              /* the call was made inside a range */
	bool empty;                 /* a copy or memset of 0 bytes, which needs no record */
	uint32_t tid;               /* of the calling thread */
	uint32_t trace_node, stack; /* trace ids of the call's node and stack */
	uint64_t end_ns;
	/* Graph launch: earliest start of its records so far. 0: none was timed. */
	uint64_t first_ns;
};

struct correlation_join;

struct correlation_join *join_new(void);
void join_free(struct correlation_join *join);

/* Adds a copy of `launch`. An earlier launch with the same id is evicted. Records already held
 * for the id stay held: fetch them with join_take_held. */
void join_add(struct correlation_join *join, const struct gpu_launch *launch);
/* Finds the launch of `correlation` and increments its `records`. Returns NULL if there is none.
 * The pointer is valid until the next join_add or join_hold. */
struct gpu_launch *join_match(struct correlation_join *join, uint64_t correlation);
/* Removes the next evicted launch and copies it to `launch`. With `all`, every launch is
 * evicted, because no more records will come. Returns false if there is none. */
bool join_next_evicted(struct correlation_join *join, bool all, struct gpu_launch *launch);

/* Returns true if a limit is exceeded: call join_next_evicted and join_next_unmatched. */
bool join_is_full(const struct correlation_join *join);

/* Keeps a copy of a GPU record until its launch is added. `record` is the beginning of a whole
 * record, head.size bytes long. */
void join_hold(struct correlation_join *join, const struct trace_gpu *record);
/* Removes and returns the next record held for `correlation`, in order of arrival, or NULL. The
 * caller frees it. */
struct trace_gpu *join_take_held(struct correlation_join *join, uint64_t correlation);
/* Removes and returns the oldest held record if more than JOIN_HELD are held, or any with `all`.
 * Returns NULL if there is none. The caller frees it. */
struct trace_gpu *join_next_unmatched(struct correlation_join *join, bool all);

#endif
