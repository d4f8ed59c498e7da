/* SPDX-License-Identifier: MIT
 * test_text_builder.c: pieces of any length are joined, none is cut.
 */
#include "report/base/text_builder.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(pieces_are_joined_and_terminated)
{
	struct text_builder line = { .text = NULL };

	text_add(&line, "%s", "");
	ck_assert_str_eq(line.text, "");
	text_add(&line, "%u of %s", 3u, "four");
	text_add_bytes(&line, ", and more", 5);
	ck_assert_str_eq(line.text, "3 of four, and");
	ck_assert_uint_eq(line.used, strlen(line.text));
	free(line.text);
}
END_TEST

START_TEST(no_length_is_cut)
{
	struct text_builder line = { .text = NULL };
	const int length = _i;

	for (int i = 0; i < 3; i++)
		text_add(&line, "%*s|", length, "x");
	ck_assert_uint_eq(line.used, 3 * ((size_t)length + 1));
	ck_assert_uint_eq(strlen(line.text), line.used);
	ck_assert_int_eq(line.text[line.used - 1], '|');
	ck_assert_int_eq(line.text[line.used - 2], 'x');
	free(line.text);
}
END_TEST

START_TEST(bytes_may_be_zeros)
{
	struct text_builder line = { .text = NULL };

	text_add_bytes(&line, "a\0b", 3);
	text_add_bytes(&line, "", 0);
	ck_assert_uint_eq(line.used, 3);
	ck_assert_mem_eq(line.text, "a\0b", 4);
	free(line.text);
}
END_TEST

START_TEST(names_of_paths_are_escaped)
{
	struct text_builder path = { .text = NULL };

	text_add_path_name(&path, "a/b\\c", 5);
	text_add_bytes(&path, "/", 1);
	text_add_path_name(&path, "", 0);
	text_add_path_name(&path, "//////////", 10);
	ck_assert_str_eq(path.text, "a\\/b\\\\c/\\/\\/\\/\\/\\/\\/\\/\\/\\/\\/");
	ck_assert_uint_eq(path.used, strlen(path.text));
	free(path.text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text_builder");
	TCase *cases = tcase_create("text_builder");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, pieces_are_joined_and_terminated);
	tcase_add_loop_test(cases, no_length_is_cut, 1, 70);
	tcase_add_loop_test(cases, no_length_is_cut, 4094, 4100);
	tcase_add_test(cases, bytes_may_be_zeros);
	tcase_add_test(cases, names_of_paths_are_escaped);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
