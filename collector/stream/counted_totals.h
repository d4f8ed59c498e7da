/* SPDX-License-Identifier: MIT
 * totals.h: how often the ranges of a node ended and how long they took, added up in the file itself (TRACE_TOTALS). Each stream has rows of its own,
 * so that adding takes no lock; they go with the stream's memory to the next thread that gets it.
 *
 * Within stream_enter and stream_leave, but for totals_copy_blocks.
 */
#ifndef PPERF_COLLECTOR_STREAM_COUNTED_TOTALS_H
#define PPERF_COLLECTOR_STREAM_COUNTED_TOTALS_H

#include "collector/trace_format.h"

#define TOTALS_BLOCK_MIN (8u << 10) /* bytes; each is twice as large as the one before, up to: */
#define TOTALS_BLOCK_MAX (128u << 10)
#define TOTALS_BLOCKS 264u /* have a row for every node that there can be */

#define TOTALS_CACHE_ROWS 8192u /* rows that are found by the quick ways; a power of two */

struct total_slot {
	struct trace_total *row;
	uint32_t node; /* 0: free */
};

struct totals_block {
	struct trace_block *block;
	uint64_t offset, bytes;
};

struct totals {                   /* zeros: none yet. In fork memory */
	struct total_slot *slots; /* a hash table by node, of all rows */
	uint32_t mask;            /* how many places it has, less one; a power of two, less one */
	uint32_t rows;
	uint32_t refusals; /* since there was room last: backs off */
	uint32_t reason;   /* enum trace_loss of the last one */
	uint32_t block_count;
	struct totals_block
		*blocks; /* TOTALS_BLOCKS of them, in memory that a forked child keeps */
	struct total_slot cached_rows
		[TOTALS_CACHE_ROWS]; /* by the node's last bits: rows that were asked for last */
};

/* The row of a node, made at its first call. NULL: no room, *reason says why. */
struct trace_total *totals_row(struct totals *totals, uint32_t node, enum trace_loss *reason);

/* Brings the rows to the file where that is not mapped. */
void totals_write_back(const struct totals *totals);

/* In a child that was forked in the middle of an addition: memory of no consequence where the parent's rows were. blocks: as they were in the parent, or NULL. */
void totals_forked(const struct totals_block *blocks);

/* The row where it is found at once, else NULL. */
static inline struct trace_total *totals_row_cached(const struct totals *totals, uint32_t node)
{
	const struct total_slot *slot = &totals->cached_rows[node % TOTALS_CACHE_ROWS];

	return __builtin_expect(slot->node == node, 1) ? slot->row : NULL;
}

/* One more instance. Whoever reads the file meanwhile sees each number before or after. */
static inline void total_add(struct trace_total *row, uint64_t ticks)
{
	__atomic_store_n(&row->calls, row->calls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&row->ticks, row->ticks + ticks, __ATOMIC_RELAXED);
	if (__builtin_expect(ticks > row->longest, 0))
		__atomic_store_n(&row->longest, ticks, __ATOMIC_RELAXED);
}

#endif
