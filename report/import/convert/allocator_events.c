/* SPDX-License-Identifier: MIT
 * Completes the events of PyTorch's allocator. PyTorch of 2021 gave neither addresses nor the
 * allocator's total. The total is summed up, starting from the smallest possible value. A free is
 * paired with the latest unpaired allocation of the same size.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include "report/text/format_number.h"
#include <stdlib.h>

#define DEVICES 64u
#define MADE_ADDRESS (UINT64_C(1) << 62) /* added to made-up addresses; no device has such */

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
	uint32_t *last;   /* hash table: the latest allocation on the stack, + 1 */
	uint32_t *before; /* by event: the one below it on its stack, + 1; 0: none */
	size_t slots;
};

static uint32_t *size_slot(const struct allocation_sizes *sizes, const struct event_rows *imported,
	const struct imported_memory *memory)
{
	const uint64_t bytes = memory->bytes < 0 ? -(uint64_t)memory->bytes
						 : (uint64_t)memory->bytes;
	const uint64_t hash = (bytes * 0x9e3779b97f4a7c15u ^ memory->device) * 0xc2b2ae3d27d4eb4fu;
	size_t i = (hash >> 20) & (sizes->slots - 1);

	for (;; i = (i + 1) & (sizes->slots - 1)) {
		const struct imported_memory *known =
			sizes->last[i] ? &imported->memories[sizes->last[i] - 1] : NULL;

		if (!known || ((uint64_t)known->bytes == bytes && known->device == memory->device))
			return &sizes->last[i];
	}
}

/* Pairs frees with allocations. When a stack becomes empty, its slot keeps the allocation at the
 * bottom, so that the hash table needs no deletion. A further free is then paired with that
 * allocation again. */
static void pair_frees(struct event_rows *imported, const uint32_t *order)
{
	struct allocation_sizes sizes = { .slots = 64 };

	while (sizes.slots < imported->memory_count * 2)
		sizes.slots *= 2;
	sizes.last = xcalloc(sizes.slots * sizeof *sizes.last);
	sizes.before = xcalloc((imported->memory_count + 1) * sizeof *sizes.before);
	for (size_t i = 0; i < imported->memory_count; i++) {
		struct imported_memory *memory = &imported->memories[order[i]];
		uint32_t *slot = memory->address ? NULL : size_slot(&sizes, imported, memory);

		if (!slot)
			continue;
		memory->address = MADE_ADDRESS + ((uint64_t)order[i] + 1) * 512;
		if (memory->bytes >= 0) {
			sizes.before[order[i]] = *slot;
			*slot = order[i] + 1;
		} else if (*slot) {
			const uint32_t taken = *slot - 1;

			memory->address = imported->memories[taken].address;
			if (sizes.before[taken])
				*slot = sizes.before[taken];
		}
	}
	free(sizes.last);
	free(sizes.before);
}

bool convert_prepare_memory(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	uint32_t *order;
	bool added = false;

	drop_cpu_events(conversion);
	order = xcalloc((imported->memory_count + 1) * sizeof *order);
	for (size_t i = 0; i < imported->memory_count; i++) {
		order[i] = (uint32_t)i;
		added |= !imported->memories[i].has_totals;
	}
	if (added) {
		sort_row_numbers(
			order, imported->memory_count, compare_memory_times, imported->memories);
		add_up_levels(imported, order);
		pair_frees(imported, order);
	}
	free(order);
	return added;
}
