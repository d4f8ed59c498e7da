/* SPDX-License-Identifier: MIT
 * totals.c: see totals.h.
 */
#include "collector/stream/counted_totals.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/file/trace_file.h"

#include <sys/mman.h>
#include <unistd.h>

#define PLACES_FIRST 1024u
#define RETRY_EVERY 1024u

/* ---- the table ---- */

/* Where the node is or belongs. Half of the places are free. */
static struct total_place *find(struct total_place *places, uint32_t mask, uint32_t node)
{
	uint32_t at = node & mask;

	while (places[at].node && places[at].node != node)
		at = (at + 1) & mask;
	return &places[at];
}

/* Room for one more. A smaller table stays: at most as much again. */
static bool widen(struct totals *totals)
{
	const uint32_t had = totals->places ? totals->mask + 1 : 0, places = had ? had * 2 : PLACES_FIRST;
	struct total_place *wider;

	if (totals->rows * 2 < had)
		return true;
	wider = fork_memory(places * sizeof *wider);
	if (!wider)
		return false;
	for (uint32_t i = 0; i < had; i++)
		if (totals->places[i].node)
			*find(wider, places - 1, totals->places[i].node) = totals->places[i];
	totals->places = wider;
	totals->mask = places - 1;
	return true;
}

/* ---- the rows ---- */

static bool is_full(const struct trace_block *block)
{
	return block->extent - sizeof *block - block->used < sizeof(struct trace_total);
}

static bool next_block(struct totals *totals)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint32_t number = totals->block_count;
	uint64_t bytes = number < 4 ? TOTALS_BLOCK_FIRST << number : TOTALS_BLOCK_MOST, offset;
	enum trace_loss reason = TRACE_LOST_NO_MEMORY;
	struct trace_block *block;

	bytes = bytes > page ? bytes : page;
	if (!totals->blocks)
		totals->blocks = kept_memory(TOTALS_BLOCKS * sizeof *totals->blocks);
	block = totals->blocks && number < TOTALS_BLOCKS ? trace_map_block(TRACE_TOTALS, bytes, &offset, &reason) : NULL;
	totals->reason = reason;
	if (!block)
		return false;
	block->sequence = number;
	totals->blocks[number] = (struct totals_block){block, offset, bytes};
	__atomic_store_n(&totals->block_count, number + 1, __ATOMIC_RELEASE);
	return true;
}

/* The row is whole before a reader can see it. */
static struct trace_total *add_row(struct totals *totals, uint32_t node)
{
	struct trace_block *block = totals->block_count ? totals->blocks[totals->block_count - 1].block : NULL;
	struct trace_total *row;

	if (!block || is_full(block)) {
		if (totals->refusals++ % RETRY_EVERY || !next_block(totals))
			return NULL;
		totals->refusals = 0;
		block = totals->blocks[totals->block_count - 1].block;
	}
	row = (struct trace_total *)(void *)((char *)(block + 1) + block->used);
	*row = (struct trace_total){.node = node};
	__atomic_store_n(&block->used, block->used + sizeof *row, __ATOMIC_RELEASE);
	return row;
}

static struct trace_total *make_row(struct totals *totals, uint32_t node)
{
	struct total_place *place;
	struct trace_total *row;

	if (!widen(totals)) {
		totals->reason = TRACE_LOST_NO_MEMORY;
		return NULL;
	}
	place = find(totals->places, totals->mask, node);
	row = add_row(totals, node);
	if (!row)
		return NULL;
	place->row = row;
	place->node = node;
	totals->rows++;
	return row;
}

struct trace_total *totals_row(struct totals *totals, uint32_t node, enum trace_loss *reason)
{
	struct trace_total *row = totals->places ? find(totals->places, totals->mask, node)->row : NULL;
	struct quiet quiet;

	if (!row) {
		quiet_begin(&quiet);
		row = make_row(totals, node);
		quiet_end(&quiet);
	}
	if (row)
		totals->at_once[node % TOTALS_AT_ONCE] = (struct total_place){row, node};
	*reason = (enum trace_loss)totals->reason;
	return row;
}

void totals_write_back(const struct totals *totals)
{
	const uint32_t count = __atomic_load_n(&totals->block_count, __ATOMIC_ACQUIRE); /* another thread's, at the end of the process */

	for (uint32_t i = 0; i < count && trace_tail_at_risk(); i++)
		trace_write_back(totals->blocks[i].block, totals->blocks[i].offset);
}

void totals_forked(const struct totals_block *blocks)
{
	for (uint32_t i = 0; blocks && i < TOTALS_BLOCKS && blocks[i].block; i++)
		if (mmap(blocks[i].block, blocks[i].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
		    MAP_FAILED)
			return;
}
