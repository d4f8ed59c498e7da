/* SPDX-License-Identifier: MIT */
#include "collector/stream/held_mappings.h"

#include "collector/stream/held_restate.h"

#include <string.h>

enum virtual_space { PHYSICAL = 1, MAPPED, RESERVED };

/* Keys: PHYSICAL: the handle, or with RENAMED a number of its own, once a driver used the handle
 * again. MAPPED, RESERVED: the address. */
#define RENAMED (UINT64_C(1) << 63)

static struct held_virtual *find(enum virtual_space space, uint64_t key)
{
	return held_table_find(&held_state->virtual, space, key);
}

static struct held_virtual *add(
	enum virtual_space space, uint64_t key, const void *record, size_t bytes)
{
	struct held_virtual *entry = held_table_add(&held_state->virtual, space, key);

	if (!entry) {
		held_count_unlisted();
		return NULL;
	}
	memcpy(&entry->record, record, bytes);
	entry->record.created.call.duration = entry->record.created.call.correlation = 0;
	return entry;
}

static void remove_if_free(struct held_virtual *physical)
{
	if (!physical->references && !physical->mappings)
		held_table_remove(&held_state->virtual, physical);
}

/* The driver uses the handle of memory that is still mapped again. */
static void rename_physical(const struct held_virtual *physical)
{
	const struct held_table *table = &held_state->virtual;
	const struct held_virtual had = *physical;
	const uint64_t renamed = RENAMED | ++held_state->renamed;
	struct held_virtual *moved;

	held_table_remove(&held_state->virtual, find(PHYSICAL, had.key.key));
	moved = add(PHYSICAL, renamed, &had.record, sizeof had.record);
	if (!moved)
		return;
	moved->mappings = had.mappings;
	for (uint32_t i = 0; i < table->slots; i++) {
		struct held_virtual *entry = held_table_at(table, i);

		if (entry && entry->key.space == MAPPED && entry->physical == had.key.key)
			entry->physical = renamed;
	}
}

static void add_physical(uint64_t handle, const void *record, size_t bytes)
{
	struct held_virtual *physical = find(PHYSICAL, handle);
	const uint32_t late = physical ? physical->late_releases + physical->references : 0;

	if (physical && physical->mappings)
		rename_physical(physical);
	else if (physical)
		held_table_remove(&held_state->virtual, physical);
	physical = add(PHYSICAL, handle, record, bytes);
	if (!physical)
		return;
	physical->references = 1;
	physical->late_releases = late;
}

void held_mappings_create(const struct trace_memory *record)
{
	add_physical(record->address, record, sizeof *record);
}

void held_mappings_release(uint64_t handle, uint64_t begin)
{
	struct held_virtual *physical = find(PHYSICAL, handle);

	if (!physical || !physical->references)
		return;
	if (physical->late_releases && begin < physical->record.created.call.stamp) {
		physical->late_releases--;
		return;
	}
	physical->references--;
	remove_if_free(physical);
}

static void end_mapping(struct held_virtual *mapping)
{
	const uint64_t key = mapping->physical;
	struct held_virtual *physical;

	held_table_remove(&held_state->virtual, mapping);
	physical = key ? find(PHYSICAL, key) : NULL;
	if (!physical)
		return;
	physical->mappings--;
	remove_if_free(physical);
}

/* Ends all mappings that begin in the range. */
static void end_mappings(uint64_t address, uint64_t bytes)
{
	const uint64_t end = address + bytes;
	const struct held_table *table = &held_state->virtual;
	struct held_virtual *entry;

	while (address < end && (entry = find(MAPPED, address))) {
		address += entry->record.mapping.bytes;
		end_mapping(entry);
	}
	for (uint32_t i = 0; address < end && i < table->slots;) {
		entry = held_table_at(table, i);
		if (entry && entry->key.space == MAPPED && entry->key.key - address < end - address)
			end_mapping(entry); /* another entry may have moved here */
		else
			i++;
	}
}

static void add_mapping(const struct trace_mapping *record)
{
	struct held_virtual *mapping, *physical;

	end_mappings(record->address, record->bytes);
	mapping = add(MAPPED, record->address, record, sizeof *record);
	physical = mapping ? find(PHYSICAL, record->handle) : NULL;
	if (!physical)
		return;
	mapping->physical = record->handle;
	physical->mappings++;
}

void held_mappings_record(const struct trace_mapping *record)
{
	struct held_virtual *entry;

	switch (record->action) {
	case TRACE_MAPPING_RESERVE:
		add(RESERVED, record->address, record, sizeof *record);
		break;
	case TRACE_MAPPING_UNRESERVE:
		if ((entry = find(RESERVED, record->address)))
			held_table_remove(&held_state->virtual, entry);
		break;
	case TRACE_MAPPING_MAP:
		add_mapping(record);
		break;
	case TRACE_MAPPING_UNMAP:
		end_mappings(record->address, record->bytes);
		break;
	case TRACE_MAPPING_RETAIN:
		if ((entry = find(PHYSICAL, record->handle)))
			entry->references++;
		break;
	case TRACE_MAPPING_IMPORT:
		add_physical(record->handle, record, sizeof *record);
		break;
	}
}

/* ---- restating ---- */

/* Restates the references of the memory beyond the first, or that the first one was released. */
static bool restate_references(
	struct stream *s, const struct held_virtual *physical, uint64_t stamp)
{
	struct trace_mapping retain = { .call = physical->record.mapping.call };
	struct trace_memory release = { .call = physical->record.created.call };

	retain.call.head.kind = TRACE_MAPPING;
	retain.action = TRACE_MAPPING_RETAIN;
	retain.handle = physical->key.key;
	for (uint32_t i = 1; i < physical->references; i++)
		if (!held_restate(s, &retain, stamp))
			return false;
	release.call.head.kind = TRACE_FREE;
	release.address = physical->record.created.call.head.kind == TRACE_ALLOC
				  ? physical->record.created.address
				  : physical->record.mapping.handle;
	release.memory_kind = TRACE_MEMORY_UNKNOWN;
	release.flags = TRACE_MEMORY_MAPPED;
	return physical->references || held_restate(s, &release, stamp);
}

/* Restates all entries of a space. `physical`: only mappings of this memory; 0: of all whose memory
 * was not renamed. */
static bool restate_space(
	struct stream *s, enum virtual_space space, uint64_t physical, uint64_t stamp)
{
	const struct held_table *table = &held_state->virtual;

	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_virtual *entry = held_table_at(table, i);
		const bool of_renamed = entry && (entry->key.key | entry->physical) & RENAMED;

		if (entry && entry->key.space == space &&
			(physical ? entry->physical == physical : !of_renamed) &&
			!held_restate(s, &entry->record, stamp))
			return false;
	}
	return true;
}

/* Restates memory whose handle the driver has used again: at once with its mappings. */
static bool restate_renamed(struct stream *s, uint64_t stamp)
{
	const struct held_table *table = &held_state->virtual;

	for (uint32_t i = 0; held_state->renamed && i < table->slots; i++) {
		const struct held_virtual *entry = held_table_at(table, i);

		if (entry && entry->key.space == PHYSICAL && entry->key.key & RENAMED &&
			!(held_restate(s, &entry->record, stamp) &&
				restate_space(s, MAPPED, entry->key.key, stamp) &&
				restate_references(s, entry, stamp)))
			return false;
	}
	return true;
}

bool held_mappings_restate(struct stream *s, uint64_t stamp)
{
	const struct held_table *table = &held_state->virtual;

	if (!restate_space(s, RESERVED, 0, stamp) || !restate_renamed(s, stamp) ||
		!restate_space(s, PHYSICAL, 0, stamp) || !restate_space(s, MAPPED, 0, stamp))
		return false;
	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_virtual *entry = held_table_at(table, i);

		if (entry && entry->key.space == PHYSICAL && !(entry->key.key & RENAMED) &&
			!restate_references(s, entry, stamp))
			return false;
	}
	return true;
}

uint64_t held_mappings_bytes(void)
{
	return (uint64_t)held_state->virtual.count * sizeof(struct trace_mapping);
}
