/* SPDX-License-Identifier: MIT */
#include "report/analysis/slow_launches.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/stats/percentiles.h"
#include <stdlib.h>

/* A launch of SLOW_LAUNCH_NS_MIN or more. */
struct long_launch {
	uint64_t begin_ns, end_ns;
	uint32_t name, tid, step;
};

struct launch_pass {
	struct long_launch *all;
	size_t count, room;
	uint64_t *first_ns; /* by name: begin of the first launch, plus one; 0: there is none */
	size_t first_room;
	struct percentiles durations;
	struct percentiles_budget budget;
	uint64_t launches;
};

static void add_launch(struct launch_pass *pass, const struct activity *kernel)
{
	const uint64_t begin_ns = kernel->call_begin_ns,
		       length_ns = kernel->call_end_ns > begin_ns ? kernel->call_end_ns - begin_ns
								  : 0;

	ARRAY_GROW(pass->first_ns, pass->first_room, (size_t)kernel->name + 1);
	if (!pass->first_ns[kernel->name] || begin_ns < pass->first_ns[kernel->name] - 1)
		pass->first_ns[kernel->name] = begin_ns + 1;
	percentiles_add(&pass->durations, length_ns, &pass->budget);
	pass->launches++;
	if (length_ns >= SLOW_LAUNCH_NS_MIN)
		*ARRAY_ADD(pass->all, pass->room, pass->count) = (struct long_launch){ begin_ns,
			kernel->call_end_ns, kernel->name, kernel->tid, kernel->step };
}

static void read_launches(struct process *process, struct launch_pass *pass)
{
	struct activities *activities = activities_read(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if (one->kind == ACTIVITY_KERNEL && one->has_call && !one->of_graph && one->name)
			add_launch(pass, one);
	activities_free(activities);
}

static bool is_first(const struct launch_pass *pass, const struct long_launch *launch)
{
	return launch->begin_ns + 1 == pass->first_ns[launch->name];
}

/* Returns true if half of the steps or more have slow launches of kernels that were launched
 * before. `all`: the slow launches. */
static bool launches_recur(
	const struct launch_pass *pass, const struct steps *steps, uint64_t least_ns)
{
	bool *has = xcalloc(steps->count * sizeof *has);
	size_t count = 0;

	for (size_t i = 0; i < pass->count; i++) {
		const struct long_launch *launch = &pass->all[i];

		if (launch->end_ns - launch->begin_ns < least_ns || is_first(pass, launch) ||
			launch->step >= steps->count || has[launch->step])
			continue;
		has[launch->step] = true;
		count++;
	}
	free(has);
	return 2 * count >= steps->count;
}

void slow_launches_find(struct process *process, struct first_calls *found)
{
	struct launch_pass pass = { .launches = 0 };
	uint64_t median_ns, least_ns;
	bool recur;

	read_launches(process, &pass);
	median_ns = percentiles_get(&pass.durations, 500);
	least_ns = median_ns * SLOW_LAUNCH_RATIO;
	recur = pass.count && launches_recur(&pass, process->steps, least_ns);
	for (size_t i = 0; i < pass.count; i++) {
		const struct long_launch *launch = &pass.all[i];

		if (launch->end_ns - launch->begin_ns < least_ns ||
			(recur && !is_first(&pass, launch)))
			continue;
		*ARRAY_ADD(found->calls, found->room,
			found->count) = (struct first_call){ .begin_ns = launch->begin_ns,
			.end_ns = launch->end_ns,
			.later = pass.launches - 1,
			.later_median_ns = median_ns,
			.name = launch->name,
			.tid = launch->tid,
			.of_launches = true,
			.is_outlier = !is_first(&pass, launch) };
	}
	percentiles_free(&pass.durations);
	free(pass.first_ns);
	free(pass.all);
}
