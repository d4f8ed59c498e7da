/* SPDX-License-Identifier: MIT */
#include "collector/stream/held_records.h"

#include "collector/stream/held_restate.h"
#include "collector/stream/held_table.h"

#include <string.h>

void held_records_set(uint64_t key, const void *record)
{
	const struct trace_head *head = record;
	const size_t bytes = head->size < HELD_RECORD_BYTES ? head->size : HELD_RECORD_BYTES;
	struct held_record *entry;
	struct trace_range range;

	if (!held_memory_wanted)
		return;
	entry = held_table_add(&held_state->records, head->kind, key);
	if (!entry) {
		held_count_unlisted();
		return;
	}
	memcpy(entry->record, record, bytes);
	if (head->kind != TRACE_START || head->size <= HELD_RECORD_BYTES)
		return;
	memcpy(&range, entry->record, sizeof range);
	range.head.size = HELD_RECORD_BYTES;
	range.text_bytes = HELD_RECORD_BYTES - sizeof range;
	memcpy(entry->record, &range, sizeof range);
}

void held_records_remove(enum trace_kind kind, uint64_t key)
{
	void *entry = held_memory_wanted ? held_table_find(&held_state->records, kind, key) : NULL;

	if (entry)
		held_table_remove(&held_state->records, entry);
}

uint64_t held_object_key(uint32_t type, uint64_t object, uint32_t domain)
{
	const uint64_t mixed = (object ^ object >> 29) * UINT64_C(0xbf58476d1ce4e5b9);

	return (mixed ^ ((uint64_t)domain << 32 | type)) * UINT64_C(0x9e3779b97f4a7c15);
}

bool held_records_restate(struct stream *s, uint64_t stamp)
{
	const struct held_table *table = &held_state->records;

	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_record *entry = held_table_at(table, i);

		if (entry && !held_restate(s, entry->record, stamp))
			return false;
	}
	return true;
}

uint64_t held_records_bytes(void)
{
	return (uint64_t)held_state->records.count * HELD_RECORD_BYTES;
}
