/* SPDX-License-Identifier: MIT
 * Completes the events of PyTorch's allocator. PyTorch of 2021 gave neither addresses nor the
 * allocator's total. The total is summed up, starting from the smallest possible value. A free is
 * paired with the latest unpaired allocation of the same size and place.
 */
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include "report/import/convert/convert.h"
#include "report/text/format_number.h"
#include <stdlib.h>

#define DEVICES 64u
#define MADE_ADDRESS (UINT64_C(1) << 62) /* added to made-up addresses; no device has such */

COMPARE_ROWS_BY(compare_memory_times, struct imported_memory, time)

static void count_cpu_event(struct conversion_cpu_memory *cpu, const struct imported_memory *memory)
{
	if (memory->bytes < 0) {
		cpu->frees++;
		cpu->free_bytes += -(uint64_t)memory->bytes;
	} else {
		cpu->allocs++;
		cpu->alloc_bytes += (uint64_t)memory->bytes;
	}
	if (memory->has_totals && memory->allocated > cpu->peak)
		cpu->peak = memory->allocated;
}

/* Removes and counts the events of CPU memory, which are not part of a device's level. */
static void drop_cpu_events(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	size_t kept = 0;

	for (size_t i = 0; i < imported->memory_count; i++) {
		if (imported->memories[i].type != 0)
			imported->memories[kept++] = imported->memories[i];
		else
			count_cpu_event(&conversion->cpu, &imported->memories[i]);
	}
	imported->memory_count = kept;
}

/* Computes the allocated bytes of each device after each event. The first round finds the
 * minimum, the second starts high enough that no level is negative. */
static void add_up_levels(struct event_rows *imported, const uint32_t *order)
{
	int64_t level[DEVICES] = { 0 }, least[DEVICES] = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < imported->memory_count; i++) {
			struct imported_memory *memory = &imported->memories[order[i]];
			const uint32_t device = memory->device % DEVICES;

			level[device] = saturating_add(level[device], memory->bytes);
			if (level[device] < least[device])
				least[device] = level[device];
			if (round && !memory->has_totals)
				memory->allocated = (uint64_t)level[device];
		}
		for (uint32_t device = 0; device < DEVICES; device++)
			level[device] = saturating_subtract(0, least[device]);
	}
}

/* Open allocations, as one stack per size. */
struct allocation_sizes {
	struct hash_index last; /* by size, device, place: the event that took the last one + 1 */
	uint32_t *before;       /* by event: the one below it in its stack + 1 */
};

static uint64_t size_of(const struct imported_memory *memory)
{
	return memory->bytes < 0 ? -(uint64_t)memory->bytes : (uint64_t)memory->bytes;
}

static struct hash_slot *size_slot(const struct allocation_sizes *sizes,
	const struct event_rows *imported, const struct imported_memory *memory, uint64_t hash)
{
	struct hash_slot *slot = hash_index_first(&sizes->last, hash);

	while (slot->number &&
		(size_of(&imported->memories[slot->number - 1]) != size_of(memory) ||
			imported->memories[slot->number - 1].device != memory->device ||
			imported->memories[slot->number - 1].place != memory->place))
		slot = hash_index_next(&sizes->last, slot);
	return slot;
}

/* Pairs frees with allocations. When a stack becomes empty, its slot keeps the allocation at the
 * bottom, which is marked as freed by its own address. */
static void pair(struct allocation_sizes *sizes, struct event_rows *imported, uint32_t event)
{
	struct imported_memory *memory = &imported->memories[event];
	const uint64_t hash = hash_u64(
		hash_u64(size_of(memory)) ^ memory->device ^ (uint64_t)memory->place << 32);
	struct hash_slot *slot;

	hash_index_reserve(&sizes->last);
	slot = size_slot(sizes, imported, memory, hash);
	memory->address = MADE_ADDRESS + ((uint64_t)event + 1) * 512;
	if (memory->bytes >= 0) {
		sizes->before[event] = slot->number;
		if (!slot->number)
			hash_index_add(&sizes->last, slot, hash, event + 1);
		slot->number = event + 1;
	} else if (slot->number) {
		const uint32_t taken = slot->number - 1;

		memory->address = imported->memories[taken].address;
		if (sizes->before[taken])
			slot->number = sizes->before[taken];
	}
}

static void pair_frees(struct event_rows *imported, const uint32_t *order)
{
	struct allocation_sizes sizes = { .before = xcalloc((imported->memory_count + 1) *
							    sizeof *sizes.before) };

	for (size_t i = 0; i < imported->memory_count; i++)
		if (!imported->memories[order[i]].address)
			pair(&sizes, imported, order[i]);
	hash_index_free(&sizes.last);
	free(sizes.before);
}

bool convert_prepare_memory(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	uint32_t *order;
	bool levels_computed = false;

	drop_cpu_events(conversion);
	order = xcalloc((imported->memory_count + 1) * sizeof *order);
	for (size_t i = 0; i < imported->memory_count; i++) {
		order[i] = (uint32_t)i;
		levels_computed |= !imported->memories[i].has_totals;
	}
	if (levels_computed) {
		sort_row_numbers(
			order, imported->memory_count, compare_memory_times, imported->memories);
		add_up_levels(imported, order);
		pair_frees(imported, order);
	}
	free(order);
	return levels_computed;
}
