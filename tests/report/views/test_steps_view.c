/* SPDX-License-Identifier: MIT
 * test_steps_view.c: the view of steps, by hand: times, what the GPU did meanwhile, levels of
 * memory, and what is told of all of them.
 */
#include "report/analysis/step_stats.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void memory_of_step(struct trace_builder *builder, uint64_t at, uint64_t index)
{
	const uint64_t before = 100 * index, passing = 0x10000 + index * 0x100,
		       staying = 0x20000 + index * 0x100;

	build_tensor(builder, 1, at + 150, passing, 5000, before + 5000, 8000);
	build_tensor(builder, 1, at + 160, staying, 100, before + 5100, 8000);
	build_tensor(builder, 1, at + 190, passing, -5000, before + 100, 8000);
}

/* 900 long, each 1000 behind the one before; the sixth is 1900 long. In each a kernel of 200,
 * launched 110 after it began, runs from 300 on; 5000 bytes come and go, and 100 stay. The last one
 * computes no gradients. */
static struct trace_builder *eight_steps(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	char name[32];

	build_device(builder, 0, "GPU");
	for (uint64_t i = 0; i < 8; i++) {
		uint32_t step, op;

		snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)i);
		step = build_linked_node(builder, 0, name, TRACE_NODE_STEP, 0, NULL);
		op = build_linked_node(builder, step, "aten::mm", TRACE_NODE_OP, 0, NULL);
		build_push_node(builder, 1, at, step);
		build_push_node(builder, 1, at + 100, op);
		build_launch(builder, 1, at + 115, i + 1);
		memory_of_step(builder, at, i);
		build_pop(builder, 1, at + 200);
		if (i < 7) {
			build_push_node(builder, 1, at + 200,
				build_linked_node(builder, step, "MmBackward0", TRACE_NODE_BACKWARD,
					0, NULL));
			build_pop(builder, 1, at + 250);
		}
		build_kernel(builder, 9, at + 800, i + 1, "gemm", at + 300, at + 500);
		build_pop(builder, 1, at + (i == 5 ? 1900 : 900));
		at += i == 5 ? 2000 : 1000;
	}
	return builder;
}

static void expect(const struct report_run *run, const char *out)
{
	ck_assert_str_eq(run->err, "");
	ck_assert_str_eq(run->out, out);
	ck_assert_int_eq(run->status, 0);
}

START_TEST(each_step_has_its_times_and_its_memory)
{
	const struct report_run run = run_report(
		eight_steps(), "steps trace.bin --ascii --width 165");

	ck_assert_str_eq(run.out,
		"                       duration    busy     idle  gaps  longest  tensor peak  "
		"kernels  tensors at end  cpu self     peak  reserved at end  phase          gpu\n"
		"step 0                   900 ns  200 ns   700 ns     2   400 ns      5.10 kB      "
		"  1           100 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 1                   900 ns  200 ns   700 ns     2   400 ns      5.20 kB      "
		"  1           200 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 2                   900 ns  200 ns   700 ns     2   400 ns      5.30 kB      "
		"  1           300 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 3                   900 ns  200 ns   700 ns     2   400 ns      5.40 kB      "
		"  1           400 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 4                   900 ns  200 ns   700 ns     2   400 ns      5.50 kB      "
		"  1           500 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 5 (slow)           1.90 us  200 ns  1.70 us     2  1.40 us      5.60 kB      "
		"  1           600 B   1.90 us  8.00 kB          8.00 kB  training    200 ns\n"
		"step 6                   900 ns  200 ns   700 ns     2   400 ns      5.70 kB      "
		"  1           700 B    900 ns  8.00 kB          8.00 kB  training    200 ns\n"
		"step 7                   900 ns  200 ns   700 ns     2   400 ns      5.80 kB      "
		"  1           800 B    900 ns  8.00 kB          8.00 kB  evaluation  200 ns\n"
		"median (steady state)    900 ns  200 ns   700 ns     2   400 ns      5.40 kB      "
		"  1           400 B    900 ns  8.00 kB          8.00 kB              200 ns\n"
		"MAD                        0 ns    0 ns     0 ns     0     0 ns        200 B      "
		"  0           200 B      0 ns      0 B              0 B                0 ns\n"
		"slope per step             0 ns    0 ns     0 ns     0     0 ns        100 B      "
		"  0           100 B      0 ns      0 B              0 B                0 ns\n");
}
END_TEST

START_TEST(json_has_all_of_it)
{
	const struct report_run run = run_report(eight_steps(), "steps trace.bin -f json");

	ck_assert_str_eq(run.err, "");
	ck_assert_ptr_nonnull(strstr(run.out,
		"{\"name\": \"step 5 (slow)\", \"label\": \"step 5 (slow)\", \"kind\": \"step\", "
		"\"step\": 5, \"step_kind\": \"training\", "
		"\"state\": \"usual\", \"outlier\": \"slow\", \"start_ns\": 6000, \"duration_ns\": "
		"1900, \"cpu_self_ns\": 1900, "
		"\"gpu_total_ns\": 200, \"busy_ns\": 200, \"idle_ns\": 1700, \"gaps\": 2, "
		"\"gap_max_ns\": 1400, \"kernels\": 1, \"gpu_calls\": 1, "
		"\"allocated_peak_bytes\": 5600, \"allocated_end_bytes\": 600, "
		"\"reserved_peak_bytes\": 8000, "
		"\"reserved_end_bytes\": 8000}"));
}
END_TEST

/* Two threads call a model, five times each: thread 1001 takes 100, of which a kernel takes 20;
 * thread 1002 begins 40 later and takes 104. */
static struct trace_builder *calls_of_two_threads(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, NULL);

	build_device(builder, 0, "GPU");
	for (uint64_t i = 0; i < 5; i++) {
		const uint64_t at = 1000 + 200 * i;

		build_push_node(builder, 1, at, net);
		build_launch(builder, 1, at + 10, i + 1);
		build_push_node(builder, 2, at + 40, net);
		build_tensor(builder, 2, at + 60, 0x1000 + i, 50, 50, 8000);
		build_tensor(builder, 2, at + 80, 0x1000 + i, -50, 0, 8000);
		build_pop(builder, 1, at + 100);
		build_pop(builder, 2, at + 144);
		build_kernel(builder, 9, at + 170, i + 1, "gemm", at + 110, at + 130);
	}
	return builder;
}

START_TEST(each_thread_has_its_steps)
{
	struct report_run run = run_report(
		calls_of_two_threads(), "steps trace.bin --ascii --width 130 --top 3");

	expect(&run, "                       duration  thread  calls     p50     p95     max   "
		     "busy   idle  gaps  longest  tensor peak  kernels     peak\n"
		     "thread 1001                        1001      5  100 ns  100 ns  100 ns       "
		     "                                           5\n"
		     "thread 1002                        1002      5  104 ns  104 ns  104 ns       "
		     "                                           0\n"
		     "step 1                   104 ns    1002                                 20 "
		     "ns  84 ns     2    70 ns         50 B        0  8.00 kB\n"
		     "step 3                   104 ns    1002                                 20 "
		     "ns  84 ns     2    70 ns         50 B        0  8.00 kB\n"
		     "step 5                   104 ns    1002                                 20 "
		     "ns  84 ns     2    70 ns         50 B        0  8.00 kB\n"
		     "median (steady state)    100 ns                                          0 "
		     "ns  84 ns     1    70 ns         50 B        0  8.00 kB\n"
		     "MAD                        0 ns                                          0 "
		     "ns   0 ns     0     0 ns          0 B        0      0 B\n"
		     "slope per step             0 ns                                          0 "
		     "ns   0 ns     0     0 ns          0 B        0      0 B\n"
		     "not shown: 7 more (--top 0)\n");
	run = run_report(calls_of_two_threads(),
		"table --by step trace.bin --ascii --columns name,calls,cpu_self_ns,gpu_total_ns "
		"-f csv");
	expect(&run, "name,calls,gpu_total_ns,cpu_self_ns\r\n"
		     "step 0,1,20,100\r\n"
		     "step 2,1,20,100\r\n"
		     "step 4,1,20,100\r\n"
		     "step 6,1,20,100\r\n"
		     "step 8,1,20,100\r\n"
		     "(between steps),,,784\r\n"
		     "step 1,1,,104\r\n"
		     "step 3,1,,104\r\n"
		     "step 5,1,,104\r\n"
		     "step 7,1,,104\r\n"
		     "step 9,1,,104\r\n");
	run = run_report(calls_of_two_threads(), "steps trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out,
		"\"threads\": [{\"tid\": 1001, \"count\": 5, \"usual\": 5, \"p50_ns\": 100, "
		"\"p95_ns\": 100, \"max_ns\": 100}, {\"tid\": 1002,"));
	run = run_report(calls_of_two_threads(), "summary trace.bin --width 150");
	ck_assert_ptr_nonnull(strstr(run.out, "5 + 5 steps of 100 ns (p50) on 2 threads; found"));
}
END_TEST

START_TEST(only_the_selected_steps)
{
	const struct report_run run = run_report(
		eight_steps(), "steps trace.bin --ascii --steps 4-6 --no-fold");

	ck_assert_str_eq(run.out,
		"                       duration    busy     idle  gaps  longest  tensor peak\n"
		"step 4                   900 ns  200 ns   700 ns     2   400 ns      5.50 kB\n"
		"step 5                  1.90 us  200 ns  1.70 us     2  1.40 us      5.60 kB\n"
		"step 6                   900 ns  200 ns   700 ns     2   400 ns      5.70 kB\n"
		"median (steady state)    900 ns  200 ns   700 ns     2   400 ns      5.60 kB\n"
		"MAD                        0 ns    0 ns     0 ns     0     0 ns        100 B\n"
		"slope per step             0 ns    0 ns     0 ns     0     0 ns        100 B\n");
}
END_TEST

START_TEST(steps_that_are_not_there_are_an_error)
{
	struct trace_builder *builder = builder_new();
	struct report_run run = run_report(eight_steps(), "tree trace.bin --steps 99");

	ck_assert_int_eq(run.status, 64);
	ck_assert_str_eq(run.out, "");
	ck_assert_str_eq(run.err, "pperf-report: --steps selects nothing: the steps are 0 to 7\n");
	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	run = run_report(builder, "idle trace.bin --steps 2");
	ck_assert_int_eq(run.status, 64);
	ck_assert_str_eq(run.err,
		"pperf-report: --steps selects nothing, because no step was detected; see "
		"--step-marker\n");
}
END_TEST

START_TEST(a_column_without_values_is_no_empty_column)
{
	struct report_run run = run_report(
		eight_steps(), "steps trace.bin --columns cpu --ascii --width 400");

	ck_assert_ptr_nonnull(strstr(run.out, "\nno value  in cpu: steps has duration, "));
	ck_assert_ptr_nonnull(strstr(run.out, "; table --by step has the CPU and GPU time"));
	run = run_report(NULL, "steps trace.bin --columns duration_ns");
	ck_assert_ptr_null(strstr(run.out, "no value"));
}
END_TEST

/* Where not all have room, those that are not like the others stay, in time's order. */
START_TEST(the_odd_ones_are_not_left_out)
{
	const struct report_run run = run_report(
		eight_steps(), "steps trace.bin --ascii -n 2 --width 60");

	ck_assert_str_eq(run.out, "                       duration    busy     idle  gaps\n"
				  "step 0                   900 ns  200 ns   700 ns     2\n"
				  "step 5 (slow)           1.90 us  200 ns  1.70 us     2\n"
				  "median (steady state)    900 ns  200 ns   700 ns     2\n"
				  "MAD                        0 ns    0 ns     0 ns     0\n"
				  "slope per step             0 ns    0 ns     0 ns     0\n"
				  "not shown: 6 more (--top 0)\n");
}
END_TEST

/* What came before the steps is told of where it makes the whole another matter. */
START_TEST(the_headline_is_of_usual_steps)
{
	struct trace_builder *builder = eight_steps();
	struct report_run run = run_report(builder, "trace.bin --width 120");

	ck_assert_ptr_nonnull(
		strstr(run.out, "gpu time  in steady-state steps the GPU was busy 19.5 % of the "
				"time; 100 % was launched in"));
	ck_assert_ptr_null(strstr(run.out, "from its first operation"));
	builder = eight_steps();
	build_launch(builder, 1, 90010, 99);
	build_kernel(builder, 9, 100500, 99, "late", 100000, 100010);
	run = run_report(builder, "trace.bin --width 120");
	ck_assert_ptr_nonnull(
		strstr(run.out, "gpu time  in steady-state steps the GPU was busy 19.5 % of the "
				"time, overall 1.6 % of the 98.71 "));
	run = run_report(eight_steps(), "trace.bin --no-steps");
	ck_assert_ptr_nonnull(strstr(run.out, "gpu time  the GPU was busy 19.5 % of the 8.20 "));
}
END_TEST

/* Three parts with as much GPU work each. */
START_TEST(the_headline_names_parts_of_equal_size)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 1000, "train");
	for (unsigned part = 0; part < 3; part++) {
		const uint64_t begin = 1000 + part * 1000;

		build_push(builder, 1, begin, (const char *const[]){ "c", "a", "b" }[part]);
		build_launch(builder, 1, begin + 10, part + 1);
		build_kernel(builder, 9, 9000 + part, part + 1, "k", begin + 100, begin + 300);
		build_pop(builder, 1, begin + 900);
	}
	build_pop(builder, 1, 8000);
	run = run_report(builder, "trace.bin --width 200");
	ck_assert_msg(strstr(run.out, "largest parts: `b` (33.3 %), `a` (33.3 %), `c` (33.3 %)"),
		"%s", run.out);
}
END_TEST

/* A DataLoader that takes 40 % of each step, in which the GPU has nothing to do; what is loaded
 * while the GPU works is no matter. */
START_TEST(the_headline_names_the_data_that_steps_wait_for)
{
	for (unsigned busy = 0; busy < 2; busy++) {
		struct trace_builder *builder = builder_new();
		struct report_run run;

		build_device(builder, 0, "a GPU");
		for (unsigned step = 0; step < 5; step++) {
			const uint64_t begin = 1000 + step * 1000;
			char name[32];

			snprintf(name, sizeof name, "ProfilerStep#%u", step);
			build_push(builder, 1, begin, name);
			build_push(builder, 1, begin + 10,
				"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
			build_pop(builder, 1, begin + 410);
			build_launch(builder, 1, begin + 420, step + 1);
			build_kernel(builder, 9, 9000 + step, step + 1, "k", begin + 430,
				begin + (busy ? 1230 : 530));
			build_pop(builder, 1, begin + 1000);
		}
		run = run_report(builder, "trace.bin --width 200");
		ck_assert_msg((strstr(run.out, "; fetching the next batch from the DataLoader took "
					       "40.0 % of the steps' time; ") == NULL) == busy,
			"%s", run.out);
	}
}
END_TEST

START_TEST(without_steps_a_sentence)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 100, "work");
	build_pop(builder, 1, 200);
	run = run_report(builder, "steps trace.bin");
	expect(&run, "warning: trace.bin: no steps were found; set --step-marker NAME to the "
		     "name of the ranges that are steps\n");
}
END_TEST

START_TEST(steps_without_a_marker)
{
	struct training training = training_new();
	struct report_run run;

	training.correlation = 1;
	for (int i = 0; i < 4; i++)
		train_step(&training, "Net");
	run = run_report(training.builder, "steps trace.bin --ascii --width 100");
	ck_assert_str_eq(run.out, "                       duration  cpu self  phase       start\n"
				  "step 0                   290 ns    290 ns  training  1.00 us\n"
				  "step 1                   290 ns    290 ns  training  1.29 us\n"
				  "step 2                   290 ns    290 ns  training  1.58 us\n"
				  "step 3                   270 ns    270 ns  training  1.87 us\n"
				  "median (steady state)    290 ns    290 ns\n"
				  "MAD                        0 ns      0 ns\n"
				  "slope per step            -3 ns     -3 ns\n");
}
END_TEST

START_TEST(a_step_that_captured_is_marked_and_left_out)
{
	struct training training = training_new();
	struct report_run run;

	for (int i = 0; i < 5; i++) {
		train_data(&training);
		if (i == 1)
			build_launch(training.builder, training.stream, training.now, 77)
				->call.head.flags = TRACE_CALL_CAPTURED;
		train_forward(&training, "Net");
		train_backward(&training);
		train_optimizer(&training, "SGD");
		training.now += 30;
	}
	run = run_report(training.builder, "steps trace.bin --ascii --width 60");
	ck_assert_ptr_nonnull(strstr(run.out, "step 1 (capture)         290 ns"));
	run = run_report(NULL, "steps trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"state\": \"capture\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"captures\": 1"));
	run = run_report(NULL, "trace.bin --ascii");
	ck_assert_ptr_nonnull(strstr(
		run.out, "4 steps of 290 ns (p50), 1 that captured a CUDA graph excluded; found"));
	ck_assert_ptr_nonnull(strstr(run.out, "step (capture)"));
}
END_TEST

START_TEST(medians_spreads_and_trends)
{
	int64_t odd[] = { 5, 1, 9 }, even[] = { 4, 1, 3, 2 };
	const int64_t line[] = { 10, 13, 16, 19 }, bent[] = { 10, 20, 1000, 40 },
		      flat[] = { 7, 7, 7 };

	ck_assert_int_eq(step_median(odd, 3), 5);
	ck_assert_int_eq(step_median(even, 4), 2);
	ck_assert_int_eq(step_median(odd, 0), 0);
	ck_assert_int_eq(step_spread(line, 4), 3);
	ck_assert_int_eq(step_spread(flat, 3), 0);
	ck_assert(step_trend(line, 4) == 3);
	ck_assert(step_trend(flat, 3) == 0);
	ck_assert(step_trend(bent, 4) == 10); /* of 10, 495, 10, 980, 10 and -960 */
}
END_TEST

START_TEST(a_trend_of_many_steps)
{
	enum { MANY = 5000 };
	int64_t *values = calloc(MANY, sizeof *values);

	for (int i = 0; i < MANY; i++)
		values[i] = 7 * i + i % 3;
	ck_assert(step_trend(values, MANY) > 6.9 && step_trend(values, MANY) < 7.1);
	free(values);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("steps view");
	TCase *screens = tcase_create("screens"), *figures = tcase_create("figures");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, each_step_has_its_times_and_its_memory);
	tcase_add_test(screens, json_has_all_of_it);
	tcase_add_test(screens, each_thread_has_its_steps);
	tcase_add_test(screens, only_the_selected_steps);
	tcase_add_test(screens, steps_that_are_not_there_are_an_error);
	tcase_add_test(screens, a_column_without_values_is_no_empty_column);
	tcase_add_test(screens, the_odd_ones_are_not_left_out);
	tcase_add_test(screens, the_headline_is_of_usual_steps);
	tcase_add_test(screens, the_headline_names_parts_of_equal_size);
	tcase_add_test(screens, the_headline_names_the_data_that_steps_wait_for);
	tcase_add_test(screens, without_steps_a_sentence);
	tcase_add_test(screens, steps_without_a_marker);
	tcase_add_test(screens, a_step_that_captured_is_marked_and_left_out);
	tcase_add_test(figures, medians_spreads_and_trends);
	tcase_add_test(figures, a_trend_of_many_steps);
	suite_add_tcase(suite, screens);
	suite_add_tcase(suite, figures);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
