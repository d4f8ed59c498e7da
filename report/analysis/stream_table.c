/* SPDX-License-Identifier: MIT */
#include "report/analysis/stream_table.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

/* A power of two. It is never full, because traces have few devices. */
#define SLOTS (4 * STREAM_TABLE_MAX)

static uint32_t *stream_slot(const struct stream_table *table, uint32_t device, uint64_t stream)
{
	uint64_t hash = (stream ^ (uint64_t)device << 32) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(hash >> 32) & (SLOTS - 1);

	while (table->slots[at] && (table->entries[table->slots[at] - 1].device != device ||
					   table->entries[table->slots[at] - 1].stream != stream))
		at = (at + 1) & (SLOTS - 1);
	return &table->slots[at];
}

uint32_t stream_table_number(struct stream_table *table, uint32_t device, uint64_t stream)
{
	const struct device_stream *last = table->count ? &table->entries[table->last] : NULL;
	uint32_t *slot;

	if (last && last->device == device && last->stream == stream)
		return table->last;
	if (!table->slots)
		table->slots = xcalloc(SLOTS * sizeof *table->slots);
	slot = stream_slot(table, device, stream);
	if (!*slot && table->count >= STREAM_TABLE_MAX) {
		stream = STREAM_TABLE_REST;
		slot = stream_slot(table, device, stream);
	}
	if (!*slot) {
		array_grow_zeroed(&table->entries, &table->room, (size_t)table->count + 1,
			sizeof *table->entries);
		table->entries[table->count] = (struct device_stream){ .stream = stream,
			.device = device };
		*slot = ++table->count;
	}
	return table->last = *slot - 1;
}

void stream_table_free(struct stream_table *table)
{
	free(table->entries);
	free(table->slots);
	*table = (struct stream_table){ .count = 0 };
}

size_t stream_table_label(const struct device_stream *entry, const struct activities *activities,
	char *out, size_t room)
{
	const struct string_view name = activities_stream_name(
		activities, entry->device, entry->stream);
	int length;

	if (entry->stream == STREAM_TABLE_REST)
		length = snprintf(out, room, "(all other streams)");
	else if (name.length)
		length = snprintf(out, room, "stream %llu \"%.*s\"",
			(unsigned long long)entry->stream,
			(int)(name.length < 200 ? name.length : 200), name.bytes);
	else
		length = snprintf(out, room, "stream %llu", (unsigned long long)entry->stream);
	return (size_t)length < room ? (size_t)length : room - 1;
}
