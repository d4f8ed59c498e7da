/* SPDX-License-Identifier: MIT
 * test_line_fit.c: a line through points: what was put in comes out, also with points that are
 * far off.
 */
#include "report/stats/line_fit.h"

#include <check.h>
#include <stdlib.h>

/* y = 5 + 2 x, up to `noise` above or below. */
static void fill(struct line_point *points, size_t count, double noise)
{
	for (size_t i = 0; i < count; i++) {
		points[i].x = (double)(i * 7 % count);
		points[i].y = 5 + 2 * points[i].x + (i % 2 ? noise : -noise);
	}
}

START_TEST(an_exact_line_comes_out)
{
	struct line_point points[9];
	struct line_fit fit;

	fill(points, 9, 0);
	ck_assert(line_fit(points, 9, &fit));
	ck_assert_double_eq_tol(fit.slope, 2, 1e-9);
	ck_assert_double_eq_tol(fit.intercept, 5, 1e-9);
	ck_assert_double_eq_tol(fit.intercept_low, 5, 1e-9);
	ck_assert_double_eq_tol(fit.intercept_high, 5, 1e-9);
	ck_assert_double_eq_tol(fit.spread, 0, 1e-9);
	ck_assert_double_eq_tol(fit.median_y, 13, 1e-9);
}
END_TEST

START_TEST(a_quarter_of_the_points_may_be_wrong)
{
	struct line_point points[1000];
	struct line_fit fit;

	fill(points, 1000, 1);
	for (size_t i = 0; i < 1000; i += 4)
		points[i].y += 5000;
	ck_assert(line_fit(points, 1000, &fit));
	ck_assert_double_eq_tol(fit.slope, 2, 0.3);
	ck_assert_double_le(fit.intercept_low, fit.intercept);
	ck_assert_double_ge(fit.intercept_high, fit.intercept);
}
END_TEST

/* Six allreduces of two sizes, in ms and MB. */
START_TEST(two_sizes_are_enough)
{
	struct line_point points[] = { { 5.75, 6.91 }, { 17.63, 8.93 }, { 5.75, 6.68 },
		{ 17.63, 9.21 }, { 5.75, 6.75 }, { 17.63, 8.66 } };
	struct line_fit fit;

	ck_assert(line_fit(points, 6, &fit));
	ck_assert_double_eq_tol(fit.slope, 0.184, 0.01);
	ck_assert_double_eq_tol(fit.intercept, 5.7, 0.1);
	ck_assert_double_ge(fit.intercept_low, 5.3);
	ck_assert_double_le(fit.intercept_high, 6.2);
}
END_TEST

START_TEST(few_points_and_one_x_give_nothing)
{
	struct line_point points[] = { { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 } },
			  equal[] = { { 1, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 } };
	struct line_fit fit;

	ck_assert(!line_fit(points, 3, &fit));
	ck_assert(line_fit(points, 4, &fit));
	ck_assert(!line_fit(equal, 4, &fit));
}
END_TEST

int main(void)
{
	Suite *const suite = suite_create("line_fit");
	TCase *const cases = tcase_create("cases");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, an_exact_line_comes_out);
	tcase_add_test(cases, a_quarter_of_the_points_may_be_wrong);
	tcase_add_test(cases, two_sizes_are_enough);
	tcase_add_test(cases, few_points_and_one_x_give_nothing);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
