/* SPDX-License-Identifier: MIT */
#include "report/memory.h"
#include "report/fatal.h"
#include <stdlib.h>
#include <string.h>

/* One that is held. */
struct held {
	uint64_t address, bytes;
	uint64_t since_ns;
	uint32_t site;
	uint32_t late_frees; /* releases of earlier owners of the address that are still to be seen */
	bool array, live;
};

/* Open addressing with tombless deletion (later entries move up). */
struct memory_table {
	struct held *held;
	size_t count, slots;  /* slots: a power of two */
	uint32_t *site_slots; /* of sites by what they are */
	size_t site_slot_count, site_room, level_room;
};

bool memory_is_device(uint32_t kind)
{
	return kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_DEVICE_STATIC;
}

const char *memory_kind_name(uint32_t kind)
{
	static const char *const names[MEMORY_KINDS] = { "unknown", "pageable", "pinned", "device", "array", "managed",
		"device static", "managed static" };

	return names[kind < MEMORY_KINDS ? kind : 0];
}

/* Addresses of arrays are handles: they may equal an address. */
static size_t home(const struct memory_table *table, uint64_t address, bool array)
{
	return ((address >> 4 ^ array) * 0x9e3779b97f4a7c15u >> 20) & (table->slots - 1);
}

static struct held *find(const struct memory_table *table, uint64_t address, bool array)
{
	size_t i = home(table, address, array);

	while (table->held[i].live && (table->held[i].address != address || table->held[i].array != array))
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
			*find(table, old[i].address, old[i].array) = old[i];
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
		wanted = home(table, table->held[i].address, table->held[i].array);
		if (((i - wanted) & (table->slots - 1)) < ((i - hole) & (table->slots - 1)))
			continue;
		table->held[hole] = table->held[i];
		hole = i;
	}
	table->held[hole].live = false;
	table->count--;
}

static uint32_t level_of(struct memory *memory, uint32_t kind, uint32_t device)
{
	uint32_t index = 0;

	while (index < memory->level_count &&
		(memory->levels[index].kind != kind || memory->levels[index].device != device))
		index++;
	if (index == memory->level_count) {
		grow(&memory->levels, &memory->tables->level_room, (size_t)index + 1, sizeof *memory->levels);
		memory->levels[index].kind = kind;
		memory->levels[index].device = device;
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
		const struct memory_site *site = &memory->sites[index - 1];

		if (!index || (site->level == level && site->node == node && site->stack == stack))
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
	free(memory);
}

/* What a site held at the peak is what it holds, unless that has changed since: so note it before the first change
 * after a new peak. */
static void note_peak(struct memory_flow *flow, uint64_t serial)
{
	if (flow->peak_serial != serial) {
		flow->peak_serial = serial;
		flow->peak_held = flow->held;
	}
}

static void take(struct memory *memory, uint32_t site_index, uint64_t bytes, uint64_t at_ns)
{
	struct memory_site *site = &memory->sites[site_index];
	struct memory_level *level = &memory->levels[site->level];

	note_peak(&site->flow, level->serial);
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

	note_peak(&site->flow, level->serial);
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

struct memory_change memory_alloc(
	struct memory *memory, const struct trace_memory *record, uint32_t node, uint64_t end_ns)
{
	const uint32_t kind = record->memory_kind < MEMORY_KINDS ? record->memory_kind : TRACE_MEMORY_UNKNOWN;
	const bool array = kind == TRACE_MEMORY_ARRAY;
	struct memory_change change = { .kind = kind, .device = record->call.device, .node = node };
	const uint32_t site = site_of(memory, level_of(memory, kind, record->call.device), node, record->call.stack);
	uint32_t late = 0;
	struct held *held;

	if (record->call.result != 0 || record->address == 0) {
		change.failed = record->call.result != 0;
		memory->sites[site].flow.failed += change.failed;
		memory->levels[memory->sites[site].level].flow.failed += change.failed;
		return change;
	}
	if (memory->tables->count * 2 >= memory->tables->slots)
		widen(memory->tables);
	held = find(memory->tables, record->address, array);
	if (held->live) {
		give(memory, held, &change);
		memory->counts.replaced++;
		late = held->late_frees + 1;
	} else {
		memory->tables->count++;
	}
	*held = (struct held){ .address = record->address,
		.bytes = record->bytes,
		.since_ns = end_ns,
		.site = site,
		.late_frees = late,
		.array = array,
		.live = true };
	take(memory, site, record->bytes, end_ns);
	change.taken = record->bytes;
	change.known = true;
	return change;
}

struct memory_change memory_release(struct memory *memory, const struct trace_memory *record, uint64_t begin_ns)
{
	struct memory_change change = { .kind = record->memory_kind };
	struct held *held = find(memory->tables, record->address, record->memory_kind == TRACE_MEMORY_ARRAY);

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

void memory_finish(struct memory *memory)
{
	for (uint32_t i = 0; i < memory->site_count; i++) {
		struct memory_flow *flow = &memory->sites[i].flow;

		flow->at_peak = flow->peak_serial == memory->levels[memory->sites[i].level].serial ? flow->peak_held
												   : flow->held;
	}
	for (uint32_t i = 0; i < memory->level_count; i++)
		memory->levels[i].flow.at_peak = memory->levels[i].flow.most;
}
