/* SPDX-License-Identifier: MIT */
#include "report/profile/memory_owners.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/hash_index.h"
#include <stdlib.h>
#include <string.h>

/* An allocation that is held. */
struct allocation {
	uint64_t address, bytes;
	uint64_t since_ns;
	uint32_t site;
	/* Releases by earlier owners of the address whose records are still to come. */
	uint32_t late_frees;
	uint16_t context; /* 0: unknown */
	uint8_t space;    /* enum address_space */
	bool live;
	bool physical; /* belongs to no context */
};

/* What an address identifies. The handle of an array may equal an address, and a tensor is in
 * device memory. */
enum address_space { SPACE_MEMORY, SPACE_ARRAY, SPACE_TENSOR };

/* Open addressing. A deletion moves later entries up, so there are no tombstones. */
struct allocation_table {
	struct allocation *allocations;
	size_t count, slots;     /* slots: a power of two */
	struct hash_index sites; /* of memory->sites, by level, node and stack */
	size_t site_room, level_room, oom_room, failed_room, device_room, fullest_room;
	uint64_t blocks_swept; /* by find_gaps */
	uint32_t recent_level; /* that find_level found last */
};

bool memory_is_device(uint32_t kind)
{
	return kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_DEVICE_STATIC;
}

const char *memory_kind_name(uint32_t kind)
{
	static const char *const names[] = { "unknown", "pageable", "pinned", "device", "array",
		"managed", "device static", "managed static", [MEMORY_TENSOR] = "tensor" };

	return names[kind <= MEMORY_TENSOR ? kind : 0];
}

static size_t home_slot(
	const struct allocation_table *table, uint64_t address, enum address_space space)
{
	return ((address >> 4 ^ space) * 0x9e3779b97f4a7c15u >> 20) & (table->slots - 1);
}

static inline struct allocation *find_allocation(
	const struct allocation_table *table, uint64_t address, enum address_space space)
{
	size_t i = home_slot(table, address, space);

	while (table->allocations[i].live &&
		(table->allocations[i].address != address || table->allocations[i].space != space))
		i = (i + 1) & (table->slots - 1);
	return &table->allocations[i];
}

static void grow_allocations(struct allocation_table *table)
{
	struct allocation *old = table->allocations;
	const size_t slots = table->slots;

	table->slots = slots ? slots * 2 : 256;
	table->allocations = xcalloc(table->slots * sizeof *table->allocations);
	for (size_t i = 0; i < slots; i++)
		if (old[i].live)
			*find_allocation(
				table, old[i].address, (enum address_space)old[i].space) = old[i];
	free(old);
}

static void remove_allocation(struct allocation_table *table, struct allocation *allocation)
{
	size_t hole = (size_t)(allocation - table->allocations), i = hole;

	for (;;) {
		size_t wanted;

		i = (i + 1) & (table->slots - 1);
		if (!table->allocations[i].live)
			break;
		wanted = home_slot(table, table->allocations[i].address,
			(enum address_space)table->allocations[i].space);
		if (((i - wanted) & (table->slots - 1)) < ((i - hole) & (table->slots - 1)))
			continue;
		table->allocations[hole] = table->allocations[i];
		hole = i;
	}
	table->allocations[hole].live = false;
	table->count--;
}

/* A machine has tens of GPUs. If a file names thousands, the rest count as one unknown device,
 * because levels are searched one by one. */
#define LEVELS_MAX 1024

static uint32_t find_level(struct memory_owners *memory, uint32_t kind, uint32_t device)
{
	uint32_t index = memory->tables->recent_level;

	if (index < memory->level_count && memory->levels[index].kind == kind &&
		memory->levels[index].device == device)
		return index;
	index = 0;
	while (index < memory->level_count &&
		(memory->levels[index].kind != kind || memory->levels[index].device != device))
		index++;
	if (index >= LEVELS_MAX && index == memory->level_count && device != UINT32_MAX)
		return find_level(memory, kind, UINT32_MAX);
	if (index == memory->level_count) {
		ARRAY_GROW(memory->levels, memory->tables->level_room, (size_t)index + 1);
		memory->levels[index].kind = kind;
		memory->levels[index].device = device;
		memory->levels[index].pool.unknown = memory->resumed && kind == MEMORY_TENSOR;
		memory->level_count++;
	}
	return memory->tables->recent_level = index;
}

static uint32_t add_site(struct memory_owners *memory, const struct memory_site *key)
{
	ARRAY_GROW(memory->sites, memory->tables->site_room, (size_t)memory->site_count + 1);
	memory->sites[memory->site_count] = *key;
	return memory->site_count++;
}

static uint32_t find_site(
	struct memory_owners *memory, uint32_t level, uint32_t node, uint32_t stack, bool is_pool)
{
	struct hash_index *index = &memory->tables->sites;
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)node << 32 | stack) ^ (level * 2u + is_pool));
	struct hash_slot *slot;

	hash_index_reserve(index);
	for (slot = hash_index_first(index, hash); slot->number;
		slot = hash_index_next(index, slot)) {
		const struct memory_site *site = &memory->sites[slot->number - 1];

		if (site->level == level && site->node == node && site->stack == stack &&
			site->is_pool == is_pool)
			return slot->number - 1;
	}
	hash_index_add(index, slot, hash, memory->site_count + 1);
	return add_site(
		memory, &(struct memory_site){
				.level = level, .node = node, .stack = stack, .is_pool = is_pool });
}

struct memory_owners *memory_owners_new(void)
{
	struct memory_owners *memory = xcalloc_cache_aligned(sizeof *memory);

	memory->tables = xcalloc_cache_aligned(sizeof *memory->tables);
	memory->end_serial = memory->active_serial = 1; /* no mark; sums since one begin with 0 */
	memory->mappings = memory_mappings_new();
	grow_allocations(memory->tables);
	return memory;
}

void memory_owners_free(struct memory_owners *memory)
{
	if (!memory)
		return;
	memory_mappings_free(memory->mappings);
	free(memory->tables->allocations);
	hash_index_free(&memory->tables->sites);
	free(memory->tables);
	free(memory->levels);
	free(memory->sites);
	free(memory->merged);
	free(memory->ooms);
	free(memory->failed);
	free(memory->devices);
	for (uint32_t i = 0; i < memory->fullest_count; i++)
		free(memory->fullest[i].held);
	free(memory->fullest);
	free(memory);
}

/* Notes what a site held at the last peak, before the first change after it. The same for the
 * last time that memory ran out. Without a change, the site still holds what it held then. */
static inline void note_peak_and_oom(struct memory_flow *flow, const struct memory_level *level)
{
	if (flow->peak_serial != level->serial) {
		flow->peak_serial = level->serial;
		flow->peak_held = flow->held;
	}
	if (flow->oom_serial != level->ooms) {
		flow->oom_serial = level->ooms;
		flow->oom_held = flow->held;
	}
}

/* Begins at 0 before the first change after the last mark. The sums up to the mark are not copied
 * here, because there may be a mark before each record. Reading sums that the last record has just
 * changed, in larger pieces than it wrote, would make the processor wait. */
static inline void begin_at_mark(struct memory_sums *since, uint64_t serial)
{
	if (since->serial != serial)
		*since = (struct memory_sums){ .serial = serial };
}

static inline void begin_level_at_marks(
	const struct memory_owners *memory, struct memory_level *level)
{
	if (level->flow.since_end.serial != memory->end_serial)
		level->pool.allocated_at_end = level->pool.allocated;
	begin_at_mark(&level->flow.since_end, memory->end_serial);
	begin_at_mark(&level->since_active, memory->active_serial);
}

/* Called before a change of a site and its level. */
static inline void begin_change(
	const struct memory_owners *memory, struct memory_site *site, struct memory_level *level)
{
	note_peak_and_oom(&site->flow, level);
	begin_at_mark(&site->flow.since_end, memory->end_serial);
	begin_level_at_marks(memory, level);
}

static inline void add_allocated(struct memory_sums *since, uint64_t bytes)
{
	since->alloc_bytes += bytes;
	since->allocs++;
	since->held += bytes;
}

static inline void add_freed(struct memory_sums *since, uint64_t bytes)
{
	since->free_bytes += bytes;
	since->frees++;
	since->held -= bytes;
}

void memory_owners_mark_end(struct memory_owners *memory, uint64_t at_ns)
{
	memory->end_serial++;
	memory->end_ns = at_ns;
}

void memory_owners_mark_active(struct memory_owners *memory)
{
	memory->active_serial++;
}

static void add_allocation(
	struct memory_owners *memory, uint32_t site_index, uint64_t bytes, uint64_t at_ns)
{
	struct memory_site *site = &memory->sites[site_index];
	struct memory_level *level = &memory->levels[site->level];

	begin_change(memory, site, level);
	for (struct memory_flow *flow = &site->flow; flow;
		flow = flow == &site->flow ? &level->flow : NULL) {
		flow->alloc_bytes += bytes;
		flow->allocs++;
		flow->held += bytes;
		add_allocated(&flow->since_end, bytes);
	}
	add_allocated(&level->since_active, bytes);
	if (site->flow.held > site->flow.held_max)
		site->flow.held_max = site->flow.held;
	if (level->flow.held <= level->flow.held_max)
		return;
	level->flow.held_max = level->flow.held;
	if (level->kind == MEMORY_TENSOR) /* its peak is that of the allocator's total */
		return;
	level->peak_ns = at_ns;
	level->serial++;
}

/* Releases the bytes of `allocation`; its entry stays. */
static void free_allocation(struct memory_owners *memory, const struct allocation *allocation,
	struct memory_change *change)
{
	struct memory_site *site = &memory->sites[allocation->site];
	struct memory_level *level = &memory->levels[site->level];

	begin_change(memory, site, level);
	for (struct memory_flow *flow = &site->flow; flow;
		flow = flow == &site->flow ? &level->flow : NULL) {
		flow->free_bytes += allocation->bytes;
		flow->frees++;
		flow->held -= allocation->bytes;
		add_freed(&flow->since_end, allocation->bytes);
	}
	add_freed(&level->since_active, allocation->bytes);
	change->address = change->freed_address = allocation->address;
	change->freed_bytes = allocation->bytes;
	change->freed_node = site->node;
	change->freed_kind = level->kind;
	change->freed_device = level->device;
	change->freed_site = allocation->site;
	change->freed_since_ns = allocation->since_ns;
	change->known = true;
}

/* Adds an entry to the table. An allocation that was held at the address is released. */
static void insert_allocation(struct memory_owners *memory, const struct allocation *allocated,
	struct memory_change *change)
{
	struct allocation *allocation;
	uint32_t late = 0;

	if (memory->tables->count * 2 >= memory->tables->slots)
		grow_allocations(memory->tables);
	allocation = find_allocation(
		memory->tables, allocated->address, (enum address_space)allocated->space);
	if (allocation->live) {
		free_allocation(memory, allocation, change);
		memory->counts.replaced++;
		late = allocation->late_frees + 1;
	} else {
		memory->tables->count++;
	}
	*allocation = *allocated;
	allocation->late_frees = late;
	allocation->live = true;
	add_allocation(memory, allocated->site, allocated->bytes, allocated->since_ns);
	change->address = allocated->address;
	change->allocated_bytes = allocated->bytes;
	change->site = allocated->site;
	change->known = true;
}

/* Marks the failed allocations that this one, as large and of the same memory, repeats. */
static void note_repeated(
	struct memory_owners *memory, const struct trace_memory *record, uint64_t end_ns)
{
	bool all = true;

	for (uint32_t i = memory->unrepeated_from; i < memory->failed_count; i++) {
		struct failed_allocation *failed = &memory->failed[i];

		if (!failed->succeeded_later && failed->requested_bytes <= record->bytes &&
			failed->device == record->call.device &&
			failed->kind == record->memory_kind) {
			failed->succeeded_later = true;
			failed->repeated_ns = end_ns;
		}
		all &= failed->succeeded_later;
		if (all)
			memory->unrepeated_from = i + 1;
	}
}

struct memory_change memory_owners_free_physical(struct memory_owners *memory, uint64_t key)
{
	struct memory_change change = { .kind = TRACE_MEMORY_UNKNOWN };
	struct allocation *allocation = find_allocation(memory->tables, key, SPACE_MEMORY);

	if (allocation->live) {
		free_allocation(memory, allocation, &change);
		remove_allocation(memory->tables, allocation);
	}
	return change;
}

/* Returns the key of memory made by cuMemCreate. */
static uint64_t create_physical(struct memory_owners *memory, const struct trace_memory *record,
	uint64_t end_ns, struct memory_change *change)
{
	uint64_t replaced;
	const uint64_t key = memory_mappings_create(
		memory->mappings, record->address, end_ns, &replaced);
	const struct memory_change made = *change;

	if (replaced) {
		*change = memory_owners_free_physical(memory, replaced);
		change->kind = made.kind;
		change->device = made.device;
		change->node = made.node;
		memory->counts.replaced++;
	}
	return key;
}

/* cuMemRelease: the memory is free, or other references or mappings are left. */
static struct memory_change release_physical(
	struct memory_owners *memory, const struct trace_memory *record, uint64_t begin_ns)
{
	uint64_t key;

	switch (memory_mappings_release(memory->mappings, record->address, begin_ns, &key)) {
	case RELEASE_FREED:
		return memory_owners_free_physical(memory, key);
	case RELEASE_UNKNOWN:
		memory->counts.unknown_frees++;
		break;
	case RELEASE_KEPT:
		break;
	}
	return (struct memory_change){ .kind = record->memory_kind };
}

struct memory_change memory_owners_record_alloc(struct memory_owners *memory,
	const struct trace_memory *record, uint32_t node, uint64_t end_ns)
{
	const uint32_t kind = record->memory_kind < MEMORY_KINDS ? record->memory_kind
								 : TRACE_MEMORY_UNKNOWN;
	struct memory_change change = { .kind = kind, .device = record->call.device, .node = node };
	const uint32_t site = find_site(memory, find_level(memory, kind, record->call.device), node,
		record->call.stack, record->flags & TRACE_MEMORY_POOL);
	struct allocation allocated = { .address = record->address,
		.bytes = record->bytes,
		.since_ns = end_ns,
		.site = site,
		.context = (uint16_t)(record->flags >> TRACE_MEMORY_CONTEXT_SHIFT),
		.space = kind == TRACE_MEMORY_ARRAY ? SPACE_ARRAY : SPACE_MEMORY,
		.physical = kind == TRACE_MEMORY_DEVICE && record->flags & TRACE_MEMORY_MAPPED };

	if (record->call.result != 0 || record->address == 0) {
		change.failed = record->call.result != 0;
		memory->sites[site].flow.failed += change.failed;
		memory->levels[memory->sites[site].level].flow.failed += change.failed;
	} else {
		if (allocated.physical)
			allocated.address = create_physical(memory, record, end_ns, &change);
		insert_allocation(memory, &allocated, &change);
		if (memory->unrepeated_from < memory->failed_count)
			note_repeated(memory, record, end_ns);
	}
	return change;
}

struct memory_change memory_owners_record_free(
	struct memory_owners *memory, const struct trace_memory *record, uint64_t begin_ns)
{
	struct memory_change change = { .kind = record->memory_kind };
	const enum address_space space = record->memory_kind == TRACE_MEMORY_ARRAY ? SPACE_ARRAY
										   : SPACE_MEMORY;
	struct allocation *allocation = find_allocation(memory->tables, record->address, space);

	if (record->address == 0) {
		memory->counts.null_frees++;
	} else if (record->call.result != 0) {
		memory->counts.failed_frees++;
		change.failed = true;
	} else if (record->memory_kind == TRACE_MEMORY_UNKNOWN &&
		   record->flags & TRACE_MEMORY_MAPPED) {
		change = release_physical(memory, record, begin_ns);
	} else if (!allocation->live) {
		memory->counts.unknown_frees++;
	} else if (allocation->late_frees && begin_ns < allocation->since_ns) {
		/* Another thread allocated the address before this call's record was written.
		 * The release was counted then. */
		allocation->late_frees--;
	} else {
		free_allocation(memory, allocation, &change);
		remove_allocation(memory->tables, allocation);
	}
	return change;
}

/* Whether releasing the context frees `allocation`: it is of that context and device. */
static bool is_of_context(const struct memory_owners *memory, const struct allocation *allocation,
	const struct trace_memory *record)
{
	const uint16_t context = (uint16_t)(record->flags >> TRACE_MEMORY_CONTEXT_SHIFT);

	return allocation->live && allocation->space != SPACE_TENSOR && !allocation->physical &&
	       memory->levels[memory->sites[allocation->site].level].device ==
		       record->call.device &&
	       (!context || !allocation->context || allocation->context == context);
}

bool memory_owners_free_context(struct memory_owners *memory, const struct trace_memory *record,
	size_t *at, struct memory_change *change)
{
	struct allocation_table *table = memory->tables;

	if (record->call.result != 0)
		return false;
	while (*at < table->slots && !is_of_context(memory, &table->allocations[*at], record))
		++*at;
	if (*at == table->slots)
		return false;
	*change = (struct memory_change){ .kind = TRACE_MEMORY_UNKNOWN };
	free_allocation(memory, &table->allocations[*at], change);
	/* another entry may have moved to this slot */
	remove_allocation(table, &table->allocations[*at]);
	return true;
}

/* The device memory held on `device`, in any node. */
static uint64_t device_held(const struct memory_owners *memory, uint32_t device)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].device == device && memory_is_device(memory->levels[i].kind))
			held += memory->levels[i].flow.held;
	return held;
}

/* Stores what the allocator reports about itself. */
static void update_pool(
	struct memory_owners *memory, struct memory_level *level, const struct trace_tensor *record)
{
	struct memory_pool *pool = &level->pool;

	pool->allocated = record->allocated;
	pool->reserved = record->reserved;
	pool->outside_allocator = (int64_t)(device_held(memory, level->device) - record->reserved);
	if (pool->reserved > pool->reserved_peak_bytes)
		pool->reserved_peak_bytes = pool->reserved;
}

static void free_tensor(struct memory_owners *memory, const struct trace_tensor *record,
	struct memory_change *change)
{
	struct allocation *allocation = find_allocation(
		memory->tables, record->address, SPACE_TENSOR);

	if (allocation->live) {
		memory->counts.tensor_differences += allocation->bytes != -(uint64_t)record->bytes;
		free_allocation(memory, allocation, change);
		remove_allocation(memory->tables, allocation);
	} else {
		memory->counts.unknown_tensor_frees += !memory->resumed;
	}
}

/* Returns what of the allocator's total was allocated in no record. */
static uint64_t unrecorded_tensors(const struct memory_level *level)
{
	return level->pool.allocated > level->flow.held ? level->pool.allocated - level->flow.held
							: 0;
}

static void note_pool_peak(struct memory_level *level, uint32_t node, uint64_t at_ns)
{
	struct memory_pool *pool = &level->pool;

	level->peak_ns = at_ns;
	level->serial++;
	pool->held_at_peak = level->flow.held;
	pool->before_at_peak = unrecorded_tensors(level);
	pool->peak = pool->allocated;
	pool->peak_node = node;
	pool->reserved_at_peak = pool->reserved;
	pool->outside_at_peak = pool->outside_allocator;
}

void memory_owners_record_tensor(struct memory_owners *memory, const struct trace_tensor *record,
	uint32_t node, uint64_t at_ns, struct memory_change *change)
{
	const uint32_t index = find_level(memory, MEMORY_TENSOR, record->device);
	struct memory_pool *pool = &memory->levels[index].pool;

	change->kind = MEMORY_TENSOR;
	change->device = record->device;
	change->node = node;
	memory->counts.tensors++;
	begin_level_at_marks(memory, &memory->levels[index]);
	memory->levels[index].last_ns = at_ns;
	memory->counts.tensor_differences += !pool->unknown &&
					     pool->allocated + (uint64_t)record->bytes !=
						     record->allocated;
	pool->unknown = false;
	if (record->head.flags & TRACE_TENSOR_LEVEL) {
		change->known = true;
	} else if (record->bytes < 0) {
		free_tensor(memory, record, change);
	} else {
		const struct allocation allocated = { .address = record->address,
			.bytes = (uint64_t)record->bytes,
			.since_ns = at_ns,
			.site = find_site(memory, index, node, record->stack, false),
			.space = SPACE_TENSOR };

		insert_allocation(memory, &allocated, change);
	}
	update_pool(memory, &memory->levels[index], record);
	if (pool->allocated > pool->peak)
		note_pool_peak(&memory->levels[index], node, at_ns);
}

/* ---- running out of memory ---- */

/* A segment or a tensor, for find_gaps. */
struct block {
	uint64_t address, bytes;
	bool is_tensor;
};

/* By address. A segment precedes the tensor at its begin. */
static int by_block_address(const void *left, const void *right)
{
	const struct block *a = left, *b = right;
	const int order = COMPARE(a->address, b->address);

	return order ? order : a->is_tensor - b->is_tensor;
}

/* Adds the segment that ends at `end`. `at`: the end of its last tensor. `found` is what is free in
 * it before that. */
static void add_segment(
	struct memory_gaps *gaps, const struct memory_gaps *found, uint64_t at, uint64_t end)
{
	const uint64_t last = end > at ? end - at : 0;

	gaps->segments++;
	gaps->free_bytes += found->free_bytes + last;
	gaps->gaps += found->gaps + (last > 0);
	gaps->largest = max_u64(gaps->largest, max_u64(found->largest, last));
}

/* Adds up what is free in segments with tensors. `blocks` are sorted. */
static struct memory_gaps sweep_blocks(const struct block *blocks, size_t count)
{
	struct memory_gaps gaps = { .known = true }, found = { .known = false };
	uint64_t at = 0, end = 0;
	bool has_tensors = false;

	for (size_t i = 0; i < count; i++) {
		const struct block *block = &blocks[i];

		if (block->is_tensor && block->address >= at && block->address < end) {
			has_tensors = true;
			found.gaps += block->address > at;
			found.free_bytes += block->address - at;
			found.largest = max_u64(found.largest, block->address - at);
			at = block->address + block->bytes;
		} else if (!block->is_tensor) {
			if (has_tensors)
				add_segment(&gaps, &found, at, end);
			has_tensors = false;
			found = (struct memory_gaps){ .known = false };
			at = block->address;
			end = at + block->bytes;
		}
	}
	if (has_tensors)
		add_segment(&gaps, &found, at, end);
	return gaps;
}

/* All times that memory ran out together may look at so many blocks. */
#define SWEPT_MAX (UINT64_C(1) << 25)

/* Returns what is free inside the segments of `device`. */
static struct memory_gaps find_gaps(struct memory_owners *memory, uint32_t device)
{
	struct allocation_table *table = memory->tables;
	struct memory_gaps gaps;
	struct block *blocks;
	size_t count = 0;

	table->blocks_swept += table->slots;
	if (table->blocks_swept > SWEPT_MAX)
		return (struct memory_gaps){ .known = false };
	blocks = xcalloc((table->count + 1) * sizeof *blocks);
	for (size_t i = 0; i < table->slots; i++) {
		const struct allocation *allocation = &table->allocations[i];
		const struct memory_level *level;

		if (!allocation->live || allocation->space == SPACE_ARRAY)
			continue;
		level = &memory->levels[memory->sites[allocation->site].level];
		if (level->device == device &&
			(level->kind == MEMORY_TENSOR || memory_is_device(level->kind)))
			blocks[count++] = (struct block){ allocation->address, allocation->bytes,
				level->kind == MEMORY_TENSOR };
	}
	qsort(blocks, count, sizeof *blocks, by_block_address);
	gaps = sweep_blocks(blocks, count);
	free(blocks);
	return gaps;
}

struct memory_oom *memory_owners_oom(struct memory_owners *memory,
	const struct trace_tensor *record, uint32_t node, uint64_t at_ns)
{
	const uint32_t index = find_level(memory, MEMORY_TENSOR, record->device),
		       site = find_site(memory, index, node, record->stack, false);
	struct memory_level *level = &memory->levels[index];

	memory->counts.ooms++;
	memory->counts.tensor_differences += !memory->resumed &&
					     level->pool.allocated != record->allocated;
	update_pool(memory, level, record);
	level->ooms++;
	level->pool.before_at_oom = unrecorded_tensors(level);
	level->flow.oom_held = level->flow.held;
	level->flow.failed++;
	memory->sites[site].flow.failed++;
	if (memory->oom_count >= MEMORY_OOMS_MAX)
		return NULL;
	ARRAY_GROW(memory->ooms, memory->tables->oom_room, (size_t)memory->oom_count + 1);
	memory->ooms[memory->oom_count] = (struct memory_oom){ .time_ns = at_ns,
		.requested_bytes = (uint64_t)record->bytes,
		.allocated = record->allocated,
		.reserved = record->reserved,
		.held = device_held(memory, record->device),
		.outside_allocator = level->pool.outside_allocator,
		.device = record->device,
		.node = node,
		.stack = record->stack,
		.gaps = find_gaps(memory, record->device) };
	return &memory->ooms[memory->oom_count++];
}

/* Notes that memory ran out on the levels that share it with `kind`: all device memory of a device,
 * else the level itself. Returns what they held. */
static uint64_t note_exhausted_levels(struct memory_owners *memory, uint32_t kind, uint32_t device)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++) {
		struct memory_level *level = &memory->levels[i];

		if (level->device != device ||
			(level->kind != kind &&
				!(memory_is_device(level->kind) && memory_is_device(kind))))
			continue;
		level->ooms++;
		level->flow.oom_held = level->flow.held;
		held += level->flow.held;
	}
	return held;
}

struct failed_allocation *memory_owners_failed(struct memory_owners *memory,
	const struct trace_memory *record, uint32_t node, uint64_t at_ns)
{
	const uint32_t kind = record->memory_kind < MEMORY_KINDS ? record->memory_kind
								 : TRACE_MEMORY_UNKNOWN;
	const uint64_t held = note_exhausted_levels(memory, kind, record->call.device);

	memory->counts.failed_allocations++;
	if (memory->failed_count >= MEMORY_OOMS_MAX)
		return NULL;
	array_grow_zeroed(&memory->failed, &memory->tables->failed_room,
		(size_t)memory->failed_count + 1, sizeof *memory->failed);
	memory->failed[memory->failed_count] = (struct failed_allocation){ .time_ns = at_ns,
		.requested_bytes = record->bytes,
		.held = held,
		.kind = kind,
		.device = record->call.device,
		.node = node,
		.api = record->call.api,
		.stack = record->call.stack };
	return &memory->failed[memory->failed_count++];
}

void memory_owners_released(struct memory_owners *memory, uint32_t tid, uint64_t bytes)
{
	struct failed_allocation *failed = memory->failed_count
						   ? &memory->failed[memory->failed_count - 1]
						   : NULL;

	if (!failed || failed->tid != tid || failed->succeeded_later)
		return;
	failed->released_bytes += bytes;
	failed->releases++;
}

/* Returns whether `device` has no entry in memory->devices. */
static bool is_new_device(const struct memory_owners *memory, uint32_t device)
{
	for (uint32_t i = 0; i < memory->device_count; i++)
		if (memory->devices[i].device == device)
			return false;
	return memory->device_count < LEVELS_MAX;
}

/* ---- samples of a GPU's memory ---- */

bool memory_is_on_device(uint32_t kind)
{
	return memory_is_device(kind) || kind == TRACE_MEMORY_ARRAY;
}

static uint64_t held_on_device(const struct memory_owners *memory, uint32_t device)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].device == device &&
			memory_is_on_device(memory->levels[i].kind))
			held += memory->levels[i].flow.held;
	return held;
}

/* Returns the entry of `device`, which is new if it has no samples. NULL: there are too many. */
static struct device_sample *fullest_of(struct memory_owners *memory, uint32_t device)
{
	for (uint32_t i = 0; i < memory->fullest_count; i++)
		if (memory->fullest[i].device == device)
			return &memory->fullest[i];
	if (memory->fullest_count == LEVELS_MAX)
		return NULL;
	ARRAY_GROW(
		memory->fullest, memory->tables->fullest_room, (size_t)memory->fullest_count + 1);
	memory->fullest[memory->fullest_count].device = device;
	return &memory->fullest[memory->fullest_count++];
}

/* Notes what each site holds now. */
static void keep_held(const struct memory_owners *memory, struct device_sample *sample)
{
	free(sample->held);
	sample->held_count = memory->site_count;
	sample->held = xcalloc(((size_t)memory->site_count + 1) * sizeof *sample->held);
	for (uint32_t i = 0; i < memory->site_count; i++)
		sample->held[i] = memory->sites[i].flow.held;
}

void memory_owners_sample(
	struct memory_owners *memory, const struct trace_device_memory *record, uint64_t at_ns)
{
	struct device_sample *sample = fullest_of(memory, record->device);
	const struct memory_level *tensors = memory_owners_tensors(memory, record->device);
	const uint64_t held = held_on_device(memory, record->device);

	if (!sample)
		return;
	if (record->process_bytes > held) {
		sample->latest_context_bytes = record->process_bytes - held;
		sample->latest_context_ns = at_ns;
	}
	if (sample->samples++ && (record->free_bytes > sample->free_bytes ||
					 (record->free_bytes == sample->free_bytes &&
						 record->process_bytes <= sample->process_bytes)))
		return;
	sample->at_ns = at_ns;
	sample->free_bytes = record->free_bytes;
	sample->total_bytes = record->total_bytes;
	sample->process_bytes = record->process_bytes;
	sample->reason = record->reason;
	sample->context_bytes = sample->latest_context_bytes;
	sample->context_at_ns = sample->latest_context_ns;
	sample->tensors = tensors ? tensors->pool.allocated : 0;
	sample->reserved = tensors ? tensors->pool.reserved : 0;
	keep_held(memory, sample);
}

void memory_owners_device_memory(
	struct memory_owners *memory, const struct trace_device_memory *record, uint32_t tid)
{
	struct failed_allocation *failed = memory->failed_count
						   ? &memory->failed[memory->failed_count - 1]
						   : NULL;

	if (record->reason == TRACE_SAMPLE_FAILED && failed && failed->tid == tid &&
		failed->device == record->device) {
		failed->free_bytes = record->free_bytes;
		failed->total_bytes = record->total_bytes;
	} else if (record->reason == TRACE_SAMPLE_FIRST && is_new_device(memory, record->device)) {
		ARRAY_GROW(memory->devices, memory->tables->device_room,
			(size_t)memory->device_count + 1);
		memory->devices[memory->device_count++] = (struct device_memory){
			record->free_bytes, record->total_bytes,
			device_held(memory, record->device), record->device
		};
	}
}

const struct failed_allocation *memory_owners_last_failed(const struct memory_owners *memory)
{
	for (uint32_t i = memory->failed_count; i-- > 0;)
		if (!memory->failed[i].succeeded_later)
			return &memory->failed[i];
	return NULL;
}

/* Forgets the tensors that are held: it is not known whether they still are. */
static void drop_tensors(struct memory_owners *memory)
{
	struct allocation_table *table = memory->tables;

	for (size_t i = 0; i < table->slots;) {
		struct allocation *allocation = &table->allocations[i];
		struct memory_site *site;
		struct memory_level *level;

		if (!allocation->live || allocation->space != SPACE_TENSOR) {
			i++;
			continue;
		}
		site = &memory->sites[allocation->site];
		level = &memory->levels[site->level];
		begin_change(memory, site, level);
		site->flow.held -= allocation->bytes;
		site->flow.since_end.held -= allocation->bytes;
		level->flow.held -= allocation->bytes;
		level->flow.since_end.held -= allocation->bytes;
		level->since_active.held -= allocation->bytes;
		/* another entry may have moved to this slot */
		remove_allocation(table, allocation);
	}
}

void memory_owners_resume(struct memory_owners *memory)
{
	drop_tensors(memory);
	memory->resumed = true;
	for (uint32_t i = 0; i < memory->level_count; i++)
		memory->levels[i].pool.unknown = memory->levels[i].kind == MEMORY_TENSOR;
}

const struct memory_level *memory_owners_tensors(
	const struct memory_owners *memory, uint32_t device)
{
	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == MEMORY_TENSOR && memory->levels[i].device == device)
			return &memory->levels[i];
	return NULL;
}

/* Adds what was allocated in no record to what the records have. */
static void finish_tensor_level(struct memory_level *level)
{
	struct memory_pool *pool = &level->pool;

	pool->before_at_end = pool->unknown || pool->allocated_at_end < level->flow.held
				      ? 0
				      : pool->allocated_at_end - level->flow.held;
	level->flow.at_peak = pool->held_at_peak + pool->before_at_peak;
	level->flow.at_oom += pool->before_at_oom;
	level->flow.held += pool->before_at_end;
	if (level->flow.held_max < level->flow.at_peak)
		level->flow.held_max = level->flow.at_peak;
}

/* Returns what `flow` had come to at the last mark. */
static struct memory_sums sums_at_mark(
	const struct memory_flow *flow, const struct memory_sums *since)
{
	return (struct memory_sums){ .alloc_bytes = flow->alloc_bytes - since->alloc_bytes,
		.free_bytes = flow->free_bytes - since->free_bytes,
		.allocs = flow->allocs - since->allocs,
		.frees = flow->frees - since->frees,
		.held = flow->held - since->held };
}

/* Replaces what a site has come to by what it had come to at the end. */
static void move_site_to_end(const struct memory_owners *memory, struct memory_flow *flow)
{
	struct memory_sums end;

	begin_at_mark(&flow->since_end, memory->end_serial);
	end = sums_at_mark(flow, &flow->since_end);
	flow->alloc_bytes = end.alloc_bytes;
	flow->free_bytes = end.free_bytes;
	flow->allocs = end.allocs;
	flow->frees = end.frees;
	flow->held = end.held;
}

/* Sets what a level held at the end, and what came after it. */
static void move_level_to_end(const struct memory_owners *memory, struct memory_level *level)
{
	const struct memory_sums *end = &level->flow.since_end, *active = &level->since_active;

	begin_level_at_marks(memory, level);
	level->at_end = sums_at_mark(&level->flow, end);
	level->after_end = (struct memory_sums){
		.alloc_bytes = end->alloc_bytes - active->alloc_bytes,
		.free_bytes = end->free_bytes - active->free_bytes,
		.allocs = end->allocs - active->allocs,
		.frees = end->frees - active->frees
	};
	level->shutdown = *active;
	level->shutdown.held = level->shutdown.serial = 0;
	level->flow.held = level->at_end.held;
}

void memory_owners_finish(struct memory_owners *memory)
{
	if (memory->end_serial == 1) { /* never marked: everything came before the end */
		memory_owners_mark_end(memory, UINT64_MAX);
		memory_owners_mark_active(memory);
	}
	for (uint32_t i = 0; i < memory->site_count; i++) {
		struct memory_flow *flow = &memory->sites[i].flow;
		const struct memory_level *level = &memory->levels[memory->sites[i].level];

		flow->at_peak = flow->peak_serial == level->serial ? flow->peak_held : flow->held;
		if (level->ooms)
			flow->at_oom = flow->oom_serial == level->ooms ? flow->oom_held
								       : flow->held;
		move_site_to_end(memory, &memory->sites[i].flow);
	}
	for (uint32_t i = 0; i < memory->level_count; i++) {
		struct memory_flow *flow = &memory->levels[i].flow;

		move_level_to_end(memory, &memory->levels[i]);
		flow->at_peak = flow->held_max;
		flow->at_oom = flow->oom_held;
		if (memory->levels[i].kind == MEMORY_TENSOR)
			finish_tensor_level(&memory->levels[i]);
	}
}

void memory_owners_each_live(const struct memory_owners *memory,
	void (*visit)(void *context, const struct live_allocation *allocation), void *context)
{
	const struct allocation_table *table = memory->tables;

	for (size_t i = 0; i < table->slots; i++)
		if (table->allocations[i].live)
			visit(context,
				&(struct live_allocation){ .address = table->allocations[i].address,
					.bytes = table->allocations[i].bytes,
					.since_ns = table->allocations[i].since_ns,
					.site = table->allocations[i].site });
}
