/* SPDX-License-Identifier: MIT
 * test_schedule_windows.c: traces of some steps (PPERF_SCHEDULE): figures are of the windows, steps
 * have the program's numbers, and what was not recorded is not missing.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN = 1, OTHER = 2, GPU = 3 }; /* streams */

static struct trace_builder *scheduled(const char *schedule, uint64_t steps)
{
	struct trace_builder *builder = builder_new();

	build_meta(builder, "schedule", schedule);
	builder_header(builder)->steps = steps;
	return builder;
}

static void edge(struct trace_builder *builder, uint64_t at, enum trace_window_edge what,
	uint64_t step, uint32_t warmup)
{
	struct trace_window *record = build_record(builder, MAIN, TRACE_WINDOW, sizeof *record, at);

	record->edge = what;
	record->step = step;
	record->warmup = warmup;
}

static void span(struct trace_builder *builder, uint64_t from, uint64_t to, const char *name)
{
	build_push(builder, MAIN, from, name);
	build_pop(builder, MAIN, to);
}

/* As the tool folds it. */
static struct profile_fixture profile(struct trace_builder *builder)
{
	struct profile_options options = {
		.device = -1, .metric = METRIC_CPU, .pick_metric = true, .demangle = DEMANGLE_SHORT
	};
	struct profile_fixture fixture = fixture_of(builder, NULL);
	struct recording_windows *windows = recording_windows_read(fixture.reader);
	struct steps *steps = recording_windows_steps(
		windows, steps_find(fixture.reader, NULL, NULL));

	options.windows = windows;
	options.found_steps = steps;
	fixture_rebuild(&fixture, &options);
	fixture_check(&fixture);
	return fixture;
}

static void expect(
	const struct profile_fixture *fixture, const char *path, uint64_t calls, uint64_t total)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "%s is not there", path);
	ck_assert_msg(node->calls == calls && node->total_ns == total, "%s: %llu calls, %llu ns",
		path, (unsigned long long)node->calls, (unsigned long long)node->total_ns);
}

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted) != NULL, "`%s` is not in:\n%.1500s", wanted, text);
}

START_TEST(only_windows_count)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:1,warmup:0,active:1,repeat:0", 5);
	struct profile_fixture fixture;

	edge(builder, 100, TRACE_WINDOW_BEGINS, 1, 0);
	span(builder, 110, 140, "work");
	edge(builder, 200, TRACE_WINDOW_ENDS, 2, 0);
	edge(builder, 300, TRACE_WINDOW_BEGINS, 3, 0);
	span(builder, 350, 390, "work");
	edge(builder, 400, TRACE_WINDOW_ENDS, 4, 0);
	build_push(builder, MAIN, 900, "after"); /* whatever is there counts in windows only */
	build_pop(builder, MAIN, 1000);
	fixture = profile(builder);
	expect(&fixture, "step", 2, 200);
	expect(&fixture, "step/work", 2, 70);
	ck_assert_uint_eq(fixture.profile->totals.wall_ns, 200);
	fixture_free(&fixture);
}
END_TEST

START_TEST(steps_are_those_of_the_program_where_none_are_found)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:0,warmup:1,active:2,repeat:1", 9);
	struct recording_windows *windows;
	struct profile_fixture fixture;
	struct steps *steps;

	span(builder, 10, 90, "work"); /* it began with the program: step 0 */
	edge(builder, 100, TRACE_WINDOW_STEP, 1, 0);
	span(builder, 110, 140, "work");
	edge(builder, 150, TRACE_WINDOW_STEP, 2, 0);
	span(builder, 160, 180, "work");
	edge(builder, 200, TRACE_WINDOW_ENDS, 3, 0);
	fixture = fixture_of(builder, NULL);
	windows = recording_windows_read(fixture.reader);
	steps = recording_windows_steps(windows, NULL);
	ck_assert_uint_eq(windows->count, 1);
	ck_assert_uint_eq(windows->ns, 200);
	ck_assert_uint_eq(windows->steps, 9);
	ck_assert_uint_eq(steps->count, 3);
	ck_assert_uint_eq(steps->warm_up, 1);
	ck_assert_str_eq(steps->evidence, "PPERF_SCHEDULE");
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(steps->steps[i].number, i);
		ck_assert_uint_eq(steps->steps[i].kind, i ? STEP_USUAL : STEP_WARM_UP);
	}
	ck_assert_uint_eq(steps->steps[1].begin_ns, 100);
	ck_assert_uint_eq(steps->steps[1].end_ns, 150);
	ck_assert_uint_eq(steps->steps[2].end_ns, 200);
	ck_assert_uint_eq(steps->p50_ns, 50);
	steps_free(steps);
	recording_windows_free(windows);
	fixture_free(&fixture);
}
END_TEST

/* Two steps as an optimizer tells them. */
static void train(struct trace_builder *builder, uint64_t at, const char *name)
{
	span(builder, at + 10, at + 20, "Optimizer.zero_grad#SGD.zero_grad");
	span(builder, at + 30, at + 60, name);
	span(builder, at + 70, at + 90, "Optimizer.step#SGD.step");
}

START_TEST(steps_that_are_found_have_the_programs_numbers)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:3,warmup:1,active:1,repeat:0", 11);
	static const uint64_t wanted[] = { 3, 4, 8, 9 };
	struct recording_windows *windows;
	struct profile_fixture fixture;
	struct steps *steps;

	for (uint64_t i = 0; i < 2; i++) {
		edge(builder, 100 + 1000 * i, TRACE_WINDOW_BEGINS, 3 + 5 * i, 1);
		train(builder, 100 + 1000 * i, "a");
		edge(builder, 200 + 1000 * i, TRACE_WINDOW_STEP, 4 + 5 * i, 0);
		train(builder, 200 + 1000 * i, "a");
		edge(builder, 300 + 1000 * i, TRACE_WINDOW_ENDS, 5 + 5 * i, 0);
	}
	fixture = fixture_of(builder, NULL);
	windows = recording_windows_read(fixture.reader);
	steps = recording_windows_steps(windows, steps_find(fixture.reader, NULL, NULL));
	ck_assert_str_eq(steps->evidence, "optimizer.step");
	ck_assert_uint_eq(steps->count, 4);
	ck_assert_uint_eq(steps->warm_up, 2);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(steps->steps[i].number, wanted[i]);
		ck_assert_uint_eq(steps->steps[i].kind, i % 2 ? STEP_USUAL : STEP_WARM_UP);
		ck_assert_uint_le(steps->steps[i].end_ns, i < 2 ? 300 : 1300);
	}
	steps_free(steps);
	recording_windows_free(windows);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_window_that_was_cut_off_is_unfinished)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:1,warmup:0,active:5,repeat:0", 2);
	struct report_run run;

	builder_header(builder)->flags = 0;
	edge(builder, 100, TRACE_WINDOW_BEGINS, 1, 0);
	span(builder, 110, 140, "work");
	edge(builder, 150, TRACE_WINDOW_STEP, 2, 0);
	span(builder, 160, 200, "work");
	run = run_report(builder, "trace.bin --width 120");
	has(run.out, "window    steps 1-2 (unfinished) of 2 recorded, ");
	has(run.out, ", 1 unfinished excluded; found by PPERF_SCHEDULE (high)");
}
END_TEST

START_TEST(where_there_was_no_window_nothing_counts_unless_it_was_open)
{
	for (int shut = 0; shut < 2; shut++) {
		struct trace_builder *builder = scheduled(
			"skip_first:0,wait:0,warmup:0,active:5,repeat:0", 0);
		struct profile_fixture fixture;

		if (shut)
			builder_header(builder)->flags |= TRACE_PAUSED;
		span(builder, 110, 140, "work");
		fixture = profile(builder);
		ck_assert_int_eq(fixture.profile->totals.wall_ns == 0, shut);
		fixture_free(&fixture);
	}
}
END_TEST

START_TEST(the_gpu_is_busy_and_idle_in_windows)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:1,warmup:0,active:1,repeat:0", 4);
	struct report_run run;

	build_device(builder, 0, "GPU");
	edge(builder, 100, TRACE_WINDOW_BEGINS, 1, 0);
	build_push(builder, MAIN, 110, "work");
	build_launch(builder, MAIN, 120, 1);
	build_pop(builder, MAIN, 130);
	edge(builder, 200, TRACE_WINDOW_ENDS, 2, 0);
	edge(builder, 1000, TRACE_WINDOW_BEGINS, 3, 0);
	build_push(builder, MAIN, 1010, "work");
	build_launch(builder, MAIN, 1020, 5);
	build_pop(builder, MAIN, 1030);
	edge(builder, 1100, TRACE_WINDOW_ENDS, 4, 0);
	build_kernel(builder, GPU, 1200, 1, "gemm", 130, 180);
	build_kernel(builder, GPU, 1200, 5, "gemm", 1030, 1090);
	run = run_report(builder, "tree trace.bin -f json");
	has(run.out, "\"wall_ns\": 200, \"gpu_sum_ns\": 110, \"gpu_busy_ns\": 110, "
		     "\"gpu_idle_ns\": 50,");
}
END_TEST

static void level(struct trace_builder *builder, uint64_t at, uint64_t allocated, uint64_t reserved)
{
	build_tensor(builder, MAIN, at, 0, 0, allocated, reserved)->head.flags = TRACE_TENSOR_LEVEL;
}

START_TEST(tensors_that_came_and_went_meanwhile_are_no_difference)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:0,warmup:0,active:1,repeat:0", 4);
	struct profile_fixture fixture;
	const struct memory_owners *memory;

	build_push(builder, MAIN, 10, "work");
	build_tensor(builder, MAIN, 20, 0x1000, 512, 512, 2048);
	build_tensor(builder, MAIN, 30, 0x2000, 1024, 1536, 2048);
	build_pop(builder, MAIN, 40);
	edge(builder, 100, TRACE_WINDOW_ENDS, 1, 0);
	build_alloc(builder, MAIN, 150, 0x100000, 1 << 20); /* recorded always */
	edge(builder, 200, TRACE_WINDOW_BEGINS, 2, 0);      /* 0x1000 has gone, 0x3000 has come */
	level(builder, 201, 4096, 1 << 20);
	build_push(builder, MAIN, 210, "work");
	build_tensor(builder, MAIN, 220, 0x1000, 512, 4608, 1 << 20);
	build_tensor(builder, MAIN, 230, 0x3000, -2048, 2560, 1 << 20);
	build_pop(builder, MAIN, 240);
	edge(builder, 300, TRACE_WINDOW_ENDS, 3, 0);
	fixture = profile(builder);
	memory = fixture.profile->memory;
	ck_assert_uint_eq(memory->counts.tensor_differences, 0);
	ck_assert_uint_eq(memory->counts.unknown_tensor_frees, 0);
	ck_assert_int_eq(fixture.profile->totals.allocated_peak, 4608);
	ck_assert_int_eq(fixture.profile->totals.allocated_now, 2560);
	ck_assert_int_eq(fixture.profile->totals.reserved_peak, 1 << 20);
	ck_assert_uint_eq(
		fixture_node(&fixture, "step/work")->tensors->self.alloc_bytes, 512 + 1024 + 512);
	ck_assert_uint_eq(fixture_node(&fixture, "step/work")->tensors->allocs, 3);
	ck_assert_uint_eq(memory_owners_tensors(memory, 0)->pool.allocated, 2560);
	fixture_free(&fixture);
}
END_TEST

START_TEST(skipped_events_are_reported_with_their_cost)
{
	struct trace_builder *builder = scheduled(
		"skip_first:0,wait:1,warmup:0,active:1,repeat:1", 100);
	struct report_run run;

	builder_header(builder)->skipped[TRACE_SKIPPED_RANGES] = (struct trace_skip){ 1000, 10,
		500 };
	builder_header(builder)->skipped[TRACE_SKIPPED_GPU] = (struct trace_skip){ 40, 40, 1000 };
	edge(builder, 100, TRACE_WINDOW_BEGINS, 1, 0);
	span(builder, 110, 140, "work");
	edge(builder, 200, TRACE_WINDOW_ENDS, 2, 0);
	run = run_report(builder, "trace.bin --width 200");
	has(run.out,
		"outside   seen but not recorded: 1,000 range starts and ends, 40 GPU records; "
		"estimated cost about 51.00 µs in pperf, from a measured sample\n");
	ck_assert_msg(strstr(run.out, "window    step 1 of 100 recorded, 100 ns "
				      "(PPERF_SCHEDULE=skip_first:0,wait:1") != NULL,
		"%s", run.out);
	run = run_report(NULL, "tree trace.bin -f json");
	has(run.out, "\"skipped\": {\"ranges\": 1000, \"calls\": 0, \"tensors\": 0, \"others\": "
		     "0, \"gpu\": 40}, "
		     "\"skipped_cost_ns\": 51000");
}
END_TEST

/* PPERF_RING: memory is restated at 100 and at 300. The window begins at 100. */
static struct trace_builder *ring(uint64_t *second)
{
	struct trace_builder *builder = builder_new();
	struct trace_ring *header = &builder_header(builder)->ring;
	struct trace_window *record;
	struct trace_tensor *tensor;

	build_push(builder, OTHER, 1, "runs on");
	build_push(builder, MAIN, 5, "work");
	build_tensor(builder, MAIN, 20, 0x1000, 512, 512, 4096); /* freed before the window */
	build_tensor(builder, MAIN, 40, 0x1000, -512, 0, 4096);
	build_pop(builder, MAIN, 50);
	build_push(builder, MAIN, 60, "holds");
	for (uint64_t at = 100; at <= 300; at += 200) {
		record = build_record(builder, MAIN, TRACE_WINDOW, sizeof *record, at);
		record->edge = TRACE_WINDOW_RESTATES;
		header->window_stamp = at == 100 ? record->stamp : header->window_stamp;
		*second = record->stamp;
		tensor = build_record(builder, MAIN, TRACE_TENSOR, sizeof *tensor, at);
		tensor->head.flags = TRACE_TENSOR_LEVEL;
		tensor->reserved = 4096;
		build_tensor(builder, MAIN, at, 0x2000, 1024, 1024, 4096);
		build_alloc(builder, MAIN, at, 0x100000, 1 << 20);
		edge(builder, at, TRACE_WINDOW_RESTATED, 0, 0);
		build_tensor(builder, MAIN, at + 20, 0x3000, 512, 1536, 4096);
		build_tensor(builder, MAIN, at + 30, 0x3000, -512, 1024, 4096);
	}
	build_pop(builder, OTHER, 390);
	build_pop(builder, MAIN, 400);
	header->bytes = 1 << 20;
	header->chunks = 7;
	header->events = 1234;
	return builder;
}

static void expect_ring(struct trace_builder *builder, uint64_t begin, uint64_t allocs)
{
	struct profile_fixture fixture = profile(builder);
	const struct profile *of = fixture.profile;

	ck_assert_uint_eq(reader_window_begin_ns(fixture.reader), begin);
	ck_assert_uint_eq(fixture_node(&fixture, "work")->calls, 0);
	expect(&fixture, "holds", 1, 400 - begin);
	expect(&fixture, "runs on", 1, 390 - begin);
	ck_assert_uint_eq(of->memory->counts.tensor_differences, 0);
	ck_assert_uint_eq(of->memory->counts.unknown_tensor_frees, 0);
	ck_assert_uint_eq(of->memory->counts.replaced, 0);
	ck_assert_uint_eq(of->totals.tensor_alloc_bytes, 512 * allocs);
	ck_assert_int_eq(of->totals.allocated_peak, 1536);
	ck_assert_int_eq(of->totals.allocated_now, 1024);
	ck_assert_int_eq(of->totals.reserved_peak, 1 << 20);
	ck_assert_uint_eq(of->totals.alloc_bytes, 0);
	ck_assert(reader_integrity(fixture.reader)->complete);
	fixture_free(&fixture);
}

START_TEST(a_ring_counts_from_where_memory_is_restated)
{
	uint64_t second;
	struct trace_builder *builder = ring(&second);

	expect_ring(builder, 100, 2);
	builder = ring(&second);
	builder_header(builder)->ring.window_stamp = second;
	expect_ring(builder, 300, 1);
}
END_TEST

START_TEST(a_ring_whose_window_is_lost_is_read_all_the_same)
{
	uint64_t second;
	struct trace_builder *builder = ring(&second);
	struct profile_fixture fixture;

	builder_header(builder)->ring.window_stamp = second + 1;
	fixture = profile(builder);
	ck_assert_uint_eq(fixture_node(&fixture, "work")->calls, 1);
	/* It begins with the first block that is left; 0 would mean that there is no window. */
	ck_assert_uint_eq(reader_window_begin_ns(fixture.reader), 1);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("windows");
	TCase *cases = tcase_create("windows");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_add_test(cases, only_windows_count);
	tcase_add_test(cases, steps_are_those_of_the_program_where_none_are_found);
	tcase_add_test(cases, steps_that_are_found_have_the_programs_numbers);
	tcase_add_test(cases, a_window_that_was_cut_off_is_unfinished);
	tcase_add_test(cases, where_there_was_no_window_nothing_counts_unless_it_was_open);
	tcase_add_test(cases, the_gpu_is_busy_and_idle_in_windows);
	tcase_add_test(cases, tensors_that_came_and_went_meanwhile_are_no_difference);
	tcase_add_test(cases, a_ring_counts_from_where_memory_is_restated);
	tcase_add_test(cases, a_ring_whose_window_is_lost_is_read_all_the_same);
	tcase_add_test(cases, skipped_events_are_reported_with_their_cost);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
