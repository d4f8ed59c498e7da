/* SPDX-License-Identifier: MIT
 * test_trace_clock.c: stamps become nanoseconds exactly and never run backwards; CUPTI's times land
 * on the same axis, also when somebody sets the clock.
 */
#include "tests/support/event_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct trace_builder *builder;

static void set_up(void)
{
	builder = builder_new();
}

static void tear_down(void)
{
	builder_free(builder);
}

/* Between two samples, a nanosecond may be lost to rounding. */
static void expect_about(uint64_t ns, uint64_t wanted)
{
	if (ns + 2 < wanted || ns > wanted + 2)
		ck_abort_msg("%lu ns, not %lu", (unsigned long)ns, (unsigned long)wanted);
}

#define SECOND_TICKS UINT64_C(2596123457)

/* A trace of some seconds of a counter that runs at 2.596123457 GHz, sealed every half second. */
static void build_seconds(unsigned seconds)
{
	build_tsc(builder, 1000000000, SECOND_TICKS);
	for (unsigned half = 0; half < 2 * seconds; half++) {
		build_push(builder, 1, half * (SECOND_TICKS / 2), "half");
		build_pop(builder, 1, half * (SECOND_TICKS / 2) + SECOND_TICKS / 4);
		build_seal(builder, 1, SEAL_WHOLE);
	}
}

START_TEST(ticks_become_nanoseconds_to_the_nanosecond)
{
	struct trace_reader *reader;

	build_seconds(10);
	reader = open_built(builder);
	ck_assert_double_eq_tol(reader_ticks_per_second(reader), (double)SECOND_TICKS, 2);
	for (uint64_t at = 0; at < 10 * SECOND_TICKS; at += 12345677)
		expect_about(reader_time(reader, BUILDER_START + at),
			(uint64_t)((wide_uint)at * 1000000000 / SECOND_TICKS));
	ck_assert_uint_eq(reader_time(reader, BUILDER_START), 0);
	ck_assert_uint_eq(reader_time(reader, BUILDER_START + 4 * (SECOND_TICKS / 2)),
		UINT64_C(4) * (SECOND_TICKS / 2) * 1000000000 / SECOND_TICKS);
	reader_close(reader);
}
END_TEST

START_TEST(time_never_runs_backwards)
{
	struct trace_reader *reader;
	uint64_t last = 0;

	/* The rate changes from payload to payload, as where a clock is slewed. */
	build_tsc(builder, 1000000000, SECOND_TICKS);
	for (unsigned i = 0; i < 50; i++) {
		build_wrong_clock(builder, i % 3 ? 1000 * (int64_t)i : -7000);
		build_push(builder, 1, i * (SECOND_TICKS / 8), "a");
		build_seal(builder, 1, SEAL_WHOLE);
	}
	reader = open_built(builder);
	for (uint64_t at = 0; at < 7 * SECOND_TICKS; at += 99991) {
		uint64_t now = reader_time(reader, BUILDER_START + at);

		if (now < last)
			ck_abort_msg(
				"after %lu ns comes %lu", (unsigned long)last, (unsigned long)now);
		last = now;
	}
	for (uint64_t at = SECOND_TICKS / 8 * 9 - 500; at < SECOND_TICKS / 8 * 9 + 500; at++) {
		uint64_t now = reader_time(reader, BUILDER_START + at),
			 next = reader_time(reader, BUILDER_START + at + 1);

		if (next < now || next - now > 1)
			ck_abort_msg("one tick is %ld ns", (long)(next - now));
	}
	reader_close(reader);
}
END_TEST

START_TEST(nanoseconds_stay_nanoseconds)
{
	struct trace_reader *reader;

	build_push(builder, 1, 0, "a");
	build_seal(builder, 1, SEAL_WHOLE);
	build_pop(builder, 1, UINT64_C(3600) * 24 * 365 * 1000000000);
	reader = open_built(builder);
	for (uint64_t at = 0; at < UINT64_C(1) << 55; at = at * 3 + 1)
		ck_assert_uint_eq(reader_time(reader, BUILDER_START + at), at);
	ck_assert_uint_eq(reader_time(reader, 5), 0);
	ck_assert_uint_eq(reader_time(reader, UINT64_MAX), READER_TIME_MAX);
	ck_assert_uint_eq(reader_duration(reader, BUILDER_START + 1000, 10), 10);
	ck_assert_uint_eq(reader_duration(reader, BUILDER_START + 10, 1000), 10);
	ck_assert_uint_eq(reader_duration(reader, 10, UINT64_MAX), 0);
	reader_close(reader);
}
END_TEST

START_TEST(a_sample_that_contradicts_the_others_is_refused)
{
	struct trace_reader *reader;
	static const int64_t errors[] = { 400000000, -400000000, INT64_C(1) << 40,
		-(INT64_C(1) << 50), INT64_MIN };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		builder_free(builder);
		builder = builder_new();
		build_seconds(2);
		build_wrong_clock(builder, errors[i]);
		build_push(builder, 1, 2 * SECOND_TICKS, "wrong");
		build_seal(builder, 1, SEAL_WHOLE);
		build_push(builder, 1, 3 * SECOND_TICKS, "right");
		reader = open_built(builder);
		free(events_to_text(reader));
		ck_assert_uint_eq(reader_integrity(reader)->clock_samples_refused, 1);
		expect_about(reader_time(reader, BUILDER_START + 2 * SECOND_TICKS), 2000000000);
		reader_close(reader);
	}
}
END_TEST

START_TEST(a_machine_that_was_suspended_is_believed)
{
	struct trace_reader *reader;

	/* The counter went on, CLOCK_MONOTONIC did not: from some moment on it is an hour behind.
	 */
	build_seconds(2);
	for (unsigned i = 0; i < 4; i++) {
		build_wrong_clock(builder, -INT64_C(3600000000000));
		build_push(builder, 1, 3700 * SECOND_TICKS + i * SECOND_TICKS, "awake");
		build_seal(builder, 1, SEAL_WHOLE);
	}
	builder_header(builder)->last.raw = 0;
	reader = open_built(builder);
	expect_about(reader_time(reader, BUILDER_START + 1 * SECOND_TICKS), 1000000000);
	expect_about(reader_time(reader, BUILDER_START + 3703 * SECOND_TICKS) -
			     reader_time(reader, BUILDER_START + 3702 * SECOND_TICKS),
		1000000000);
	ck_assert_uint_lt(
		reader_time(reader, BUILDER_START + 3703 * SECOND_TICKS), UINT64_C(110000000000));
	reader_close(reader);
}
END_TEST

START_TEST(a_slot_that_was_never_sealed_tells_the_rate)
{
	struct trace_reader *reader;

	build_tsc(builder, 1000000000, SECOND_TICKS);
	builder_header(builder)->flags = 0;
	build_push(builder, 1, 0, "a");
	build_pop(builder, 1, 1000);
	build_clock_record(builder, 1, 10 * SECOND_TICKS);
	build_push(builder, 1, 10 * SECOND_TICKS + 5, "b");
	builder_header(builder)->last = (struct trace_clock){ 0 };
	reader = open_built(builder);
	expect_about(reader_time(reader, BUILDER_START + 5 * SECOND_TICKS), 5000000000);
	free(events_to_text(reader));
	ck_assert_ptr_null(reader_warning(reader, 0));
	reader_close(reader);
}
END_TEST

START_TEST(without_a_second_sample_the_reader_says_so)
{
	struct trace_reader *reader;

	build_tsc(builder, 1, 3);
	builder_header(builder)->flags = 0;
	build_push(builder, 1, 0, "a");
	builder_header(builder)->last = builder_header(builder)->start;
	reader = open_built(builder);
	free(events_to_text(reader));
	ck_assert_ptr_nonnull(reader_warning(reader, 0));
	ck_assert_ptr_nonnull(strstr(reader_warning(reader, 0), "clock"));
	reader_close(reader);
}
END_TEST

/* A batch that arrives at `at`, with a kernel that ran at `real` of the start's CLOCK_REALTIME. */
static void build_kernel(uint64_t at, uint64_t real)
{
	struct trace_kernel *kernel;

	build_record(builder, 1, TRACE_GPU_BATCH, sizeof(struct trace_gpu_batch), at);
	kernel = build_record(builder, 1, TRACE_KERNEL, sizeof *kernel, at);
	kernel->gpu.start_ns = BUILDER_START_UNIX_NS + real;
	kernel->gpu.end_ns = kernel->gpu.start_ns + 10;
}

/* The start of every kernel, as the reader places it. */
static size_t kernel_times(struct trace_reader *reader, uint64_t *times)
{
	struct trace_event event;
	size_t count = 0;
	uint64_t end;

	while (reader_next(reader, &event) > 0) {
		const struct trace_kernel *kernel = event.record;

		if (event.kind == TRACE_KERNEL)
			reader_gpu_times(reader, kernel->gpu.start_ns, kernel->gpu.end_ns,
				&times[count++], &end);
	}
	return count;
}

#define MS UINT64_C(1000000)

START_TEST(gpu_times_survive_a_clock_that_is_set)
{
	static const int64_t steps[] = { INT64_C(5000000000), -INT64_C(2000000000),
		3600 * INT64_C(1000000000), -3600 * INT64_C(1000000000) };
	struct trace_reader *reader;
	uint64_t times[4];

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		uint64_t step = (uint64_t)steps[i];

		builder_free(builder);
		builder = builder_new();
		build_kernel(100 * MS, 50 * MS);
		build_seal(builder, 1, SEAL_WHOLE);
		build_kernel(5200 * MS, 5150 * MS);
		build_seal(builder, 1, SEAL_WHOLE);
		build_step_realtime(builder, steps[i]);
		build_kernel(10300 * MS, 10250 * MS + step);
		build_seal(builder, 1, SEAL_WHOLE);
		build_kernel(15400 * MS, 15350 * MS + step);
		build_seal(builder, 1, SEAL_WHOLE);
		reader = open_built(builder);
		ck_assert_uint_eq(kernel_times(reader, times), 4);
		for (unsigned k = 0; k < 4; k++)
			ck_assert_msg(times[k] == (50 + 5100 * k) * MS,
				"step %zu, kernel %u: %lu ns", i, k, (unsigned long)times[k]);
		ck_assert_uint_eq(reader_integrity(reader)->clock_steps, 1);
		ck_assert_uint_eq(reader_integrity(reader)->clock_violations, 0);
		ck_assert_ptr_nonnull(strstr(reader_warning(reader, 0), "clock was set"));
		reader_close(reader);
	}
}
END_TEST

START_TEST(gpu_times_that_cannot_be_are_clamped_and_counted)
{
	struct trace_reader *reader;
	struct trace_event event;
	struct trace_kernel *kernel;
	uint64_t start, end;

	build_kernel(100, 50);
	kernel = build_record(builder, 1, TRACE_KERNEL, sizeof *kernel, 100);
	kernel->gpu.start_ns = BUILDER_START_UNIX_NS + 70;
	kernel->gpu.end_ns = BUILDER_START_UNIX_NS + 60;
	kernel = build_record(builder, 1, TRACE_KERNEL, sizeof *kernel, 100);
	kernel->gpu.start_ns = 5;
	kernel->gpu.end_ns = UINT64_MAX;
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_KERNEL) {
			kernel = (void *)(uintptr_t)event.record;
			ck_assert(reader_gpu_times(
				reader, kernel->gpu.start_ns, kernel->gpu.end_ns, &start, &end));
			ck_assert_uint_le(start, end);
			ck_assert_uint_le(end, 200);
		}
	ck_assert_uint_eq(reader_integrity(reader)->clock_violations, 1);
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace clock");
	TCase *cases = tcase_create("clock");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, ticks_become_nanoseconds_to_the_nanosecond);
	tcase_add_test(cases, time_never_runs_backwards);
	tcase_add_test(cases, nanoseconds_stay_nanoseconds);
	tcase_add_test(cases, a_sample_that_contradicts_the_others_is_refused);
	tcase_add_test(cases, a_machine_that_was_suspended_is_believed);
	tcase_add_test(cases, a_slot_that_was_never_sealed_tells_the_rate);
	tcase_add_test(cases, without_a_second_sample_the_reader_says_so);
	tcase_add_test(cases, gpu_times_survive_a_clock_that_is_set);
	tcase_add_test(cases, gpu_times_that_cannot_be_are_clamped_and_counted);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
