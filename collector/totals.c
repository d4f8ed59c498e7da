/* SPDX-License-Identifier: MIT
 * totals.c: see totals.h.
 */
#include "totals.h"

#include "fork_memory.h"
#include "quiet.h"
#include "trace_file.h"

#include <sys/mman.h>
#include <unistd.h>

#define PLACES_FIRST 1024u
#define RETRY_EVERY 1024u

/* Of a table without rows: its one place is never a node's. */
static struct total_place no_places[2];

void totals_begin(struct totals *totals)
{
	if (!totals->places)
		totals->places = no_places;
}

/* ---- the table ---- */

static struct total_place *find(struct total_place *places, uint32_t node)
{
	const uint32_t mask = places->node;
	uint32_t at = node & mask;

	while (places[1 + at].node && places[1 + at].node != node)
		at = (at + 1) & mask;
	return &places[1 + at];
}

static size_t table_bytes(uint32_t places)
{
	return (1 + (size_t)places) * sizeof(struct total_place);
}

/* Room for one more, half of the table staying free. A smaller one stays: at most as much again. */
static bool widen(struct totals *totals)
{
	struct total_place *old = totals->places, *wider;
	const uint32_t had = old == no_places ? 0 : old->node + 1, places = had ? had * 2 : PLACES_FIRST;

	if (totals->rows * 2 < had)
		return true;
	wider = fork_memory(table_bytes(places));
	if (!wider)
		return false;
	wider->node = places - 1;
	for (uint32_t i = 1; i <= had; i++)
		if (old[i].node)
			*find(wider, old[i].node) = old[i];
	totals->places = wider;
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
	place = find(totals->places, node);
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
	struct trace_total *row = find(totals->places, node)->row;
	struct quiet quiet;

	if (row)
		return row;
	quiet_begin(&quiet);
	row = make_row(totals, node);
	quiet_end(&quiet);
	*reason = (enum trace_loss)totals->reason;
	return row;
}

void totals_write_back(const struct totals *totals)
{
	const uint32_t count = __atomic_load_n(&totals->block_count, __ATOMIC_ACQUIRE); /* another thread's, at the end of the process */

	for (uint32_t i = 0; i < count && trace_tail_at_risk(); i++)
		trace_write_back(totals->blocks[i].block, totals->blocks[i].offset);
}

void totals_forked(struct totals *totals, const struct totals_block *blocks)
{
	totals->places = no_places;
	for (uint32_t i = 0; blocks && i < TOTALS_BLOCKS && blocks[i].block; i++)
		mmap(blocks[i].block, blocks[i].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}
