/* SPDX-License-Identifier: MIT
 * test_change_test.c: known answers of the t test and its distributions, and how often few samples
 * of equal runs are reported to differ.
 */
#include "report/stats/change_test.h"
#include "report/stats/student_t.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { PATHS = 60, SAMPLES_MAX = 32 };

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

/* Quantiles of published tables: t 0.975 of 4 and 0.995 of 10, F 0.95 of (5, 10). */
START_TEST(tails_of_published_tables)
{
	ck_assert_double_eq_tol(student_t_two_sided(2.776445, 4), 0.05, 1e-6);
	ck_assert_double_eq_tol(student_t_two_sided(-3.169273, 10), 0.01, 1e-6);
	ck_assert_double_eq_tol(student_t_two_sided(1.959964, 1e8), 0.05, 1e-6);
	ck_assert_double_eq_tol(student_t_two_sided(0, 3), 1, 1e-12);
	ck_assert_double_eq_tol(f_upper_tail(3.325835, 5, 10), 0.05, 1e-6);
	ck_assert_double_eq_tol(digamma(1), -0.5772156649, 1e-10);
	ck_assert_double_eq_tol(trigamma(1), 1.6449340668, 1e-10);
	ck_assert_double_eq_tol(trigamma_inverse(trigamma(0.3)), 0.3, 1e-9);
	ck_assert_double_eq_tol(trigamma_inverse(trigamma(40)), 40, 1e-6);
}
END_TEST

/* Logarithms 0, 1, 2 and 10, 11, 12: t = 10 / sqrt(2 / 3) with 4 degrees of freedom. */
START_TEST(three_against_three_by_hand)
{
	const double before[] = { 1, exp(1), exp(2) }, after[] = { exp(10), exp(11), exp(12) };
	const struct change_test result = change_test_alone(before, 3, after, 3),
				 mirrored = change_test_alone(after, 3, before, 3);

	ck_assert(result.tested);
	ck_assert_double_eq_tol(result.p, student_t_two_sided(10 / sqrt(2.0 / 3), 4), 1e-12);
	ck_assert_double_eq_tol(result.median[0], exp(1), 1e-12);
	ck_assert_double_eq(mirrored.p, result.p);
	ck_assert_double_eq(mirrored.shift, -result.shift);
}
END_TEST

START_TEST(too_few_are_not_tested)
{
	const double values[] = { 1, 2, 3 };

	ck_assert(!change_test_alone(values, 2, values, 3).tested);
	ck_assert(!change_test_alone(values, 3, values, 0).tested);
	ck_assert_double_eq(change_test_alone(values, 3, values, 2).p, 1);
}
END_TEST

START_TEST(equal_values_do_not_differ_and_two_constants_do)
{
	const double a[] = { 7, 7, 7 }, b[] = { 8, 8, 8 }, none[] = { 0, 0, 0 },
		     huge[] = { -1e308, 1e308, INFINITY };

	ck_assert_double_eq(change_test_alone(a, 3, a, 3).p, 1);
	ck_assert_double_eq(change_test_alone(none, 3, none, 3).p, 1);
	ck_assert_double_lt(change_test_alone(a, 3, b, 3).p, 1e-10);
	ck_assert_double_lt(change_test_alone(none, 3, b, 3).p, 1e-10);
	ck_assert_double_eq(change_test_alone(a, 3, b, 3).shift, 1);
	ck_assert_double_eq(change_test_alone(a, 3, huge, 3).p, 1);
}
END_TEST

START_TEST(one_slow_step_neither_makes_nor_hides_a_change)
{
	const double before[] = { 100, 101, 99, 102, 98, 100 },
		     slow[] = { 100, 99, 101, 900, 100, 98 },
		     after[] = { 131, 130, 129, 900, 132, 130 };

	ck_assert_double_gt(change_test_alone(before, 6, slow, 6).p, 0.2);
	ck_assert_double_lt(change_test_alone(before, 6, after, 6).p, 0.01);
}
END_TEST

/* Benjamini and Hochberg by hand: p * 3 / rank, never more than that of the next rank. */
START_TEST(probabilities_are_adjusted_for_the_false_discovery_rate)
{
	const double low[] = { 1, exp(1), exp(2) }, mid[] = { exp(4), exp(5), exp(6) },
		     high[] = { exp(10), exp(11), exp(12) };
	struct change_test results[3];
	const struct sample_pair pairs[] = { { { low, high }, { 3, 3 }, &results[0] },
		{ { low, mid }, { 3, 3 }, &results[1] }, { { low, low }, { 3, 3 }, &results[2] } };

	ck_assert_uint_eq(change_test_all(pairs, 3), 3);
	ck_assert_double_eq_tol(results[0].p, 3 * change_test_alone(low, 3, high, 3).p, 1e-12);
	ck_assert_double_eq_tol(results[1].p, 1.5 * change_test_alone(low, 3, mid, 3).p, 1e-12);
	ck_assert_double_eq(results[2].p, 1);
}
END_TEST

/* Fills pairs of equal runs, but for the first path by `factor`. The noise of each path differs. */
static void fill_pairs(double values[PATHS][2][SAMPLES_MAX], struct sample_pair *pairs,
	struct change_test *results, size_t n, double noise, double factor)
{
	for (size_t path = 0; path < PATHS; path++) {
		for (size_t i = 0; i < 2 * n; i++)
			values[path][i / n][i % n] = 1000 * (path == 0 && i >= n ? factor : 1) *
						     exp(noise * normal());
		pairs[path] = (struct sample_pair){ { values[path][0], values[path][1] }, { n, n },
			&results[path] };
	}
}

START_TEST(power_and_false_discoveries_of_few_samples)
{
	static const struct {
		size_t n;
		double noise, power;
	} cases[] = { { 3, 0.02, 0.95 }, { 6, 0.02, 0.99 }, { 6, 0.05, 0.9 }, { 12, 0.05, 0.98 },
		{ 24, 0.1, 0.9 } };
	static double values[PATHS][2][SAMPLES_MAX];
	struct sample_pair pairs[PATHS];
	struct change_test results[PATHS];

	state = 5 + (uint64_t)_i;
	for (unsigned changed = 0; changed < 2; changed++) {
		int found = 0, wrong = 0;

		for (int times = 0; times < 400; times++) {
			bool any = false;

			fill_pairs(values, pairs, results, cases[_i].n, cases[_i].noise,
				changed ? 1.2 : 1);
			change_test_all(pairs, PATHS);
			found += changed && results[0].p < CHANGE_TEST_FDR;
			for (size_t path = 0; path < PATHS; path++)
				any |= results[path].p < CHANGE_TEST_FDR;
			wrong += !changed && any;
		}
		ck_assert_int_le(wrong, 400 * 5 / 100);
		if (changed)
			ck_assert_int_ge(found, (int)(400 * cases[_i].power));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("change test");
	TCase *samples = tcase_create("samples");
	SRunner *runner;
	int failed;

	tcase_set_timeout(samples, 120);
	tcase_add_test(samples, tails_of_published_tables);
	tcase_add_test(samples, three_against_three_by_hand);
	tcase_add_test(samples, too_few_are_not_tested);
	tcase_add_test(samples, equal_values_do_not_differ_and_two_constants_do);
	tcase_add_test(samples, one_slow_step_neither_makes_nor_hides_a_change);
	tcase_add_test(samples, probabilities_are_adjusted_for_the_false_discovery_rate);
	tcase_add_loop_test(samples, power_and_false_discoveries_of_few_samples, 0, 5);
	suite_add_tcase(suite, samples);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
