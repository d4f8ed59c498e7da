/* SPDX-License-Identifier: MIT
 * test_python_lines.c: lines from the three formats of table, whole and damaged.
 */
#include "preload/python/line_table.h"

#include <check.h>
#include <stdlib.h>

#define LINE(format, table, offset) \
	python_line(PYTHON_LINES_##format, table, sizeof table, 100, offset)

START_TEST(before_the_first_instruction_it_is_the_first_line)
{
	static const uint8_t none[1] = { 0 };

	ck_assert_uint_eq(LINE(LNOTAB, none, -1), 100);
	ck_assert_uint_eq(LINE(RANGES, none, -2), 100);
	ck_assert_uint_eq(LINE(LOCATIONS, none, -2), 100);
}
END_TEST

START_TEST(lnotab_counts_code_then_lines)
{
	static const uint8_t table[] = { 0, 1, 6, 2, 4, 0xfd, 255, 0, 10, 127, 0, 127 };

	ck_assert_uint_eq(LINE(LNOTAB, table, 0), 101);
	ck_assert_uint_eq(LINE(LNOTAB, table, 5), 101);
	ck_assert_uint_eq(LINE(LNOTAB, table, 6), 103);
	ck_assert_uint_eq(LINE(LNOTAB, table, 10), 100);
	ck_assert_uint_eq(LINE(LNOTAB, table, 274), 100);
	ck_assert_uint_eq(LINE(LNOTAB, table, 275), 354);
	ck_assert_uint_eq(LINE(LNOTAB, table, 1 << 30), 354);
}
END_TEST

START_TEST(ranges_may_have_no_line)
{
	static const uint8_t table[] = { 4, 1, 2, 0x80, 6, 5, 2, 0xff };

	ck_assert_uint_eq(LINE(RANGES, table, 0), 101);
	ck_assert_uint_eq(LINE(RANGES, table, 3), 101);
	ck_assert_uint_eq(LINE(RANGES, table, 4), 0);
	ck_assert_uint_eq(LINE(RANGES, table, 6), 106);
	ck_assert_uint_eq(LINE(RANGES, table, 12), 105);
	ck_assert_uint_eq(LINE(RANGES, table, 14), 0);
}
END_TEST

#define HEAD(code, units) (uint8_t)(0x80 | (code) << 3 | ((units)-1))

START_TEST(locations_of_every_form_are_followed)
{
	static const uint8_t table[] = {
		HEAD(11, 1), 0, 4,                              /* 101: units 0 */
		HEAD(3, 8), 0x55,                               /* the same: 1 to 8 */
		HEAD(13, 2), (40 << 1 & 63) | 64, 40 << 1 >> 6, /* 141: 9, 10 */
		HEAD(15, 1),                                    /* none: 11 */
		HEAD(14, 3), 3, 1, 2, 64, 1,                    /* 140: 12 to 14 */
		HEAD(12, 1), 0, 0,                              /* 142: 15 */
	};
	static const uint32_t lines[] = { 101, 101, 101, 101, 101, 101, 101, 101, 101, 141, 141, 0,
		140, 140, 140, 142, 0 };

	for (int unit = 0; unit < 17; unit++) {
		ck_assert_uint_eq(LINE(LOCATIONS, table, 2 * unit), lines[unit]);
		ck_assert_uint_eq(LINE(LOCATIONS, table, 2 * unit + 1), lines[unit]);
	}
}
END_TEST

START_TEST(a_table_of_any_bytes_and_any_length_ends)
{
	uint64_t state = 1;

	for (int round = 0; round < 20000; round++) {
		uint8_t *table;
		size_t bytes;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		bytes = state >> 59;
		table = malloc(
			bytes ? bytes
			      /* of its own, so that a byte too far is seen by the sanitizer */
			      : 1);
		for (size_t i = 0; i < bytes; i++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
			table[i] = (uint8_t)(state >> 40);
		}
		for (int format = PYTHON_LINES_LNOTAB; format <= PYTHON_LINES_LOCATIONS; format++)
			python_line((enum python_line_format)format, table, bytes, 1,
				(int64_t)(state >> 55));
		free(table);
	}
}
END_TEST

START_TEST(a_line_that_cannot_be_is_none)
{
	static const uint8_t back[] = { HEAD(13, 1), 63, 63 },
			     far[] = { HEAD(13, 1), 126, 127, 127, 127, 127, 63 };

	ck_assert_uint_eq(python_line(PYTHON_LINES_LOCATIONS, back, sizeof back, 5, 0), 0);
	ck_assert_uint_eq(python_line(PYTHON_LINES_LOCATIONS, far, sizeof far, INT32_MAX, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("python_lines");
	TCase *cases = tcase_create("lines");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, before_the_first_instruction_it_is_the_first_line);
	tcase_add_test(cases, lnotab_counts_code_then_lines);
	tcase_add_test(cases, ranges_may_have_no_line);
	tcase_add_test(cases, locations_of_every_form_are_followed);
	tcase_add_test(cases, a_table_of_any_bytes_and_any_length_ends);
	tcase_add_test(cases, a_line_that_cannot_be_is_none);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
