/* SPDX-License-Identifier: MIT
 * test_external_sort.c: entries come in order, in memory and from the file, as often as wanted,
 * with one thread and with several.
 * Sources that are in order are merged only.
 */
#include "report/base/external_sort.h"

#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/threads.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

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

	threads_set_limit((unsigned)_i);
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

/* Adds the numbers below `count` from `sources` sources in turn, each of which is in order. `count`
 * is a multiple of `sources`. */
static void add_from_sources(struct external_sort *sorter, uint64_t count, uint64_t sources)
{
	const uint64_t each = count / sources;

	for (uint64_t i = 0; i < count; i++) {
		const uint64_t number = (sources - 1 - i % sources) * each + i / sources;
		struct entry *entry = external_sort_add(sorter);

		*entry = (struct entry){ .number = number, .square = number * number };
		entry->kind = (uint32_t)(number % 5);
	}
}

/* More sources than runs that grow, too; with as many as entries, the numbers go down. */
START_TEST(sources_in_order_are_merged)
{
	const uint64_t sources[] = { 2, 30, 100, 30 * HELD };

	threads_set_limit((unsigned)_i);
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		struct external_sort *sorter = external_sort_new(
			sizeof(struct entry), HELD, compare_entries, "numbers");

		external_sort_set_class(sorter, offsetof(struct entry, kind));
		external_sort_relate(sorter, offsetof(struct entry, square), 0);
		external_sort_follow(sorter, offsetof(struct entry, number));
		add_from_sources(sorter, 30 * HELD, sources[i]);
		external_sort_rewind(sorter);
		expect_numbers(sorter, 30 * HELD);
		external_sort_rewind_last(sorter);
		expect_numbers(sorter, 30 * HELD);
		external_sort_free(sorter);
	}
}
END_TEST

static uint64_t comparisons;

static int count_and_compare(const void *left, const void *right)
{
	comparisons++;
	return compare_entries(left, right);
}

/* A sort takes 10 comparisons for each of HELD entries. */
START_TEST(few_sources_take_few_comparisons)
{
	const uint64_t count = 50 * HELD;
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, count_and_compare, "numbers");

	threads_set_limit(1);
	for (uint64_t i = 0; i < count; i++) {
		struct entry *entry = external_sort_add(sorter);

		/* the second source is a hundred numbers behind */
		entry->number = i % 2 && i > 100 ? i - 100 : i;
	}
	external_sort_rewind(sorter);
	while (external_sort_peek(sorter))
		external_sort_next(sorter);
	ck_assert_uint_le(comparisons, 5 * count);
	external_sort_free(sorter);
}
END_TEST

START_TEST(reading_may_stop_anywhere)
{
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, compare_entries, "numbers");

	threads_set_limit((unsigned)_i);
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

	threads_set_limit((unsigned)_i);
	add_numbers(sorter, 5 * HELD, 1);
	external_sort_clear(sorter);
	add_numbers(sorter, 3 * HELD, 7919);
	external_sort_rewind(sorter);
	expect_numbers(sorter, 3 * HELD);
	external_sort_free(sorter);
}
END_TEST

/* More sorters than threads: some merge in the thread of the caller. */
START_TEST(several_are_read_at_once)
{
	struct external_sort *sorters[6];

	threads_set_limit((unsigned)_i);
	for (size_t i = 0; i < 6; i++) {
		sorters[i] = external_sort_new(
			sizeof(struct entry), HELD, compare_entries, "numbers");
		add_numbers(sorters[i], 9 * HELD, 7919);
		external_sort_rewind(sorters[i]);
	}
	for (uint64_t number = 0; number < 9 * HELD; number++)
		for (size_t i = 0; i < 6; i++, external_sort_next(sorters[i - 1]))
			ck_assert_uint_eq(
				((const struct entry *)external_sort_peek(sorters[i]))->number,
				number);
	for (size_t i = 0; i < 6; i++)
		external_sort_free(sorters[i]);
}
END_TEST

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	ck_assert_ptr_nonnull(tasks);
	for (const struct dirent *task; (task = readdir(tasks));)
		count += *task->d_name != '.';
	closedir(tasks);
	return count;
}

START_TEST(one_core_means_one_thread)
{
	const unsigned before = count_threads();
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, compare_entries, "numbers");

	threads_set_limit((unsigned)_i);
	add_numbers(sorter, 20 * HELD, 7919);
	ck_assert_int_eq(count_threads() > before, _i > 1);
	external_sort_rewind(sorter);
	ck_assert_int_eq(count_threads() > before, _i > 1);
	external_sort_free(sorter);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_ends_the_program)
{
	const struct rlimit small = { 1 << 16, 1 << 16 };
	struct external_sort *sorter = external_sort_new(
		sizeof(struct entry), HELD, compare_entries, "numbers");

	threads_set_limit((unsigned)_i);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	add_numbers(sorter, 200 * HELD, 7919);
	external_sort_rewind(sorter);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("external_sort");
	TCase *tests = tcase_create("entries");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, entries_come_in_order, 1, 4);
	tcase_add_loop_test(tests, sources_in_order_are_merged, 1, 4);
	tcase_add_test(tests, few_sources_take_few_comparisons);
	tcase_add_loop_test(tests, reading_may_stop_anywhere, 1, 4);
	tcase_add_loop_test(tests, a_cleared_sorter_is_used_again, 1, 4);
	tcase_add_loop_test(tests, several_are_read_at_once, 1, 4);
	tcase_add_loop_test(tests, one_core_means_one_thread, 1, 4);
	tcase_add_loop_exit_test(
		tests, a_file_that_cannot_be_written_ends_the_program, STATUS_UNREADABLE, 1, 4);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
