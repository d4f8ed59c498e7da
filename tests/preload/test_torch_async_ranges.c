/* SPDX-License-Identifier: MIT
 * Ranges of PyTorch that end on another thread than they began on, as they are in the trace
 * afterwards.
 */
#include "tests/support/collector_fixture.h"

#include "collector/stream/ranges.h"
#include "preload/torch/async_ranges.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

static char objects[8192]; /* whose addresses stand for ranges */

static void expect(const char *wanted)
{
	struct trace_reader *reader = collector_open_trace();
	char *text = collector_trace_text(reader);

	ck_assert_str_eq(text, wanted);
	free(text);
	reader_close(reader);
}

static void open_range(const void *range, const char *text)
{
	torch_async_close_ended(range);
	ck_assert_uint_ne(range_open(range, text, TRACE_NODE_RANGE, 0, 0), 0);
}

/* As an end comes that does not know how its range began. */
static void end_range(const void *range)
{
	if (!range_close(range) && !torch_async_end(range))
		torch_async_ended_elsewhere(range);
}

static void *end_in_thread(void *range)
{
	end_range(range);
	return NULL;
}

static void elsewhere(void *range)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, end_in_thread, range), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(what_is_known_to_end_elsewhere_is_no_part_of_the_tree)
{
	collector_start(0);
	open_range(&objects[0], "operator");
	torch_async_begin(&objects[1], "gloo:all_reduce");
	end_range(&objects[0]);
	open_range(&objects[0], "next");
	end_range(&objects[0]);
	end_range(&objects[1]);
	expect("push operator\nstart gloo:all_reduce\npop operator\npush next\npop next\nend\n");
}
END_TEST

START_TEST(what_has_ended_elsewhere_is_closed_before_the_next_range_opens)
{
	collector_start(0);
	open_range(&objects[0], "wandering");
	elsewhere(&objects[0]);
	ck_assert_uint_eq(torch_async_waiting, 1);
	open_range(&objects[1], "next");
	ck_assert_uint_eq(torch_async_waiting, 0);
	end_range(&objects[1]);
	expect("push wandering\npop wandering\npush next\npop next\n");
}
END_TEST

START_TEST(a_new_range_at_the_address_of_one_that_is_not_open_is_not_closed)
{
	collector_start(0);
	open_range(&objects[1], "outer");
	elsewhere(&objects[0]); /* it began unseen */
	open_range(&objects[0], "new");
	ck_assert_uint_eq(torch_async_waiting, 0);
	open_range(&objects[2], "inner");
	end_range(&objects[2]);
	end_range(&objects[0]);
	end_range(&objects[1]);
	expect("push outer\npush new\npush inner\npop inner\npop new\npop outer\n");
}
END_TEST

START_TEST(what_no_thread_has_open_is_not_searched_for_for_ever)
{
	collector_start(0);
	end_range(&objects[0]);
	for (int i = 0; i < 200000 && torch_async_waiting; i++)
		torch_async_close_ended(&objects[1]);
	ck_assert_uint_eq(torch_async_waiting, 0);
}
END_TEST

START_TEST(many_may_be_under_way_and_what_finds_no_room_is_counted)
{
	struct trace_reader *reader;
	uint64_t lost = 0;

	collector_start(0);
	for (size_t i = 0; i < sizeof objects; i++)
		torch_async_begin(&objects[i], "nccl:all_reduce");
	for (size_t i = 0; i < sizeof objects; i++)
		lost += !torch_async_end(&objects[i]);
	ck_assert_uint_ge(lost, sizeof objects - 4096);
	ck_assert_uint_lt(lost, sizeof objects);
	for (size_t i = 0; i < 1024; i++) {
		torch_async_begin(&objects[i], "nccl:all_reduce");
		ck_assert(torch_async_end(&objects[i]));
	}
	reader = collector_open_trace();
	ck_assert_uint_eq(reader_header(reader)->lost[TRACE_LOST_NO_MEMORY], lost);
	reader_close(reader);
}
END_TEST

START_TEST(a_range_that_ends_elsewhere_without_a_free_slot_is_counted_as_lost)
{
	struct trace_reader *reader;

	collector_start(0);
	open_range(&objects[0], "outer");
	for (size_t i = 1; i <= 32 + 3; i++)
		end_range(
			&objects[i]); /* these ranges are open nowhere, so their slots stay taken */
	ck_assert_uint_eq(torch_async_waiting, 32);
	end_range(&objects[0]);
	reader = collector_open_trace();
	ck_assert_uint_eq(reader_header(reader)->lost[TRACE_LOST_NO_MEMORY], 3);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch_async");
	TCase *tests = tcase_create("ranges");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_test(tests, what_is_known_to_end_elsewhere_is_no_part_of_the_tree);
	tcase_add_test(tests, what_has_ended_elsewhere_is_closed_before_the_next_range_opens);
	tcase_add_test(tests, a_new_range_at_the_address_of_one_that_is_not_open_is_not_closed);
	tcase_add_test(tests, what_no_thread_has_open_is_not_searched_for_for_ever);
	tcase_add_test(tests, many_may_be_under_way_and_what_finds_no_room_is_counted);
	tcase_add_test(tests, a_range_that_ends_elsewhere_without_a_free_slot_is_counted_as_lost);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
