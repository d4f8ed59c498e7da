/* SPDX-License-Identifier: MIT */
#include "collector/stream/counted_totals.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/file/trace_file.h"

#include <sys/mman.h>
#include <unistd.h>

#define SLOTS_MIN 1024u
#define RETRY_EVERY 1024u

/* Returns the slot that holds `node`, or the free slot where it belongs. At least half of the slots
 * are free. */
static struct total_slot *find_slot(struct total_slot *slots, uint32_t mask, uint32_t node)
{
	uint32_t at = node & mask;

	while (slots[at].node && slots[at].node != node)
		at = (at + 1) & mask;
	return &slots[at];
}

/* Makes room for one more row. The smaller table is not freed: all of them together are no larger
 * than the last one. */
static bool grow_slots(struct totals *totals)
{
	const uint32_t had = totals->slots ? totals->mask + 1 : 0,
		       slots = had ? had * 2 : SLOTS_MIN;
	struct total_slot *grown;

	if (totals->rows * 2 < had)
		return true;
	grown = fork_wiped_alloc(slots * sizeof *grown);
	if (!grown)
		return false;
	for (uint32_t i = 0; i < had; i++)
		if (totals->slots[i].node)
			*find_slot(grown, slots - 1, totals->slots[i].node) = totals->slots[i];
	totals->slots = grown;
	totals->mask = slots - 1;
	return true;
}

static bool block_is_full(const struct trace_block *block)
{
	return block->extent - sizeof *block - block->used < sizeof(struct trace_total);
}

static bool map_next_block(struct totals *totals)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint32_t number = totals->block_count;
	uint64_t bytes = number < 4 ? TOTALS_BLOCK_MIN << number : TOTALS_BLOCK_MAX, offset;
	enum trace_loss reason = TRACE_LOST_NO_MEMORY;
	struct trace_block *block;

	bytes = bytes > page ? bytes : page;
	if (!totals->blocks)
		totals->blocks = fork_kept_alloc(TOTALS_BLOCKS * sizeof *totals->blocks);
	block = totals->blocks && number < TOTALS_BLOCKS
			? trace_map_block(TRACE_TOTALS, bytes, &offset, &reason)
			: NULL;
	totals->reason = reason;
	if (!block)
		return false;
	block->sequence = number;
	totals->blocks[number] = (struct totals_block){ block, offset, bytes };
	__atomic_store_n(&totals->block_count, number + 1, __ATOMIC_RELEASE);
	return true;
}

/* Appends a zeroed row. `used` is stored last, with release, so that a reader never sees half a
 * row. */
static struct trace_total *append_row(struct totals *totals, uint32_t node)
{
	struct trace_block *block = totals->block_count
					    ? totals->blocks[totals->block_count - 1].block
					    : NULL;
	struct trace_total *row;

	if (!block || block_is_full(block)) {
		if (totals->refusals++ % RETRY_EVERY || !map_next_block(totals))
			return NULL;
		totals->refusals = 0;
		block = totals->blocks[totals->block_count - 1].block;
	}
	row = (struct trace_total *)(void *)((char *)(block + 1) + block->used);
	*row = (struct trace_total){ .node = node };
	__atomic_store_n(&block->used, block->used + sizeof *row, __ATOMIC_RELEASE);
	return row;
}

static struct trace_total *create_row(struct totals *totals, uint32_t node)
{
	struct total_slot *slot;
	struct trace_total *row;

	if (!grow_slots(totals)) {
		totals->reason = TRACE_LOST_NO_MEMORY;
		return NULL;
	}
	slot = find_slot(totals->slots, totals->mask, node);
	row = append_row(totals, node);
	if (!row)
		return NULL;
	slot->row = row;
	slot->node = node;
	totals->rows++;
	return row;
}

struct trace_total *totals_row(struct totals *totals, uint32_t node, enum trace_loss *reason)
{
	struct trace_total *row = totals->slots ? find_slot(totals->slots, totals->mask, node)->row
						: NULL;
	struct signal_guard guard;

	if (!row) {
		signal_guard_begin(&guard);
		row = create_row(totals, node);
		signal_guard_end(&guard);
	}
	if (row)
		totals->cached_rows[node % TOTALS_CACHE_ROWS] = (struct total_slot){ row, node };
	*reason = (enum trace_loss)totals->reason;
	return row;
}

void totals_write_back(const struct totals *totals)
{
	/* `totals` may belong to another thread: at the end of the process. */
	const uint32_t count = __atomic_load_n(&totals->block_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && trace_tail_at_risk(); i++)
		trace_write_back(totals->blocks[i].block, totals->blocks[i].offset);
}

void totals_forked(const struct totals_block *blocks)
{
	for (uint32_t i = 0; blocks && i < TOTALS_BLOCKS && blocks[i].block; i++)
		if (mmap(blocks[i].block, blocks[i].bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
			return;
}
