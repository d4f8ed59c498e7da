/* SPDX-License-Identifier: MIT */
#include "report/profile/module_group.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <stdlib.h>

struct module_group *module_group_new(void)
{
	struct module_group *group = xcalloc(sizeof *group);

	group->count = 1;
	ARRAY_GROW(group->all, group->room, group->count);
	return group;
}

void module_group_free(struct module_group *group)
{
	if (!group)
		return;
	free(group->all);
	hash_index_free(&group->index);
	free(group);
}

uint32_t module_group_number(
	struct module_group *group, uint32_t node, uint32_t label, uint32_t above)
{
	const uint64_t hash = hash_u64(hash_u64((uint64_t)node << 32 | label) ^ above);
	struct hash_slot *slot;

	hash_index_reserve(&group->index);
	for (slot = hash_index_first(&group->index, hash); slot->number;
		slot = hash_index_next(&group->index, slot)) {
		const struct module_instance *instance = &group->all[slot->number];

		if (instance->node == node && instance->label == label && instance->above == above)
			return slot->number;
	}
	ARRAY_GROW(group->all, group->room, (size_t)group->count + 1);
	group->all[group->count] = (struct module_instance){
		.node = node, .label = label, .above = above
	};
	hash_index_add(&group->index, slot, hash, group->count);
	return group->count++;
}

COMPARE_BY_TWO(by_module_node, struct module_instance, node, label)

/* Merges entries of one node and label. `0` in layers.1 and `0` in layers.2 are one instance,
 * and differed only in `above`. */
static void group_instances_by_node(struct module_group *group)
{
	uint32_t kept = 1;

	for (uint32_t i = 2; i < group->count; i++) {
		struct module_instance *last = &group->all[kept];
		const struct module_instance *next = &group->all[i];

		if (last->node != next->node || last->label != next->label) {
			group->all[++kept] = *next;
			continue;
		}
		last->calls += next->calls;
		last->cpu_ns += next->cpu_ns;
		last->gpu_ns += next->gpu_ns;
		last->longest_ns = last->longest_ns > next->longest_ns ? last->longest_ns
								       : next->longest_ns;
	}
	if (group->count > 1)
		group->count = kept + 1;
}

void module_group_finish(struct module_group *group)
{
	uint32_t kept = 1;

	if (group->summed)
		return;
	group->summed = true;
	for (uint32_t i = group->count - 1; i > 0; i--)
		if (group->all[i].above)
			group->all[group->all[i].above].gpu_ns += group->all[i].gpu_ns;
	for (uint32_t i = 1; i < group->count; i++)
		if (group->all[i].calls || group->all[i].gpu_ns)
			group->all[kept++] = group->all[i];
	group->count = kept;
	if (group->count > 2)
		qsort(group->all + 1, group->count - 1, sizeof *group->all, by_module_node);
	group_instances_by_node(group);
}

static uint64_t absolute_difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The middle value; of an even count the lower one. Sorts `values`. */
static uint64_t median_value(uint64_t *values, uint32_t count)
{
	qsort(values, count, sizeof *values, compare_u64);
	return values[(count - 1) / 2];
}

static uint64_t instance_value(const struct module_instance *instance, bool by_gpu)
{
	if (by_gpu)
		return instance->gpu_ns;
	return instance->cpu_ns - (instance->calls < 3 ? 0 : instance->longest_ns);
}

/* The instance furthest from the median; the first of equals. */
static void find_outlier(struct module_spread *spread, const struct module_instance *group,
	const uint64_t *values, uint64_t *scratch)
{
	uint32_t furthest = 0;
	uint64_t usual;

	for (uint32_t i = 0; i < spread->count; i++) {
		scratch[i] = absolute_difference(values[i], spread->median);
		if (scratch[i] > absolute_difference(values[furthest], spread->median))
			furthest = i;
	}
	usual = median_value(scratch, spread->count);
	if (spread->count < 3 || absolute_difference(values[furthest], spread->median) <= 3 * usual)
		return;
	if (values[furthest] / 3 * 2 < spread->median && values[furthest] > spread->median / 3 * 2)
		return;
	spread->outlier = &group[furthest];
	spread->outlier_ns = values[furthest];
}

/* The index of a node's first instance. If there is none, that of the next node's, or count. */
static uint32_t first_instance_of(const struct module_group *group, uint32_t node)
{
	uint32_t low = 1, high = group->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (group->all[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool module_group_spread(
	const struct module_group *group, uint32_t node, bool by_gpu, struct module_spread *spread)
{
	const uint32_t first = first_instance_of(group, node);
	uint64_t *values, *scratch;

	*spread = (struct module_spread){ .count = 0 };
	while (first + spread->count < group->count &&
		group->all[first + spread->count].node == node)
		spread->count++;
	if (spread->count < 2)
		return false;
	values = xcalloc(2 * (size_t)spread->count * sizeof *values);
	scratch = values + spread->count;
	for (uint32_t i = 0; i < spread->count; i++)
		scratch[i] = values[i] = instance_value(&group->all[first + i], by_gpu);
	spread->median = median_value(scratch, spread->count);
	spread->least = scratch[0];
	spread->most = scratch[spread->count - 1];
	find_outlier(spread, &group->all[first], values, scratch);
	free(values);
	return true;
}
