/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/interval_times.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include <stdlib.h>
#include <string.h>

/* before_ns: total length of the intervals before it. */
struct time_interval {
	uint64_t begin_ns, end_ns, before_ns;
};

void interval_times_add(struct interval_times *times, uint64_t begin_ns, uint64_t end_ns)
{
	const struct time_interval *last = times->count ? &times->all[times->count - 1] : NULL;
	const uint64_t before = last ? last->before_ns + (last->end_ns - last->begin_ns) : 0;

	*ARRAY_ADD(times->all, times->room, times->count) = (struct time_interval){ begin_ns,
		end_ns, before };
}

void interval_times_free(struct interval_times *times)
{
	free(times->all);
	free(times->cpu);
	free(times->gpu);
}

DEFINE_COUNT_WHILE(intervals_begun, struct time_interval, item->begin_ns <= limit)

/* Total length of the intervals before `at_ns`. */
static uint64_t time_before(const struct interval_times *times, uint64_t at_ns)
{
	const size_t count = intervals_begun(times->all, times->count, at_ns);
	const struct time_interval *last = count ? &times->all[count - 1] : NULL;

	return last ? last->before_ns +
			       ((at_ns < last->end_ns ? at_ns : last->end_ns) - last->begin_ns)
		    : 0;
}

static void add_node_time(uint64_t **by_node, size_t *room, uint32_t node, uint64_t ns)
{
	array_grow_zeroed(by_node, room, (size_t)node + 1, sizeof **by_node);
	(*by_node)[node] += ns;
}

static void add_cpu_time(
	struct interval_pass *pass, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t i = 0; i < pass->count; i++) {
		struct interval_times *times = &pass->each[i];

		add_node_time(&times->cpu, &times->cpu_room, node,
			time_before(times, at_ns + duration_ns) - time_before(times, at_ns));
	}
}

static void add_gpu_time(
	struct interval_pass *pass, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t i = 0; i < pass->count; i++) {
		struct interval_times *times = &pass->each[i];
		const size_t count = intervals_begun(times->all, times->count, at_ns);

		if (count && at_ns < times->all[count - 1].end_ns)
			add_node_time(&times->gpu, &times->gpu_room, node, duration_ns);
	}
}

/* Clears the sums: the trace is read from its beginning. */
static void clear_interval_times(void *context)
{
	struct interval_pass *pass = context;

	for (size_t i = 0; i < pass->count; i++) {
		struct interval_times *times = &pass->each[i];

		if (times->cpu)
			memset(times->cpu, 0, times->cpu_room * sizeof *times->cpu);
		if (times->gpu)
			memset(times->gpu, 0, times->gpu_room * sizeof *times->gpu);
	}
}

static void add_leaf_time(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct interval_pass *pass = context;

	if (!is_work) {
		add_cpu_time(pass, node, at_ns, duration_ns);
		return;
	}
	if (pass->nodes)
		collective_nodes_add(pass->nodes, node, at_ns);
	add_gpu_time(pass, node, at_ns, duration_ns);
}

static void add_instance_time(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	add_cpu_time(context, node, at_ns, clamp_to_u64(value));
}

struct profile_observer interval_pass_observer(struct interval_pass *pass)
{
	return (struct profile_observer){ .context = pass,
		.restart = clear_interval_times,
		.leaf = add_leaf_time,
		.instance = add_instance_time };
}

static void sum_gpu_times(const struct profile *profile, struct interval_times *times)
{
	const struct tree *tree = profile->tree;

	ARRAY_GROW(times->gpu, times->gpu_room, tree->count);
	ARRAY_GROW(times->cpu, times->cpu_room, tree->count);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		if (times->gpu[id] && !tree->nodes[id].first_child &&
			collective_nodes_is_communication(profile, id))
			times->gpu[id] = 0;
		times->gpu[tree->nodes[id].parent] += times->gpu[id];
	}
}

void interval_pass_finish(const struct interval_pass *pass, const struct profile *profile)
{
	for (size_t i = 0; i < pass->count; i++)
		sum_gpu_times(profile, &pass->each[i]);
}
