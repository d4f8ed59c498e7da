/* SPDX-License-Identifier: MIT
 * The rows have no crc because programs add to them in place. Impossible values are limited to
 * possible ones.
 */
#include "report/trace/counted_totals.h"

#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/trace/trace_header.h"

#include <stdlib.h>

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void add_counted_rows(
	struct counted_totals *totals, const struct trace_total *rows, size_t count)
{
	ARRAY_GROW(totals->nodes, totals->room, (size_t)totals->count + count);
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].calls)
			continue;
		totals->nodes[totals->count++] = (struct trace_counted){ .node = rows[i].node,
			.calls = rows[i].calls,
			.total_ns = rows[i].ticks,
			.longest_ns = rows[i].longest < rows[i].ticks ? rows[i].longest
								      : rows[i].ticks };
	}
}

COMPARE_BY(compare_counted_nodes, struct trace_counted, node)

/* Sorts the rows and adds up those of the same node. */
static void merge_same_nodes(struct counted_totals *totals)
{
	uint32_t kept = 0;

	if (totals->count)
		qsort(totals->nodes, totals->count, sizeof *totals->nodes, compare_counted_nodes);
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct trace_counted one = totals->nodes[i];
		struct trace_counted *last = kept ? &totals->nodes[kept - 1] : NULL;

		if (!last || last->node != one.node) {
			totals->nodes[kept++] = one;
			continue;
		}
		last->calls = add_saturated(last->calls, one.calls);
		last->total_ns = add_saturated(last->total_ns, one.total_ns);
		last->longest_ns = last->longest_ns > one.longest_ns ? last->longest_ns
								     : one.longest_ns;
	}
	totals->count = kept;
}

bool counted_totals_read(struct counted_totals *totals, const struct trace_blocks *blocks,
	struct read_warnings *warnings)
{
	struct block_payload payload = { .used = 0 };
	int64_t got = 0;

	for (uint32_t i = 0; got >= 0 && i < blocks->totals_count; i++) {
		const struct block_entry *entry = &blocks->totals[i];

		array_grow_zeroed(&payload.storage, &payload.room, (size_t)entry->used + 1, 1);
		got = pread_all(blocks->fd, payload.storage, entry->used,
			entry->offset + sizeof(struct trace_block));
		if (got > 0)
			add_counted_rows(totals, (const void *)payload.storage,
				(size_t)got / sizeof(struct trace_total));
		if (entry->cut)
			blocks_warn_cut(entry, warnings);
	}
	block_payload_free(&payload);
	merge_same_nodes(totals);
	return got >= 0;
}

static uint64_t scale_ticks(uint64_t ticks, long double ns_a_tick)
{
	const long double ns = (long double)ticks * ns_a_tick;

	return ns < (long double)READER_TIME_MAX ? (uint64_t)(ns + 0.5L) : READER_TIME_MAX;
}

void counted_totals_scale(struct counted_totals *totals, double ticks_per_second, uint32_t node_end,
	struct read_warnings *warnings)
{
	const long double ns_a_tick = 1e9L / (long double)ticks_per_second;

	for (uint32_t i = 0; i < totals->count; i++) {
		struct trace_counted *row = &totals->nodes[i];

		row->total_ns = scale_ticks(row->total_ns, ns_a_tick);
		row->longest_ns = scale_ticks(row->longest_ns, ns_a_tick);
		if (row->node && row->node < node_end)
			continue;
		row->node = node_end;
		warnings->integrity.unknown_nodes++;
	}
	merge_same_nodes(totals);
}

void counted_totals_free(struct counted_totals *totals)
{
	free(totals->nodes);
}
