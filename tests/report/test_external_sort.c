/* SPDX-License-Identifier: MIT
 * test_external_sort.c: entries come in order, in memory and from the file, as often as wanted.
 */
#include "report/base/external_sort.h"

#include "report/base/compare.h"

#include <check.h>
#include <string.h>

#define HELD 1000u

struct entry {
	uint64_t number, square;
	char text[20];
	uint32_t kind;
};

COMPARE_BY(compare_entries, struct entry, number)

/* Adds the numbers below `count`, which must not be a multiple of `step`, every `step`th one first
 * or, if that is 1, in order. */
static void add_numbers(struct external_sort *sorter, uint64_t count, uint64_t step)
{
	for (uint64_t i = 0, number = 0; i < count; i++, number = (number + step) % count) {
		struct entry *entry = external_sort_add(sorter);

		ck_assert_uint_eq(entry->square, 0);
		*entry = (struct entry){ .number = number, .square = number * number };
		entry->kind = (uint32_t)(number % 5);
	}
}

static void expect_numbers(struct external_sort *sorter, uint64_t count)
{
	const struct entry *entry;

	ck_assert_uint_eq(external_sort_count(sorter), count);
	for (uint64_t i = 0; i < count; i++, external_sort_next(sorter)) {
		entry = external_sort_peek(sorter);
		ck_assert_ptr_nonnull(entry);
		ck_assert_uint_eq(entry->number, i);
		ck_assert_uint_eq(entry->square, i * i);
		ck_assert_uint_eq(entry->kind, i % 5);
	}
	ck_assert_ptr_null(external_sort_peek(sorter));
}

START_TEST(entries_come_in_order)
{
	const uint64_t counts[] = { 0, 1, HELD - 1, HELD, HELD + 1, 20 * HELD, 50 * HELD + 7 },
		       steps[] = { 1, 7919 };

	for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
		const uint64_t count = counts[i / 2];
		struct external_sort *sorter = external_sort_new(
			sizeof(struct entry), HELD, compare_entries, "numbers");

		if (i % 4 == 1)
			external_sort_set_class(sorter, offsetof(struct entry, kind));
		add_numbers(sorter, count, steps[i % 2]);
		for (unsigned time = 0; time < 2; time++) {
			external_sort_rewind(sorter);
			expect_numbers(sorter, count);
		}
		external_sort_rewind_last(sorter);
		expect_numbers(sorter, count);
		external_sort_free(sorter);
	}
	external_sort_free(NULL);
}
END_TEST

START_TEST(reading_may_stop_anywhere)
{
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, compare_entries, "numbers");

	add_numbers(sorter, 10 * HELD, 7919);
	external_sort_rewind(sorter);
	for (unsigned i = 0; i < 7 * HELD; i++)
		external_sort_next(sorter);
	external_sort_rewind(sorter);
	expect_numbers(sorter, 10 * HELD);
	external_sort_free(sorter);
}
END_TEST

START_TEST(a_cleared_sorter_is_used_again)
{
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, compare_entries, "numbers");

	add_numbers(sorter, 5 * HELD, 1);
	external_sort_clear(sorter);
	add_numbers(sorter, 3 * HELD, 7919);
	external_sort_rewind(sorter);
	expect_numbers(sorter, 3 * HELD);
	external_sort_free(sorter);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("external_sort");
	TCase *tests = tcase_create("entries");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, entries_come_in_order);
	tcase_add_test(tests, reading_may_stop_anywhere);
	tcase_add_test(tests, a_cleared_sorter_is_used_again);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
