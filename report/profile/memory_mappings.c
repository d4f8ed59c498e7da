/* SPDX-License-Identifier: MIT */
#include "report/profile/memory_mappings.h"
#include "report/base/address_map.h"
#include "report/base/alloc.h"
#include <stdlib.h>

struct physical_memory {
	uint64_t key, handle;
	uint64_t since_ns;
	uint64_t references, mappings;
	/* Releases of earlier memory with this handle, whose records are still to come. */
	uint64_t late_releases;
	bool imported; /* no ALLOC has its bytes */
	uint32_t next_unused;
};

struct reserved_range {
	uint64_t begin, bytes;
	uint32_t next_unused;
};

/* Index 0 of the arrays is unused, so that 0 ends the lists of unused entries. */
struct memory_mappings {
	struct address_map by_handle, by_key, by_address, by_begin; /* values: indexes */
	struct physical_memory *physical;
	struct memory_mapping *mapped;
	struct reserved_range *ranges;
	size_t physical_room, mapped_room, range_room;
	uint32_t physical_count, mapped_count, range_count;
	uint32_t unused_physical, unused_mapped, unused_range;
	uint64_t last_key;
	struct mapping_counts counts;
};

struct memory_mappings *memory_mappings_new(void)
{
	struct memory_mappings *mappings = xcalloc(sizeof *mappings);

	mappings->physical_count = mappings->mapped_count = mappings->range_count = 1;
	mappings->last_key = PHYSICAL_KEY;
	ARRAY_GROW(mappings->physical, mappings->physical_room, 1);
	return mappings;
}

void memory_mappings_free(struct memory_mappings *mappings)
{
	if (!mappings)
		return;
	address_map_free(&mappings->by_handle);
	address_map_free(&mappings->by_key);
	address_map_free(&mappings->by_address);
	address_map_free(&mappings->by_begin);
	free(mappings->physical);
	free(mappings->mapped);
	free(mappings->ranges);
	free(mappings);
}

const struct mapping_counts *memory_mappings_counts(const struct memory_mappings *mappings)
{
	return &mappings->counts;
}

/* Removes the first entry of a list of unused ones, and returns its index. `next`: the entry after
 * it. */
static uint32_t take_unused(uint32_t *first, uint32_t next)
{
	const uint32_t taken = *first;

	*first = next;
	return taken;
}

/* Returns the index of an unused entry of an array, which has room for one more. */
#define TAKE_ENTRY(list, count, unused) \
	((unused) ? take_unused(&(unused), (list)[unused].next_unused) : (count)++)

/* Returns the index of the value at `key`; 0: there is none. */
static uint32_t exact_index(const struct address_map *map, uint64_t key)
{
	const struct address_cursor at = address_map_from(map, key);

	return address_cursor_at_end(&at) || address_cursor_key(&at) != key
		       ? 0
		       : address_cursor_value(&at);
}

/* ---- physical memory ---- */

static uint32_t add_physical(struct memory_mappings *mappings, uint64_t handle, uint64_t at_ns)
{
	uint32_t index;

	ARRAY_GROW(
		mappings->physical, mappings->physical_room, (size_t)mappings->physical_count + 1);
	index = TAKE_ENTRY(mappings->physical, mappings->physical_count, mappings->unused_physical);
	mappings->physical[index] = (struct physical_memory){
		.key = ++mappings->last_key, .handle = handle, .since_ns = at_ns, .references = 1
	};
	address_map_insert(&mappings->by_key, mappings->last_key, index);
	address_map_insert(&mappings->by_handle, handle, index);
	return index;
}

static void remove_physical(struct memory_mappings *mappings, uint32_t index)
{
	const struct physical_memory *memory = &mappings->physical[index];
	uint32_t removed;

	if (exact_index(&mappings->by_handle, memory->handle) == index)
		address_map_remove(&mappings->by_handle, memory->handle, &removed);
	address_map_remove(&mappings->by_key, memory->key, &removed);
	mappings->physical[index] = (struct physical_memory){
		.next_unused = mappings->unused_physical
	};
	mappings->unused_physical = index;
}

uint64_t memory_mappings_create(
	struct memory_mappings *mappings, uint64_t handle, uint64_t at_ns, uint64_t *replaced_key)
{
	const uint32_t before = exact_index(&mappings->by_handle, handle);
	struct physical_memory *memory = &mappings->physical[before];
	uint64_t late = 0;
	uint32_t index;

	*replaced_key = 0;
	if (before && memory->references) {
		late = memory->late_releases + memory->references;
		memory->references = 0;
		if (!memory->mappings) {
			*replaced_key = memory->imported ? 0 : memory->key;
			remove_physical(mappings, before);
		}
	}
	index = add_physical(mappings, handle, at_ns);
	mappings->physical[index].late_releases = late;
	return mappings->physical[index].key;
}

enum mapping_release memory_mappings_release(
	struct memory_mappings *mappings, uint64_t handle, uint64_t begin_ns, uint64_t *key)
{
	const uint32_t index = exact_index(&mappings->by_handle, handle);
	struct physical_memory *memory = &mappings->physical[index];
	bool imported;

	if (!index || !memory->references)
		return RELEASE_UNKNOWN;
	if (memory->late_releases && begin_ns < memory->since_ns) {
		memory->late_releases--;
		return RELEASE_KEPT;
	}
	if (--memory->references || memory->mappings)
		return RELEASE_KEPT;
	*key = memory->key;
	imported = memory->imported;
	remove_physical(mappings, index);
	return imported ? RELEASE_KEPT : RELEASE_FREED;
}

/* ---- mappings ---- */

static uint64_t range_begin(const struct memory_mappings *mappings, uint64_t address)
{
	uint32_t index;
	const struct reserved_range *range;

	if (!address_map_floor(&mappings->by_begin, address, &index))
		return 0;
	range = &mappings->ranges[index];
	return address - range->begin < range->bytes ? range->begin : 0;
}

static void reserve_range(struct memory_mappings *mappings, const struct trace_mapping *record)
{
	uint32_t index = exact_index(&mappings->by_begin, record->address);

	if (!index) {
		ARRAY_GROW(
			mappings->ranges, mappings->range_room, (size_t)mappings->range_count + 1);
		index = TAKE_ENTRY(mappings->ranges, mappings->range_count, mappings->unused_range);
		address_map_insert(&mappings->by_begin, record->address, index);
	}
	mappings->ranges[index] = (struct reserved_range){ record->address, record->bytes, 0 };
}

static void free_range(struct memory_mappings *mappings, uint64_t address)
{
	uint32_t index;

	if (!address_map_remove(&mappings->by_begin, address, &index))
		return;
	mappings->ranges[index].next_unused = mappings->unused_range;
	mappings->unused_range = index;
}

static void add_mapping(struct memory_mappings *mappings, const struct trace_mapping *record,
	struct memory_mapping *made)
{
	const uint32_t physical = exact_index(&mappings->by_handle, record->handle);
	uint32_t index;

	ARRAY_GROW(mappings->mapped, mappings->mapped_room, (size_t)mappings->mapped_count + 1);
	index = TAKE_ENTRY(mappings->mapped, mappings->mapped_count, mappings->unused_mapped);
	*made = (struct memory_mapping){ .address = record->address,
		.bytes = record->bytes,
		.key = physical ? mappings->physical[physical].key : 0,
		.reserved = range_begin(mappings, record->address),
		.device = record->call.device };
	mappings->mapped[index] = *made;
	address_map_insert(&mappings->by_address, record->address, index);
	mappings->counts.mapped++;
	mappings->counts.unknown_handles += !physical;
	if (physical)
		mappings->physical[physical].mappings++;
}

/* Adds a reference. The driver returns the handle that was used for the mapping. */
static void retain_handle(struct memory_mappings *mappings, const struct trace_mapping *record)
{
	const uint32_t index = exact_index(&mappings->by_handle, record->handle);

	if (index)
		mappings->physical[index].references++;
}

bool memory_mappings_record(struct memory_mappings *mappings, const struct trace_mapping *record,
	struct memory_mapping *made)
{
	switch (record->action) {
	case TRACE_MAPPING_RESERVE:
		reserve_range(mappings, record);
		break;
	case TRACE_MAPPING_UNRESERVE:
		free_range(mappings, record->address);
		break;
	case TRACE_MAPPING_RETAIN:
		retain_handle(mappings, record);
		break;
	case TRACE_MAPPING_IMPORT:
		mappings->physical[add_physical(mappings, record->handle, 0)].imported = true;
		break;
	case TRACE_MAPPING_MAP:
		add_mapping(mappings, record, made);
		return true;
	}
	return false;
}

/* One mapping of the memory ended. Returns its key if it is free now, else 0. */
static uint64_t drop_mapping(struct memory_mappings *mappings, uint64_t key)
{
	const uint32_t index = exact_index(&mappings->by_key, key);
	bool imported;

	if (!index || --mappings->physical[index].mappings || mappings->physical[index].references)
		return 0;
	imported = mappings->physical[index].imported;
	remove_physical(mappings, index);
	return imported ? 0 : key;
}

bool memory_mappings_end_next(struct memory_mappings *mappings, const struct trace_mapping *range,
	struct memory_mapping *ended, uint64_t *freed_key)
{
	const struct address_cursor at = address_map_from(&mappings->by_address, range->address);
	uint32_t index;

	if (address_cursor_at_end(&at) || address_cursor_key(&at) - range->address >= range->bytes)
		return false;
	address_map_remove(&mappings->by_address, address_cursor_key(&at), &index);
	*ended = mappings->mapped[index];
	mappings->mapped[index].next_unused = mappings->unused_mapped;
	mappings->unused_mapped = index;
	mappings->counts.unmapped++;
	mappings->counts.replaced += range->action == TRACE_MAPPING_MAP;
	*freed_key = drop_mapping(mappings, ended->key);
	return true;
}
