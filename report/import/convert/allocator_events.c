/* SPDX-License-Identifier: MIT
 * kineto_memory.c: what PyTorch's allocator did, made complete where the file does not say all of it. PyTorch of 2021 gave
 * neither addresses nor what the allocator held: what it held is added up, from the least that it can have been; a block
 * that was given back is the last one of its size that is not.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include "report/text/format_number.h"
#include <stdlib.h>

#define DEVICES 64u
#define MADE_ADDRESS (UINT64_C(1) << 62) /* no device has such */

static void count_cpu(struct kineto_cpu_memory *cpu, const struct kineto_memory *memory)
{
	if (memory->bytes < 0) {
		cpu->frees++;
		cpu->free_bytes += -(uint64_t)memory->bytes;
	} else {
		cpu->allocs++;
		cpu->alloc_bytes += (uint64_t)memory->bytes;
	}
	if (memory->totals && memory->allocated > cpu->peak)
		cpu->peak = memory->allocated;
}

/* Memory of the CPU is no level of a device: it is only counted. */
static void drop_cpu(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	size_t kept = 0;

	for (size_t i = 0; i < kineto->memory_count; i++) {
		if (kineto->memories[i].type != 0)
			kineto->memories[kept++] = kineto->memories[i];
		else
			count_cpu(&build->cpu, &kineto->memories[i]);
	}
	kineto->memory_count = kept;
}

/* The level of each device, event by event. round 0: how low it goes; round 1: with that as its beginning. */
static void add_up(struct kineto *kineto, const uint32_t *order)
{
	int64_t level[DEVICES] = { 0 }, least[DEVICES] = { 0 };

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < kineto->memory_count; i++) {
			struct kineto_memory *memory = &kineto->memories[order[i]];
			const uint32_t device = memory->device % DEVICES;

			level[device] = number_sum(level[device], memory->bytes);
			if (level[device] < least[device])
				least[device] = level[device];
			if (round && !memory->totals)
				memory->allocated = (uint64_t)level[device];
		}
		for (uint32_t device = 0; device < DEVICES; device++)
			level[device] = number_difference(0, least[device]);
	}
}

/* Blocks that are held, by their size: a stack each. */
struct sizes {
	uint32_t *last; /* hash table: the event that took the last one + 1 */
	uint32_t *before; /* by event: the one below it in its stack + 1 */
	size_t slots;
};

static uint32_t *size_slot(const struct sizes *sizes, const struct kineto *kineto, const struct kineto_memory *memory)
{
	const uint64_t bytes = memory->bytes < 0 ? -(uint64_t)memory->bytes : (uint64_t)memory->bytes;
	const uint64_t hash = (bytes * 0x9e3779b97f4a7c15u ^ memory->device) * 0xc2b2ae3d27d4eb4fu;
	size_t i = (hash >> 20) & (sizes->slots - 1);

	for (;; i = (i + 1) & (sizes->slots - 1)) {
		const struct kineto_memory *known = sizes->last[i] ? &kineto->memories[sizes->last[i] - 1] : NULL;

		if (!known || ((uint64_t)known->bytes == bytes && known->device == memory->device))
			return &sizes->last[i];
	}
}

/* A slot stays the size's own when its stack is empty: `last` then names the event that was at the bottom, whose own
 * address says that it was given back. */
static void pair_up(struct kineto *kineto, const uint32_t *order)
{
	struct sizes sizes = { .slots = 64 };

	while (sizes.slots < kineto->memory_count * 2)
		sizes.slots *= 2;
	sizes.last = need(sizes.slots * sizeof *sizes.last);
	sizes.before = need((kineto->memory_count + 1) * sizeof *sizes.before);
	for (size_t i = 0; i < kineto->memory_count; i++) {
		struct kineto_memory *memory = &kineto->memories[order[i]];
		uint32_t *slot = memory->address ? NULL : size_slot(&sizes, kineto, memory);

		if (!slot)
			continue;
		memory->address = MADE_ADDRESS + ((uint64_t)order[i] + 1) * 512;
		if (memory->bytes >= 0) {
			sizes.before[order[i]] = *slot;
			*slot = order[i] + 1;
		} else if (*slot) {
			const uint32_t taken = *slot - 1;

			memory->address = kineto->memories[taken].address;
			if (sizes.before[taken])
				*slot = sizes.before[taken];
		}
	}
	free(sizes.last);
	free(sizes.before);
}

bool kineto_memory_prepare(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	uint32_t *order;
	bool added = false;

	drop_cpu(build);
	order = need((kineto->memory_count + 1) * sizeof *order);
	for (size_t i = 0; i < kineto->memory_count; i++) {
		order[i] = (uint32_t)i;
		added |= !kineto->memories[i].totals;
	}
	if (added) {
		kineto_order(order, kineto->memory_count, kineto_by_time, kineto->memories);
		add_up(kineto, order);
		pair_up(kineto, order);
	}
	free(order);
	return added;
}
