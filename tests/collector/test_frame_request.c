/* SPDX-License-Identifier: MIT
 * A thread that is requested to read its own Python frames does so when its operator ends, once.
 */
#include "tests/support/collector_fixture.h"

#include "collector/file/dictionary.h"
#include "collector/process/clock.h"
#include "collector/stream/frame_request.h"
#include "collector/stream/peer.h"
#include "collector/stream/ranges.h"
#include "collector/stream/stream_state.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

enum { FRAME = 7, OPERATORS = 200000 };

static const int owner[2]; /* their addresses stand for operators */
static uint32_t frame = FRAME, reads;

static uint32_t read_frames(void)
{
	reads++;
	return frame;
}

static void set_up(void)
{
	collector_start(0);
	frame_request_set_reader(read_frames);
	range_push(0, "step", NULL);
}

static struct stream *own_stream(void)
{
	return stream_peer_find(stream_tid());
}

static uint32_t open_operator(int object, const char *name)
{
	return range_open(&owner[object], name, TRACE_NODE_OP, 0, 0);
}

static void close_operator(int object)
{
	ck_assert(range_close(&owner[object]));
}

static void request(uint32_t node)
{
	frame_request_make(own_stream(), node, clock_now(), 0);
	ck_assert_uint_eq(own_stream()->fast_room, 0);
}

/* Checks that the trace has `count` SAMPLE_PYTHON records, each in an operator of that name and
 * since that has begun. */
static void expect_records(uint32_t count, const char *name)
{
	struct trace_reader *reader = collector_open_trace();
	uint64_t began_ns[TRACE_OPEN_MAX] = { 0 };
	struct trace_event event;
	struct trace_text text;
	uint32_t found = 0;

	while (reader_next(reader, &event) > 0) {
		const struct trace_sample_python *record = event.record;

		if (event.kind == TRACE_PUSH)
			began_ns[event.depth] = event.time_ns;
		if (event.kind != TRACE_SAMPLE_PYTHON)
			continue;
		found++;
		ck_assert_uint_eq(record->python, FRAME);
		text = reader_event_text(reader, &event);
		ck_assert_uint_eq(text.length, strlen(name));
		ck_assert_mem_eq(text.bytes, name, text.length);
		ck_assert_uint_eq(reader_time(reader, record->since), began_ns[event.depth - 1]);
	}
	ck_assert_uint_eq(found, count);
	reader_close(reader);
}

START_TEST(the_frames_are_read_when_the_operator_ends_and_not_before)
{
	const uint32_t node = open_operator(0, "aten::linear");

	request(node);
	open_operator(1, "aten::addmm");
	range_push(0, "inside", NULL);
	range_pop(0);
	close_operator(1);
	ck_assert_uint_eq(reads, 0);
	expect_records(0, "");
	close_operator(0);
	ck_assert_uint_eq(reads, 1);
	ck_assert_uint_gt(own_stream()->fast_room, 0);
	open_operator(0, "aten::linear");
	close_operator(0);
	expect_records(1, "aten::linear");
	ck_assert_uint_eq(reads, 1);
}
END_TEST

/* The operator has ended before the request: nothing is read, and the fast paths come back with
 * the next push or pop. */
START_TEST(a_request_that_comes_too_late_is_dropped)
{
	const uint32_t node = open_operator(0, "aten::mm");

	close_operator(0);
	request(node);
	open_operator(0, "aten::mm");
	ck_assert_uint_gt(own_stream()->fast_room, 0);
	close_operator(0);
	ck_assert_uint_eq(reads, 0);
	expect_records(0, "");
}
END_TEST

START_TEST(an_earlier_request_stays_unless_it_is_replaced)
{
	const uint32_t outer = open_operator(0, "outer");
	const uint64_t first = clock_now();
	uint32_t inner;

	frame_request_make(own_stream(), outer, first, 0);
	inner = open_operator(1, "inner");
	frame_request_make(own_stream(), inner, clock_now(), first - 1);
	close_operator(1);
	ck_assert_uint_eq(reads, 0);
	open_operator(1, "inner");
	frame_request_make(own_stream(), inner, clock_now(), first);
	close_operator(1);
	close_operator(0);
	expect_records(1, "inner");
}
END_TEST

START_TEST(counted_operators_answer_too)
{
	const uint32_t node = range_open_counted(&owner[0], "aten::mm", TRACE_NODE_OP, 0, 0);

	request(node);
	ck_assert(range_close_counted(&owner[0]));
	ck_assert_uint_eq(reads, 1);
	ck_assert_uint_gt(own_stream()->fast_room, 0);
}
END_TEST

START_TEST(without_frames_there_is_no_record)
{
	frame = 0;
	request(open_operator(0, "aten::mm"));
	close_operator(0);
	ck_assert_uint_eq(reads, 1);
	expect_records(0, "");
}
END_TEST

START_TEST(without_a_reader_there_is_no_request)
{
	const uint32_t node = open_operator(0, "aten::mm");

	frame_request_set_reader(NULL);
	frame_request_make(own_stream(), node, clock_now(), 0);
	ck_assert_uint_gt(own_stream()->fast_room, 0);
	close_operator(0);
	expect_records(0, "");
}
END_TEST

struct requests {
	struct stream *stream;
	uint32_t tid;
	bool ended; /* atomic */
};

static void *make_requests(void *data)
{
	struct requests *requests = data;
	uint32_t node;

	while (!__atomic_load_n(&requests->ended, __ATOMIC_RELAXED))
		if (stream_peer_node(requests->stream, requests->tid, &node) &&
			node_kind(node) == TRACE_NODE_OP)
			frame_request_make(requests->stream, node, clock_now(), 0);
	return NULL;
}

/* Another thread makes requests all the time. Whatever it has seen, each record is in an operator
 * and has the time at which that began. */
START_TEST(requests_at_any_moment_give_true_records)
{
	struct requests requests = { own_stream(), stream_tid(), false };
	pthread_t thread;

	ck_assert(!pthread_create(&thread, NULL, make_requests, &requests));
	for (int i = 0; i < OPERATORS || (!reads && i < 1000 * OPERATORS); i++) {
		open_operator(0, "aten::mm");
		close_operator(0);
	}
	__atomic_store_n(&requests.ended, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(reads, 0);
	range_pop(0);
	expect_records(reads, "aten::mm");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frame requests");
	TCase *tests = tcase_create("frame requests");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, collector_remove_folder);
	tcase_add_test(tests, the_frames_are_read_when_the_operator_ends_and_not_before);
	tcase_add_test(tests, a_request_that_comes_too_late_is_dropped);
	tcase_add_test(tests, an_earlier_request_stays_unless_it_is_replaced);
	tcase_add_test(tests, counted_operators_answer_too);
	tcase_add_test(tests, without_frames_there_is_no_record);
	tcase_add_test(tests, without_a_reader_there_is_no_request);
	tcase_add_test(tests, requests_at_any_moment_give_true_records);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
