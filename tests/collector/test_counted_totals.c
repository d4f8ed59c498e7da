/* SPDX-License-Identifier: MIT
 * Ranges that are only counted: they leave no record, and nothing of them is lost.
 */
#include "tests/support/collector_fixture.h"

#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/stream/counted_totals.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int owner[64]; /* their addresses stand for objects */

static uint32_t begin(int object, const char *text)
{
	return range_open_counted(&owner[object], text, TRACE_NODE_OP, 0, 0);
}

static void end(int object)
{
	ck_assert(range_close_counted(&owner[object]));
}

static void call(const char *text)
{
	begin(1, text);
	range_close_counted(&owner[1]); /* it is not open where there was no room */
}

/* What was counted of the place with that name, and what is below it in the tree of places; calls
 * 0: nothing. */
static struct trace_counted counted(struct trace_reader *reader, const char *name)
{
	uint32_t count;
	const struct trace_counted *all = reader_counted(reader, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct trace_text text = reader_name(
			reader, reader_node(reader, all[i].node)->name);

		if (text.length == strlen(name) && !memcmp(text.bytes, name, text.length))
			return all[i];
	}
	return (struct trace_counted){ .node = 0 };
}

static uint64_t calls(const char *name)
{
	struct trace_reader *reader = collector_open_trace();
	const uint64_t found = counted(reader, name).calls;

	reader_close(reader);
	return found;
}

static void expect_records(const char *wanted)
{
	struct trace_reader *reader = collector_open_trace();
	char *text = collector_trace_text(reader);

	ck_assert_str_eq(text, wanted);
	free(text);
	reader_close(reader);
}

START_TEST(a_counted_range_leaves_no_record_and_what_is_in_it_has_its_node)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t outer, inner;

	collector_start(0);
	range_push(0, "step", NULL);
	for (int i = 0; i < 3; i++) {
		outer = begin(1, "aten::linear");
		inner = begin(2, "aten::addmm");
		ck_assert(stream_enter());
		ck_assert_uint_eq(stream_node(), inner);
		stream_leave();
		end(2);
		range_open(&owner[3], "fc", TRACE_NODE_MODULE, 0, 0);
		ck_assert(range_close(&owner[3]));
		end(1);
	}
	range_pop(0);
	expect_records("push step\npush fc\npop fc\npush fc\npop fc\npush fc\npop fc\npop step\n");
	reader = collector_open_trace();
	ck_assert_uint_eq(counted(reader, "aten::linear").calls, 3);
	ck_assert_uint_eq(counted(reader, "aten::linear").node, outer);
	ck_assert_uint_eq(counted(reader, "aten::addmm").calls, 3);
	ck_assert_uint_eq(reader_node(reader, inner)->parent, outer);
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH && event.depth == 1)
			ck_assert_uint_eq(reader_node(reader, event.node)->parent, outer);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

START_TEST(times_are_those_that_passed)
{
	struct trace_reader *reader;
	struct trace_counted slept;
	uint64_t passed;

	collector_start(0);
	passed = monotonic_now_ns();
	for (int i = 1; i <= 3; i++) {
		begin(1, "sleep");
		usleep((useconds_t)i * 20000);
		end(1);
	}
	passed = monotonic_now_ns() - passed;
	collector_finish();
	reader = collector_open_trace();
	slept = counted(reader, "sleep");
	ck_assert_uint_ge(slept.total_ns, 119000000);
	ck_assert_uint_le(slept.total_ns, passed + 1000000);
	ck_assert_uint_ge(slept.longest_ns, 59000000);
	ck_assert_uint_lt(slept.longest_ns, slept.total_ns - 39000000);
	reader_close(reader);
}
END_TEST

START_TEST(a_link_and_a_detail_make_nodes_of_their_own)
{
	struct trace_reader *reader;
	uint32_t made, plain, linked, again = 0;

	collector_start(0);
	made = begin(1, "aten::mm");
	end(1);
	plain = range_open_counted(&owner[2], "MmBackward0", TRACE_NODE_BACKWARD, 0, 0);
	end(2);
	for (int i = 0; i < 5; i++) {
		linked = range_open_counted(&owner[2], "MmBackward0", TRACE_NODE_BACKWARD, made, 0);
		ck_assert(again == 0 || again == linked);
		again = linked;
		end(2);
	}
	ck_assert_uint_ne(plain, linked);
	reader = collector_open_trace();
	ck_assert_uint_eq(reader_node(reader, linked)->link, made);
	for (uint32_t i = 0, count = 3; i < count; i++)
		ck_assert_uint_eq(reader_counted(reader, &count)[i].calls, i == 2 ? 5 : 1);
	reader_close(reader);
}
END_TEST

START_TEST(records_tell_of_a_row_without_what_is_counted)
{
	struct trace_reader *reader;
	struct trace_event event;

	collector_start(0);
	range_push(0, "a", NULL);
	begin(1, "op");
	range_open(&owner[2], "b", TRACE_NODE_RANGE, 0, 0);
	begin(3, "op in b");
	for (int i = 0; i < 40000;
		i++) { /* so many that slots are sealed, and begin with what is open */
		range_push(0, "c", NULL);
		range_pop(0);
	}
	range_push(0, "d", NULL);
	ck_assert(range_close(&owner[2])); /* below others, of both sorts */
	ck_assert(range_close(&owner[1])); /* by the slow way */
	range_pop(0);
	end(3);
	range_pop(0);
	ck_assert(!range_close_counted(&owner[3]));
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0) {
		const char *name = reader_event_text(reader, &event).bytes;

		if (event.kind == TRACE_PUSH)
			ck_assert_uint_eq(event.depth, *name == 'a' ? 0 : *name == 'b' ? 1 : 2);
		if (event.kind == EVENT_POP)
			ck_assert_uint_eq(event.depth, *name == 'a' ? 0 : *name == 'c' ? 2 : 1);
	}
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(counted(reader, "op").calls, 1);
	ck_assert_uint_eq(counted(reader, "op in b").calls, 1);
	reader_close(reader);
}
END_TEST

START_TEST(any_number_of_nodes_is_counted_each_by_itself)
{
	enum { places = 20000 };
	struct trace_reader *reader;
	const struct trace_counted *all;
	char text[32];
	uint32_t count;

	collector_start(0);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < places; i++) {
			snprintf(text, sizeof text, "operator %d", i);
			call(text);
		}
	reader = collector_open_trace();
	all = reader_counted(reader, &count);
	ck_assert_uint_eq(count, places);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_uint_eq(all[i].calls, 3);
	ck_assert_uint_gt(reader_layout(reader)->totals, 4);
	ck_assert_uint_eq(reader_layout(reader)->totals_bytes, places * sizeof(struct trace_total));
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

static void *some_calls(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++)
		call(i % 2 ? "odd" : "even");
	return NULL;
}

START_TEST(threads_count_at_once_and_their_rows_go_to_the_next)
{
	pthread_t threads[8];
	uint64_t before = 0;

	collector_start(0);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, some_calls, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		if (round == 0)
			before = trace_header()->end;
	}
	ck_assert_uint_eq(calls("odd"), 200 * 8 * 500);
	ck_assert_uint_eq(calls("even"), 200 * 8 * 500);
	/* a sealed slot of some hundred bytes a thread, and no more rows than threads at once */
	ck_assert_uint_lt(
		trace_header()->end - before, 200 * 8 * 256 + 8 * (TOTALS_BLOCK_MIN + (8 << 10)));
}
END_TEST

START_TEST(what_finds_no_room_is_counted_as_lost)
{
	enum { places = 3000 };
	struct trace_reader *reader;
	const struct trace_counted *all;
	uint64_t sum = 0;
	uint32_t count;
	char text[32];

	collector_start(160 << 10);
	range_push(0, "around", NULL);
	for (int i = 0; i < places; i++) {
		snprintf(text, sizeof text, "%d", i);
		call(text);
	}
	range_pop(0);
	collector_finish();
	reader = collector_open_trace();
	all = reader_counted(reader, &count);
	for (uint32_t i = 0; i < count; i++)
		sum += all[i].calls;
	ck_assert_uint_gt(sum, 100);
	ck_assert_uint_lt(sum, places);
	free(collector_trace_text(reader));
	ck_assert_uint_eq(sum + reader_integrity(reader)->lost_events, places);
	ck_assert_uint_eq(reader_integrity(reader)->unended, 0);
	reader_close(reader);
}
END_TEST

START_TEST(what_was_counted_is_there_after_a_kill)
{
	int at[2];
	pid_t child;

	ck_assert_int_eq(pipe(at), 0);
	collector_start(0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 5000; i++)
			call("before the kill");
		begin(1, "not yet over");
		if (write(at[1], trace_path(), strlen(trace_path())) < 0)
			_exit(1);
		pause();
	} else {
		char path[4096] = "", error[READER_ERROR_BYTES];
		struct trace_reader *reader;

		ck_assert_int_gt(read(at[0], path, sizeof path - 1), 0);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		reader = reader_open(path, error);
		ck_assert_msg(reader != NULL, "%s", error);
		ck_assert_uint_eq(counted(reader, "before the kill").calls, 5000);
		ck_assert_uint_eq(counted(reader, "not yet over").calls, 0);
		reader_close(reader);
	}
}
END_TEST

START_TEST(a_forked_child_counts_for_itself)
{
	int status;
	pid_t child;

	collector_start(0);
	for (int i = 0; i < 10; i++)
		call("both");
	begin(2, "open in the parent");
	child = fork();
	if (child == 0) {
		ck_assert(!range_close_counted(&owner[2])); /* it is none of the child's */
		for (int i = 0; i < 7; i++)
			call("both");
		collector_finish();
		_exit(calls("both") == 7 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	end(2);
	ck_assert_uint_eq(calls("both"), 10);
	ck_assert_uint_eq(calls("open in the parent"), 1);
}
END_TEST

static bool never(int fd)
{
	(void)fd;
	return false;
}

START_TEST(where_nothing_can_be_mapped_it_is_written_now_and_then_and_at_the_end)
{
	pthread_t thread;

	trace_may_map = never;
	collector_start(0);
	for (int i = 0; i < 100; i++)
		call("early");
	ck_assert_uint_eq(calls("early"), 0);
	for (int i = 0; i < 40000; i++) {
		range_push(0, "to seal", NULL);
		range_pop(0);
	}
	ck_assert_uint_eq(calls("early"), 100);
	pthread_create(&thread, NULL, some_calls, NULL);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(calls("odd"), 500);
	call("late");
	collector_finish();
	ck_assert_uint_eq(calls("late"), 1);
}
END_TEST

static _Atomic int stop;

static void *count_on(void *unused)
{
	(void)unused;
	while (!stop)
		call("on and on");
	return NULL;
}

START_TEST(a_reader_may_look_at_any_time)
{
	uint64_t last = 0;
	pthread_t thread;

	collector_start(0);
	call("on and on");
	pthread_create(&thread, NULL, count_on, NULL);
	for (int i = 0; i < 200; i++) {
		struct trace_reader *reader = collector_open_trace();
		const struct trace_counted now = counted(reader, "on and on");

		ck_assert_uint_ge(now.calls, last);
		ck_assert_uint_le(now.longest_ns, now.total_ns);
		ck_assert_uint_eq(reader_integrity(reader)->unknown_nodes, 0);
		last = now.calls;
		reader_close(reader);
	}
	stop = 1;
	pthread_join(thread, NULL);
	ck_assert_uint_gt(last, 0);
}
END_TEST

START_TEST(a_stream_of_counted_ranges_alone_notes_the_clocks)
{
	struct trace_reader *reader;
	struct trace_event event;
	unsigned clocks = 0;
	uint64_t passed;

	collector_start(0);
	passed = monotonic_now_ns();
	for (int i = 0; i < 5; i++) {
		begin(1, "long");
		usleep(900000);
		end(1);
	}
	passed = monotonic_now_ns() - passed;
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		clocks += event.kind == TRACE_CLOCK;
	ck_assert_uint_ge(clocks, 2);
	ck_assert_uint_ge(counted(reader, "long").total_ns, 4400000000);
	ck_assert_uint_le(counted(reader, "long").total_ns, passed + 10000000);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("totals");
	TCase *cases = tcase_create("totals");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(cases, 120);
	tcase_add_checked_fixture(cases, NULL, collector_remove_folder);
	tcase_add_test(cases, a_counted_range_leaves_no_record_and_what_is_in_it_has_its_node);
	tcase_add_test(cases, times_are_those_that_passed);
	tcase_add_test(cases, a_link_and_a_detail_make_nodes_of_their_own);
	tcase_add_test(cases, records_tell_of_a_row_without_what_is_counted);
	tcase_add_test(cases, any_number_of_nodes_is_counted_each_by_itself);
	tcase_add_test(cases, threads_count_at_once_and_their_rows_go_to_the_next);
	tcase_add_test(cases, what_finds_no_room_is_counted_as_lost);
	tcase_add_test(cases, what_was_counted_is_there_after_a_kill);
	tcase_add_test(cases, a_forked_child_counts_for_itself);
	tcase_add_test(
		cases, where_nothing_can_be_mapped_it_is_written_now_and_then_and_at_the_end);
	tcase_add_test(cases, a_reader_may_look_at_any_time);
	tcase_add_test(cases, a_stream_of_counted_ranges_alone_notes_the_clocks);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
