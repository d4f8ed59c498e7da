/* SPDX-License-Identifier: MIT
 * test_median.c: the median is that of the sorted values, for any order and with equal values.
 */
#include "report/base/compare.h"
#include "report/stats/median.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MOST 300u

static double sorted_median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_double);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Fills with numbers below `different`, so that some are equal. */
static void fill(double *values, size_t count, unsigned different, unsigned seed)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1103515245u + 12345u;
		values[i] = (double)(seed / 65536u % different) - different / 2.0;
	}
}

START_TEST(it_is_that_of_the_sorted_values)
{
	static const unsigned different[] = { 1, 2, 7, 1000 };
	double values[MOST], sorted[MOST];

	for (size_t count = 1; count <= MOST; count++)
		for (unsigned i = 0; i < 4; i++) {
			fill(values, count, different[i], (unsigned)count);
			memcpy(sorted, values, sizeof values);
			ck_assert_double_eq(
				median_unsorted(values, count), sorted_median(sorted, count));
		}
}
END_TEST

START_TEST(the_order_of_the_values_does_not_matter)
{
	double rising[MOST], falling[MOST];

	for (size_t i = 0; i < MOST; i++) {
		rising[i] = (double)i;
		falling[i] = (double)(MOST - 1 - i);
	}
	ck_assert_double_eq(median_unsorted(rising, MOST), (MOST - 1) / 2.0);
	ck_assert_double_eq(median_unsorted(falling, MOST), (MOST - 1) / 2.0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("median");
	TCase *tests = tcase_create("median");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, it_is_that_of_the_sorted_values);
	tcase_add_test(tests, the_order_of_the_values_does_not_matter);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
