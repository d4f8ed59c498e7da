/* SPDX-License-Identifier: MIT */
#include "report/analysis/stream_table.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t add_stream(struct stream_table *table, struct hash_slot *slot, uint64_t hash,
	struct device_stream entry)
{
	ARRAY_GROW(table->entries, table->room, (size_t)table->count + 1);
	table->entries[table->count] = entry;
	table->last = table->count++;
	hash_index_add(&table->index, slot, hash, table->count);
	return table->last;
}

uint32_t stream_table_number(struct stream_table *table, uint32_t device, uint64_t stream)
{
	const uint64_t hash = hash_u64(hash_u64(stream) ^ device);
	struct hash_slot *slot;

	if (table->count && table->entries[table->last].device == device &&
		table->entries[table->last].stream == stream)
		return table->last;
	hash_index_reserve(&table->index);
	for (slot = hash_index_first(&table->index, hash); slot->number;
		slot = hash_index_next(&table->index, slot)) {
		const struct device_stream *entry = &table->entries[slot->number - 1];

		if (entry->device == device && entry->stream == stream)
			return table->last = slot->number - 1;
	}
	if (table->count >= STREAM_TABLE_MAX && stream != STREAM_TABLE_REST)
		return stream_table_number(table, device, STREAM_TABLE_REST);
	return add_stream(table, slot, hash, (struct device_stream){ stream, device });
}

void stream_table_free(struct stream_table *table)
{
	free(table->entries);
	hash_index_free(&table->index);
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
