/* SPDX-License-Identifier: MIT
 * test_scene.c: what pictures are drawn from: sums in columns, events up to a limit, owners of
 * memory, windows. That whole traces add up to the figures of the views is in test_scene.py.
 */
#include "report/base/alloc.h"
#include "report/scene/scene_internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A span with one lane. */
struct one_lane {
	struct scene_span span;
	struct span_builder builder;
};

static void begin_lanes(struct one_lane *one, enum scene_lane_kind kind, size_t lanes,
	uint64_t begin_ns, uint64_t end_ns, bool is_window)
{
	memset(one, 0, sizeof *one);
	scene_span_begin(&one->span, begin_ns, end_ns);
	one->span.lanes = xcalloc(lanes * sizeof *one->span.lanes);
	one->span.lane_count = lanes;
	one->builder = (struct span_builder){ .span = &one->span,
		.lanes = xcalloc(lanes * sizeof *one->builder.lanes),
		.is_window = is_window,
		.events_max = 100,
		.lane_events_max = 10 };
	for (size_t i = 0; i < lanes; i++) {
		one->span.lanes[i].kind = kind;
		one->builder.lanes[i].lane = &one->span.lanes[i];
	}
}

static void add(struct one_lane *one, size_t lane, uint64_t begin_ns, uint64_t end_ns,
	uint64_t length_ns, uint32_t node)
{
	span_builder_add(&one->builder, lane,
		&(struct scene_occurrence){ .begin_ns = begin_ns,
			.end_ns = end_ns,
			.length_ns = length_ns,
			.node = node,
			.is_event = true });
}

static uint64_t sum_of(const struct scene_series *series)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < SCENE_COLUMNS; i++)
		sum += series->ns[i];
	return sum;
}

START_TEST(columns_are_a_power_of_two_wide_and_cover_the_span)
{
	static const struct {
		uint64_t begin, end;
		unsigned shift;
		size_t columns;
	} cases[] = { { 0, 1, 0, 1 }, { 0, 2048, 0, 2048 }, { 0, 2049, 1, 1025 },
		{ 1000, 1000, 0, 1 }, { 500, 500 + 4096, 1, 2048 }, { 0, 4097, 2, 1025 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene_span span = { .shift = 9 };

		scene_span_begin(&span, cases[i].begin, cases[i].end);
		ck_assert_uint_eq(span.shift, cases[i].shift);
		ck_assert_uint_eq(span.columns, cases[i].columns);
		ck_assert_uint_eq(scene_column_at(&span, cases[i].begin), 0);
		ck_assert_uint_eq(scene_column_at(&span, cases[i].end + 5), span.columns - 1);
	}
}
END_TEST

START_TEST(each_column_has_its_part)
{
	struct one_lane one;
	const struct scene_series *series;

	begin_lanes(&one, SCENE_STREAM, 1, 0, 8 * SCENE_COLUMNS, false);
	add(&one, 0, 5, 21, 16, 0);
	add(&one, 0, 30, 30, 0, 0);
	series = &one.span.lanes[0].series[0];
	ck_assert_uint_eq(series->ns[0], 3);
	ck_assert_uint_eq(series->ns[1], 8);
	ck_assert_uint_eq(series->ns[2], 5);
	ck_assert_uint_eq(series->ns[3], 0);
	ck_assert_uint_eq(series->counts[0], 1);
	ck_assert_uint_eq(series->counts[1], 0);
	ck_assert_uint_eq(series->counts[3], 1);
	ck_assert_uint_eq(series->total_ns, 16);
	ck_assert_uint_eq(series->count, 2);
	span_builder_finish(&one.builder);
	scene_span_free(&one.span);
}
END_TEST

/* A GPU's clock runs at another rate than the host's. */
START_TEST(a_length_that_differs_from_the_interval_is_kept)
{
	struct one_lane one;
	uint64_t sum = 0;

	begin_lanes(&one, SCENE_STREAM, 1, 1000, 1000 + 4 * SCENE_COLUMNS, false);
	for (uint64_t i = 1; i < 300; i++) {
		const uint64_t begin = i * 37 % 8000, length = i * 7919 % 500;

		add(&one, 0, begin, begin + i * 31 % 900, length, 0);
		sum += length;
	}
	ck_assert_uint_eq(one.span.lanes[0].series[0].total_ns, sum);
	ck_assert_uint_eq(sum_of(&one.span.lanes[0].series[0]), sum);
	span_builder_finish(&one.builder);
	scene_span_free(&one.span);
}
END_TEST

START_TEST(what_is_outside_the_whole_run_is_in_its_outer_columns)
{
	struct one_lane one;

	begin_lanes(&one, SCENE_STREAM, 1, 1000, 1000 + SCENE_COLUMNS, false);
	add(&one, 0, 900, 950, 50, 0);
	add(&one, 0, 990, 1010, 20, 0);
	add(&one, 0, 3040, 3140, 100, 0);
	ck_assert_uint_eq(one.span.lanes[0].series[0].ns[0], 61);
	ck_assert_uint_eq(one.span.lanes[0].series[0].ns[SCENE_COLUMNS - 1], 93);
	ck_assert_uint_eq(sum_of(&one.span.lanes[0].series[0]), 170);
	span_builder_finish(&one.builder);
	scene_span_free(&one.span);
}
END_TEST

START_TEST(a_window_has_only_what_is_inside)
{
	struct one_lane one;
	const struct scene_lane *lane = NULL;

	begin_lanes(&one, SCENE_GPU, 1, 1000, 1100, true);
	lane = &one.span.lanes[0];
	add(&one, 0, 900, 1000, 100, 0);
	add(&one, 0, 1100, 1200, 100, 0);
	ck_assert_uint_eq(lane->events_seen, 0);
	add(&one, 0, 990, 1010, 20, 0);
	add(&one, 0, 1090, 1290, 200, 0);
	ck_assert_uint_eq(lane->events_seen, 2);
	ck_assert_uint_eq(lane->series[0].total_ns, 20);
	ck_assert_uint_eq(lane->series[0].count, 1);
	ck_assert_uint_eq(lane->event_count, 2);
	ck_assert_uint_eq(lane->events[1].duration_ns, 200);
	span_builder_finish(&one.builder);
	scene_span_free(&one.span);
}
END_TEST

/* A lane of a window has its events, or the same in columns. */
START_TEST(too_many_events_become_columns)
{
	struct one_lane few, many;

	begin_lanes(&few, SCENE_THREAD, 1, 0, 1000, true);
	begin_lanes(&many, SCENE_THREAD, 1, 0, 1000, true);
	for (uint64_t i = 0; i < 11; i++) {
		if (i < 10)
			add(&few, 0, 995 - i * 10, 1005 - i * 10, 10, 7);
		add(&many, 0, 995 - i * 10, 1005 - i * 10, 10, 7);
	}
	ck_assert_uint_eq(few.span.lanes[0].event_count, 10);
	ck_assert_uint_eq(few.span.lanes[0].series_count, 0);
	ck_assert_uint_eq(many.span.lanes[0].event_count, 0);
	ck_assert_ptr_null(many.span.lanes[0].events);
	ck_assert_uint_eq(many.span.lanes[0].events_seen, 11);
	ck_assert_uint_eq(many.span.lanes[0].series[0].total_ns, 105);
	span_builder_finish(&few.builder);
	span_builder_finish(&many.builder);
	ck_assert_uint_eq(few.span.lanes[0].events[0].begin_ns, 905);
	ck_assert_uint_eq(many.span.lanes[0].dominants[999].node, 7);
	scene_span_free(&few.span);
	scene_span_free(&many.span);
}
END_TEST

START_TEST(the_lane_with_most_events_loses_them_first)
{
	struct one_lane one;

	begin_lanes(&one, SCENE_STREAM, 3, 0, 1000, false);
	one.builder.events_max = 12;
	for (uint64_t i = 0; i < 9; i++) {
		add(&one, 1, i, i + 1, 1, 0);
		if (i < 4)
			add(&one, i % 2 ? 0 : 2, i, i + 1, 1, 0);
	}
	ck_assert_ptr_null(one.span.lanes[1].events);
	ck_assert_uint_eq(one.span.lanes[1].series[0].total_ns, 9);
	ck_assert_uint_eq(one.span.lanes[0].event_count, 2);
	ck_assert_uint_eq(one.span.lanes[2].event_count, 2);
	span_builder_finish(&one.builder);
	scene_span_free(&one.span);
}
END_TEST

/* One node has 30 % of a column, and a hundred others the rest. */
START_TEST(a_node_with_much_of_a_column_is_dominant)
{
	struct one_lane one;

	begin_lanes(&one, SCENE_THREAD, 1, 0, 1 << 20, false);
	for (uint32_t i = 0; i < 100; i++) {
		add(&one, 0, i, i + 7, 7, 100 + i);
		add(&one, 0, i, i + 3, 3, 5);
	}
	span_builder_finish(&one.builder);
	ck_assert_uint_eq(one.span.lanes[0].dominants[0].node, 5);
	ck_assert_uint_le(one.span.lanes[0].dominants[0].ns, 300);
	ck_assert_uint_ge(one.span.lanes[0].dominants[0].ns, 100);
	ck_assert_uint_eq(one.span.lanes[0].dominants[1].node, 0);
	scene_span_free(&one.span);
}
END_TEST

/* The tree: 1 (2 (3 4) 5), 6. */
static struct tree *small_tree(void)
{
	static const uint32_t parents[] = { 0, 1, 2, 2, 1, 0 };
	struct tree *tree = tree_new();

	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(tree_child(tree, parents[i], i + 10, 0, NODE_RANGE), i + 1);
	tree_sum(tree);
	return tree;
}

START_TEST(owners_are_where_memory_branches)
{
	struct tree *tree = small_tree();
	uint64_t bytes[7] = { 0, 0, 0, 600, 300, 0, 100 };
	struct scene_owner owners[SCENE_OWNERS_MAX];

	ck_assert_uint_eq(scene_owners_select(tree, bytes, owners), 3);
	ck_assert_uint_eq(owners[0].node, 3);
	ck_assert_uint_eq(owners[0].at_peak, 600);
	ck_assert_uint_eq(owners[1].node, 4);
	ck_assert_uint_eq(owners[2].node, 6);
	tree_free(tree);
}
END_TEST

/* A chain of calls without a branch is one owner, with the outermost name. */
START_TEST(a_chain_of_calls_keeps_its_outermost_name)
{
	struct tree *tree = small_tree();
	uint64_t bytes[7] = { 0, 0, 0, 600, 0, 0, 400 };
	struct scene_owner owners[SCENE_OWNERS_MAX];

	ck_assert_uint_eq(scene_owners_select(tree, bytes, owners), 2);
	ck_assert_uint_eq(owners[0].node, 1);
	ck_assert_uint_eq(owners[1].node, 6);
	tree_free(tree);
}
END_TEST

START_TEST(what_a_node_keeps_beside_its_children_is_a_remainder)
{
	struct tree *tree = small_tree();
	uint64_t bytes[7] = { 0, 500, 400, 1, 1, 1, 97 };
	struct scene_owner owners[SCENE_OWNERS_MAX];
	uint64_t sum = 0;
	const size_t count = scene_owners_select(tree, bytes, owners);

	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(owners[0].node, 1);
	ck_assert(owners[0].is_remainder);
	ck_assert_uint_eq(owners[0].at_peak, 501);
	ck_assert_uint_eq(owners[1].node, 2);
	ck_assert(!owners[1].is_remainder);
	ck_assert_uint_eq(owners[1].at_peak, 402);
	for (size_t i = 0; i < count; i++)
		sum += owners[i].at_peak;
	ck_assert_uint_eq(sum, 1000);
	tree_free(tree);
}
END_TEST

START_TEST(there_are_at_most_eight_owners)
{
	struct tree *tree = tree_new();
	uint64_t bytes[101] = { 0 };
	struct scene_owner owners[SCENE_OWNERS_MAX];

	for (uint32_t i = 1; i <= 100; i++)
		bytes[tree_child(tree, i <= 10 ? 0 : i % 10 + 1, i, 0, NODE_RANGE)] = 1000 + i;
	tree_sum(tree);
	ck_assert_uint_le(scene_owners_select(tree, bytes, owners), SCENE_OWNERS_MAX);
	memset(bytes, 0, sizeof bytes);
	ck_assert_uint_eq(scene_owners_select(tree, bytes, owners), 0);
	tree_free(tree);
}
END_TEST

START_TEST(windows_with_one_interval_are_one)
{
	struct scene_window_list list = { .count = 0 };

	ck_assert(!scene_windows_add(&list, &(struct scene_window){ .begin_ns = 5, .end_ns = 5 }));
	ck_assert(scene_windows_add(&list,
		&(struct scene_window){
			.begin_ns = 5, .end_ns = 9, .kinds = SCENE_FINDING, .findings = 2 }));
	ck_assert(scene_windows_add(
		&list, &(struct scene_window){
			       .begin_ns = 5, .end_ns = 9, .kinds = SCENE_WORST_STEP, .step = 3 }));
	ck_assert_uint_eq(list.count, 1);
	ck_assert_uint_eq(list.windows[0].kinds, SCENE_FINDING | SCENE_WORST_STEP);
	ck_assert_uint_eq(list.windows[0].step, 3);
	ck_assert_uint_eq(list.windows[0].findings, 2);
	for (uint64_t i = 1; i < SCENE_WINDOWS_MAX; i++)
		ck_assert(scene_windows_add(
			&list, &(struct scene_window){ .begin_ns = 5, .end_ns = 9 + i }));
	ck_assert(!scene_windows_add(&list, &(struct scene_window){ .begin_ns = 1, .end_ns = 2 }));
	ck_assert_uint_eq(list.count, SCENE_WINDOWS_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scene");
	TCase *cases = tcase_create("scene");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, columns_are_a_power_of_two_wide_and_cover_the_span);
	tcase_add_test(cases, each_column_has_its_part);
	tcase_add_test(cases, a_length_that_differs_from_the_interval_is_kept);
	tcase_add_test(cases, what_is_outside_the_whole_run_is_in_its_outer_columns);
	tcase_add_test(cases, a_window_has_only_what_is_inside);
	tcase_add_test(cases, too_many_events_become_columns);
	tcase_add_test(cases, the_lane_with_most_events_loses_them_first);
	tcase_add_test(cases, a_node_with_much_of_a_column_is_dominant);
	tcase_add_test(cases, owners_are_where_memory_branches);
	tcase_add_test(cases, a_chain_of_calls_keeps_its_outermost_name);
	tcase_add_test(cases, what_a_node_keeps_beside_its_children_is_a_remainder);
	tcase_add_test(cases, there_are_at_most_eight_owners);
	tcase_add_test(cases, windows_with_one_interval_are_one);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
