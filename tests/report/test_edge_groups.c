/* SPDX-License-Identifier: MIT
 * test_edge_groups.c: the edges to each point are read backwards as they were added, as often as
 * wanted.
 */
#include "report/analysis/critical_path/edge_groups.h"

#include <check.h>
#include <stdlib.h>

#define POINTS 700000u /* their edges take more than is held in memory */

/* Where the edge `edge` to a point comes from: just before it, far before it, or after it. */
static uint32_t from_of(uint32_t to, uint32_t edge)
{
	return edge % 3 == 0 ? to - 1 : edge % 3 == 1 ? to / 2 : to + 1000000 * edge;
}

static uint32_t edges_of(uint32_t number)
{
	return 1 + number % 4 + (number % 1000 == 0 ? 300 : 0);
}

/* Points by turns far apart, as begins and ends are. */
static uint32_t point_of(uint32_t number)
{
	return number % 2 ? number : UINT32_MAX - number;
}

static struct edge_groups *groups_of(uint32_t count)
{
	struct edge_groups *groups = edge_groups_new();

	for (uint32_t number = 0; number < count; number++)
		for (uint32_t edge = 0; edge < edges_of(number); edge++)
			edge_groups_add(groups, from_of(point_of(number), edge), point_of(number), 0);
	return groups;
}

static void expect_groups(struct edge_groups *groups, uint32_t count)
{
	struct edge_group group = edge_groups_last(groups);

	for (uint32_t number = count; number-- > 0;) {
		ck_assert(edge_groups_back(groups, &group));
		ck_assert_uint_eq(group.to, point_of(number));
		ck_assert_uint_eq(group.count, edges_of(number));
		for (uint32_t edge = 0; edge < group.count; edge++)
			ck_assert_uint_eq(group.from[edge], from_of(group.to, edge));
	}
	ck_assert(!edge_groups_back(groups, &group));
	ck_assert(!edge_groups_back(groups, &group));
	edge_group_free(&group);
}

START_TEST(groups_are_read_backwards)
{
	const uint32_t counts[] = { 0, 1, 2, POINTS };

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct edge_groups *groups = groups_of(counts[i]);

		expect_groups(groups, counts[i]);
		expect_groups(groups, counts[i]);
		edge_groups_free(groups);
	}
	edge_groups_free(NULL);
}
END_TEST

START_TEST(a_point_of_0_is_like_the_others)
{
	struct edge_groups *groups = edge_groups_new();
	struct edge_group group;

	edge_groups_add(groups, 5, 0, 0);
	edge_groups_add(groups, 7, 0, 0);
	group = edge_groups_last(groups);
	ck_assert(edge_groups_back(groups, &group));
	ck_assert_uint_eq(group.to, 0);
	ck_assert_uint_eq(group.count, 2);
	ck_assert_uint_eq(group.from[0], 5);
	ck_assert_uint_eq(group.from[1], 7);
	ck_assert(!edge_groups_back(groups, &group));
	edge_group_free(&group);
	edge_groups_free(groups);
}
END_TEST

START_TEST(the_latest_edge_is_first)
{
	static const uint64_t times_ns[] = { 3, 9, 9, 4, 12, 12, 1 };
	struct edge_groups *groups = edge_groups_new();
	struct edge_group group;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 7; i++)
		edge_groups_add(groups, i, 100, times_ns[i]);
	edge_groups_add(groups, 8, 101, 0);
	group = edge_groups_last(groups);
	ck_assert(edge_groups_back(groups, &group));
	ck_assert_uint_eq(group.from[0], 8);
	ck_assert(edge_groups_back(groups, &group));
	ck_assert_uint_eq(group.count, 7);
	ck_assert_uint_eq(group.from[0], 4);
	for (size_t i = 0; i < group.count; i++)
		sum |= 1u << group.from[i];
	ck_assert_uint_eq(sum, 127);
	edge_group_free(&group);
	edge_groups_free(groups);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("edge_groups");
	TCase *tests = tcase_create("groups");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, groups_are_read_backwards);
	tcase_add_test(tests, a_point_of_0_is_like_the_others);
	tcase_add_test(tests, the_latest_edge_is_first);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
