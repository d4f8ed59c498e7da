/* SPDX-License-Identifier: MIT
 * The open ranges of a thread, as the collector keeps them and as the reader finds them.
 */
#include "tests/support/collector_fixture.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t domain_named(const char *name)
{
	uint32_t id;

	ck_assert(stream_enter_dictionary_only());
	id = name_id_always(name, strlen(name));
	stream_leave();
	ck_assert_uint_ne(id, 0);
	return id;
}

static void expect(const char *wanted)
{
	struct trace_reader *reader = collector_open_trace();
	char *text = collector_trace_text(reader);

	ck_assert_str_eq(text, wanted);
	free(text);
	reader_close(reader);
}

START_TEST(levels_count_from_zero_and_pops_say_what_they_closed)
{
	collector_start(0);
	ck_assert_int_eq(range_push(0, "a", NULL), 0);
	ck_assert_int_eq(range_push(0, "b", NULL), 1);
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_push(0, "c", NULL), 1);
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_pop(0), 0);
	ck_assert_int_eq(range_pop(0), RANGE_REFUSED);
	expect("push a\npush b\npop b\npush c\npop c\npop a\n");
}
END_TEST

START_TEST(pops_without_a_push_are_counted)
{
	struct trace_reader *reader;
	struct trace_event event;

	collector_start(0);
	uint32_t x = domain_named("x");

	range_push(0, "a", NULL);
	ck_assert_int_eq(range_pop(x), RANGE_REFUSED);
	range_pop(0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(i ? range_pop(0) : range_pop_plain(), RANGE_REFUSED);
	range_push(0, "b", NULL);
	range_pop(0);
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		;
	ck_assert_uint_eq(reader_integrity(reader)->unmatched_ends, 4);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(reader_integrity(reader)->lost_events, 0);
	reader_close(reader);
}
END_TEST

START_TEST(domains_nest_by_time_and_close_their_own)
{
	collector_start(0);
	uint32_t x = domain_named("x");

	ck_assert_int_eq(range_push(0, "a", NULL), 0);
	ck_assert_int_eq(range_push(x, "b", NULL), 0);
	ck_assert_int_eq(range_push(0, "c", NULL), 1);
	ck_assert_int_eq(range_push(x, "d", NULL), 1);
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_push(0, "e", NULL), 1);
	ck_assert_int_eq(range_pop(x), 1);
	ck_assert_int_eq(range_pop(x), 0);
	ck_assert_int_eq(range_pop(x), RANGE_REFUSED);
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_pop(0), 0);
	expect("push a\npush b @x\npush c\npush d @x\npop c\npush e\npop d @x\npop b @x\npop "
	       "e\npop a\n");
}
END_TEST

START_TEST(a_reused_buffer_is_read_anew_each_time)
{
	char buffer[32];

	collector_start(0);
	for (int i = 0; i < 4; i++) {
		snprintf(buffer, sizeof buffer, "text %d", i % 2);
		range_push(0, buffer, NULL);
		range_pop(0);
	}
	expect("push text 0\npop text 0\npush text 1\npop text 1\npush text 0\npop text 0\npush "
	       "text 1\npop text 1\n");
}
END_TEST

/* Every push of the trace has the text that `text_of` says, in order. */
static void expect_texts(unsigned count, const char *(*text_of)(unsigned i, char room[128]))
{
	struct trace_reader *reader = collector_open_trace();
	struct trace_event event;
	char room[128];
	unsigned seen = 0;

	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH) {
			struct trace_text got = reader_event_text(reader, &event);
			const char *wanted = text_of(seen++, room);

			ck_assert_uint_eq(got.length, strlen(wanted));
			ck_assert_mem_eq(got.bytes, wanted, got.length);
		}
	ck_assert_uint_eq(seen, count);
	reader_close(reader);
}

#define LONGEST 100u

/* Texts of each length, whole, then with one byte changed or ended: where a known text stood there
 * stands one that differs from it only there. */
static const char *differing(unsigned i, char room[128])
{
	unsigned length = i / 2 / LONGEST + 1, at = i / 2 % LONGEST;

	memset(room, 'a', length);
	room[length] = '\0';
	if (i % 2 && at < length)
		room[at] = at % 3 ? 'b' : '\0';
	return room;
}

START_TEST(texts_that_differ_anywhere_are_different)
{
	char text[128];

	collector_start(0);
	for (unsigned i = 0; i < 2 * LONGEST * LONGEST; i++) {
		range_push(0, differing(i, text), NULL);
		range_pop(0);
	}
	expect_texts(2 * LONGEST * LONGEST, differing);
}
END_TEST

static const char *shorter(unsigned i, char room[128])
{
	unsigned length = LONGEST - 1 - i;

	memset(room, 'a', length);
	room[length] = '\0';
	return room;
}

START_TEST(a_text_at_the_end_of_memory_is_read_to_its_end_and_no_further)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     text[128];

	ck_assert_int_eq(mprotect(page + 4096, 4096, PROT_NONE), 0);
	collector_start(0);
	for (unsigned i = 0; i < LONGEST; i++) {
		char *end = page + 4096 - strlen(shorter(i, text)) - 1;

		strcpy(end, text);
		range_push(0, end, NULL);
		range_pop(0);
	}
	expect_texts(LONGEST, shorter);
}
END_TEST

START_TEST(a_parent_may_have_any_number_of_children)
{
	struct trace_reader *reader;
	struct trace_event event;
	char text[32];
	unsigned seen = 0;

	collector_start(0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			snprintf(text, sizeof text, "child %d", i);
			ck_assert_int_eq(range_push(0, text, NULL), 0);
			ck_assert_int_eq(range_pop(0), 0);
		}
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH) {
			struct trace_text got = reader_event_text(reader, &event);

			snprintf(text, sizeof text, "child %d", (int)(seen++ % 20000));
			ck_assert_uint_eq(got.length, strlen(text));
			ck_assert_mem_eq(got.bytes, text, got.length);
		}
	ck_assert_uint_eq(seen, 40000);
	reader_close(reader);
}
END_TEST

START_TEST(ranges_nest_deeper_than_the_first_room_and_than_all_of_it)
{
	enum { deep = 70000 };
	struct trace_reader *reader;
	struct trace_event event;
	unsigned pushes = 0, pops = 0;

	collector_start(0);
	for (int i = 0; i < deep; i++)
		ck_assert_int_eq(range_push(0, "deep", NULL), i);
	for (int i = deep; i-- > 0;)
		ck_assert_int_eq(range_pop(0), i);
	ck_assert_int_eq(range_pop(0), RANGE_REFUSED);
	ck_assert_int_eq(range_push(0, "after", NULL), 0);
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0) {
		pushes += event.kind == TRACE_PUSH;
		pops += event.kind == EVENT_POP;
	}
	ck_assert_uint_eq(pushes, 65535 + 1);
	ck_assert_uint_eq(pops, 65535);
	ck_assert_uint_eq(reader_integrity(reader)->lost[TRACE_LOST_TOO_DEEP], 2 * (deep - 65535));
	reader_close(reader);
}
END_TEST

START_TEST(attributes_travel_whole)
{
	const struct range_attributes attributes = { TRACE_HAS_COLOR | TRACE_HAS_CATEGORY, 7,
		0xFF00AA55, 2, (uint64_t)-5 };
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t id;

	collector_start(0);
	range_push(0, "pushed", &attributes);
	id = range_start(0, "started", &attributes);
	range_mark(0, "marked", &attributes);
	ck_assert_uint_ne(id, 0);
	range_end(id);
	reader = collector_open_trace();
	for (int found = 0; found < 3;) {
		const struct trace_range *range;

		ck_assert_int_gt(reader_next(reader, &event), 0);
		if (event.kind != TRACE_PUSH && event.kind != TRACE_START &&
			event.kind != TRACE_MARK)
			continue;
		range = event.record;
		ck_assert_uint_eq(range->category, 7);
		ck_assert_uint_eq(range->color, 0xFF00AA55);
		ck_assert_uint_eq(range->payload_type, 2);
		ck_assert_uint_eq(range->payload, (uint64_t)-5);
		ck_assert_uint_eq(range->id, event.kind == TRACE_START ? id : 0);
		found++;
	}
	reader_close(reader);
}
END_TEST

START_TEST(long_texts_are_cut_and_say_so)
{
	char *text = malloc(100001);
	struct trace_reader *reader;
	struct trace_event event;
	struct trace_text got = { 0 };

	memset(text, 'x', 100000);
	text[100000] = '\0';
	collector_start(0);
	range_push(0, text, NULL);
	range_pop(0);
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH) {
			got = reader_event_text(reader, &event);
			ck_assert_uint_eq(got.length, TRACE_TEXT_MAX);
			ck_assert_mem_eq(got.bytes + got.length - strlen(TRACE_TEXT_CUT),
				TRACE_TEXT_CUT, strlen(TRACE_TEXT_CUT));
		}
	ck_assert(got.known);
	reader_close(reader);
	free(text);
}
END_TEST

START_TEST(texts_beyond_the_budget_travel_inline)
{
	struct trace_reader *reader;
	struct trace_event event;
	char text[64];
	unsigned seen = 0;

	collector_start(0);
	for (unsigned i = 0; i < NAME_BUDGET + 1000; i++) {
		snprintf(text, sizeof text, "frame %u", i);
		ck_assert_int_eq(range_push(0, text, NULL), 0);
		ck_assert_int_eq(range_pop(0), 0);
	}
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH) {
			struct trace_text got = reader_event_text(reader, &event);

			snprintf(text, sizeof text, "frame %u", seen++);
			ck_assert_uint_eq(got.length, strlen(text));
			ck_assert_mem_eq(got.bytes, text, got.length);
		}
	ck_assert_uint_eq(seen, NAME_BUDGET + 1000);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

START_TEST(pauses_of_any_length_keep_their_length)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t slept = 0, passed;

	collector_start(0);
	range_push(0, "short", NULL);
	usleep(1000);
	range_pop(0);
	passed = monotonic_now_ns();
	range_push(0, "long", NULL);
	usleep(400000);
	range_pop(0);
	passed = monotonic_now_ns() - passed;
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == EVENT_POP)
			slept = event.time_ns - event.begin_ns;
	ck_assert_uint_ge(slept, 399000000);
	ck_assert_uint_le(slept, passed + 1000000);
	reader_close(reader);
}
END_TEST

static void *many_ranges(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100000; i++) {
		range_push(0, "outer", NULL);
		range_push(0, i % 2 ? "odd" : "even", NULL);
		range_pop(0);
		range_pop(0);
	}
	return NULL;
}

START_TEST(threads_record_at_once_and_nothing_is_missing)
{
	pthread_t threads[8];
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t pushes = 0, pops = 0;

	collector_start(0);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, many_ranges, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0) {
		pushes += event.kind == TRACE_PUSH;
		pops += event.kind == EVENT_POP;
	}
	ck_assert_uint_eq(pushes, 8 * 200000);
	ck_assert_uint_eq(pops, 8 * 200000);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert(reader_integrity(reader)->ended);
	ck_assert_uint_eq(reader_stream_count(reader), 8);
	reader_close(reader);
}
END_TEST

static void *one_range(void *unused)
{
	(void)unused;
	range_push(0, "short life", NULL);
	range_pop(0);
	return NULL;
}

START_TEST(threads_that_end_give_their_room_back)
{
	struct trace_reader *reader;

	collector_start(0);
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, one_range, NULL);
		pthread_join(thread, NULL);
	}
	ck_assert_uint_lt(trace_header()->end, 2000 * 320 + (64 << 10));
	reader = collector_open_trace();
	ck_assert_uint_eq(reader_stream_count(reader), 2000);
	ck_assert_uint_le(reader_layout(reader)->slots, 1);
	reader_close(reader);
}
END_TEST

START_TEST(a_full_trace_counts_what_it_leaves_out_and_keeps_the_levels)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t events = 0;

	collector_start(256 << 10);
	for (int i = 0; i < 200000; i++) {
		ck_assert_int_eq(range_push(0, "a", NULL), 0);
		ck_assert_int_eq(range_push(0, "b", NULL), 1);
		ck_assert_int_eq(range_pop(0), 1);
		ck_assert_int_eq(range_pop(0), 0);
	}
	ck_assert_uint_le(trace_header()->end, 256 << 10);
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		events += event.kind == TRACE_PUSH || event.kind == EVENT_POP;
	ck_assert_uint_eq(events + reader_integrity(reader)->lost_events, 800000);
	ck_assert_uint_gt(events, 10000);
	reader_close(reader);
}
END_TEST

/* The wide record finds no room where narrow ones still would. */
START_TEST(what_follows_a_loss_is_not_taken_for_something_else)
{
	const struct range_attributes attributes = { .flags = TRACE_HAS_CATEGORY, .category = 1 };
	struct trace_reader *reader;
	struct trace_event event;

	collector_start(52 << 10);
	range_push(0, "root", NULL);
	for (int i = 0; i < 20000; i++) {
		range_push(0, "wide", &attributes);
		for (int narrow = 0; narrow < i % 7; narrow++) {
			range_push(0, "narrow", NULL);
			range_pop(0);
		}
		range_pop(0);
	}
	range_pop(0);
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH || event.kind == EVENT_POP)
			ck_assert_uint_eq(event.depth + 1u, reader_node(reader, event.node)->depth);
	ck_assert_uint_eq(reader_integrity(reader)->unmatched_ends, 0);
	ck_assert_uint_gt(reader_integrity(reader)->lost_events, 0);
	reader_close(reader);
}
END_TEST

START_TEST(a_file_size_limit_raises_no_signal_and_is_counted)
{
	struct rlimit limit = { 512 << 10, 512 << 10 };
	struct trace_reader *reader;

	collector_start(0);
	setrlimit(RLIMIT_FSIZE, &limit);
	many_ranges(NULL);                               /* SIGXFSZ would end the test here */
	ck_assert_uint_lt(trace_header()->end, 1 << 20); /* refused attempts take no room */
	reader = collector_open_trace();
	ck_assert_uint_gt(reader_integrity(reader)->lost[TRACE_LOST_FULL_DISK], 0);
	reader_close(reader);
}
END_TEST

START_TEST(a_forked_child_has_a_file_of_its_own_and_begins_with_nothing_open)
{
	char name[64];
	int status;
	pid_t child;

	collector_start(0);
	range_push(0, "in both", NULL);
	child = fork();
	if (!child) {
		int good = range_pop(0) == RANGE_REFUSED && range_push(0, "in both", NULL) == 0 &&
			   range_push(0, "in the child", NULL) == 1;

		range_pop(0);
		range_pop(0);
		collector_finish();
		_exit(!good);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(range_pop(0), 0);
	expect("push in both\npop in both\n");
	snprintf(name, sizeof name, "trace.%d.bin", (int)child);
	{
		char error[READER_ERROR_BYTES];
		struct trace_reader *reader = reader_open(name, error);
		char *text;

		ck_assert_msg(reader != NULL, "%s", error);
		ck_assert_uint_eq(reader_header(reader)->flags & TRACE_FORKED, TRACE_FORKED);
		text = collector_trace_text(reader);
		ck_assert_str_eq(
			text, "push in both\npush in the child\npop in the child\npop in both\n");
		free(text);
		reader_close(reader);
	}
}
END_TEST

START_TEST(an_owner_closes_its_own_range_wherever_it_stands)
{
	int one, two;
	uint32_t op, again;

	collector_start(0);
	range_push(0, "step", NULL);
	op = range_open(&one, "aten::mm", TRACE_NODE_OP, 0, 0);
	ck_assert_uint_ne(op, 0);
	ck_assert_int_eq(range_push(0, "inside", NULL), 1);
	ck_assert_uint_ne(range_open(&two, "aten::t", TRACE_NODE_OP, 0, 0), 0);
	ck_assert(range_close(&one));
	ck_assert(!range_close(&one));
	ck_assert(range_close(&two));
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_pop(0), 0);
	ck_assert_int_eq(range_pop(0), RANGE_REFUSED);
	ck_assert(!range_close(&one));
	range_push(0, "step", NULL);
	again = range_open(&two, "aten::mm", TRACE_NODE_OP, 0, 0);
	ck_assert_uint_eq(again, op);
	ck_assert_int_eq(range_pop(0), 0);
	ck_assert(range_close(&two));
	expect("push step\npush aten::mm\npush inside\npush aten::t\npop aten::mm\npop "
	       "aten::t\npop inside\npop step\n"
	       "push step\npush aten::mm\npop step\npop aten::mm\n");
}
END_TEST

START_TEST(kind_link_and_detail_make_different_nodes)
{
	uint32_t nodes[5], detail;

	collector_start(0);
	detail = domain_named("[[2, 3]]");
	nodes[0] = range_open(nodes, "x", TRACE_NODE_OP, 0, 0);
	range_close(nodes);
	nodes[1] = range_open(nodes, "x", TRACE_NODE_MODULE, 0, 0);
	range_close(nodes);
	nodes[2] = range_open(nodes, "x", TRACE_NODE_BACKWARD, nodes[0], 0);
	range_close(nodes);
	nodes[3] = range_open(nodes, "x", TRACE_NODE_BACKWARD, nodes[1], 0);
	range_close(nodes);
	nodes[4] = range_open(nodes, "x", TRACE_NODE_OP, 0, detail);
	range_close(nodes);
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < i; j++)
			ck_assert_uint_ne(nodes[i], nodes[j]);
	ck_assert_uint_eq(range_open(nodes, "x", TRACE_NODE_BACKWARD, nodes[1], 0), nodes[3]);
	range_close(nodes);
	expect("push x\npop x\npush x\npop x\npush x\npop x\npush x\npop x\npush x\npop x\npush "
	       "x\npop x\n");
}
END_TEST

START_TEST(open_ranges_are_left_open)
{
	collector_start(0);
	range_push(0, "outer", NULL);
	range_push(0, "inner", NULL);
	collector_finish();
	expect("push outer\npush inner\nleft open inner\nleft open outer\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ranges");
	TCase *tests = tcase_create("ranges");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_test(tests, levels_count_from_zero_and_pops_say_what_they_closed);
	tcase_add_test(tests, domains_nest_by_time_and_close_their_own);
	tcase_add_test(tests, a_reused_buffer_is_read_anew_each_time);
	tcase_add_test(tests, texts_that_differ_anywhere_are_different);
	tcase_add_test(tests, a_text_at_the_end_of_memory_is_read_to_its_end_and_no_further);
	tcase_add_test(tests, a_parent_may_have_any_number_of_children);
	tcase_add_test(tests, ranges_nest_deeper_than_the_first_room_and_than_all_of_it);
	tcase_add_test(tests, attributes_travel_whole);
	tcase_add_test(tests, long_texts_are_cut_and_say_so);
	tcase_add_test(tests, texts_beyond_the_budget_travel_inline);
	tcase_add_test(tests, pauses_of_any_length_keep_their_length);
	tcase_add_test(tests, threads_record_at_once_and_nothing_is_missing);
	tcase_add_test(tests, threads_that_end_give_their_room_back);
	tcase_add_test(tests, a_full_trace_counts_what_it_leaves_out_and_keeps_the_levels);
	tcase_add_test(tests, what_follows_a_loss_is_not_taken_for_something_else);
	tcase_add_test(tests, a_file_size_limit_raises_no_signal_and_is_counted);
	tcase_add_test(tests, a_forked_child_has_a_file_of_its_own_and_begins_with_nothing_open);
	tcase_add_test(tests, an_owner_closes_its_own_range_wherever_it_stands);
	tcase_add_test(tests, kind_link_and_detail_make_different_nodes);
	tcase_add_test(tests, open_ranges_are_left_open);
	tcase_add_test(tests, pops_without_a_push_are_counted);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
