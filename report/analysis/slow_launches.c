/* SPDX-License-Identifier: MIT */
#include "report/analysis/slow_launches.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/stats/percentiles.h"
#include <stdlib.h>

/* A launch of SLOW_LAUNCH_NS_MIN or more. */
struct long_launch {
	uint64_t begin_ns, end_ns;
	uint64_t work_ns, start_unix_ns; /* when its kernel began */
	uint64_t number;                 /* of the launch in the pass */
	uint32_t name, tid;
};

struct slow_launches_pass {
	struct process *process;
	struct long_launch *all;
	size_t count, room;
	uint64_t *first_ns; /* by name: begin of the first launch, plus one; 0: there is none */
	size_t first_room;
	struct percentiles durations;
	struct percentiles_budget budget;
	uint64_t launches;
};

static void add_launch(struct slow_launches_pass *pass, const struct observed_gpu_work *seen)
{
	const struct gpu_launch *launch = seen->launch;
	const uint64_t begin_ns = launch->begin_ns,
		       length_ns = launch->end_ns > begin_ns ? launch->end_ns - begin_ns : 0;

	ARRAY_GROW(pass->first_ns, pass->first_room, (size_t)seen->name + 1);
	if (!pass->first_ns[seen->name] || begin_ns < pass->first_ns[seen->name] - 1)
		pass->first_ns[seen->name] = begin_ns + 1;
	percentiles_add(&pass->durations, length_ns, &pass->budget);
	if (length_ns >= SLOW_LAUNCH_NS_MIN)
		*ARRAY_ADD(pass->all, pass->room,
			pass->count) = (struct long_launch){ .begin_ns = begin_ns,
			.end_ns = launch->end_ns,
			.work_ns = seen->timed ? seen->begin_ns : begin_ns,
			.start_unix_ns = seen->timed ? seen->gpu->start_ns : 0,
			.number = pass->launches,
			.name = seen->name,
			.tid = launch->tid };
	pass->launches++;
}

static void observe_launch(void *context, const struct observed_gpu_work *seen)
{
	if (seen->gpu->head.kind == TRACE_KERNEL && seen->launch && !seen->launch->graph_node &&
		seen->name)
		add_launch(context, seen);
}

static void restart_launches(void *context)
{
	struct slow_launches_pass *pass = context;

	percentiles_free(&pass->durations);
	free(pass->first_ns);
	free(pass->all);
	*pass = (struct slow_launches_pass){ .process = pass->process };
}

struct slow_launches_pass *slow_launches_begin(
	struct process *process, struct profile_observer *observer)
{
	struct slow_launches_pass *pass = xcalloc(sizeof *pass);

	pass->process = process;
	*observer = (struct profile_observer){
		.context = pass, .restart = restart_launches, .work = observe_launch
	};
	return pass;
}

struct process *slow_launches_process(const struct slow_launches_pass *pass)
{
	return pass->process;
}

COMPARE_BY_THREE(by_kernel_begin, struct long_launch, work_ns, start_unix_ns, number)

static bool is_first(const struct slow_launches_pass *pass, const struct long_launch *launch)
{
	return launch->begin_ns + 1 == pass->first_ns[launch->name];
}

/* Returns the index of the step in which a launch began. SIZE_MAX: in none. */
static size_t step_of_launch(const struct steps *steps, const struct long_launch *launch)
{
	const struct step *step = steps_step_of_thread(steps, launch->tid, launch->begin_ns);

	return step ? (size_t)(step - steps->steps) : SIZE_MAX;
}

/* Returns true if half of the steps or more have slow launches of kernels that were launched
 * before. */
static bool launches_recur(
	const struct slow_launches_pass *pass, const struct steps *steps, uint64_t least_ns)
{
	bool *has = xcalloc(steps->count * sizeof *has);
	size_t count = 0;

	for (size_t i = 0; i < pass->count; i++) {
		const struct long_launch *launch = &pass->all[i];
		size_t step;

		if (launch->end_ns - launch->begin_ns < least_ns || is_first(pass, launch))
			continue;
		step = step_of_launch(steps, launch);
		if (step >= steps->count || has[step])
			continue;
		has[step] = true;
		count++;
	}
	free(has);
	return 2 * count >= steps->count;
}

void slow_launches_end(struct slow_launches_pass *pass, struct first_calls *found)
{
	const uint64_t median_ns = percentiles_get(&pass->durations, 500),
		       least_ns = median_ns * SLOW_LAUNCH_RATIO;
	const bool recur = pass->count && launches_recur(pass, pass->process->steps, least_ns);

	if (pass->count)
		qsort(pass->all, pass->count, sizeof *pass->all, by_kernel_begin);
	for (size_t i = 0; i < pass->count; i++) {
		const struct long_launch *launch = &pass->all[i];

		if (launch->end_ns - launch->begin_ns < least_ns ||
			(recur && !is_first(pass, launch)))
			continue;
		*ARRAY_ADD(found->calls, found->room,
			found->count) = (struct first_call){ .begin_ns = launch->begin_ns,
			.end_ns = launch->end_ns,
			.later = pass->launches - 1,
			.later_median_ns = median_ns,
			.name = launch->name,
			.tid = launch->tid,
			.of_launches = true,
			.is_outlier = !is_first(pass, launch) };
	}
	restart_launches(pass);
	free(pass);
}
