/* SPDX-License-Identifier: MIT */
#include "report/analysis/collective_rates.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>

struct sized_collective {
	uint64_t bytes, bus_bytes, duration_ns;
	uint32_t name;
};

struct sized_list {
	struct sized_collective *all;
	size_t count, room;
};

/* Orders equal collectives one after the other, the fastest first. */
static int compare_sized(const void *a, const void *b)
{
	const struct sized_collective *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? -1 : 1;
	if (left->bus_bytes != right->bus_bytes)
		return left->bus_bytes < right->bus_bytes ? -1 : 1;
	return COMPARE(left->duration_ns, right->duration_ns);
}

static bool are_equal(const struct sized_collective *left, const struct sized_collective *right)
{
	return left->name == right->name && left->bytes == right->bytes &&
	       left->bus_bytes == right->bus_bytes;
}

static void list_sized(struct process *process, struct sized_list *list)
{
	struct activities *activities = activities_read(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if (one->kind == ACTIVITY_KERNEL && one->counts && one->timed && one->message_bytes)
			*ARRAY_ADD(list->all, list->room, list->count) = (struct sized_collective){
				.bytes = one->message_bytes,
				.bus_bytes = one->bus_bytes,
				.duration_ns = one->duration_ns,
				.name = one->name
			};
	activities_free(activities);
}

struct collective_rates collective_rates_read(struct process *process)
{
	struct collective_rates rates = { .count = 0 };
	struct sized_list list = { .count = 0 };
	const struct sized_collective *fastest;

	list_sized(process, &list);
	if (list.count)
		qsort(list.all, list.count, sizeof *list.all, compare_sized);
	fastest = list.all;
	for (size_t i = 0; i < list.count; i++) {
		const struct sized_collective *one = &list.all[i];

		fastest = are_equal(fastest, one) ? fastest : one;
		rates.count++;
		rates.bytes += one->bytes;
		rates.ns += one->duration_ns;
		rates.excess_ns += one->duration_ns - fastest->duration_ns;
		if (one->duration_ns - fastest->duration_ns > rates.slowest_ns - rates.fastest_ns) {
			rates.slowest_ns = one->duration_ns;
			rates.fastest_ns = fastest->duration_ns;
			rates.slowest_bytes = one->bytes;
		}
	}
	free(list.all);
	return rates;
}
