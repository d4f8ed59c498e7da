/* SPDX-License-Identifier: MIT */
#include "report/profile/module_group.h"
#include "report/base/alloc.h"
#include <stdlib.h>

struct members *members_new(void)
{
	struct members *members = need(sizeof *members);

	members->count = 1;
	grow(&members->all, &members->room, members->count, sizeof *members->all);
	return members;
}

void members_free(struct members *members)
{
	if (!members)
		return;
	free(members->all);
	free(members->slots);
	free(members);
}

static uint32_t *slot_of(const struct members *members, uint32_t node, uint32_t label, uint32_t above)
{
	const uint64_t hash = (((uint64_t)node << 32 | label) * 0x9e3779b97f4a7c15u) ^ (above * 0xff51afd7ed558ccdu);
	size_t i = (hash >> 24) & (members->slot_count - 1);

	for (;; i = (i + 1) & (members->slot_count - 1)) {
		const struct member *member = &members->all[members->slots[i]];

		if (!members->slots[i] || (member->node == node && member->label == label && member->above == above))
			return &members->slots[i];
	}
}

static void widen(struct members *members)
{
	free(members->slots);
	members->slot_count = members->slot_count ? members->slot_count * 2 : 64;
	members->slots = need(members->slot_count * sizeof *members->slots);
	for (uint32_t i = 1; i < members->count; i++)
		*slot_of(members, members->all[i].node, members->all[i].label, members->all[i].above) = i;
}

uint32_t members_number(struct members *members, uint32_t node, uint32_t label, uint32_t above)
{
	uint32_t *slot;

	grow(&members->all, &members->room, (size_t)members->count + 1, sizeof *members->all);
	if ((size_t)members->count * 2 >= members->slot_count)
		widen(members);
	slot = slot_of(members, node, label, above);
	if (!*slot) {
		members->all[members->count] = (struct member){ .node = node, .label = label, .above = above };
		*slot = members->count++;
	}
	return *slot;
}

static int by_node(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return (left->label > right->label) - (left->label < right->label);
}

/* `0` in layers.1 and `0` in layers.2 are one member of their place; they were apart only for what is around them. */
static void merge(struct members *members)
{
	uint32_t kept = 1;

	for (uint32_t i = 2; i < members->count; i++) {
		struct member *last = &members->all[kept];
		const struct member *next = &members->all[i];

		if (last->node != next->node || last->label != next->label) {
			members->all[++kept] = *next;
			continue;
		}
		last->calls += next->calls;
		last->cpu_ns += next->cpu_ns;
		last->gpu_ns += next->gpu_ns;
		last->longest_ns = last->longest_ns > next->longest_ns ? last->longest_ns : next->longest_ns;
	}
	if (members->count > 1)
		members->count = kept + 1;
}

void members_sum(struct members *members)
{
	uint32_t kept = 1;

	if (members->summed)
		return;
	members->summed = true;
	for (uint32_t i = members->count - 1; i > 0; i--)
		if (members->all[i].above)
			members->all[members->all[i].above].gpu_ns += members->all[i].gpu_ns;
	for (uint32_t i = 1; i < members->count; i++)
		if (members->all[i].calls || members->all[i].gpu_ns)
			members->all[kept++] = members->all[i];
	members->count = kept;
	if (members->count > 2)
		qsort(members->all + 1, members->count - 1, sizeof *members->all, by_node);
	merge(members);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The middle one of those in use, the lower of two. */
static uint64_t median(uint64_t *values, uint32_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[(count - 1) / 2];
}

static uint64_t value_of(const struct member *member, bool by_gpu)
{
	if (by_gpu)
		return member->gpu_ns;
	return member->cpu_ns - (member->calls < 3 ? 0 : member->longest_ns);
}

/* The member furthest from the median, the first of equals. */
static void find_odd(struct spread *spread, const struct member *members, const uint64_t *values, uint64_t *scratch)
{
	uint32_t furthest = 0;
	uint64_t usual;

	for (uint32_t i = 0; i < spread->count; i++) {
		scratch[i] = distance(values[i], spread->median);
		if (scratch[i] > distance(values[furthest], spread->median))
			furthest = i;
	}
	usual = median(scratch, spread->count);
	if (spread->count < 3 || distance(values[furthest], spread->median) <= 3 * usual)
		return;
	if (values[furthest] / 3 * 2 < spread->median && values[furthest] > spread->median / 3 * 2)
		return;
	spread->odd = &members[furthest];
	spread->odd_ns = values[furthest];
}

/* The first member of a node; count if there is none. */
static uint32_t first_of(const struct members *members, uint32_t node)
{
	uint32_t low = 1, high = members->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (members->all[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool members_spread(const struct members *members, uint32_t node, bool by_gpu, struct spread *spread)
{
	const uint32_t first = first_of(members, node);
	uint64_t *values, *scratch;

	*spread = (struct spread){ .count = 0 };
	while (first + spread->count < members->count && members->all[first + spread->count].node == node)
		spread->count++;
	if (spread->count < 2)
		return false;
	values = need(2 * (size_t)spread->count * sizeof *values);
	scratch = values + spread->count;
	for (uint32_t i = 0; i < spread->count; i++)
		scratch[i] = values[i] = value_of(&members->all[first + i], by_gpu);
	spread->median = median(scratch, spread->count);
	spread->least = scratch[0];
	spread->most = scratch[spread->count - 1];
	find_odd(spread, &members->all[first], values, scratch);
	free(values);
	return true;
}
