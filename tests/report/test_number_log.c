/* SPDX-License-Identifier: MIT
 * test_number_log.c: numbers are read backwards as they were added, in memory or from the file.
 */
#include "report/base/number_log.h"

#include <check.h>
#include <stdlib.h>

#define MANY 300000u /* more than the chunk in memory holds */

/* Numbers of all lengths, most of them short. */
static uint64_t number_at(uint32_t index)
{
	const uint64_t mixed = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return index % 5 ? mixed % 300 : mixed >> index % 64;
}

static void expect_numbers(struct number_log *log, uint32_t count)
{
	for (uint32_t index = count; index-- > 0;) {
		ck_assert(number_log_left(log));
		ck_assert_uint_eq(number_log_back(log), number_at(index));
	}
	ck_assert(!number_log_left(log));
}

static void add_numbers(struct number_log *log, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		number_log_add(log, number_at(index));
}

START_TEST(numbers_are_read_backwards_as_often_as_wanted)
{
	const uint32_t counts[] = { 0, 1, 2, 1000, MANY };

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct number_log *log = number_log_new("numbers");

		add_numbers(log, counts[i]);
		for (int time = 0; time < 3; time++) {
			number_log_rewind(log, time == 2);
			expect_numbers(log, counts[i]);
		}
		number_log_free(log);
	}
	number_log_free(NULL);
}
END_TEST

START_TEST(a_log_is_read_again_before_its_begin_was_reached)
{
	struct number_log *log = number_log_new("numbers");

	add_numbers(log, MANY);
	number_log_rewind(log, false);
	for (uint32_t index = MANY; index-- > MANY / 2;)
		ck_assert_uint_eq(number_log_back(log), number_at(index));
	number_log_rewind(log, true);
	expect_numbers(log, MANY);
	number_log_free(log);
}
END_TEST

START_TEST(a_log_is_filled_again)
{
	struct number_log *log = number_log_new("numbers");

	add_numbers(log, MANY);
	number_log_clear(log);
	add_numbers(log, 3);
	number_log_rewind(log, false);
	expect_numbers(log, 3);
	number_log_clear(log);
	add_numbers(log, MANY);
	number_log_rewind(log, true);
	expect_numbers(log, MANY);
	number_log_free(log);
}
END_TEST

START_TEST(differences_are_numbers)
{
	const int64_t differences[] = { 0, 1, -1, 63, -64, INT64_MAX, INT64_MIN };

	ck_assert_uint_lt(number_of_difference(-64), 128);
	for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
		ck_assert_int_eq(
			difference_of_number(number_of_difference(differences[i])), differences[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("number_log");
	TCase *cases = tcase_create("numbers");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, numbers_are_read_backwards_as_often_as_wanted);
	tcase_add_test(cases, a_log_is_read_again_before_its_begin_was_reached);
	tcase_add_test(cases, a_log_is_filled_again);
	tcase_add_test(cases, differences_are_numbers);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
