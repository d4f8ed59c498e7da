/* SPDX-License-Identifier: MIT */
#include "report/analysis/run_memory.h"
#include "report/analysis/memory_leaks.h"
#include "report/analysis/memory_moments.h"

static bool has_device_memory(const struct process *process)
{
	const struct profile_totals *totals = &process->profile->totals;

	return totals->level_device != UINT32_MAX && totals->reserved_peak > 0;
}

bool run_memory_waste_peak(struct process *process, const struct options *options, double *value)
{
	const struct memory_owners *memory = process->profile->memory;

	(void)options;
	*value = 0;
	for (uint32_t i = 0; i < memory->level_count; i++) {
		const struct memory_level *level = &memory->levels[i];

		if (level->kind == MEMORY_TENSOR &&
			level->device == process->profile->totals.level_device &&
			level->pool.reserved_at_peak > level->pool.peak)
			*value = (double)(level->pool.reserved_at_peak - level->pool.peak);
	}
	return process->profile->totals.has_tensors;
}

bool run_memory_fragmentation_peak(
	struct process *process, const struct options *options, double *value)
{
	struct memory_moments moments = { .moments = NULL };

	*value = 0;
	if (!process->profile->totals.has_tensors || !has_device_memory(process))
		return false;
	memory_moments_add(&moments, options, process, "peak", 4);
	memory_moments_take(&moments, process, options, false);
	for (size_t i = 0; i < moments.count; i++)
		if (moments.moments[i].device == process->profile->totals.level_device)
			*value = 100 * figures_fragmentation(&moments.moments[i].figures);
	memory_moments_free(&moments);
	return true;
}

bool run_memory_growth_per_step(
	struct process *process, const struct options *options, double *value)
{
	const struct memory_leaks *leaks;

	(void)options;
	*value = 0;
	if (memory_leaks_unchecked(process))
		return false;
	leaks = memory_leaks_of(process);
	for (size_t i = 0; i < leaks->count; i++) {
		const struct memory_growth *growth = &leaks->leaks[i].held->growth;

		if (memory_growth_is_certain(growth) && growth->rate > *value)
			*value = growth->rate;
	}
	return true;
}

bool run_memory_largest_place_peak(
	struct process *process, const struct options *options, double *value)
{
	const struct memory_owners *memory = process->profile->memory;
	uint64_t most = 0;

	(void)options;
	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_level *level = &memory->levels[memory->sites[i].level];
		const bool counts = process->profile->totals.has_tensors
					    ? level->kind == MEMORY_TENSOR
					    : memory_is_device(level->kind);

		if (counts && memory->sites[i].flow.held_max > most)
			most = memory->sites[i].flow.held_max;
	}
	*value = (double)most;
	return has_device_memory(process);
}

static double count_failed(const struct process *process, bool succeeded_later)
{
	const struct memory_owners *memory = process->profile->memory;
	uint32_t count = 0;

	for (uint32_t i = 0; i < memory->failed_count; i++)
		count += memory->failed[i].succeeded_later == succeeded_later;
	return count;
}

bool run_memory_retries(struct process *process, const struct options *options, double *value)
{
	(void)options;
	*value = count_failed(process, true);
	return has_device_memory(process);
}

/* A failure of PyTorch's allocator comes after failed CUDA allocations of its own. */
bool run_memory_ooms(struct process *process, const struct options *options, double *value)
{
	(void)options;
	*value = process->profile->totals.has_tensors
			 ? (double)process->profile->memory->counts.ooms
			 : count_failed(process, false);
	return has_device_memory(process);
}
