/* SPDX-License-Identifier: MIT
 * test_critical_path.c: the longest chain of small runs, reckoned by hand.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 40

/* The fields of one line; ends them in place. */
static size_t split(char *line, char **fields)
{
	size_t count = 0;

	for (char *field = line; field && count < MOST_COLUMNS; count++) {
		char *comma = strchr(field, ',');

		if (comma)
			*comma++ = '\0';
		fields[count] = field;
		field = comma;
	}
	return count;
}

static size_t column_of(char **titles, size_t count, const char *title)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(titles[i], title))
			return i;
	ck_abort_msg("no column %s", title);
}

/* Of the row of that kind and name; -1: the cell is empty. -2: there is no such row. */
static long long cell(
	const struct report_run *run, const char *kind, const char *name, const char *title)
{
	char *text = strdup(run->out), *rest = text, *line = strsep(&rest, "\n");
	char *titles[MOST_COLUMNS], *fields[MOST_COLUMNS];
	const size_t columns = split(line, titles), wanted = column_of(titles, columns, title),
		     names = column_of(titles, columns, "label"),
		     kinds = column_of(titles, columns, "kind");
	long long found = -2;

	while (rest && found == -2) {
		line = strsep(&rest, "\n");
		if (split(line, fields) == columns && !strcmp(fields[kinds], kind) &&
			!strcmp(fields[names], name))
			found = *fields[wanted] ? atoll(fields[wanted]) : -1;
	}
	free(text);
	return found;
}

static void expect(const struct report_run *run, const char *kind, const char *name,
	const char *title, long long value)
{
	const long long found = cell(run, kind, name, title);

	ck_assert_msg(found == value, "%s of %s `%s` is %lld, not %lld, in\n%s", title, kind, name,
		found, value, run->out);
}

/* The parts of the path, by kind; 0: there is no such row. They are the whole. */
struct parts {
	long long kernels, copies, host, calls, copy_calls, launch, hand_over, sync, unknown;
};

static void expect_parts(const struct report_run *run, struct parts parts)
{
	const struct {
		const char *name;
		long long ns;
	} all[] = { { "kernels", parts.kernels }, { "copies", parts.copies },
		{ "host", parts.host }, { "calls", parts.calls },
		{ "copy calls", parts.copy_calls }, { "launch latency", parts.launch },
		{ "gap between kernels", parts.hand_over }, { "synchronisation", parts.sync },
		{ "unknown", parts.unknown } };
	long long sum = 0;

	ck_assert_int_eq(run->status, 0);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		expect(run, "part", all[i].name, "path_ns", all[i].ns ? all[i].ns : -2);
		sum += all[i].ns;
	}
	expect(run, "path", "critical path", "path_ns", sum);
}

/* Called for 5, on the stream of that number, whose handle is ten times that. */
static void launch(struct trace_builder *builder, uint32_t thread, uint64_t begin, uint64_t id,
	uint32_t stream)
{
	build_launch(builder, thread, begin + 5, id)->stream = stream * 10;
}

static void kernel(struct trace_builder *builder, uint64_t id, const char *name, uint32_t stream,
	uint64_t begin, uint64_t end)
{
	build_kernel(builder, 9, 90000, id, name, begin, end)->gpu.stream = stream;
}

static struct trace_sync *sync(struct trace_builder *builder, uint32_t thread,
	enum trace_sync_type type, uint32_t stream, uint64_t event, uint64_t begin, uint64_t end)
{
	const uint32_t api = build_name(builder, "a synchronisation");
	struct trace_sync *record = build_record(builder, thread, TRACE_SYNC, sizeof *record, end);

	record->call.duration = end - begin;
	record->call.api = api;
	record->type = type;
	record->stream = stream * 10;
	record->event = event;
	return record;
}

static struct trace_builder *begin(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	return builder;
}

static struct report_run show(struct trace_builder *builder)
{
	return run_report(builder, "critical-path trace.bin -f csv --columns all");
}

START_TEST(the_host_is_too_slow)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 1, 195, 2, 7);
	kernel(builder, 1, "a", 7, 105, 110);
	kernel(builder, 2, "b", 7, 205, 210);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 5, .launch = 10, .host = 95, .calls = 5 });
	expect(&run, "work", "a", "slack_min_ns",
		95); /* b is asked for at 195, and a launch takes 10 */
	expect(&run, "work", "a", "gain_ns", 0);
	expect(&run, "work", "b", "gain_ns", 5);
	expect(&run, "work", "b", "path_ns", 5);
	expect(&run, "work", "b", "path_before_ns", 10); /* the launch latency */
	expect(&run, "place", "(no range)", "path_ns",
		95); /* the calls in no range are unattributed */
}
END_TEST

/* A kernel is over before the next one's launch is, though after that began: the launch holds it
 * up. */
START_TEST(launches_are_too_slow)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		launch(builder, 1, 100 + 10 * i, i + 1, 7);
		kernel(builder, i + 1, "k", 7, 105 + 10 * i, 113 + 10 * i);
	}
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 8, .launch = 5, .host = 10, .calls = 10 });
	expect(&run, "work", "k", "gain_ns", 8);
}
END_TEST

START_TEST(the_gpu_is_too_slow)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_push(builder, 1, 90, "work");
	for (uint64_t i = 0; i < 3; i++)
		launch(builder, 1, 95 + 10 * i, i + 1, 7);
	build_pop(builder, 1, 130);
	kernel(builder, 1, "k", 7, 110, 210);
	kernel(builder, 2, "k", 7, 211, 311);
	kernel(builder, 3, "k", 7, 311, 411);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 300, .launch = 15, .hand_over = 1 });
	expect(&run, "place", "work", "path_ns", 316);
	expect(&run, "place", "work", "path_gpu_ns", 300);
	expect(&run, "place", "work", "calls", 6);
	expect(&run, "work", "k", "slack_p50_ns", 0);
	expect(&run, "work", "k", "gain_ns",
		411 - 130); /* the last is asked for at 115, and a launch takes 15 */
}
END_TEST

/* Launches that find their stream busy do not show how long a launch takes. */
START_TEST(launches_are_queued)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++)
		launch(builder, 1, 95 + 10 * i, i + 1, 7);
	kernel(builder, 9, "launched before", 7, 50, 1050);
	for (uint64_t i = 0; i < 3; i++)
		kernel(builder, i + 1, "k", 7, 1050 + 100 * i, 1150 + 100 * i);
	run = show(builder);
	expect(&run, "work", "launched before", "gain_ns", 1050 - 95);
	expect(&run, "work", "k", "gain_ns", 300);
}
END_TEST

/* Calls alone in their ranges, whose work is asked for inside: each may take longer by what is
 * waited for anyway. */
START_TEST(calls_have_slack)
{
	struct trace_builder *builder = begin();
	const uint32_t api = build_name(builder, "cudaEventQuery");
	struct report_run run;
	static const char *const names[] = { "first", "second" };
	static const long long slacks[] = { 190, 278 };

	for (uint64_t i = 0; i < 3; i++) {
		launch(builder, 1, 95 + 20 * i, i + 1, 7);
		if (i == 2)
			break;
		build_push(builder, 1, 101 + 20 * i, names[i]);
		struct trace_sync *query = build_record(
			builder, 1, TRACE_SYNC, sizeof *query, 110 + 20 * i);
		query->call.duration = 5;
		query->call.api = api;
		build_pop(builder, 1, 112 + 20 * i);
	}
	kernel(builder, 1, "k", 7, 97,
		307); /* the second is asked for at 115, the third at 135, and a launch takes 2 */
	kernel(builder, 2, "k", 7, 307, 415);
	kernel(builder, 3, "k", 7, 415, 420);
	run = show(builder);
	for (int i = 0; i < 2; i++) {
		expect(&run, "place", names[i], "slack_min_ns", slacks[i]);
		expect(&run, "place", names[i], "path_ns", 0);
	}
}
END_TEST

START_TEST(a_stream_waits_for_another)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	sync(builder, 1, TRACE_EVENT_RECORD, 7, 0xe1, 105, 110);
	launch(builder, 1, 115, 2, 8);
	sync(builder, 1, TRACE_SYNC_STREAM_WAIT, 8, 0xe1, 125, 130);
	launch(builder, 1, 131, 4, 7); /* after the record: nobody waits for it */
	launch(builder, 1, 140, 3, 8);
	kernel(builder, 1, "a", 7, 110, 310);
	kernel(builder, 2, "b", 8, 125, 175);
	kernel(builder, 3, "c", 8, 312, 400);
	kernel(builder, 4, "d", 7, 310, 311);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 288, .launch = 15, .hand_over = 2 });
	expect(&run, "work", "b", "slack_min_ns", 135); /* a ends at 310 */
	expect(&run, "work", "a", "slack_min_ns", 0);
	expect(&run, "work", "d", "slack_min_ns", 89);
	expect(&run, "work", "a", "gain_ns", 135); /* then b holds c up */
	expect(&run, "path", "critical path", "stream_waits", 1);
	expect(&run, "path", "critical path", "stream_waits_unknown", 0);
}
END_TEST

/* An event that is recorded anew stands for what it was when somebody began to wait. */
START_TEST(an_event_is_what_it_was)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	sync(builder, 1, TRACE_EVENT_RECORD, 7, 0xe1, 105, 110);
	sync(builder, 1, TRACE_SYNC_STREAM_WAIT, 8, 0xe1, 111, 112);
	launch(builder, 1, 115, 2, 7);
	sync(builder, 1, TRACE_EVENT_RECORD, 7, 0xe1, 125, 130);
	launch(builder, 1, 135, 3, 8);
	sync(builder, 1, TRACE_SYNC_EVENT, 0, 0xe1, 141, 505);
	kernel(builder, 1, "a", 7, 110, 210);
	kernel(builder, 2, "b", 7, 210, 500);
	kernel(builder, 3, "c", 8, 215, 300);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 390, .launch = 15, .sync = 5 });
	expect(&run, "work", "c", "slack_min_ns", 205); /* nobody waits for it */
	expect(&run, "path", "critical path", "waits", 1);
	expect(&run, "path", "critical path", "waits_unknown", 0);
}
END_TEST

START_TEST(the_host_waits_in_the_middle)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_push(builder, 1, 90, "outer");
	launch(builder, 1, 95, 1, 7);
	sync(builder, 1, TRACE_SYNC_CONTEXT, 0, 0, 105, 205);
	build_push(builder, 1, 215, "prepare");
	build_pop(builder, 1, 245);
	launch(builder, 1, 250, 2, 7);
	build_pop(builder, 1, 310);
	kernel(builder, 1, "a", 7, 110, 200);
	kernel(builder, 2, "b", 7, 260, 300);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 130, .launch = 25, .sync = 5, .host = 45 });
	expect(&run, "place", "outer / prepare", "path_ns", 30);
	expect(&run, "place", "outer", "path_ns", 175);
	expect(&run, "place", "outer", "path_host_ns", 15);
	expect(&run, "work", "a", "gain_ns",
		90); /* the call would begin at 105, but the launch took 15 */
}
END_TEST

/* The wait seems to be over before the work is: two clocks. */
START_TEST(clocks_are_a_little_apart)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	sync(builder, 1, TRACE_SYNC_STREAM, 7, 0, 105, 205);
	launch(builder, 1, 250, 2, 7);
	kernel(builder, 1, "a", 7, 110, 206);
	kernel(builder, 2, "b", 7, 260, 300);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 135, .launch = 25, .host = 45 });
	expect(&run, "work", "a", "slack_min_ns", 0);
}
END_TEST

static void cupti_sync(
	struct trace_builder *builder, uint64_t id, uint32_t stream, uint64_t begin, uint64_t end)
{
	struct trace_gpu_sync *record = build_record(
		builder, 9, TRACE_GPU_SYNC, sizeof *record, 90000);

	record->start_ns = BUILDER_START_UNIX_NS + begin;
	record->end_ns = BUILDER_START_UNIX_NS + end;
	record->correlation = id;
	record->type = TRACE_SYNC_STREAM;
	record->stream = stream;
	record->event = UINT32_MAX;
}

/* CUPTI has a record for a query as for a wait. Only its correlation id says whose it is. */
START_TEST(a_query_says_nothing_of_the_wait_around_it)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 1, 100, 2, 8);
	sync(builder, 1, TRACE_SYNC_STREAM, 0, 0, 105, 205)->call.correlation = 3;
	cupti_sync(builder, 3, 7, 106, 204);
	cupti_sync(builder, 4, 8, 160, 161); /* another thread's query */
	kernel(builder, 1, "a", 7, 110, 200);
	kernel(builder, 2, "b", 8, 110, 150);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 90, .launch = 15, .sync = 5 });
}
END_TEST

/* 100 in a call, 10 of the host, 10 of a launch, 10 of a kernel. */
START_TEST(calls_can_be_gained_by)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_push(builder, 1, 90, "take");
	sync(builder, 1, 0, 0, 0, 95, 195); /* a call that waits for nothing */
	build_pop(builder, 1, 200);
	build_push(builder, 1, 201, "use");
	launch(builder, 1, 205, 1, 7);
	build_pop(builder, 1, 230);
	kernel(builder, 1, "k", 7, 215, 225);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 10, .launch = 10, .host = 10, .calls = 100 });
	expect(&run, "place", "take", "gain_ns", 100);
	expect(&run, "place", "use", "gain_ns",
		10); /* of the call the kernel's begin does not wait for the end */
	expect(&run, "work", "k", "gain_ns", 10);
}
END_TEST

/* The host waits 5 longer than the kernel runs: all that not waiting at all would save. */
START_TEST(a_wait_gains_what_it_is_longer)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_push(builder, 1, 90, "work");
	launch(builder, 1, 95, 1, 7);
	build_pop(builder, 1, 101);
	build_push(builder, 1, 102, "wait");
	sync(builder, 1, TRACE_SYNC_STREAM, 7, 0, 105, 315);
	build_pop(builder, 1, 316);
	kernel(builder, 1, "k", 7, 110, 310);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 200, .launch = 15, .sync = 5 });
	expect(&run, "place", "wait", "gain_ns", 5);
	expect(&run, "place", "work", "gain_ns", 200);
}
END_TEST

static void default_stream(struct trace_builder *builder, uint32_t stream)
{
	struct trace_context *context = build_dictionary(builder, TRACE_CONTEXT, sizeof *context);

	context->context = 1;
	context->stream = UINT32_MAX;
	context->null_stream = stream;
}

/* a on stream 8 up to 50,100; b was asked for at 120 on stream 7 and began 2 us after the end of a;
 * then c on stream 8. */
static struct trace_builder *one_after_the_other(void)
{
	struct trace_builder *builder = begin();

	launch(builder, 1, 95, 1, 8);
	launch(builder, 1, 120, 2, 7);
	launch(builder, 1, 140, 3, 8);
	kernel(builder, 1, "a", 8, 100, 50100);
	kernel(builder, 2, "b", 7, 52100, 92100);
	kernel(builder, 3, "c", 8, 92600, 93000);
	return builder;
}

START_TEST(the_default_stream_waits_for_others_and_they_for_it)
{
	struct trace_builder *builder = one_after_the_other();
	struct report_run run;

	default_stream(builder, 7);
	run = show(builder);
	expect_parts(&run,
		(struct parts){
			.kernels = 50000 + 40000 + 400, .launch = 5, .hand_over = 2000 + 500 });
	expect(&run, "path", "critical path", "default_waits", 2);
	expect(&run, "work", "a", "slack_min_ns", 0);
	expect(&run, "work", "b", "slack_min_ns", 0);
	expect(&run, "work", "b", "gain_ns", 40000);
	expect(&run, "work", "a", "gain_ns",
		50100 - 125); /* b was asked for at 120, and a launch takes 5 */
}
END_TEST

/* Between streams of which none is the default one, nothing is inferred: b could have begun 5 after
 * its call at 120, and c after a. */
START_TEST(other_streams_do_not_wait_for_each_other)
{
	struct trace_builder *builder = one_after_the_other();
	struct report_run run;

	default_stream(builder, 9);
	run = show(builder);
	expect(&run, "path", "critical path", "default_waits", 0);
	expect(&run, "work", "b", "slack_min_ns", 900);
	expect(&run, "work", "b", "gain_ns", 0);
	expect(&run, "part", "unexplained wait", "path_ns", 42500);
}
END_TEST

/* As above, but stream 7 was made to wait for an event before b was launched, and the trace does
 * not name the event. So b waited for a, which ended 2 us before. c waited for nothing known. */
START_TEST(a_wait_for_an_unnamed_event_is_for_what_ended_just_before)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 8);
	sync(builder, 1, TRACE_SYNC_STREAM_WAIT, 7, 0, 105, 110);
	launch(builder, 1, 120, 2, 7);
	launch(builder, 1, 140, 3, 8);
	kernel(builder, 1, "a", 8, 100, 50100);
	kernel(builder, 2, "b", 7, 52100, 92100);
	kernel(builder, 3, "c", 8, 142100, 142200);
	run = show(builder);
	expect(&run, "path", "critical path", "default_waits", 0);
	expect(&run, "work", "b", "slack_min_ns", 142200 - 92100);
	expect(&run, "part", "unexplained wait", "path_ns", 142100 - 50100);
	builder = begin();
	launch(builder, 1, 95, 1, 8);
	sync(builder, 1, TRACE_SYNC_STREAM_WAIT, 7, 0, 105, 110);
	launch(builder, 1, 120, 2, 7);
	kernel(builder, 1, "a", 8, 100, 50100);
	kernel(builder, 2, "b", 7, 52100, 92100);
	run = show(builder);
	expect_parts(
		&run, (struct parts){ .kernels = 50000 + 40000, .launch = 5, .hand_over = 2000 });
}
END_TEST

/* Work behind a wait for an event starts 60 us before a kernel of another stream ends, whose
 * blocks took all of the GPU: it had no room. Without so many blocks, or if other work ended just
 * before, it may have waited for the event, whose record is not in the trace. The kernel that left no
 * room has no more slack than the work, although nothing waits for its end. */
START_TEST(work_has_no_room_beside_a_kernel_that_fills_the_gpu)
{
	static const struct {
		uint32_t blocks;
		uint64_t third_end;
		long long waiting, filling, slack;
	} cases[] = { { 15000, 30000, -2, 89880, 0 }, { 64, 30000, 89880, 0, 140000 },
		{ 15000, 89990, -2, 0, 140000 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_builder *builder = begin();
		struct report_run run;

		launch(builder, 1, 80, 9, 9);
		launch(builder, 1, 95, 1, 8);
		sync(builder, 1, TRACE_SYNC_STREAM_WAIT, 7, 0, 105, 110);
		launch(builder, 1, 115, 2, 7);
		kernel(builder, 9, "small", 9, 85, cases[i].third_end);
		build_kernel(builder, 9, 90000, 1, "filling", 100, 150000)->grid[0] =
			cases[i].blocks;
		kernel(builder, 2, "held up", 7, 90000, 290000);
		run = show(builder);
		expect(&run, "part", "unexplained wait", "path_ns", cases[i].waiting);
		expect(&run, "work", "filling", "path_ns", cases[i].filling);
		expect(&run, "work", "filling", "slack_min_ns", cases[i].slack);
	}
}
END_TEST

START_TEST(two_threads)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 2, 145, 2, 8);
	sync(builder, 1, TRACE_SYNC_CONTEXT, 0, 0, 200, 305);
	kernel(builder, 1, "a", 7, 105, 115);
	kernel(builder, 2, "b", 8, 160, 300);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 140, .launch = 15, .sync = 5, .host = 50 });
	expect(&run, "work", "a", "slack_min_ns", 185);
}
END_TEST

/* What one thread did for long before the other went on is what that waited for. */
START_TEST(threads_take_turns)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 2, 50, 100, 7);
	kernel(builder, 100, "k", 7, 60, 61);
	for (uint64_t i = 0; i < 16; i++) {
		launch(builder, 1, 95 + 10 * i, i + 1, 7);
		kernel(builder, i + 1, "k", 7, 101 + 10 * i, 102 + 10 * i);
	}
	launch(builder, 2, 395, 101, 7);
	kernel(builder, 101, "last", 7, 405, 500);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 95, .launch = 10, .calls = 80, .host = 265 });
}
END_TEST

/* Autograd's thread sleeps between backward passes, however few calls there are. The path leads
 * through both threads. A third thread works at the same time. */
START_TEST(a_backward_pass_waits_for_its_caller_and_that_for_it)
{
	struct trace_builder *builder = begin();
	const uint32_t forward = build_node(builder, 0, "aten::linear", NULL, TRACE_NODE_OP),
		       backward = build_node(
			       builder, 0, "AddmmBackward0", NULL, TRACE_NODE_BACKWARD),
		       other = build_node(builder, 0, "prefetch", NULL, TRACE_NODE_RANGE);
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t at = 100 + 1000 * i, id = 3 * i + 1;

		build_push_node(builder, 1, at, forward);
		launch(builder, 1, at + 95, id, 7);
		build_pop(builder, 1, at + 200);
		kernel(builder, id, "k", 7, at + 101, at + 102);
		build_push_node(builder, 3, at + 210, other);
		launch(builder, 3, at + 295, id + 1, 9);
		build_pop(builder, 3, at + 310);
		kernel(builder, id + 1, "k", 9, at + 301, at + 302);
		build_push_node(builder, 2, at + 400, backward);
		launch(builder, 2, at + 495, id + 2, 7);
		build_pop(builder, 2, at + 600);
		kernel(builder, id + 2, "last", 7, at + 505, at + 590);
	}
	run = show(builder);
	expect_parts(
		&run, (struct parts){ .kernels = 85, .launch = 10, .calls = 5 * 5, .host = 2375 });
	expect(&run, "place", "aten::linear", "path_ns", 505);
	expect(&run, "place", "prefetch", "path_ns", 0);
}
END_TEST

/* A third thread, which polls now and then, does not hide whose turn it was. */
START_TEST(a_polling_thread_ends_no_turn)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 2, 50, 100, 7);
	kernel(builder, 100, "k", 7, 60, 61);
	for (uint64_t i = 0; i < 16; i++) {
		launch(builder, 1, 95 + 10 * i, i + 1, 7);
		kernel(builder, i + 1, "k", 7, 101 + 10 * i, 102 + 10 * i);
		launch(builder, 3, 95 + 10 * i + 6, i + 201, 8);
	}
	launch(builder, 2, 395, 101, 7);
	kernel(builder, 101, "last", 7, 405, 500);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 95, .launch = 10, .calls = 80, .host = 265 });
}
END_TEST

START_TEST(a_copy_beside_a_kernel)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	build_copy(builder, 1, 106, TRACE_COPY, 2, 64)->stream = 80;
	sync(builder, 1, TRACE_SYNC_CONTEXT, 0, 0, 120, 212);
	kernel(builder, 1, "k", 7, 110, 210);
	build_gpu_copy(builder, 9, 90000, TRACE_GPU_COPY, 2, 64, 110, 160)->gpu.stream = 8;
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 100, .launch = 15, .sync = 2 });
	expect(&run, "work", "memcpy HtoD", "slack_min_ns", 50);
	expect(&run, "work", "memcpy HtoD", "gain_ns", 0);
}
END_TEST

/* The call of a copy that ended in it waited for it. */
START_TEST(a_copy_that_is_waited_for)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_copy(builder, 1, 200, TRACE_COPY, 1, 64)->call.duration = 100;
	launch(builder, 1, 250, 2, 0);
	build_gpu_copy(builder, 9, 90000, TRACE_GPU_COPY, 1, 64, 120, 190);
	build_kernel(builder, 9, 90000, 2, "k", 260, 300);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 40,
				   .copies = 70,
				   .copy_calls = 20,
				   .launch = 10,
				   .sync = 10,
				   .host = 50 });
}
END_TEST

/* Pageable memory: the call copies for long before its copy starts on the GPU. */
START_TEST(a_copy_call_that_starts_its_copy_late)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_copy(builder, 1, 200, TRACE_COPY, 1, 64)->call.duration = 100;
	build_gpu_copy(builder, 9, 90000, TRACE_GPU_COPY, 1, 64, 210, 250);
	run = show(builder);
	expect_parts(&run, (struct parts){ .copies = 40, .copy_calls = 100, .launch = 10 });
	expect(&run, "path", "critical path", "path_host_ns", 100);
	expect(&run, "path", "critical path", "path_launch_ns", 10);
}
END_TEST

/* The thread is in the call of a copy that is over long before the call is: it prepares memory. */
START_TEST(a_copy_call_that_takes_long)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_copy(builder, 1, 200, TRACE_COPY, 1, 64)->call.duration = 100;
	launch(builder, 1, 250, 2, 0);
	build_kernel(builder, 9, 90000, 2, "k", 260, 300);
	run = show(builder);
	expect(&run, "part", "copy calls", "path_ns", 100);
	expect(&run, "part", "calls", "path_ns", -2);
	expect(&run, "path", "critical path", "path_host_ns", 150);
}
END_TEST

/* Pageable memory: the call feeds the copy, which ends just after it. */
START_TEST(a_copy_that_runs_in_its_call)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_copy(builder, 1, 200, TRACE_COPY, 1, 64)->call.duration = 100;
	launch(builder, 1, 250, 2, 0);
	build_gpu_copy(builder, 9, 90000, TRACE_GPU_COPY, 1, 64, 120, 205);
	build_kernel(builder, 9, 90000, 2, "k", 260, 300);
	run = show(builder);
	expect(&run, "part", "copies", "path_ns", 80);
	expect(&run, "part", "copy calls", "path_ns", 20);
	expect(&run, "work", "memcpy HtoD", "gain_ns", 80);
	expect(&run, "path", "critical path", "path_gpu_ns", 120);
	expect(&run, "path", "critical path", "path_host_ns", 70);
	expect(&run, "work", "memcpy HtoD", "path_gpu_ns", 80);
}
END_TEST

/* Pageable memory: the call cannot feed the copy while its stream is busy, so it waits for the
 * kernel, and with a faster kernel the thread goes on sooner. */
START_TEST(a_copy_call_that_waits_for_its_stream)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 0);
	build_copy(builder, 1, 100400, TRACE_COPY, 2, 64)->call.duration = 100280;
	launch(builder, 1, 100500, 3, 0);
	build_kernel(builder, 9, 900000, 1, "a", 110, 100110);
	build_gpu_copy(builder, 9, 900000, TRACE_GPU_COPY, 2, 64, 100112, 100410);
	build_kernel(builder, 9, 900000, 3, "b", 100510, 100600);
	run = show(builder);
	expect(&run, "part", "kernels", "path_ns", 100000 + 90);
	expect(&run, "part", "copies", "path_ns", 100400 - 100112);
	expect(&run, "part", "copy calls", "path_ns", -2);
	expect(&run, "work", "a", "slack_min_ns", 0);
	expect(&run, "work", "a", "gain_ns", cell(&run, "part", "kernels", "gain_ns") - 90);
}
END_TEST

/* Pinned memory: the call returns without the copy, and waits for nothing. */
START_TEST(a_copy_call_of_pinned_memory)
{
	struct trace_builder *builder = begin();
	struct trace_gpu_copy *copy;
	struct report_run run;

	launch(builder, 1, 95, 1, 0);
	build_copy(builder, 1, 100400, TRACE_COPY, 2, 64)->call.duration = 100280;
	launch(builder, 1, 100500, 3, 0);
	build_kernel(builder, 9, 900000, 1, "a", 110, 100110);
	copy = build_gpu_copy(builder, 9, 900000, TRACE_GPU_COPY, 2, 64, 100112, 100410);
	copy->source_kind = TRACE_MEMORY_PINNED;
	build_kernel(builder, 9, 900000, 3, "b", 100510, 100600);
	run = show(builder);
	expect(&run, "work", "a", "path_ns", 0);
	expect(&run, "part", "copy calls", "path_ns", 100280 - (100400 - 100112));
}
END_TEST

/* The row of a whole has no less to gain than any row of a part. */
START_TEST(the_gain_of_all_is_no_less_than_that_of_a_part)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	build_push(builder, 1, 80, "all");
	launch(builder, 1, 95, 1, 0);
	launch(builder, 1, 105, 2, 0);
	build_copy(builder, 1, 300, TRACE_COPY, 3, 64)->call.duration = 180;
	build_pop(builder, 1, 310);
	build_kernel(builder, 9, 90000, 1, "a", 110, 160);
	build_kernel(builder, 9, 90000, 2, "b", 160, 220);
	build_gpu_copy(builder, 9, 90000, TRACE_GPU_COPY, 3, 64, 220, 290);
	run = show(builder);
	/* a launch takes 15: b could begin at 120 instead of 160, the copy at 135 instead of 220 */
	expect(&run, "work", "a", "gain_ns", 40);
	expect(&run, "work", "b", "gain_ns", 60);
	expect(&run, "part", "kernels", "gain_ns", 85);
	expect(&run, "part", "copies", "gain_ns", 70);
	expect(&run, "place", "all", "gain_ns", 175);
	expect(&run, "path", "critical path", "gain_ns", 175);
}
END_TEST

START_TEST(a_tie)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 1, 101, 2, 8);
	sync(builder, 1, TRACE_SYNC_CONTEXT, 0, 0, 120, 212);
	kernel(builder, 1, "a", 7, 110, 210);
	kernel(builder, 2, "b", 8, 110, 210);
	run = show(builder);
	expect(&run, "path", "critical path", "path_ns", 117);
	expect(&run, "path", "critical path", "path_gpu_ns", 100);
	for (int i = 0; i < 2; i++) {
		expect(&run, "work", i ? "b" : "a", "slack_min_ns", 0);
		expect(&run, "work", i ? "b" : "a", "gain_ns", 0);
	}
}
END_TEST

START_TEST(work_without_times)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 1, 105, 2, 7);
	kernel(builder, 1, "a", 7, 0, 0);
	kernel(builder, 2, "b", 7, 115, 125);
	run = show(builder);
	expect_parts(&run, (struct parts){ .kernels = 10, .launch = 10, .host = 5, .calls = 5 });
	expect(&run, "path", "critical path", "untimed", 1);
}
END_TEST

/* Branches of a graph on two streams; what comes after it waits for both. */
START_TEST(a_graph)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 80, 9, 7);
	build_graph_launch(builder, 1, 100, 1, 5)->stream = 70;
	launch(builder, 1, 105, 2, 7);
	kernel(builder, 9, "before", 7, 85, 90);
	kernel(builder, 1, "g1", 7, 110, 150);
	kernel(builder, 1, "g2", 8, 110, 200);
	kernel(builder, 1, "g3", 7, 200, 220);
	kernel(builder, 1, "g4", 8, 200, 300);
	kernel(builder, 2, "after", 7, 302, 310);
	run = show(builder);
	expect_parts(&run,
		(struct parts){
			.kernels = 198, .launch = 15, .hand_over = 2, .host = 10, .calls = 5 });
	expect(&run, "work", "g1", "slack_min_ns", 130); /* 50 up to g2, and what g3 has */
	expect(&run, "work", "g3", "slack_min_ns", 80);
}
END_TEST

/* A GPU that does nothing for long though all that it came after is over waits for nobody knows
 * what. */
START_TEST(what_nothing_explains_is_unknown)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	launch(builder, 1, 95, 1, 7);
	launch(builder, 1, 105, 2, 7);
	kernel(builder, 1, "a", 7, 110, 210);
	kernel(builder, 2, "b", 7, 50210, 50300);
	kernel(builder, 77, "stray", 8, 60000, 60100);
	run = show(builder);
	expect(&run, "path", "critical path", "path_ns", 60100 - 95);
	expect(&run, "part", "unknown", "path_ns",
		60000 - 95); /* before a stray nothing is known */
	run = run_report(NULL, "critical-path trace.bin");
	ck_assert_int_eq(run.status, 0);
}
END_TEST

/* Steps have their part of the chain, and together with --steps all that is shown. */
START_TEST(steps)
{
	struct trace_builder *builder = begin();
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "step %d", (int)i);
		build_push(builder, 1, 100 + 1000 * i, name);
		launch(builder, 1, 110 + 1000 * i, i + 1, 7);
		sync(builder, 1, TRACE_SYNC_CONTEXT, 0, 0, 120 + 1000 * i, 905 + 1000 * i);
		build_pop(builder, 1, 1000 + 1000 * i);
		kernel(builder, i + 1, "k", 7, 150 + 1000 * i, 900 + 1000 * i);
	}
	run = run_report(builder, "critical-path trace.bin -f csv --columns all --steps 1");
	expect_parts(&run, (struct parts){ .kernels = 750, .launch = 40, .sync = 5, .host = 105 });
	run = run_report(NULL, "critical-path trace.bin -f csv --columns all --steps 0-2");
	/* The first 10 of the first and the last 95 of the last are beyond the first call and the
	 * last; between steps 100. */
	expect_parts(&run,
		(struct parts){
			.kernels = 2250, .launch = 120, .sync = 15, .host = 410, .unknown = 105 });
}
END_TEST

START_TEST(nothing_of_the_kind)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "alone");
	build_pop(builder, 1, 20);
	run = run_report(builder, "critical-path trace.bin");
	ck_assert_int_eq(run.status, 0);
	ck_assert_ptr_nonnull(strstr(run.out, "no rows"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("critical_path");
	TCase *graphs = tcase_create("graphs");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(graphs, run_report_setup, run_report_teardown);
	tcase_add_test(graphs, the_host_is_too_slow);
	tcase_add_test(graphs, launches_are_too_slow);
	tcase_add_test(graphs, the_gpu_is_too_slow);
	tcase_add_test(graphs, launches_are_queued);
	tcase_add_test(graphs, calls_have_slack);
	tcase_add_test(graphs, a_stream_waits_for_another);
	tcase_add_test(graphs, an_event_is_what_it_was);
	tcase_add_test(graphs, the_host_waits_in_the_middle);
	tcase_add_test(graphs, clocks_are_a_little_apart);
	tcase_add_test(graphs, a_query_says_nothing_of_the_wait_around_it);
	tcase_add_test(graphs, calls_can_be_gained_by);
	tcase_add_test(graphs, a_wait_gains_what_it_is_longer);
	tcase_add_test(graphs, a_wait_for_an_unnamed_event_is_for_what_ended_just_before);
	tcase_add_test(graphs, the_default_stream_waits_for_others_and_they_for_it);
	tcase_add_test(graphs, other_streams_do_not_wait_for_each_other);
	tcase_add_test(graphs, work_has_no_room_beside_a_kernel_that_fills_the_gpu);
	tcase_add_test(graphs, two_threads);
	tcase_add_test(graphs, threads_take_turns);
	tcase_add_test(graphs, a_backward_pass_waits_for_its_caller_and_that_for_it);
	tcase_add_test(graphs, a_polling_thread_ends_no_turn);
	tcase_add_test(graphs, a_copy_beside_a_kernel);
	tcase_add_test(graphs, a_copy_that_is_waited_for);
	tcase_add_test(graphs, a_copy_call_that_starts_its_copy_late);
	tcase_add_test(graphs, a_copy_call_that_takes_long);
	tcase_add_test(graphs, a_copy_that_runs_in_its_call);
	tcase_add_test(graphs, a_copy_call_that_waits_for_its_stream);
	tcase_add_test(graphs, a_copy_call_of_pinned_memory);
	tcase_add_test(graphs, the_gain_of_all_is_no_less_than_that_of_a_part);
	tcase_add_test(graphs, a_tie);
	tcase_add_test(graphs, work_without_times);
	tcase_add_test(graphs, a_graph);
	tcase_add_test(graphs, what_nothing_explains_is_unknown);
	tcase_add_test(graphs, steps);
	tcase_add_test(graphs, nothing_of_the_kind);
	suite_add_tcase(suite, graphs);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
