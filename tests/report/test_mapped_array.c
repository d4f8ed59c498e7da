/* SPDX-License-Identifier: MIT
 * Entries of mapped arrays: kept when the array grows, zeroed when they are new.
 */
#include "report/base/mapped_array.h"

#include <check.h>

static struct mapped_array array_of_numbers(size_t count)
{
	struct mapped_array array = { .size = sizeof(uint64_t), .what = "numbers" };

	for (size_t i = 0; i < count; i++)
		*(uint64_t *)mapped_array_push(&array) = i + 1;
	return array;
}

START_TEST(entries_are_kept_when_the_array_grows)
{
	struct mapped_array array = array_of_numbers(100000);

	for (size_t i = 0; i < array.count; i++)
		ck_assert_uint_eq(((const uint64_t *)array.entries)[i], i + 1);
	mapped_array_free(&array);
}
END_TEST

START_TEST(entries_pushed_after_a_shrink_are_zeroed)
{
	struct mapped_array array = array_of_numbers(2000);

	mapped_array_resize(&array, 5);
	ck_assert_uint_eq(*(const uint64_t *)mapped_array_push(&array), 0);
	ck_assert_uint_eq(((const uint64_t *)array.entries)[4], 5);
	mapped_array_free(&array);
}
END_TEST

START_TEST(entries_added_by_a_resize_after_a_shrink_are_zeroed)
{
	struct mapped_array array = array_of_numbers(2000);

	mapped_array_resize(&array, 0);
	mapped_array_resize(&array, 3000);
	for (size_t i = 0; i < array.count; i++)
		ck_assert_uint_eq(((const uint64_t *)array.entries)[i], 0);
	mapped_array_free(&array);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mapped_array");
	TCase *tests = tcase_create("entries");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, entries_are_kept_when_the_array_grows);
	tcase_add_test(tests, entries_pushed_after_a_shrink_are_zeroed);
	tcase_add_test(tests, entries_added_by_a_resize_after_a_shrink_are_zeroed);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
