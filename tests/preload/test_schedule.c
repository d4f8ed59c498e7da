/* SPDX-License-Identifier: MIT
 * PPERF_SCHEDULE: which steps are recorded, what a step is, and what is left of the rest.
 */
#include "tests/support/collector_fixture.h"

#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "collector/stream/recording_switch.h"
#include "collector/stream/schedule.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is to be recorded ---- */

static const struct {
	const char *text;
	struct schedule is; /* active 0: none */
} texts[] = {
	{ "active:1", { .active = 1 } },
	{ "wait:1,warmup:2,active:3,repeat:4",
		{ .wait = 1, .warmup = 2, .active = 3, .repeat = 4 } },
	{ "repeat:1,active:7,skip_first:10", { .skip_first = 10, .active = 7, .repeat = 1 } },
	{ "wait:0,warmup:0,active:1000000000,repeat:0", { .active = 1000000000 } },
	{ "", { .active = 0 } },
	{ "active", { .active = 0 } },
	{ "active:", { .active = 0 } },
	{ "active:0", { .active = 0 } },
	{ "wait:1", { .active = 0 } },
	{ "active:-1", { .active = 0 } },
	{ "active:1,", { .active = 0 } },
	{ ",active:1", { .active = 0 } },
	{ "active:1 ", { .active = 0 } },
	{ "active:1;wait:1", { .active = 0 } },
	{ "active:1,steps:2", { .active = 0 } },
	{ "active:99999999999999999999", { .active = 0 } },
	{ "3", { .active = 0 } },
};

START_TEST(a_schedule_is_understood_or_it_is_not)
{
	struct schedule schedule;
	const bool good = texts[_i].is.active > 0;

	ck_assert_msg(schedule_parse(texts[_i].text, &schedule) == good, "%s", texts[_i].text);
	if (good)
		ck_assert_mem_eq(&schedule, &texts[_i].is, sizeof schedule);
}
END_TEST

/* As torch.profiler.schedule says it, a letter a step: . none, w warm-up, R recorded. */
static const struct {
	struct schedule schedule;
	const char *steps;
} plans[] = {
	{ { .active = 1 }, "RRRRRR" },
	{ { .wait = 1, .warmup = 1, .active = 3, .repeat = 1 }, ".wRRR........" },
	{ { .wait = 1, .warmup = 1, .active = 2 }, ".wRR.wRR.wRR" },
	{ { .wait = 2, .active = 1, .repeat = 2 }, "..R..R......" },
	{ { .skip_first = 3, .warmup = 2, .active = 1, .repeat = 2 }, "...wwRwwR..." },
	{ { .skip_first = 1, .wait = 1, .active = 2, .repeat = 1 }, "..RR...." },
};

START_TEST(phases_are_those_of_torch_profiler)
{
	for (uint64_t step = 0; plans[_i].steps[step]; step++) {
		const struct schedule_phase phase = schedule_phase(&plans[_i].schedule, step);
		const char letter = phase.recorded ? phase.warmup ? 'w' : 'R' : '.';

		ck_assert_msg(letter == plans[_i].steps[step], "step %d of plan %d is %c",
			(int)step, _i, letter);
	}
	ck_assert_uint_eq(schedule_phase(&plans[2].schedule, 9).cycle, 2);
	ck_assert_uint_eq(schedule_phase(&plans[4].schedule, 3).warmup, 2);
	ck_assert_uint_eq(schedule_phase(&plans[4].schedule, 4).warmup, 1);
	ck_assert(schedule_phase(&plans[0].schedule, UINT64_MAX).recorded);
}
END_TEST

/* ---- what a step is ---- */

static void begin(const char *plan, const char *marker)
{
	struct schedule schedule;

	collector_start(0);
	ck_assert(schedule_parse(plan, &schedule));
	schedule_configure(&schedule, marker, NULL);
}

/* A range of the program as those who see it tell of it. */
static void opens(const char *text)
{
	const bool step = schedule_range_begins(text);

	range_open(text, text, TRACE_NODE_RANGE, 0, 0);
	if (step)
		schedule_range_opened((uintptr_t)text);
}

static void closes(const char *text)
{
	ck_assert(range_close(text));
	schedule_range_ended((uintptr_t)text);
}

static void range(const char *text)
{
	opens(text);
	closes(text);
}

static void expect(const char *wanted)
{
	struct trace_reader *reader;
	char *text;

	collector_finish();
	reader = collector_open_trace();
	text = collector_trace_text(reader);
	ck_assert_str_eq(text, wanted);
	ck_assert(reader_integrity(reader)->complete);
	free(text);
	reader_close(reader);
}

START_TEST(a_step_ends_with_the_optimizer)
{
	static const char *const works[] = { "0", "1", "2", "3", "4" };

	begin("wait:1,active:2,repeat:1", NULL);
	for (int i = 0; i < 5; i++) {
		range("Optimizer.zero_grad#SGD.zero_grad");
		range(works[i]);
		range("Optimizer.step#SGD.step");
	}
	ck_assert_uint_eq(trace_header()->steps, 5);
	expect("push Optimizer.zero_grad#SGD.zero_grad\npop "
	       "Optimizer.zero_grad#SGD.zero_grad\npush 1\npop 1\n"
	       "push Optimizer.step#SGD.step\npop Optimizer.step#SGD.step\n"
	       "push Optimizer.zero_grad#SGD.zero_grad\npop "
	       "Optimizer.zero_grad#SGD.zero_grad\npush 2\npop 2\n"
	       "push Optimizer.step#SGD.step\npop Optimizer.step#SGD.step\n");
}
END_TEST

START_TEST(an_optimizer_in_an_optimizer_is_one_step)
{
	begin("wait:1,active:1,repeat:1", NULL);
	for (int i = 0; i < 3; i++) {
		opens("Optimizer.step#Outer.step");
		range("Optimizer.step#Inner.step");
		closes("Optimizer.step#Outer.step");
	}
	expect("push Optimizer.step#Outer.step\npush Optimizer.step#Inner.step\npop "
	       "Optimizer.step#Inner.step\npop Optimizer.step#Outer.step\n");
}
END_TEST

START_TEST(with_batches_a_step_goes_on_to_the_next_one)
{
	static const char *const batch =
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

	begin("wait:1,active:1,repeat:1", NULL);
	for (int i = 0; i < 3; i++) {
		range(batch); /* two batches, two optimizers, a step */
		range("Optimizer.step#D.step");
		range("Optimizer.step#G.step");
		range("log");
	}
	expect("push enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\npop "
	       "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
	       "push Optimizer.step#D.step\npop Optimizer.step#D.step\npush "
	       "Optimizer.step#G.step\npop Optimizer.step#G.step\npush log\npop log\n");
}
END_TEST

START_TEST(marked_steps_are_recorded_from_their_begin_to_their_end)
{
	begin("wait:1,active:2,repeat:1", "step");
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = { "step 0", "step 1", "step 2", "step 3" };

		range("between");
		range("Optimizer.step#SGD.step");
		range("ProfilerStep#7");
		opens(names[i]);
		range("inside");
		closes(names[i]);
	}
	expect("push step 1\npush inside\npop inside\npop step 1\n"
	       "push between\npop between\npush Optimizer.step#SGD.step\npop "
	       "Optimizer.step#SGD.step\npush ProfilerStep#7\npop ProfilerStep#7\n"
	       "push step 2\npush inside\npop inside\npop step 2\n");
}
END_TEST

START_TEST(a_marker_means_itself_and_a_number_and_nothing_longer)
{
	begin("active:1,repeat:1,wait:1", "it");
	range("iteration");
	range("it #1");
	range("its");
	range("it");
	expect("push it\npop it\n");
}
END_TEST

START_TEST(the_programs_own_profiler_is_believed_before_its_optimizer)
{
	static const char *const names[] = { "ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2" };

	begin("wait:1,active:1,repeat:1", NULL);
	for (int i = 0; i < 3; i++) {
		opens(names[i]);
		range("Optimizer.step#D.step");
		range("Optimizer.step#G.step");
		closes(names[i]);
	}
	expect("push ProfilerStep#1\npush Optimizer.step#D.step\npop Optimizer.step#D.step\npush "
	       "Optimizer.step#G.step\npop Optimizer.step#G.step\n"
	       "pop ProfilerStep#1\n");
}
END_TEST

static void call(const char *name, uint64_t nodes)
{
	schedule_model_begins(nodes);
	range(name);
}

START_TEST(calls_of_a_model_are_steps_where_no_gradients_are_prepared)
{
	begin("wait:2,active:1,repeat:1", NULL);
	for (int i = 0; i < 4; i++)
		call(i == 2 ? "third" : "other", 5);
	expect("push third\npop third\n");
}
END_TEST

START_TEST(calls_of_a_model_that_learns_are_not)
{
	begin("wait:1,active:1,repeat:1", NULL);
	for (uint64_t i = 0; i < 9; i++) {
		call("forward", 10 * i);
		if (i % 3 == 2)
			range(i == 5 ? "Optimizer.step#A" : "Optimizer.step#B");
	}
	expect("push forward\npop forward\npush forward\npop forward\npush forward\npop "
	       "forward\npush Optimizer.step#A\npop Optimizer.step#A\n");
}
END_TEST

/* ---- what is left of the rest ---- */

START_TEST(what_is_open_as_a_window_begins_is_the_path_of_what_is_in_it)
{
	struct trace_reader *reader;
	struct trace_event event;

	begin("wait:1,active:1,repeat:1", "step");
	range_push(0, "train", NULL);
	range_push(0, "epoch", NULL);
	range("step 0");
	range("step 1");
	range_push(0, "later", NULL);
	ck_assert_int_eq(range_pop(0), 2);
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_pop(0), 0);
	ck_assert_int_eq(range_pop(0), RANGE_REFUSED);
	expect("push step 1\npop step 1\n");
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_PUSH) {
			ck_assert_uint_eq(event.depth, 0);
			ck_assert_uint_eq(reader_node(reader, event.node)->depth, 3);
		}
	reader_close(reader);
}
END_TEST

START_TEST(what_was_recorded_gets_its_end_whenever_it_comes)
{
	static const int object;
	uint64_t recorded, passed;

	begin("wait:1,active:1,repeat:1", "step");
	passed = range_start(0, "passed", NULL);
	range("step 0");
	opens("step 1");
	range_push(0, "pushed", NULL);
	range_open(&object, "owned", TRACE_NODE_MODULE, 0, 0);
	recorded = range_start(0, "recorded", NULL);
	closes("step 1");
	range_push(0, "no more", NULL);
	range_mark(0, "nor this", NULL);
	range_end(passed);
	range_end(recorded);
	ck_assert(range_close(&object));
	ck_assert_int_eq(range_pop(0), 1);
	ck_assert_int_eq(range_pop(0), 0);
	expect("push step 1\npush pushed\npush owned\nstart recorded\npop step 1\nend\npop "
	       "owned\npop pushed\n");
}
END_TEST

START_TEST(counted_ranges_are_counted_in_windows_only)
{
	static const int object;
	struct trace_reader *reader;
	uint32_t count;

	begin("wait:1,active:2,repeat:1", "step");
	for (int i = 0; i < 5; i++) {
		opens("step");
		for (int k = 0; k < 100; k++) {
			range_open_counted(&object, "op", TRACE_NODE_OP, 0, 0);
			ck_assert(range_close_counted(&object));
		}
		closes("step");
	}
	expect("push step\npop step\npush step\npop step\n");
	reader = collector_open_trace();
	ck_assert_uint_eq(reader_counted(reader, &count)->calls, 200);
	ck_assert_uint_eq(count, 1);
	reader_close(reader);
}
END_TEST

START_TEST(what_is_passed_is_counted_and_measured)
{
	const struct trace_header *header;

	begin("skip_first:1000,active:1", NULL);
	for (int i = 0; i < 1000; i++) {
		range_push(0, "a", NULL);
		range_mark(0, "m", NULL);
		range_pop(0);
	}
	collector_finish();
	header = trace_header();
	ck_assert_uint_eq(header->skipped[TRACE_SKIPPED_RANGES].events, 2000);
	ck_assert_uint_eq(header->skipped[TRACE_SKIPPED_OTHERS].events, 1000);
	ck_assert_uint_ge(header->skipped[TRACE_SKIPPED_RANGES].measured, 2000 / 64);
	ck_assert_uint_gt(header->skipped[TRACE_SKIPPED_RANGES].ticks, 0);
	ck_assert(header->flags & TRACE_PAUSED);
	ck_assert_uint_lt(header->end, 128 << 10);
	expect("");
}
END_TEST

START_TEST(each_window_says_when_it_began_and_which_steps_it_has)
{
	static const uint64_t wanted[][4] = { /* edge, step, cycle, warmup */
		{ TRACE_WINDOW_BEGINS, 1, 0, 1 }, { TRACE_WINDOW_STEP, 2, 0, 0 },
		{ TRACE_WINDOW_ENDS, 3, 0, 0 }, { TRACE_WINDOW_BEGINS, 4, 1, 1 },
		{ TRACE_WINDOW_STEP, 5, 1, 0 }, { TRACE_WINDOW_ENDS, 6, 1, 0 }
	};
	struct trace_reader *reader;
	struct trace_event event;
	unsigned seen = 0;

	begin("wait:1,warmup:1,active:1,repeat:2", NULL);
	for (int i = 0; i < 9; i++)
		range("Optimizer.step#SGD.step");
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0) {
		const struct trace_window *window = event.record;

		if (event.kind != TRACE_WINDOW)
			continue;
		ck_assert_uint_lt(seen, 6);
		ck_assert_uint_eq(window->edge, wanted[seen][0]);
		ck_assert_uint_eq(window->step, wanted[seen][1]);
		ck_assert_uint_eq(window->cycle, wanted[seen][2]);
		ck_assert_uint_eq(window->warmup, wanted[seen++][3]);
	}
	ck_assert_uint_eq(seen, 6);
	reader_close(reader);
}
END_TEST

START_TEST(calls_of_a_window_are_known_by_their_numbers)
{
	recording_use_schedule(false);
	ck_assert(!recording_has_call(5));
	schedule_resume(0, 0, 0);
	ck_assert(!recording_has_call(5));
	recording_note_call(10);
	recording_note_call(8);
	ck_assert(recording_has_call(11)); /* it has not returned yet */
	recording_note_call(12);
	schedule_pause(1, 0);
	for (uint64_t id = 1; id < 20; id++)
		ck_assert(recording_has_call(id) == (id >= 8 && id <= 12));
	ck_assert(!recording_has_call(0));
	schedule_resume(2, 1, 0);
	ck_assert(recording_has_call(0));
	recording_note_call(30);
	schedule_pause(3, 1);
	ck_assert(recording_has_call(9) && recording_has_call(30) && !recording_has_call(20) &&
		  !recording_has_call(31));
}
END_TEST

static _Atomic bool stop;

static void *record_on(void *unused)
{
	(void)unused;
	while (!stop) {
		range_push(0, "outer", NULL);
		range_push(0, "inner", NULL);
		range_pop(0);
		range_pop(0);
	}
	return NULL;
}

START_TEST(windows_turn_while_threads_record)
{
	struct trace_reader *reader;
	struct trace_event event;
	pthread_t threads[3];
	uint64_t pushes = 0, pops = 0;

	begin("wait:1,active:1", NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, record_on, NULL);
	for (int i = 0; i < 2001; i++)
		range("Optimizer.step#SGD.step");
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0) {
		pushes += event.kind == TRACE_PUSH;
		pops += event.kind == EVENT_POP;
	}
	ck_assert_uint_eq(pushes, pops);
	ck_assert_uint_ge(pushes, 1000);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(reader_integrity(reader)->left_open, 0);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schedule");
	TCase *cases = tcase_create("schedule");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(cases, 60);
	tcase_add_checked_fixture(cases, NULL, collector_remove_folder);
	tcase_add_loop_test(
		cases, a_schedule_is_understood_or_it_is_not, 0, sizeof texts / sizeof texts[0]);
	tcase_add_loop_test(
		cases, phases_are_those_of_torch_profiler, 0, sizeof plans / sizeof plans[0]);
	tcase_add_test(cases, a_step_ends_with_the_optimizer);
	tcase_add_test(cases, an_optimizer_in_an_optimizer_is_one_step);
	tcase_add_test(cases, with_batches_a_step_goes_on_to_the_next_one);
	tcase_add_test(cases, marked_steps_are_recorded_from_their_begin_to_their_end);
	tcase_add_test(cases, a_marker_means_itself_and_a_number_and_nothing_longer);
	tcase_add_test(cases, the_programs_own_profiler_is_believed_before_its_optimizer);
	tcase_add_test(cases, calls_of_a_model_are_steps_where_no_gradients_are_prepared);
	tcase_add_test(cases, calls_of_a_model_that_learns_are_not);
	tcase_add_test(cases, what_is_open_as_a_window_begins_is_the_path_of_what_is_in_it);
	tcase_add_test(cases, what_was_recorded_gets_its_end_whenever_it_comes);
	tcase_add_test(cases, counted_ranges_are_counted_in_windows_only);
	tcase_add_test(cases, what_is_passed_is_counted_and_measured);
	tcase_add_test(cases, each_window_says_when_it_began_and_which_steps_it_has);
	tcase_add_test(cases, calls_of_a_window_are_known_by_their_numbers);
	tcase_add_test(cases, windows_turn_while_threads_record);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
