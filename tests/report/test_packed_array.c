/* SPDX-License-Identifier: MIT
 * test_packed_array.c: entries are what was written to them last, whether their block was packed
 * meanwhile or not.
 */
#include "report/base/packed_array.h"

#include <check.h>
#include <string.h>

#define MANY 600000u /* more than the blocks in memory hold */

struct entry {
	uint64_t number;
	uint32_t marks;
	uint8_t kind, padding[3];
};

static struct packed_array array_of_numbers(uint32_t count)
{
	struct packed_array array = { .size = sizeof(struct entry),
		.what = "numbers",
		.class_at = offsetof(struct entry, kind) };

	for (uint32_t i = 0; i < count; i++)
		*(struct entry *)packed_array_push(&array) = (struct entry){
			.number = i * UINT64_C(3), .kind = (uint8_t)(i % 3)
		};
	return array;
}

static void expect_entry(struct packed_array *array, uint32_t index, uint32_t marks)
{
	const struct entry *entry = packed_array_at(array, index);

	ck_assert_uint_eq(entry->number, index * UINT64_C(3));
	ck_assert_uint_eq(entry->kind, index % 3);
	ck_assert_uint_eq(entry->marks, marks);
}

START_TEST(entries_are_kept_in_the_file)
{
	struct packed_array array = array_of_numbers(MANY);

	ck_assert_ptr_nonnull(array.file);
	for (uint32_t i = MANY; i; i--, packed_array_trim(&array))
		expect_entry(&array, i - 1, 0);
	ck_assert_uint_le(array.resident << array.shift,
		PACKED_ARRAY_RESIDENT / sizeof(struct entry) + (1u << array.shift));
	packed_array_free(&array);
}
END_TEST

START_TEST(changed_entries_are_written_again)
{
	struct packed_array array = array_of_numbers(MANY);

	/* the second time blocks outgrow their room in the file */
	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t i = 0; i < MANY; i += 7, packed_array_trim(&array))
			((struct entry *)packed_array_edit(&array, i))->marks =
				round == 1 ? 1 : i * 2654435761u;
	for (uint32_t i = 0; i < MANY; i++, packed_array_trim(&array))
		expect_entry(&array, i, i % 7 ? 0 : i * 2654435761u);
	packed_array_free(&array);
}
END_TEST

START_TEST(entries_stay_in_place_until_the_next_trim)
{
	struct packed_array array = array_of_numbers(MANY);
	const struct entry *first = packed_array_at(&array, 0);

	for (uint32_t i = 0; i < MANY; i += 100)
		expect_entry(&array, i, 0);
	ck_assert_uint_eq(first->number, 0);
	ck_assert_ptr_eq(first, packed_array_at(&array, 0));
	packed_array_free(&array);
}
END_TEST

START_TEST(reserved_entries_are_zero_and_take_no_room)
{
	struct packed_array array = { .size = 800, .what = "gains", .class_at = ENTRY_NO_CLASS };
	const unsigned char zeros[800] = { 0 };

	packed_array_reserve(&array, MANY);
	ck_assert_uint_eq(array.resident, 0);
	ck_assert_mem_eq(packed_array_at(&array, MANY - 1), zeros, sizeof zeros);
	ck_assert_mem_eq(packed_array_at(&array, 0), zeros, sizeof zeros);
	ck_assert_uint_eq(array.resident, 2);
	packed_array_free(&array);
}
END_TEST

START_TEST(dropped_blocks_are_not_written)
{
	struct packed_array array = { .size = 8, .what = "slack", .class_at = ENTRY_NO_CLASS };

	packed_array_reserve(&array, MANY);
	for (uint32_t i = MANY; i; i--, packed_array_trim(&array)) {
		*(uint64_t *)packed_array_edit(&array, i - 1) = i;
		packed_array_drop(&array, i - 1);
	}
	ck_assert_ptr_null(array.file);
	ck_assert_uint_eq(array.count, 0);
	packed_array_free(&array);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("packed_array");
	TCase *tests = tcase_create("entries");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, entries_are_kept_in_the_file);
	tcase_add_test(tests, changed_entries_are_written_again);
	tcase_add_test(tests, entries_stay_in_place_until_the_next_trim);
	tcase_add_test(tests, reserved_entries_are_zero_and_take_no_room);
	tcase_add_test(tests, dropped_blocks_are_not_written);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
