/* SPDX-License-Identifier: MIT
 * When the sampler slows down and when it is fast again, by made-up clocks.
 */
#include "collector/sample/brake.h"

#include <check.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
enum { QUARTERS = 20 }; /* of a second, in a window */

static struct brake brake;
static struct sampler_cost clocks;

static void set_up(void)
{
	brake = (struct brake){ .window = { 0 } };
	clocks = (struct sampler_cost){ .now_ns = 1 };
	ck_assert_int_eq(brake_judge(&brake, &clocks), BRAKE_KEEP);
}

/* Lets `count` quarters of a second pass, in each of which the sampler and the process use CPU time.
 * Returns the last verdict. No other one may be given before. */
static enum brake_verdict pass(unsigned count, uint64_t own_ns, uint64_t process_ns)
{
	enum brake_verdict verdict = BRAKE_KEEP;

	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(verdict, BRAKE_KEEP);
		clocks.now_ns += 250 * MS;
		clocks.own_ns += own_ns;
		clocks.process_ns += process_ns;
		verdict = brake_judge(&brake, &clocks);
	}
	return verdict;
}

START_TEST(more_than_two_percent_over_five_seconds_is_too_much)
{
	ck_assert_int_eq(pass(QUARTERS, 6 * MS, 250 * MS), BRAKE_SLOWER);
	ck_assert_int_eq(pass(QUARTERS, 6 * MS, 250 * MS), BRAKE_SLOWER);
	ck_assert_int_eq(pass(QUARTERS, 4 * MS, 250 * MS), BRAKE_KEEP);
}
END_TEST

START_TEST(a_costly_start_is_not_too_much)
{
	/* 8 % for four seconds, then 1 %. */
	ck_assert_int_eq(pass(QUARTERS - 4, 20 * MS, 250 * MS), BRAKE_KEEP);
	ck_assert_int_eq(pass(4, 5 * MS / 2, 250 * MS), BRAKE_KEEP);
	/* The costly second is the last one, but the five are not too much. */
	ck_assert_int_eq(pass(QUARTERS - 4, 2 * MS, 250 * MS), BRAKE_KEEP);
	ck_assert_int_eq(pass(4, 10 * MS, 250 * MS), BRAKE_KEEP);
}
END_TEST

START_TEST(a_process_that_sleeps_is_compared_with_a_core)
{
	ck_assert_int_eq(pass(QUARTERS, 1 * MS, 2 * MS), BRAKE_KEEP);
	ck_assert_int_eq(pass(QUARTERS, 2 * MS, 4 * MS), BRAKE_SLOWER);
}
END_TEST

START_TEST(seconds_of_sleep_are_not_too_much_after_costly_ones)
{
	ck_assert_int_eq(pass(QUARTERS - 4, 20 * MS, 250 * MS), BRAKE_KEEP);
	ck_assert_int_eq(pass(4, MS / 10, MS / 5), BRAKE_KEEP);
}
END_TEST

START_TEST(a_rate_whose_double_costs_one_percent_may_be_doubled)
{
	ck_assert_int_eq(pass(QUARTERS, 1 * MS, 200 * MS), BRAKE_FASTER);
	ck_assert_int_eq(pass(QUARTERS, 2 * MS, 200 * MS), BRAKE_KEEP);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("brake");
	TCase *tests = tcase_create("brake");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, more_than_two_percent_over_five_seconds_is_too_much);
	tcase_add_test(tests, a_costly_start_is_not_too_much);
	tcase_add_test(tests, a_process_that_sleeps_is_compared_with_a_core);
	tcase_add_test(tests, seconds_of_sleep_are_not_too_much_after_costly_ones);
	tcase_add_test(tests, a_rate_whose_double_costs_one_percent_may_be_doubled);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
