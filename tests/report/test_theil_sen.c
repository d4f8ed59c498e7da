/* SPDX-License-Identifier: MIT
 * test_theil_sen.c: one clock laid over another: what was put in comes out, and moments that are
 * wrong change nothing.
 */
#include "report/stats/theil_sen.h"

#include <check.h>
#include <stdlib.h>

#define EPOCH INT64_C(1700000000000000000)

/* A clock that is behind by `offset` at first and goes slower by `ppm`; moments 10 ms apart, and
 * seen up to `noise` late. */
static void fill(
	struct clock_readings *pairs, size_t count, int64_t offset, double ppm, int64_t noise)
{
	for (size_t i = 0; i < count; i++) {
		const int64_t passed = (int64_t)i * 10000000;

		pairs[i].own_ns = EPOCH + passed;
		pairs[i].other_ns = EPOCH + passed + offset +
				    (int64_t)((double)passed * ppm / 1e6) +
				    (noise ? (int64_t)(((uint32_t)i * 2654435761u >> 7 ^
							       (uint32_t)i * 40503u) %
						       (uint32_t)noise)
					   : 0);
	}
}

START_TEST(too_few_moments_give_nothing)
{
	struct clock_readings pairs[THEIL_SEN_PAIRS_MIN];

	fill(pairs, THEIL_SEN_PAIRS_MIN, 5000000, 0, 0);
	ck_assert_uint_eq(theil_sen_fit(pairs, THEIL_SEN_PAIRS_MIN - 1).pairs, 0);
	ck_assert_uint_eq(theil_sen_fit(pairs, THEIL_SEN_PAIRS_MIN).pairs, THEIL_SEN_PAIRS_MIN);
	ck_assert_int_eq(theil_sen_fit(pairs, THEIL_SEN_PAIRS_MIN).offset_ns, 5000000);
}
END_TEST

START_TEST(offset_and_drift_come_out_to_the_nanosecond)
{
	struct clock_readings pairs[1000];
	struct theil_sen_fit fit;

	fill(pairs, 1000, -5000000, 20, 0);
	fit = theil_sen_fit(pairs, 1000);
	ck_assert_double_eq_tol(fit.drift * 1e6, 20, 0.001);
	ck_assert_int_le(llabs(fit.offset_ns + 5000000), 1);
	ck_assert_uint_le(fit.residual_max_ns, 1);
	for (size_t i = 0; i < 1000; i++)
		ck_assert_int_le(
			llabs(theil_sen_map(&fit, pairs[i].own_ns) - pairs[i].other_ns), 1);
}
END_TEST

START_TEST(a_fifth_of_wrong_moments_changes_nothing)
{
	struct clock_readings pairs[300];
	struct theil_sen_fit fit;

	fill(pairs, 300, 5000000, 20, 0);
	for (size_t i = 0; i < 300; i += 5)
		pairs[i].other_ns += 40000000;
	fit = theil_sen_fit(pairs, 300);
	ck_assert_double_eq_tol(fit.drift * 1e6, 20, 0.01);
	ck_assert_int_le(llabs(fit.offset_ns - 5000000), 100);
	ck_assert_uint_le(fit.residual_ns, 100);
	ck_assert_uint_ge(fit.residual_max_ns, 39000000); /* and they are told */
}
END_TEST

START_TEST(noise_is_no_drift)
{
	struct clock_readings pairs[200];

	fill(pairs, 200, 123456, 0, 900);
	ck_assert_double_eq(theil_sen_fit(pairs, 200).drift, 0);
	ck_assert_uint_le(theil_sen_fit(pairs, 200).residual_ns, 300);
}
END_TEST

START_TEST(a_drift_that_no_clock_has_is_refused)
{
	struct clock_readings pairs[50];

	fill(pairs, 50, 0, 20000, 0);
	ck_assert_double_eq(theil_sen_fit(pairs, 50).drift, 0);
	ck_assert_uint_ge(theil_sen_fit(pairs, 50).residual_ns, 1000000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clock_fit");
	TCase *tcase = tcase_create("clock_fit");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, too_few_moments_give_nothing);
	tcase_add_test(tcase, offset_and_drift_come_out_to_the_nanosecond);
	tcase_add_test(tcase, a_fifth_of_wrong_moments_changes_nothing);
	tcase_add_test(tcase, noise_is_no_drift);
	tcase_add_test(tcase, a_drift_that_no_clock_has_is_refused);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
