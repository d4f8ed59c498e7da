/* SPDX-License-Identifier: MIT */
#include "report/profile/memory_owners.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* One that is held. */
struct held {
	uint64_t address, bytes;
	uint64_t since_ns;
	uint32_t site;
	uint32_t late_frees; /* releases of earlier owners of the address that are still to be seen */
	uint16_t context;    /* 0: not known */
	uint8_t space;       /* enum space */
	bool live;
	bool physical; /* no context's */
};

/* What an address is one of: a handle of an array may equal an address, and a tensor lies in device memory. */
enum space { SPACE_MEMORY, SPACE_ARRAY, SPACE_TENSOR };

/* Open addressing with tombless deletion (later entries move up). */
struct memory_table {
	struct held *held;
	size_t count, slots;  /* slots: a power of two */
	uint32_t *site_slots; /* of sites by what they are */
	size_t site_slot_count, site_room, level_room, oom_room;
};

bool memory_is_device(uint32_t kind)
{
	return kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_DEVICE_STATIC;
}

const char *memory_kind_name(uint32_t kind)
{
	static const char *const names[] = { "unknown", "pageable", "pinned", "device", "array", "managed",
		"device static", "managed static", [MEMORY_TENSOR] = "tensor" };

	return names[kind <= MEMORY_TENSOR ? kind : 0];
}

static size_t home(const struct memory_table *table, uint64_t address, enum space space)
{
	return ((address >> 4 ^ space) * 0x9e3779b97f4a7c15u >> 20) & (table->slots - 1);
}

static struct held *find(const struct memory_table *table, uint64_t address, enum space space)
{
	size_t i = home(table, address, space);

	while (table->held[i].live && (table->held[i].address != address || table->held[i].space != space))
		i = (i + 1) & (table->slots - 1);
	return &table->held[i];
}

static void widen(struct memory_table *table)
{
	struct held *old = table->held;
	const size_t slots = table->slots;

	table->slots = slots ? slots * 2 : 256;
	table->held = need(table->slots * sizeof *table->held);
	for (size_t i = 0; i < slots; i++)
		if (old[i].live)
			*find(table, old[i].address, (enum space)old[i].space) = old[i];
	free(old);
}

static void take_out(struct memory_table *table, struct held *held)
{
	size_t hole = (size_t)(held - table->held), i = hole;

	for (;;) {
		size_t wanted;

		i = (i + 1) & (table->slots - 1);
		if (!table->held[i].live)
			break;
		wanted = home(table, table->held[i].address, (enum space)table->held[i].space);
		if (((i - wanted) & (table->slots - 1)) < ((i - hole) & (table->slots - 1)))
			continue;
		table->held[hole] = table->held[i];
		hole = i;
	}
	table->held[hole].live = false;
	table->count--;
}

/* A machine has tens of GPUs. Of a file that names thousands, the rest are one device that is not known: levels are looked
 * through one by one. */
#define LEVELS_MOST 1024

static uint32_t level_of(struct memory *memory, uint32_t kind, uint32_t device)
{
	uint32_t index = 0;

	while (index < memory->level_count &&
		(memory->levels[index].kind != kind || memory->levels[index].device != device))
		index++;
	if (index >= LEVELS_MOST && index == memory->level_count && device != UINT32_MAX)
		return level_of(memory, kind, UINT32_MAX);
	if (index == memory->level_count) {
		grow(&memory->levels, &memory->tables->level_room, (size_t)index + 1, sizeof *memory->levels);
		memory->levels[index].kind = kind;
		memory->levels[index].device = device;
		memory->levels[index].pool.unknown = memory->resumed && kind == MEMORY_TENSOR;
		memory->level_count++;
	}
	return index;
}

static uint32_t *site_slot(const struct memory *memory, uint32_t level, uint32_t node, uint32_t stack)
{
	const struct memory_table *tables = memory->tables;
	uint64_t hash = ((uint64_t)node << 32 | stack) * 0x9e3779b97f4a7c15u + level;
	size_t i = (hash ^ hash >> 29) & (tables->site_slot_count - 1);

	for (;; i = (i + 1) & (tables->site_slot_count - 1)) {
		const uint32_t index = tables->site_slots[i];
		const struct memory_site *site = index ? &memory->sites[index - 1] : NULL;

		if (!site || (site->level == level && site->node == node && site->stack == stack))
			return &tables->site_slots[i];
	}
}

static void widen_sites(struct memory *memory)
{
	struct memory_table *tables = memory->tables;

	free(tables->site_slots);
	tables->site_slot_count = tables->site_slot_count ? tables->site_slot_count * 2 : 64;
	tables->site_slots = need(tables->site_slot_count * sizeof *tables->site_slots);
	for (uint32_t i = 0; i < memory->site_count; i++)
		*site_slot(memory, memory->sites[i].level, memory->sites[i].node, memory->sites[i].stack) = i + 1;
}

static uint32_t site_of(struct memory *memory, uint32_t level, uint32_t node, uint32_t stack)
{
	uint32_t *slot = site_slot(memory, level, node, stack);

	if (*slot)
		return *slot - 1;
	if ((size_t)(memory->site_count + 1) * 2 > memory->tables->site_slot_count) {
		widen_sites(memory);
		slot = site_slot(memory, level, node, stack);
	}
	grow(&memory->sites, &memory->tables->site_room, (size_t)memory->site_count + 1, sizeof *memory->sites);
	memory->sites[memory->site_count].level = level;
	memory->sites[memory->site_count].node = node;
	memory->sites[memory->site_count].stack = stack;
	*slot = ++memory->site_count;
	return memory->site_count - 1;
}

struct memory *memory_new(void)
{
	struct memory *memory = need(sizeof *memory);

	memory->tables = need(sizeof *memory->tables);
	widen(memory->tables);
	widen_sites(memory);
	return memory;
}

void memory_free(struct memory *memory)
{
	if (!memory)
		return;
	free(memory->tables->held);
	free(memory->tables->site_slots);
	free(memory->tables);
	free(memory->levels);
	free(memory->sites);
	free(memory->merged);
	free(memory->ooms);
	free(memory);
}

/* What a site held at the peak is what it holds, unless that has changed since: so note it before the first change
 * after a new peak. The same for the last time that memory ran out. */
static void note_moments(struct memory_flow *flow, const struct memory_level *level)
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

static void take(struct memory *memory, uint32_t site_index, uint64_t bytes, uint64_t at_ns)
{
	struct memory_site *site = &memory->sites[site_index];
	struct memory_level *level = &memory->levels[site->level];

	note_moments(&site->flow, level);
	for (struct memory_flow *flow = &site->flow; flow; flow = flow == &site->flow ? &level->flow : NULL) {
		flow->alloc_bytes += bytes;
		flow->allocs++;
		flow->held += bytes;
	}
	if (site->flow.held > site->flow.most)
		site->flow.most = site->flow.held;
	if (level->flow.held > level->flow.most) {
		level->flow.most = level->flow.held;
		level->peak_ns = at_ns;
		level->serial++;
	}
}

/* Gives back what `held` is. */
static void give(struct memory *memory, const struct held *held, struct memory_change *change)
{
	struct memory_site *site = &memory->sites[held->site];
	struct memory_level *level = &memory->levels[site->level];

	note_moments(&site->flow, level);
	for (struct memory_flow *flow = &site->flow; flow; flow = flow == &site->flow ? &level->flow : NULL) {
		flow->free_bytes += held->bytes;
		flow->frees++;
		flow->held -= held->bytes;
	}
	change->given = held->bytes;
	change->given_node = site->node;
	change->given_kind = level->kind;
	change->given_device = level->device;
	change->known = true;
}

/* Puts it into the map; what was held there is given back. */
static void put_in(struct memory *memory, const struct held *taken, struct memory_change *change)
{
	struct held *held;
	uint32_t late = 0;

	if (memory->tables->count * 2 >= memory->tables->slots)
		widen(memory->tables);
	held = find(memory->tables, taken->address, (enum space)taken->space);
	if (held->live) {
		give(memory, held, change);
		memory->counts.replaced++;
		late = held->late_frees + 1;
	} else {
		memory->tables->count++;
	}
	*held = *taken;
	held->late_frees = late;
	held->live = true;
	take(memory, taken->site, taken->bytes, taken->since_ns);
	change->taken = taken->bytes;
	change->known = true;
}

struct memory_change memory_alloc(
	struct memory *memory, const struct trace_memory *record, uint32_t node, uint64_t end_ns)
{
	const uint32_t kind = record->memory_kind < MEMORY_KINDS ? record->memory_kind : TRACE_MEMORY_UNKNOWN;
	struct memory_change change = { .kind = kind, .device = record->call.device, .node = node };
	const uint32_t site = site_of(memory, level_of(memory, kind, record->call.device), node, record->call.stack);
	const struct held taken = { .address = record->address,
		.bytes = record->bytes,
		.since_ns = end_ns,
		.site = site,
		.context = (uint16_t)(record->flags >> TRACE_MEMORY_CONTEXT),
		.space = kind == TRACE_MEMORY_ARRAY ? SPACE_ARRAY : SPACE_MEMORY,
		.physical = kind == TRACE_MEMORY_DEVICE && record->flags & TRACE_MEMORY_MAPPED };

	if (record->call.result != 0 || record->address == 0) {
		change.failed = record->call.result != 0;
		memory->sites[site].flow.failed += change.failed;
		memory->levels[memory->sites[site].level].flow.failed += change.failed;
	} else {
		put_in(memory, &taken, &change);
	}
	return change;
}

struct memory_change memory_release(struct memory *memory, const struct trace_memory *record, uint64_t begin_ns)
{
	struct memory_change change = { .kind = record->memory_kind };
	const enum space space = record->memory_kind == TRACE_MEMORY_ARRAY ? SPACE_ARRAY : SPACE_MEMORY;
	struct held *held = find(memory->tables, record->address, space);

	if (record->address == 0) {
		memory->counts.null_frees++;
	} else if (record->call.result != 0) {
		memory->counts.failed_frees++;
		change.failed = true;
	} else if (!held->live) {
		memory->counts.unknown_frees++;
	} else if (held->late_frees && begin_ns < held->since_ns) {
		/* Another thread was given the address before this call's record was written; it has counted as
		 * released then. */
		held->late_frees--;
	} else {
		give(memory, held, &change);
		take_out(memory->tables, held);
	}
	return change;
}

/* What a context had on a device goes with it. */
static bool goes_with(const struct memory *memory, const struct held *held, const struct trace_memory *record)
{
	const uint16_t context = (uint16_t)(record->flags >> TRACE_MEMORY_CONTEXT);

	return held->live && held->space != SPACE_TENSOR && !held->physical &&
	       memory->levels[memory->sites[held->site].level].device == record->call.device &&
	       (!context || !held->context || held->context == context);
}

bool memory_release_next(struct memory *memory, const struct trace_memory *record, size_t *at, struct memory_change *change)
{
	struct memory_table *table = memory->tables;

	if (record->call.result != 0)
		return false;
	while (*at < table->slots && !goes_with(memory, &table->held[*at], record))
		++*at;
	if (*at == table->slots)
		return false;
	*change = (struct memory_change){ .kind = TRACE_MEMORY_UNKNOWN };
	give(memory, &table->held[*at], change);
	take_out(table, &table->held[*at]); /* another may have come to its place */
	return true;
}

/* Device memory that is held on a device, whoever took it. */
static uint64_t device_held(const struct memory *memory, uint32_t device)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].device == device && memory_is_device(memory->levels[i].kind))
			held += memory->levels[i].flow.held;
	return held;
}

/* What the allocator says of itself. */
static void hear(struct memory *memory, struct memory_level *level, const struct trace_tensor *record)
{
	struct memory_pool *pool = &level->pool;

	pool->allocated = record->allocated;
	pool->reserved = record->reserved;
	pool->outside = (int64_t)(device_held(memory, level->device) - record->reserved);
	if (pool->reserved > pool->reserved_most)
		pool->reserved_most = pool->reserved;
}

static struct memory_change give_back_tensor(
	struct memory *memory, const struct trace_tensor *record, struct memory_change change)
{
	struct held *held = find(memory->tables, record->address, SPACE_TENSOR);

	if (held->live) {
		memory->counts.tensor_differences += held->bytes != -(uint64_t)record->bytes;
		give(memory, held, &change);
		take_out(memory->tables, held);
	} else {
		memory->counts.unknown_tensor_frees += !memory->resumed;
	}
	return change;
}

struct memory_change memory_tensor(
	struct memory *memory, const struct trace_tensor *record, uint32_t node, uint64_t at_ns)
{
	struct memory_change change = { .kind = MEMORY_TENSOR, .device = record->device, .node = node };
	const uint32_t index = level_of(memory, MEMORY_TENSOR, record->device);
	struct memory_pool *pool = &memory->levels[index].pool;

	memory->counts.tensors++;
	memory->counts.tensor_differences += !pool->unknown && pool->allocated + (uint64_t)record->bytes != record->allocated;
	pool->unknown = false;
	if (record->head.flags & TRACE_TENSOR_LEVEL) {
		change.known = true;
	} else if (record->bytes < 0) {
		change = give_back_tensor(memory, record, change);
	} else {
		const struct held taken = { .address = record->address,
			.bytes = (uint64_t)record->bytes,
			.since_ns = at_ns,
			.site = site_of(memory, index, node, record->stack),
			.space = SPACE_TENSOR };

		put_in(memory, &taken, &change);
	}
	hear(memory, &memory->levels[index], record);
	if (pool->allocated > pool->peak) {
		pool->peak = pool->allocated;
		pool->peak_node = node;
		pool->reserved_at_peak = pool->reserved;
		pool->outside_at_peak = pool->outside;
	}
	return change;
}

struct memory_oom *memory_exhausted(
	struct memory *memory, const struct trace_tensor *record, uint32_t node, uint64_t at_ns)
{
	const uint32_t index = level_of(memory, MEMORY_TENSOR, record->device),
		       site = site_of(memory, index, node, record->stack);
	struct memory_level *level = &memory->levels[index];

	memory->counts.ooms++;
	memory->counts.tensor_differences += !memory->resumed && level->pool.allocated != record->allocated;
	hear(memory, level, record);
	level->ooms++;
	level->flow.oom_held = level->flow.held;
	level->flow.failed++;
	memory->sites[site].flow.failed++;
	if (memory->oom_count >= MEMORY_OOMS)
		return NULL;
	grow(&memory->ooms, &memory->tables->oom_room, (size_t)memory->oom_count + 1, sizeof *memory->ooms);
	memory->ooms[memory->oom_count] = (struct memory_oom){ .time_ns = at_ns,
		.asked = (uint64_t)record->bytes,
		.allocated = record->allocated,
		.reserved = record->reserved,
		.outside = level->pool.outside,
		.device = record->device,
		.node = node };
	return &memory->ooms[memory->oom_count++];
}

/* Tensors that are held: their sites hold them no longer, as far as anybody knows. */
static void forget_tensors(struct memory *memory)
{
	struct memory_table *table = memory->tables;

	for (size_t i = 0; i < table->slots;) {
		struct held *held = &table->held[i];

		if (!held->live || held->space != SPACE_TENSOR) {
			i++;
			continue;
		}
		note_moments(&memory->sites[held->site].flow, &memory->levels[memory->sites[held->site].level]);
		memory->sites[held->site].flow.held -= held->bytes;
		memory->levels[memory->sites[held->site].level].flow.held -= held->bytes;
		take_out(table, held); /* another may have come to its place */
	}
}

void memory_resume(struct memory *memory)
{
	forget_tensors(memory);
	memory->resumed = true;
	for (uint32_t i = 0; i < memory->level_count; i++)
		memory->levels[i].pool.unknown = memory->levels[i].kind == MEMORY_TENSOR;
}

const struct memory_level *memory_tensors(const struct memory *memory, uint32_t device)
{
	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == MEMORY_TENSOR && memory->levels[i].device == device)
			return &memory->levels[i];
	return NULL;
}

void memory_finish(struct memory *memory)
{
	for (uint32_t i = 0; i < memory->site_count; i++) {
		struct memory_flow *flow = &memory->sites[i].flow;
		const struct memory_level *level = &memory->levels[memory->sites[i].level];

		flow->at_peak = flow->peak_serial == level->serial ? flow->peak_held : flow->held;
		if (level->ooms)
			flow->at_oom = flow->oom_serial == level->ooms ? flow->oom_held : flow->held;
	}
	for (uint32_t i = 0; i < memory->level_count; i++) {
		struct memory_flow *flow = &memory->levels[i].flow;

		flow->at_peak = flow->most;
		flow->at_oom = flow->oom_held;
	}
}
