/* SPDX-License-Identifier: MIT
 * Counts ranges per node: the calls, their ticks and the longest one, added up in the file itself
 * (TRACE_TOTALS). Each stream has rows of its own, so that adding takes no lock. The rows belong to
 * the stream's memory, which the next thread may reuse.
 *
 * All functions are called between stream_enter and stream_leave, except totals_write_back, which
 * the end of the process calls for all streams, and totals_forked.
 */
#ifndef PPERF_COLLECTOR_STREAM_COUNTED_TOTALS_H
#define PPERF_COLLECTOR_STREAM_COUNTED_TOTALS_H

#include "collector/trace_format.h"

/* Bytes of a thread's first block. Each further block is twice as large, up to TOTALS_BLOCK_MAX. */
#define TOTALS_BLOCK_MIN (8u << 10)
#define TOTALS_BLOCK_MAX (128u << 10)
/* Blocks per stream, enough for a row of every possible node. */
#define TOTALS_BLOCKS 264u

/* Rows that the fast paths find without the hash table; a power of two. */
#define TOTALS_CACHE_ROWS 8192u

struct total_slot {
	struct trace_total *row;
	uint32_t node; /* 0: free */
};

struct totals_block {
	struct trace_block *block;
	uint64_t offset, bytes;
};

/* The rows of a stream. All zero: none yet. Allocated by fork_wiped_alloc. */
struct totals {
	struct total_slot *slots; /* hash table of all rows, by node */
	uint32_t mask;            /* number of slots minus one; their number is a power of two */
	uint32_t rows;
	/* Failed attempts to add a block since the last success; limits retries. */
	uint32_t refusals;
	uint32_t reason; /* enum trace_loss of the last failure */
	uint32_t block_count;
	/* TOTALS_BLOCKS entries, allocated by fork_kept_alloc: a forked child keeps their
	 * content. */
	struct totals_block *blocks;
	/* The rows that were used last, indexed by the low bits of the node. */
	struct total_slot cached_rows[TOTALS_CACHE_ROWS];
};

/* Returns the row of `node`, which is created by the first call. Returns NULL if there is no room;
 * *reason is then why. */
struct trace_total *totals_row(struct totals *totals, uint32_t node, enum trace_loss *reason);

/* Writes the rows to the file if the file is not mapped (trace_tail_at_risk). */
void totals_write_back(const struct totals *totals);

/* Called in a child that was forked in the middle of an addition. Maps private memory at the
 * addresses of the parent's blocks, so that the addition can complete without effect. `blocks`:
 * totals.blocks of the parent, or NULL. */
void totals_forked(const struct totals_block *blocks);

/* Returns the row of `node` if it is in cached_rows, else NULL. */
static inline struct trace_total *totals_row_cached(const struct totals *totals, uint32_t node)
{
	const struct total_slot *slot = &totals->cached_rows[node % TOTALS_CACHE_ROWS];

	return __builtin_expect(slot->node == node, 1) ? slot->row : NULL;
}

/* Adds one instance of `ticks`. The stores are atomic, because the file may be read at the same
 * time. */
static inline void total_add(struct trace_total *row, uint64_t ticks)
{
	__atomic_store_n(&row->calls, row->calls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&row->ticks, row->ticks + ticks, __ATOMIC_RELAXED);
	if (__builtin_expect(ticks > row->longest, 0))
		__atomic_store_n(&row->longest, ticks, __ATOMIC_RELAXED);
}

#endif
