/* SPDX-License-Identifier: MIT
 * Where temporary files are, and what is read of them.
 */
#include "report/base/temporary_file.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/temporary-file-XXXXXX";

static void make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
}

/* It must be empty: the files have no names. */
static void remove_folder(void)
{
	ck_assert_int_eq(rmdir(folder), 0);
	memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

/* Whether a new temporary file is in the folder `expected`. */
static bool is_created_in(const char *expected)
{
	const int descriptor = temporary_file_create();
	char link[64], path[4096] = "";

	ck_assert_int_ge(descriptor, 0);
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ck_assert_int_gt(readlink(link, path, sizeof path - 1), 0);
	close(descriptor);
	return !strncmp(path, expected, strlen(expected));
}

START_TEST(files_are_in_tmpdir_without_a_name)
{
	struct temporary_file *file;

	ck_assert_str_eq(temporary_folder(), folder);
	ck_assert(is_created_in(folder));
	file = temporary_file_new("a test");
	temporary_file_write(file, "1", 1, 0);
	ck_assert_int_eq(rmdir(folder), 0); /* there is no name in it */
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	temporary_file_free(file);
	temporary_file_free(NULL);
}
END_TEST

START_TEST(without_tmpdir_they_are_in_tmp)
{
	ck_assert_int_eq(unsetenv("TMPDIR"), 0);
	ck_assert(is_created_in("/tmp/"));
	ck_assert_int_eq(setenv("TMPDIR", "", 1), 0);
	ck_assert(is_created_in("/tmp/"));
}
END_TEST

START_TEST(where_no_file_can_be_created_they_are_in_memory)
{
	ck_assert_int_eq(setenv("TMPDIR", "/no such folder", 1), 0);
	ck_assert(is_created_in("/memfd:"));
}
END_TEST

START_TEST(what_was_written_is_read)
{
	struct temporary_file *file = temporary_file_new("a test");
	char text[20];

	temporary_file_write(file, "more of it", 10, 100000);
	temporary_file_write(file, "begin", 5, 0);
	temporary_file_read(file, text, 10, 100000);
	ck_assert_mem_eq(text, "more of it", 10);
	temporary_file_read(file, text, 8, 0);
	ck_assert_mem_eq(text, "begin\0\0", 8);
	ck_assert_uint_eq(temporary_file_read_some(file, text, sizeof text, 100005), 5);
	ck_assert_mem_eq(text, "of it", 5);
	ck_assert_uint_eq(temporary_file_read_some(file, text, sizeof text, 200000), 0);
	temporary_file_free(file);
}
END_TEST

START_TEST(what_is_released_is_zero_and_what_is_cut_is_gone)
{
	struct temporary_file *file = temporary_file_new("a test");
	char page[4096], zeros[4096] = { 0 };

	memset(page, 1, sizeof page);
	for (unsigned i = 0; i < 4; i++)
		temporary_file_write(file, page, sizeof page, i * sizeof page);
	temporary_file_release(file, sizeof page, sizeof page);
	temporary_file_cut(file, 3 * sizeof page);
	ck_assert_uint_eq(temporary_file_read_some(file, page, sizeof page, 3 * sizeof page), 0);
	temporary_file_read(file, page, sizeof page, sizeof page);
	ck_assert(page[0] == 1 || !memcmp(page, zeros, sizeof page)); /* if the file system can */
	temporary_file_read(file, page, sizeof page, 2 * sizeof page);
	ck_assert_int_eq(page[0], 1);
	temporary_file_free(file);
}
END_TEST

START_TEST(what_is_missing_ends_the_program)
{
	struct temporary_file *file = temporary_file_new("a test");
	char byte;

	temporary_file_read(file, &byte, 1, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("temporary_file");
	TCase *tests = tcase_create("temporary_file");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, make_folder, remove_folder);
	tcase_add_test(tests, files_are_in_tmpdir_without_a_name);
	tcase_add_test(tests, without_tmpdir_they_are_in_tmp);
	tcase_add_test(tests, where_no_file_can_be_created_they_are_in_memory);
	tcase_add_test(tests, what_was_written_is_read);
	tcase_add_test(tests, what_is_released_is_zero_and_what_is_cut_is_gone);
	suite_add_tcase(suite, tests);
	tests = tcase_create("ends");
	tcase_add_exit_test(tests, what_is_missing_ends_the_program, 2);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
