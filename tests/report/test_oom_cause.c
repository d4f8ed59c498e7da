/* SPDX-License-Identifier: MIT
 * test_oom_cause.c: why memory ran out, on both sides of each rule; the gaps in PyTorch's segments,
 * also against a plain count of free units; and the places of other threads.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB UINT64_C(1000000)
#define GB UINT64_C(1000000000)
#define TOTAL (16 * GB)

static struct trace_builder *builder;
static uint64_t now;

static void device_memory(uint64_t free_bytes, bool failed)
{
	struct trace_device_memory *record = build_record(
		builder, 1, TRACE_DEVICE_MEMORY, sizeof *record, ++now);

	record->free_bytes = free_bytes;
	record->total_bytes = TOTAL;
	record->reason = failed ? TRACE_SAMPLE_FAILED : TRACE_SAMPLE_FIRST;
}

static void segment(uint64_t address, uint64_t bytes)
{
	build_alloc(builder, 1, ++now, address, bytes);
}

/* A call of CUDA that fails, while the driver has `free_bytes`. */
static void failing(uint64_t bytes, uint64_t free_bytes)
{
	struct trace_memory *call = build_memory(
		builder, 1, ++now, TRACE_ALLOC, 0, bytes, TRACE_MEMORY_DEVICE, 0);

	call->call.result = 2;
	call->call.api = build_name(builder, "cudaMalloc");
	device_memory(free_bytes, true);
}

static void begin(void)
{
	builder = builder_new();
	now = 100;
}

static void has(const struct report_run *run, const char *text)
{
	const char *totals = strstr(run->out, "\"ooms\"");

	ck_assert_str_eq(run->err, "");
	ck_assert_msg(strstr(run->out, text) != NULL, "`%s` is not in:\n%.1800s", text,
		totals ? totals : run->out);
}

static void expect_cause(const char *cause)
{
	const struct report_run run = run_report(builder, "memory trace.bin -f json");
	char text[64];

	snprintf(text, sizeof text, "\"cause\": \"%s\"", cause);
	has(&run, text);
}

START_TEST(a_call_alone)
{
	static const struct {
		uint64_t held, asked, free;
		const char *cause;
	} cases[] = {
		{ 1 * GB, 15 * GB, 14 * GB, "live" },
		{ 1 * GB, 16 * GB, 15 * GB, "live" },
		{ 1 * GB, 16 * GB + 1, 15 * GB, "too_large" },
		{ 1 * GB, 14 * GB, 14 * GB, "fragmentation" }, /* enough was free */
		{ 1 * GB, 14900 * MB, 14 * GB - 73 * MB, "live" },
		{ 1 * GB, 15 * GB, 14 * GB - 73 * MB, "too_large" }, /* 73 MB of others */
		{ 1 * GB, 8 * GB, 7 * GB, "others" },                /* 8 GB of others */
		{ 1 * GB, 14 * GB, 7 * GB, "too_large" },        /* would not fit without them */
		{ 1 * GB, 14 * GB, 13 * GB + 300 * MB, "live" }, /* 1.7 GB: less than 1/20 beyond */
		{ 1 * GB, 13900 * MB, 13 * GB, "others" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		begin();
		segment(0x1000, cases[i].held);
		failing(cases[i].asked, cases[i].free);
		expect_cause(cases[i].cause);
	}
}
END_TEST

START_TEST(without_the_drivers_figures_nothing_is_known)
{
	struct trace_memory *call;

	begin();
	segment(0x1000, GB);
	call = build_memory(builder, 1, ++now, TRACE_ALLOC, 0, 15 * GB, TRACE_MEMORY_DEVICE, 0);
	call->call.result = 2;
	expect_cause("unknown");
}
END_TEST

/* 12 steps, each of which ends with `more` bytes more; `every` step keeps something. */
static void grow(uint64_t more, unsigned every)
{
	for (unsigned step = 0; step < 12; step++) {
		char name[16];

		snprintf(name, sizeof name, "step %u", step);
		build_push(builder, 1, now += 10, name);
		segment(0x10000 + 0x1000 * step, GB);
		if (step % every == 0)
			segment(0x100000 + 0x1000 * step, more);
		build_free(builder, 1, ++now, 0x10000 + 0x1000 * step);
		build_pop(builder, 1, now += 90);
	}
}

START_TEST(growth_is_a_leak_if_the_request_would_fit_without_it)
{
	static const struct {
		uint64_t more, asked, free;
		unsigned every;
		const char *cause;
	} cases[] = {
		{ GB, 3 * GB, 2 * GB, 1, "leak" }, { GB, 14 * GB, 2 * GB, 1, "leak" },
		{ GB, 15 * GB, 2 * GB, 1, "live" }, /* not even without it */
		{ MB / 2, 14 * GB, 14 * GB - 6 * MB, 1, "live" },
		{ GB, 11 * GB, 10 * GB, 3, "live" }, /* not in most steps */
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		begin();
		segment(0x1000, 2 * GB);
		grow(cases[i].more, cases[i].every);
		failing(cases[i].asked, cases[i].free);
		expect_cause(cases[i].cause);
	}
}
END_TEST

/* PyTorch has two segments of 1 GB with a tensor in the middle of each, and 2 GB empty. */
static void reserve(void)
{
	begin();
	segment(UINT64_C(1) << 32, GB);
	device_memory(15 * GB, false);
	segment(UINT64_C(2) << 32, GB);
	segment(UINT64_C(3) << 32, 2 * GB);
	build_tensor(builder, 1, ++now, (UINT64_C(1) << 32) + 400 * MB, 100 * (int64_t)MB, 100 * MB,
		4 * GB);
	build_tensor(builder, 1, ++now, (UINT64_C(2) << 32) + 100 * MB, 100 * (int64_t)MB, 200 * MB,
		4 * GB);
}

START_TEST(pytorch_has_gaps_or_a_limit)
{
	reserve();
	failing(900 * MB, 0);
	build_tensor_oom(builder, 1, ++now, 900 * MB, 200 * MB, 4 * GB);
	expect_cause("others"); /* 12 GB of others, and 900 MB would fit without */
	reserve();
	segment(UINT64_C(4) << 32, 12 * GB - 1);
	failing(900 * MB, 1);
	build_tensor_oom(builder, 1, ++now, 900 * MB, 200 * MB, 16 * GB);
	expect_cause("fragmentation");
	reserve();
	segment(UINT64_C(4) << 32, 12 * GB - 1);
	failing(700 * MB, 1);
	build_tensor_oom(builder, 1, ++now, 700 * MB, 200 * MB, 16 * GB);
	expect_cause("live"); /* a gap of 800 MB: of another stream or pool */
	reserve();
	build_tensor_oom(builder, 1, ++now, 900 * MB, 200 * MB, 4 * GB);
	expect_cause("limit");
	reserve();
	build_tensor_oom(builder, 1, ++now, 900 * MB, 200 * MB, 5 * GB);
	expect_cause("fragmentation"); /* 1 GB of it was not seen, so no limit is claimed */
}
END_TEST

START_TEST(json_has_gaps_and_the_calls_before)
{
	struct report_run run;

	reserve();
	failing(900 * MB, 0);
	build_free(builder, 1, ++now, UINT64_C(3) << 32);
	failing(900 * MB, 2 * GB);
	build_tensor_oom(builder, 1, ++now, 900 * MB, 200 * MB, 2 * GB);
	run = run_report(builder, "memory trace.bin -f json");
	has(&run, "\"free_bytes\": 2000000000, \"total_bytes\": 16000000000, "
		  "\"others_bytes\": 12000000000");
	has(&run, "\"gaps\": 4, \"gap_bytes\": 1800000000, \"largest_gap_bytes\": 800000000, "
		  "\"failed_calls\": 2");
	has(&run, "\"released_bytes\": 2000000000, \"cause\": \"unknown\"");
	run = run_report(NULL, "trace.bin");
	has(&run, "retry     2 calls of CUDA in ");
	has(&run, "; meanwhile 2.00 GB were released in 1 call\n");
}
END_TEST

START_TEST(other_threads_are_where_they_were)
{
	struct report_run run;

	begin();
	segment(0x1000, GB);
	build_push(builder, 1, 200, "train");
	build_push(builder, 2, 110, "loader");
	build_push(builder, 2, 120, "read");
	build_push(builder, 3, 110, "over"); /* has ended by then */
	build_pop(builder, 3, 150);
	now = 300;
	failing(32 * GB, 15 * GB);
	build_pop(builder, 2, 400);
	build_push(builder, 2, 410, "later");
	build_pop(builder, 2, 420);
	build_pop(builder, 2, 430);
	build_pop(builder, 1, 500);
	run = run_report(builder, "memory trace.bin -f json");
	has(&run, "\"open\": [{\"label\": \"train\", \"grown_bytes\": 0}], \"threads\": "
		  "[{\"tid\": 1002, \"open\": [{\"label\": \"loader\", \"grown_bytes\": 0}, "
		  "{\"label\": \"read\", \"grown_bytes\": 0}]}]");
	run = run_report(NULL, "trace.bin");
	has(&run, "threads   thread 1001 ran out of memory; meanwhile 1002 in `loader / read`\n");
}
END_TEST

#define UNITS 200u
#define UNIT 1024u

/* Random segments with random tensors, against a map of units. */
START_TEST(gaps_equal_a_plain_count)
{
	uint8_t map[UNITS]; /* 0: no segment; 1: free; 2: tensor */
	uint64_t free_units = 0, largest = 0, gaps = 0, allocated = 0, begin_at = 0;
	struct report_run run;
	char text[160];

	srand((unsigned)_i + 1);
	begin();
	memset(map, 0, sizeof map);
	for (unsigned at = 0; at < UNITS;) {
		const unsigned length = 1 + (unsigned)rand() % 30;
		unsigned end = at + length < UNITS ? at + length : UNITS, seen = 0;

		segment((uint64_t)(at + 1) * UNIT, (uint64_t)(end - at) * UNIT);
		memset(map + at, 1, end - at);
		for (unsigned unit = at; unit < end; unit++) {
			if (rand() % 3)
				continue;
			map[unit] = 2;
			seen++;
			allocated += UNIT;
			build_tensor(builder, 1, ++now, (uint64_t)(unit + 1) * UNIT, UNIT,
				allocated, UNITS * UNIT);
		}
		for (unsigned unit = at; seen && unit < end; unit++) {
			free_units += map[unit] == 1;
			if (map[unit] != 1)
				continue;
			if (unit == at || map[unit - 1] != 1)
				gaps++, begin_at = unit;
			if (unit - begin_at + 1 > largest)
				largest = unit - begin_at + 1;
		}
		at = end + (unsigned)rand() % 3;
	}
	build_tensor_oom(builder, 1, ++now, UNITS * UNIT, allocated, UNITS * UNIT);
	run = run_report(builder, "memory trace.bin -f json");
	snprintf(text, sizeof text,
		"\"gaps\": %llu, \"gap_bytes\": %llu, \"largest_gap_bytes\": %llu",
		(unsigned long long)gaps, (unsigned long long)free_units * UNIT,
		(unsigned long long)largest * UNIT);
	has(&run, text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("oom cause");
	TCase *cases = tcase_create("oom cause");
	SRunner *runner;
	int failed;

	tcase_set_timeout(cases, 60);
	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_add_test(cases, a_call_alone);
	tcase_add_test(cases, without_the_drivers_figures_nothing_is_known);
	tcase_add_test(cases, growth_is_a_leak_if_the_request_would_fit_without_it);
	tcase_add_test(cases, pytorch_has_gaps_or_a_limit);
	tcase_add_test(cases, json_has_gaps_and_the_calls_before);
	tcase_add_test(cases, other_threads_are_where_they_were);
	tcase_add_loop_test(cases, gaps_equal_a_plain_count, 0, 30);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
