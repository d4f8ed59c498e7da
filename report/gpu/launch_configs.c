/* SPDX-License-Identifier: MIT */
#include "report/gpu/launch_configs.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX (1u << 22) /* larger ids are searched each time: only a damaged trace has them */

bool launch_config_equal(const struct trace_kernel *a, const struct trace_kernel *b)
{
	return a->gpu.device == b->gpu.device && !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) &&
	       a->static_shared_bytes == b->static_shared_bytes &&
	       a->dynamic_shared_bytes == b->dynamic_shared_bytes && a->registers == b->registers;
}

static uint64_t hash_launch_config(const struct trace_kernel *record)
{
	const uint32_t words[] = { record->name, record->gpu.device, record->grid[0],
		record->grid[1], record->grid[2], record->block[0], record->block[1],
		record->block[2], record->static_shared_bytes, record->dynamic_shared_bytes,
		record->registers };
	uint64_t value = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		value = hash_u64(value ^ words[i]);
	return value;
}

static struct hash_slot *launch_config_slot(
	const struct launch_configs *configs, const struct trace_kernel *record, uint64_t hash)
{
	struct hash_slot *slot = hash_index_first(&configs->index, hash);

	while (slot->number &&
		(configs->kernels[slot->number - 1].record.name != record->name ||
			!launch_config_equal(&configs->kernels[slot->number - 1].record, record)))
		slot = hash_index_next(&configs->index, slot);
	return slot;
}

struct launch_configs *launch_configs_new(void)
{
	return xcalloc(sizeof(struct launch_configs));
}

void launch_configs_free(struct launch_configs *configs)
{
	if (!configs)
		return;
	for (uint32_t i = 0; i < configs->count; i++)
		percentiles_free(&configs->kernels[i].samples);
	free(configs->kernels);
	hash_index_free(&configs->index);
	free(configs->recent);
	free(configs);
}

static struct launch_config *find_or_add_config(
	struct launch_configs *configs, const struct trace_kernel *record, uint32_t name)
{
	static const struct trace_kernel rest;
	uint64_t hash = hash_launch_config(record);
	struct hash_slot *slot;

	hash_index_reserve(&configs->index);
	slot = launch_config_slot(configs, record, hash);
	if (!slot->number && configs->count >= LAUNCH_CONFIGS_MAX) {
		record = &rest;
		name = 0;
		hash = hash_launch_config(record);
		slot = launch_config_slot(configs, record, hash);
	}
	if (!slot->number) {
		ARRAY_GROW(configs->kernels, configs->room, (size_t)configs->count + 1);
		configs->kernels[configs->count].record = *record;
		configs->kernels[configs->count].name = name;
		configs->kernels[configs->count].min_ns = UINT64_MAX;
		hash_index_add(&configs->index, slot, hash, ++configs->count);
	}
	return &configs->kernels[slot->number - 1];
}

/* Returns the index of the entry. Most kernels have the configuration of the last one with their
 * name. */
static uint32_t launch_config_index(
	struct launch_configs *configs, const struct trace_kernel *record, uint32_t name)
{
	uint32_t *recent;

	if (record->name >= NAMES_MAX)
		return (uint32_t)(find_or_add_config(configs, record, name) - configs->kernels);
	if (record->name >= configs->recent_room)
		ARRAY_GROW(configs->recent, configs->recent_room, (size_t)record->name + 1);
	recent = &configs->recent[record->name];
	if (!*recent || configs->kernels[*recent - 1].record.name != record->name ||
		!launch_config_equal(&configs->kernels[*recent - 1].record, record))
		*recent = (uint32_t)(find_or_add_config(configs, record, name) - configs->kernels) +
			  1;
	return *recent - 1;
}

uint32_t launch_configs_add(struct launch_configs *configs, const struct trace_kernel *record,
	uint32_t name, uint32_t node, uint64_t start_ns, uint64_t duration_ns, bool untimed,
	struct percentiles_budget *budget)
{
	const uint32_t index = launch_config_index(configs, record, name);
	struct launch_config *kernel = &configs->kernels[index];

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
	percentiles_add(&kernel->samples, duration_ns, budget);
	return index;
}
