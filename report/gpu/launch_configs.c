/* SPDX-License-Identifier: MIT */
#include "report/gpu/launch_configs.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST (1u << 22) /* ids beyond are looked up each time: only a damaged trace has them */

bool kernel_same_shape(const struct trace_kernel *a, const struct trace_kernel *b)
{
	return a->gpu.device == b->gpu.device && !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->static_shared_bytes == b->static_shared_bytes &&
	       a->dynamic_shared_bytes == b->dynamic_shared_bytes && a->registers == b->registers;
}

static uint64_t hash(const struct trace_kernel *record)
{
	const uint32_t words[] = { record->name, record->gpu.device, record->grid[0], record->grid[1], record->grid[2],
		record->block[0], record->block[1], record->block[2], record->static_shared_bytes,
		record->dynamic_shared_bytes, record->registers };
	uint64_t value = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		value = (value ^ words[i]) * 0x9e3779b97f4a7c15u, value ^= value >> 32;
	return value;
}

static uint32_t *slot_of(const struct kernels *kernels, const struct trace_kernel *record)
{
	size_t i = hash(record) & (kernels->slot_count - 1);

	while (kernels->slots[i] &&
		(kernels->kernels[kernels->slots[i] - 1].record.name != record->name ||
			!kernel_same_shape(&kernels->kernels[kernels->slots[i] - 1].record, record)))
		i = (i + 1) & (kernels->slot_count - 1);
	return &kernels->slots[i];
}

static void widen(struct kernels *kernels)
{
	free(kernels->slots);
	kernels->slot_count = kernels->slot_count ? kernels->slot_count * 2 : 64;
	kernels->slots = need(kernels->slot_count * sizeof *kernels->slots);
	for (uint32_t i = 0; i < kernels->count; i++)
		*slot_of(kernels, &kernels->kernels[i].record) = i + 1;
}

struct kernels *kernels_new(void)
{
	struct kernels *kernels = need(sizeof *kernels);

	widen(kernels);
	return kernels;
}

void kernels_free(struct kernels *kernels)
{
	if (!kernels)
		return;
	for (uint32_t i = 0; i < kernels->count; i++)
		samples_free(&kernels->kernels[i].samples);
	free(kernels->kernels);
	free(kernels->slots);
	free(kernels->recent);
	free(kernels);
}

static struct kernel *entry_of(struct kernels *kernels, const struct trace_kernel *record, uint32_t name)
{
	static const struct trace_kernel rest;
	const struct trace_kernel *shape = record;
	uint32_t *slot = slot_of(kernels, shape);

	if (!*slot && kernels->count >= KERNELS_MOST) {
		shape = &rest;
		name = 0;
		slot = slot_of(kernels, shape);
	}
	if (!*slot) {
		if ((size_t)(kernels->count + 1) * 2 > kernels->slot_count) {
			widen(kernels);
			slot = slot_of(kernels, shape);
		}
		grow(&kernels->kernels, &kernels->room, (size_t)kernels->count + 1, sizeof *kernels->kernels);
		kernels->kernels[kernels->count].record = *shape;
		kernels->kernels[kernels->count].name = name;
		kernels->kernels[kernels->count].min_ns = UINT64_MAX;
		kernels->kernels[kernels->count].samples.is_off = kernels->only &&
								  (kernels->count >= kernels->only_count ||
									  !kernels->only[kernels->count]);
		*slot = ++kernels->count;
	}
	return &kernels->kernels[*slot - 1];
}

/* Most are of the shape that the last one of that name had. */
static uint32_t index_of(struct kernels *kernels, const struct trace_kernel *record, uint32_t name)
{
	uint32_t *recent;

	if (record->name >= NAMES_MOST)
		return (uint32_t)(entry_of(kernels, record, name) - kernels->kernels);
	grow(&kernels->recent, &kernels->recent_room, (size_t)record->name + 1, sizeof *kernels->recent);
	recent = &kernels->recent[record->name];
	if (!*recent || kernels->kernels[*recent - 1].record.name != record->name ||
		!kernel_same_shape(&kernels->kernels[*recent - 1].record, record))
		*recent = (uint32_t)(entry_of(kernels, record, name) - kernels->kernels) + 1;
	return *recent - 1;
}

uint32_t kernels_add(struct kernels *kernels, const struct trace_kernel *record, uint32_t name, uint32_t node,
	uint64_t start_ns, uint64_t duration_ns, bool untimed, struct samples_budget *budget)
{
	const uint32_t index = index_of(kernels, record, name);
	struct kernel *kernel = &kernels->kernels[index];

	kernel->calls++;
	kernel->untimed += untimed;
	if (untimed)
		return index;
	kernel->total_ns += duration_ns;
	if (duration_ns < kernel->min_ns)
		kernel->min_ns = duration_ns;
	if (duration_ns >= kernel->max_ns) {
		kernel->max_ns = duration_ns;
		kernel->longest_start_ns = start_ns;
		kernel->node = node;
	}
	samples_add(&kernel->samples, duration_ns, budget);
	return index;
}
