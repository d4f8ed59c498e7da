/* SPDX-License-Identifier: MIT */
#include "collector/stream/held_table.h"

#include "collector/process/fork_wiped_memory.h"

#include <stdbool.h>
#include <string.h>

#define SLOTS_MIN 1024u

static struct held_key *slot_at(const struct held_table *table, uint32_t at)
{
	return (void *)(table->entries + (uint64_t)at * table->entry_bytes);
}

static uint32_t home_slot(const struct held_table *table, uint32_t space, uint64_t key)
{
	return (uint32_t)((key >> 4 ^ key << 60 ^ space) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	       (table->slots - 1);
}

/* Returns the slot that holds the key, or the free slot where it belongs. */
static struct held_key *find_slot(const struct held_table *table, uint32_t space, uint64_t key)
{
	uint32_t at = home_slot(table, space, key);
	struct held_key *slot;

	while ((slot = slot_at(table, at))->space && (slot->key != key || slot->space != space))
		at = (at + 1) & (table->slots - 1);
	return slot;
}

void *held_table_find(const struct held_table *table, uint32_t space, uint64_t key)
{
	struct held_key *slot = table->slots ? find_slot(table, space, key) : NULL;

	return slot && slot->space ? slot : NULL;
}

/* Makes room for one more entry. */
static bool make_room(struct held_table *table)
{
	const struct held_table had = *table;

	if (had.count >= had.max)
		return false;
	if (had.count * 2 < had.slots)
		return true;
	table->slots = had.slots ? had.slots * 2 : SLOTS_MIN;
	table->entries = fork_wiped_alloc((size_t)table->slots * table->entry_bytes);
	if (!table->entries) {
		*table = had;
		return false;
	}
	for (uint32_t i = 0; i < had.slots; i++) {
		const struct held_key *entry = held_table_at(&had, i);

		if (entry)
			memcpy(find_slot(table, entry->space, entry->key), entry, had.entry_bytes);
	}
	return true;
}

void *held_table_add(struct held_table *table, uint32_t space, uint64_t key)
{
	struct held_key *slot = held_table_find(table, space, key);

	if (slot)
		return slot;
	if (!make_room(table))
		return NULL;
	slot = find_slot(table, space, key);
	memset(slot, 0, table->entry_bytes);
	*slot = (struct held_key){ .key = key, .space = space };
	table->count++;
	return slot;
}

/* Later entries move up, so that none becomes unreachable. */
void held_table_remove(struct held_table *table, void *entry)
{
	const uint32_t mask = table->slots - 1;
	uint32_t hole = (uint32_t)((uint64_t)((unsigned char *)entry - table->entries) /
				   table->entry_bytes),
		 at = hole;

	for (;;) {
		const struct held_key *moved = slot_at(table, at = (at + 1) & mask);

		if (!moved->space)
			break;
		if (((at - home_slot(table, moved->space, moved->key)) & mask) <
			((at - hole) & mask))
			continue;
		memcpy(slot_at(table, hole), moved, table->entry_bytes);
		hole = at;
	}
	slot_at(table, hole)->space = 0;
	table->count--;
}

void *held_table_at(const struct held_table *table, uint32_t at)
{
	struct held_key *slot = slot_at(table, at);

	return slot->space ? slot : NULL;
}
