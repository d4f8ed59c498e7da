/* SPDX-License-Identifier: MIT
 * test_proportion_test.c: p of two proportions is that of tables, and equal ones rarely differ.
 */
#include "report/stats/proportion_test.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static struct change_test test_counts(
	double before, double of_before, double after, double of_after)
{
	const double share[2] = { of_before > 0 ? before / of_before : 0,
		of_after > 0 ? after / of_after : 0 };
	const double count[2] = { of_before, of_after };

	return proportion_test(share, count);
}

START_TEST(p_is_that_of_the_normal_distribution)
{
	/* z = 0.15 / sqrt(0.575 * 0.425 * 0.02) = 2.1456 */
	struct change_test test = test_counts(50, 100, 65, 100);

	ck_assert(test.tested);
	ck_assert_double_eq_tol(test.p, 0.03191, 0.00005);
	ck_assert_double_eq_tol(test.shift, 0.15, 1e-12);
	/* z = 0.05 / sqrt(2/15 * 13/15 * (1/200 + 1/400)) = 1.6984 */
	test = test_counts(20, 200, 60, 400);
	ck_assert_double_eq_tol(test.p, 0.08944, 0.00005);
	test = test_counts(60, 400, 20, 200);
	ck_assert_double_eq_tol(test.p, 0.08944, 0.00005);
	ck_assert_double_eq_tol(test.shift, -0.05, 1e-12);
}
END_TEST

START_TEST(few_expected_samples_are_not_tested)
{
	ck_assert(!test_counts(4, 100, 5, 100).tested);
	ck_assert(test_counts(5, 100, 5, 100).tested);
	ck_assert(!test_counts(96, 100, 95, 100).tested);
	ck_assert(!test_counts(0, 0, 40, 100).tested);
	ck_assert_double_eq(test_counts(0, 0, 0, 100).p, 1);
}
END_TEST

static double uniform(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double draw(double share, int count)
{
	double drawn = 0;

	for (int i = 0; i < count; i++)
		drawn += uniform() < share;
	return drawn;
}

START_TEST(one_in_twenty_of_equal_proportions_has_p_below_one_twentieth)
{
	int below = 0;

	for (int i = 0; i < 4000; i++)
		below += test_counts(draw(0.2, 300), 300, draw(0.2, 500), 500).p < 0.05;
	/* 200 are expected, with a deviation of 14. */
	ck_assert_int_gt(below, 200 - 60);
	ck_assert_int_lt(below, 200 + 60);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proportion_test");
	TCase *tests = tcase_create("proportion_test");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, p_is_that_of_the_normal_distribution);
	tcase_add_test(tests, few_expected_samples_are_not_tested);
	tcase_add_test(tests, one_in_twenty_of_equal_proportions_has_p_below_one_twentieth);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
