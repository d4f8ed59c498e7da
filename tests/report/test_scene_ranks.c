/* SPDX-License-Identifier: MIT
 * test_scene_ranks.c: the lanes of several ranks on one clock: their sums are those of the
 * collectives and of each rank's own profile.
 */
#include "report/cli/view_list.h"
#include "report/scene/scene_ranks.h"
#include "tests/support/large_training_trace.h"
#include "tests/support/rank_traces.h"
#include "tests/support/view_test.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 3u
#define STEPS 3u
#define STRAGGLER 1u

static const char *files[] = { "rank0.bin", "rank1.bin", "rank2.bin" };
static struct options options;
static struct ranks ranks;

static struct scene *read_job(void)
{
	views_set(view_list);
	rank_traces_write(RANKS, STEPS, STRAGGLER);
	options = (struct options){ .view = view_find("ranks"),
		.files = files,
		.file_count = RANKS,
		.device = -1,
		.rank = -1,
		.depth = UINT32_MAX,
		.demangle = DEMANGLE_SHORT,
		.no_progress = true };
	ck_assert(ranks_read(&ranks, &options));
	ck_assert_uint_eq(ranks.count, RANKS);
	return scene_ranks_read(&ranks, &options);
}

static void free_job(struct scene *scene)
{
	scene_free(scene);
	ranks_free(&ranks);
}

static uint64_t total_of(const struct scene_lane *lane, uint32_t kind)
{
	for (size_t i = 0; i < lane->series_count; i++)
		if (lane->series[i].kind == kind)
			return lane->series[i].total_ns;
	return 0;
}

START_TEST(each_rank_has_a_lane_of_its_gpus_and_one_of_collectives)
{
	struct scene *scene = read_job();

	ck_assert_uint_eq(scene->whole.lane_count, 2 * RANKS);
	for (size_t i = 0; i < 2 * RANKS; i++)
		ck_assert_uint_eq(
			scene->whole.lanes[i].kind, i % 2 ? SCENE_COLLECTIVES : SCENE_RANK);
	free_job(scene);
}
END_TEST

START_TEST(waits_and_transfers_are_those_of_the_schedule)
{
	struct scene *scene = read_job();
	const uint64_t count = STEPS * LOAD_LAYERS;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct scene_lane *lane = &scene->whole.lanes[2 * rank + 1];
		const uint64_t wait = RANK_TRACES_LATE_NS - rank_traces_delay(rank, STRAGGLER);

		ck_assert_uint_eq(total_of(lane, SCENE_WAIT), count * wait);
		ck_assert_uint_eq(total_of(lane, SCENE_TRANSFER), count * RANK_TRACES_TRANSFER_NS);
		ck_assert_uint_eq(total_of(lane, SCENE_UNMATCHED), 0);
		ck_assert_uint_eq(total_of(lane, SCENE_WAIT), ranks.all[rank].sums.wait_ns);
	}
	free_job(scene);
}
END_TEST

START_TEST(columns_add_up_to_the_sums)
{
	struct scene *scene = read_job();

	for (size_t lane = 0; lane < scene->whole.lane_count; lane++)
		for (size_t i = 0; i < scene->whole.lanes[lane].series_count; i++) {
			const struct scene_series *series = &scene->whole.lanes[lane].series[i];
			uint64_t sum = 0;

			for (size_t column = 0; column < SCENE_COLUMNS; column++)
				sum += series->ns[column];
			ck_assert_uint_eq(sum, series->total_ns);
		}
	free_job(scene);
}
END_TEST

START_TEST(a_rank_is_busy_as_long_as_its_own_profile_says)
{
	struct scene *scene = read_job();

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct scene_lane *lane = &scene->whole.lanes[2 * rank];
		const struct process *process = ranks_open(&ranks, rank, &options);
		const struct profile_totals *totals = &process->profile->totals;

		ck_assert_uint_eq(total_of(lane, SCENE_BUSY) + total_of(lane, SCENE_EXPOSED),
			totals->gpu_busy_ns);
		ck_assert_uint_eq(
			total_of(lane, SCENE_EXPOSED), totals->gpu_exposed_communication_ns);
		if (rank != ranks.reference)
			ranks_close(&ranks, rank);
	}
	free_job(scene);
}
END_TEST

/* All members end a collective at one moment of the common clock. */
START_TEST(collectives_end_together)
{
	struct scene *scene = read_job();
	const struct scene_lane *first = &scene->whole.lanes[1];

	ck_assert_uint_gt(first->event_count, STEPS * LOAD_LAYERS - 1);
	for (uint32_t rank = 1; rank < RANKS; rank++) {
		const struct scene_lane *lane = &scene->whole.lanes[2 * rank + 1];
		size_t of_first = 0;

		for (size_t i = 0; i < lane->event_count; i++) {
			const uint64_t end = lane->events[i].begin_ns + lane->events[i].duration_ns;

			if (lane->events[i].kind != SCENE_TRANSFER)
				continue;
			while (first->events[of_first].kind != SCENE_TRANSFER)
				of_first++;
			ck_assert_uint_eq(end, first->events[of_first].begin_ns +
						       first->events[of_first].duration_ns);
			of_first++;
		}
	}
	free_job(scene);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { each_rank_has_a_lane_of_its_gpus_and_one_of_collectives,
		waits_and_transfers_are_those_of_the_schedule, columns_add_up_to_the_sums,
		a_rank_is_busy_as_long_as_its_own_profile_says, collectives_end_together };

	return run_view_suite("scene of ranks", tests, sizeof tests / sizeof *tests);
}
