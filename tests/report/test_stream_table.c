/* SPDX-License-Identifier: MIT
 * test_stream_table.c: a stream keeps its number, and a trace with many devices ends.
 */
#include "report/analysis/stream_table.h"

#include <check.h>
#include <stdlib.h>

#define DEVICES 20000u

START_TEST(each_stream_keeps_its_number)
{
	struct stream_table table = { .count = 0 };

	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < STREAM_TABLE_MAX; i++)
			ck_assert_uint_eq(stream_table_number(&table, i % 3, i), i);
	ck_assert_uint_eq(table.count, STREAM_TABLE_MAX);
	stream_table_free(&table);
}
END_TEST

START_TEST(each_device_has_one_entry_for_its_further_streams)
{
	struct stream_table table = { .count = 0 };

	for (uint32_t i = 0; i < STREAM_TABLE_MAX; i++)
		stream_table_number(&table, 0, i);
	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t device = 0; device < DEVICES; device++)
			ck_assert_uint_eq(stream_table_number(&table, device, 1000000 + pass),
				STREAM_TABLE_MAX + device);
	ck_assert_uint_eq(table.count, STREAM_TABLE_MAX + DEVICES);
	ck_assert(table.entries[STREAM_TABLE_MAX + 1].stream == STREAM_TABLE_REST);
	ck_assert_uint_eq(stream_table_number(&table, 0, 17), 17);
	stream_table_free(&table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stream_table");
	TCase *cases = tcase_create("stream_table");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, each_stream_keeps_its_number);
	tcase_add_test(cases, each_device_has_one_entry_for_its_further_streams);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
