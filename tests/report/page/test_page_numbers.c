/* SPDX-License-Identifier: MIT
 * test_page_numbers.c: text views write the numbers that the scripts of pages are tested with.
 */
#include "report/text/format_number.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t format_case(char *out, const char *unit, long long value, const char *whole)
{
	if (!strcmp(unit, "percent"))
		return format_percent(out, value, strtoll(whole, NULL, 10));
	return format_with_unit(out,
		!strcmp(unit, "time")    ? UNIT_TIME
		: !strcmp(unit, "bytes") ? UNIT_BYTES
					 : UNIT_COUNT,
		value, false, false);
}

START_TEST(text_views_write_the_numbers_of_the_table)
{
	FILE *table = fopen("tests/report/page/numbers.tsv", "r");
	char line[256], out[FORMAT_NUMBER_BYTES];
	unsigned count = 0;

	ck_assert_ptr_nonnull(table);
	while (fgets(line, sizeof line, table)) {
		char *value = strchr(line, '\t'), *whole, *text;

		if (line[0] == '#')
			continue;
		ck_assert_ptr_nonnull(value);
		*value++ = '\0';
		whole = strchr(value, '\t');
		*whole++ = '\0';
		text = strchr(whole, '\t');
		*text++ = '\0';
		text[strcspn(text, "\n")] = '\0';
		format_case(out, line, strtoll(value, NULL, 10), whole);
		ck_assert_str_eq(out, text);
		count++;
	}
	fclose(table);
	ck_assert_uint_gt(count, 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page numbers");
	TCase *test = tcase_create("page numbers");
	SRunner *runner;
	int failed;

	tcase_add_test(test, text_views_write_the_numbers_of_the_table);
	suite_add_tcase(suite, test);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
