/* SPDX-License-Identifier: MIT
 * test_failed_allocations.c: a program whose CUDA allocation runs out of memory: what was requested
 * where, how much there was, and what held it.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <string.h>

#define GB 1000000000u

static void failing(struct trace_builder *builder, uint64_t at, uint64_t bytes, uint32_t result)
{
	struct trace_memory *call = build_memory(
		builder, 1, at, TRACE_ALLOC, 0, bytes, TRACE_MEMORY_DEVICE, 0);

	call->call.result = result;
	call->call.api = build_name(builder, "cudaMalloc");
}

/* 60 GB in `load`, 10 of them freed, 20 GB in `step: 0`; then 30 GB fail in `step: 1 / scores`. */
static struct trace_builder *exhausted(uint32_t result)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "load");
	build_alloc(builder, 1, 20, 0x1000, 50ull * GB);
	build_alloc(builder, 1, 30, 0x2000, 10ull * GB);
	build_pop(builder, 1, 40);
	build_free(builder, 1, 50, 0x2000);
	build_push(builder, 1, 100, "step: 0");
	build_alloc(builder, 1, 120, 0x3000, 20ull * GB);
	build_pop(builder, 1, 200);
	build_push(builder, 1, 300, "step: 1");
	build_push(builder, 1, 310, "scores");
	failing(builder, 400, 30ull * GB, result);
	return builder;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "`%s` is not in:\n%s", part, text);
}

START_TEST(the_first_screen_names_call_size_ranges_and_holders)
{
	const struct report_run run = run_report(exhausted(2), "trace.bin");

	has(run.out,
		"OOM       out of memory on GPU 0 after 400 ns: cudaMalloc(30.00 GB) in `step: 1\n"
		"          / scores`\n"
		"          device memory allocated by this process: 70.00 GB of the GPU's\n"
		"          85.90 GB, so at most 15.90 GB were free\n"
		"          live at that time: 50.00 GB (71.4 %) allocated in `load`; 20.00 GB\n"
		"          (28.6 %) allocated in `step: *`\n");
	has(run.out, "next      pperf-report memory trace.bin\n");
}
END_TEST

START_TEST(memory_shows_what_each_held_then)
{
	const struct report_run run = run_report(exhausted(2), "memory trace.bin");

	has(run.out, "cudaMalloc(30.00 GB) in `step: 1\n          / scores`\n");
	has(run.out, "at OOM");
	has(run.out, "  ├── load               50.00 GB  50.00 GB  50.00 GB       2      1 ");
}
END_TEST

START_TEST(diagnose_puts_it_first)
{
	const struct report_run run = run_report(exhausted(2), "diagnose trace.bin");

	ck_assert_msg(strncmp(run.out, "1. out-of-memory: 30.00 GB\n", 27) == 0, "%s", run.out);
	has(run.out, "cudaMalloc of 30.00 GB failed: out of memory.");
}
END_TEST

START_TEST(json_and_every_view_say_so)
{
	struct report_run run = run_report(exhausted(2), "tree trace.bin -f json");

	has(run.out, "\"failed_allocations\": [{\"pid\": 100, \"tid\": 1001, \"t_ns\": 400, "
		     "\"device\": 0, \"api\": \"cudaMalloc\", \"path\": [\"step: *\", \"scores\"], "
		     "\"memory_kind\": \"device\", \"requested_bytes\": 30000000000, "
		     "\"held_bytes\": 70000000000, \"device_bytes\": 85899345920, "
		     "\"succeeded_later\": false, \"retry_ns\": null, "
		     "\"released_bytes\": 0, \"cause\": \"live\", "
		     "\"free_bytes\": null, \"total_bytes\": 85899345920, ");
	has(run.out, "see totals.failed_allocations\"]");
	run = run_report(NULL, "tree trace.bin");
	has(run.out, "warning: a CUDA allocation ran out of memory 1 time: pperf-report memory ");
}
END_TEST

/* Another error is no lack of memory. */
START_TEST(an_invalid_argument_is_no_lack_of_memory)
{
	struct report_run run = run_report(exhausted(1), "trace.bin");

	ck_assert_ptr_null(strstr(run.out, "OOM"));
	run = run_report(NULL, "diagnose trace.bin");
	ck_assert_ptr_null(strstr(run.out, "1. out-of-memory"));
}
END_TEST

/* An allocator frees what it caches and tries again. */
START_TEST(a_call_that_is_repeated_with_success_is_no_finding)
{
	struct trace_builder *builder = exhausted(2);
	struct report_run run;

	build_free(builder, 1, 410, 0x1000);
	build_alloc(builder, 1, 420, 0x4000, 30ull * GB);
	run = run_report(builder, "trace.bin");
	has(run.out, "`; as much was allocated later\n");
	run = run_report(NULL, "diagnose trace.bin");
	ck_assert_ptr_null(strstr(run.out, "1. out-of-memory"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("failed allocations");
	TCase *cases = tcase_create("failed allocations");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_add_test(cases, the_first_screen_names_call_size_ranges_and_holders);
	tcase_add_test(cases, memory_shows_what_each_held_then);
	tcase_add_test(cases, diagnose_puts_it_first);
	tcase_add_test(cases, json_and_every_view_say_so);
	tcase_add_test(cases, an_invalid_argument_is_no_lack_of_memory);
	tcase_add_test(cases, a_call_that_is_repeated_with_success_is_no_finding);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
