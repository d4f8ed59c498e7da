/* SPDX-License-Identifier: MIT
 * trace_totals.c: see trace_totals.h. Rows have no crc, being added to: what cannot be is taken for what it may have been.
 */
#include "report/trace/counted_totals.h"

#include "report/base/alloc.h"
#include "report/trace/trace_header.h"

#include <stdlib.h>

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void add_rows(struct trace_totals *totals, const struct trace_total *rows, size_t count)
{
	grow(&totals->places, &totals->room, (size_t)totals->count + count, sizeof *totals->places);
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].calls)
			continue;
		totals->places[totals->count++] = (struct trace_counted){ .node = rows[i].node,
			.calls = rows[i].calls,
			.total_ns = rows[i].ticks,
			.longest_ns = rows[i].longest < rows[i].ticks ? rows[i].longest : rows[i].ticks };
	}
}

static int by_node(const void *a, const void *b)
{
	const struct trace_counted *left = a, *right = b;

	return (left->node > right->node) - (left->node < right->node);
}

/* One for each node. */
static void merge(struct trace_totals *totals)
{
	uint32_t kept = 0;

	if (totals->count)
		qsort(totals->places, totals->count, sizeof *totals->places, by_node);
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct trace_counted one = totals->places[i];
		struct trace_counted *last = kept ? &totals->places[kept - 1] : NULL;

		if (!last || last->node != one.node) {
			totals->places[kept++] = one;
			continue;
		}
		last->calls = sum_of(last->calls, one.calls);
		last->total_ns = sum_of(last->total_ns, one.total_ns);
		last->longest_ns = last->longest_ns > one.longest_ns ? last->longest_ns : one.longest_ns;
	}
	totals->count = kept;
}

bool totals_read(struct trace_totals *totals, const struct trace_blocks *blocks, struct trace_notes *notes)
{
	struct payload payload = { .used = 0 };
	int64_t got = 0;

	for (uint32_t i = 0; got >= 0 && i < blocks->totals_count; i++) {
		const struct block_entry *entry = &blocks->totals[i];

		grow(&payload.storage, &payload.room, (size_t)entry->used + 1, 1);
		got = read_at(blocks->fd, payload.storage, entry->used, entry->offset + sizeof(struct trace_block));
		if (got > 0)
			add_rows(totals, (const void *)payload.storage, (size_t)got / sizeof(struct trace_total));
		if (!entry->cut)
			continue;
		notes->integrity.cut_blocks++;
		note_add(notes, entry->offset, "the file ends within this block: its first %u bytes were read",
			entry->used);
	}
	payload_free(&payload);
	merge(totals);
	return got >= 0;
}

static uint64_t scaled(uint64_t ticks, long double ns_a_tick)
{
	const long double ns = (long double)ticks * ns_a_tick;

	return ns < (long double)READER_TIME_MAX ? (uint64_t)(ns + 0.5L) : READER_TIME_MAX;
}

void totals_scale(struct trace_totals *totals, double ticks_per_second, uint32_t place_end, struct trace_notes *notes)
{
	const long double ns_a_tick = 1e9L / (long double)ticks_per_second;

	for (uint32_t i = 0; i < totals->count; i++) {
		struct trace_counted *place = &totals->places[i];

		place->total_ns = scaled(place->total_ns, ns_a_tick);
		place->longest_ns = scaled(place->longest_ns, ns_a_tick);
		if (place->node && place->node < place_end)
			continue;
		place->node = place_end;
		notes->integrity.unknown_nodes++;
	}
	merge(totals);
}

void totals_free(struct trace_totals *totals)
{
	free(totals->places);
}
