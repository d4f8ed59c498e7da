/* SPDX-License-Identifier: MIT
 * test_mann_whitney.c: whether two samples differ: known answers, and how often noise is taken for
 * a difference.
 */
#include "report/stats/mann_whitney.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Noise whose neighbours are like each other by `likeness`. */
static void fill(double *values, size_t count, double mean, double sd, double likeness)
{
	double noise = normal();

	for (size_t i = 0; i < count; i++) {
		noise = likeness * noise + sqrt(1 - likeness * likeness) * normal();
		values[i] = mean + sd * noise;
	}
}

static int taken_for_a_difference(int times, size_t n, double likeness)
{
	double before[200], after[200];
	int found = 0;

	for (int i = 0; i < times; i++) {
		fill(before, n, 1000, 25, likeness);
		fill(after, n, 1000, 25, likeness);
		found += mann_whitney_test(before, n, after, n).p < 0.01;
	}
	return found;
}

START_TEST(known_answer)
{
	/* Two of 25 pairs are the other way round: U = 2, 12.5 expected, variance 25 * 11 / 12. */
	const double before[] = { 1, 2, 3, 4, 7 }, after[] = { 5, 6, 8, 9, 10 };
	const struct mann_whitney_result result = mann_whitney_test(before, 5, after, 5);

	ck_assert_double_eq_tol(
		result.p, erfc((12.5 - 2 - 0.5) / sqrt(25.0 * 11 / 12) / sqrt(2)), 1e-12);
	ck_assert_double_eq(hodges_lehmann_shift(before, 5, after, 5), 4);
}
END_TEST

START_TEST(equal_values_do_not_differ_and_two_constants_do)
{
	double before[50], after[50];

	for (int i = 0; i < 50; i++)
		before[i] = after[i] = 7;
	ck_assert_double_eq(mann_whitney_test(before, 50, after, 50).p, 1);
	for (int i = 0; i < 50; i++)
		after[i] = 8;
	ck_assert_double_lt(mann_whitney_test(before, 50, after, 50).p, 1e-10);
	ck_assert_double_eq(hodges_lehmann_shift(before, 50, after, 50), 1);
}
END_TEST

START_TEST(noise_is_seldom_taken_for_a_difference)
{
	int found;

	state = 1;
	found = taken_for_a_difference(1000, 60, 0);
	ck_assert_int_le(found, 21); /* 10 of 1000 are due, and 3.5 deviations */
	ck_assert_int_ge(found, 1);
	ck_assert_int_le(taken_for_a_difference(2000, 8, 0), 36);
	ck_assert_int_le(taken_for_a_difference(500, 120, 0.5), 18);
}
END_TEST

START_TEST(a_shift_is_found_and_its_size_estimated)
{
	double before[100], after[100];

	state = 2;
	fill(before, 100, 1000, 25, 0);
	fill(after, 100, 1050, 25, 0);
	after[3] = after[70] = 90000; /* a far value changes little */
	ck_assert_double_lt(mann_whitney_test(before, 100, after, 100).p, 1e-10);
	ck_assert_double_eq_tol(hodges_lehmann_shift(before, 100, after, 100), 50, 12);
}
END_TEST

START_TEST(many_values_are_judged_by_a_sample)
{
	double *before = calloc(5000, sizeof *before), *after = calloc(3000, sizeof *after);

	state = 3;
	fill(before, 5000, 1000, 25, 0);
	fill(after, 3000, 990, 25, 0);
	ck_assert_double_eq_tol(hodges_lehmann_shift(before, 5000, after, 3000), -10, 3);
	free(before);
	free(after);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("compare");
	TCase *samples = tcase_create("samples");
	SRunner *runner;
	int failed;

	tcase_add_test(samples, known_answer);
	tcase_add_test(samples, equal_values_do_not_differ_and_two_constants_do);
	tcase_add_test(samples, noise_is_seldom_taken_for_a_difference);
	tcase_add_test(samples, a_shift_is_found_and_its_size_estimated);
	tcase_add_test(samples, many_values_are_judged_by_a_sample);
	suite_add_tcase(suite, samples);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
