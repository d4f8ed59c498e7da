/* SPDX-License-Identifier: MIT
 * test_table_by.c: table --by: each key's own time and total, by hand, and that own times add up to
 * the whole.
 */
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void kernel_on(struct trace_builder *builder, uint64_t correlation, const char *name,
	uint64_t start, uint64_t end, uint32_t stream)
{
	build_kernel(builder, 9, 2000, correlation, name, start, end)->gpu.stream = stream;
}

static void build_stack(struct trace_builder *builder)
{
	const struct trace_python_frame frame = { build_name(builder, "Net.forward"),
		build_name(builder, "/home/me/net.py"), 12, 0 };
	struct trace_python_stack *stack = build_dictionary(
		builder, TRACE_PYTHON_STACK, sizeof *stack + sizeof frame);

	stack->stack = 7;
	stack->frames = 1;
	memcpy(stack + 1, &frame, sizeof frame);
}

/* On thread 1001 (own time): Net 20, Net.0 20, aten::linear 20, aten::addmm 30, and in that
 * aten::linear again, 20. On thread 1002: aten::add 100. */
static struct trace_builder *traced(bool shapes)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       inner = build_linked_node(builder, net, "0", TRACE_NODE_MODULE, 0, "Linear"),
		       linear = build_linked_node(builder, inner, "aten::linear", TRACE_NODE_OP, 0,
			       shapes ? "[[2, 3]]" : NULL),
		       addmm = build_linked_node(builder, linear, "aten::addmm", TRACE_NODE_OP, 0,
			       shapes ? "[[2, 3], [3, 4]]" : NULL),
		       again = build_linked_node(builder, addmm, "aten::linear", TRACE_NODE_OP, 0,
			       shapes ? "[[2, 3]]" : NULL),
		       add = build_linked_node(builder, 0, "aten::add", TRACE_NODE_OP, 0, NULL);

	build_meta(builder, "rank", "3");
	build_device(builder, 0, "GPU");
	build_stack(builder);
	build_push_node(builder, 1, 100, net);
	build_push_node(builder, 1, 110, inner);
	build_push_node(builder, 1, 120, linear);
	build_push_node(builder, 1, 130, addmm);
	build_push_node(builder, 1, 140, again);
	build_launch(builder, 1, 150, 1)->call.stack = shapes ? 7 : 0;
	build_pop(builder, 1, 160);
	build_launch(builder, 1, 170, 2)->call.stack = shapes ? 7 : 0;
	build_pop(builder, 1, 180);
	build_pop(builder, 1, 190);
	build_pop(builder, 1, 200);
	build_pop(builder, 1, 210);
	build_push_node(builder, 2, 300, add);
	build_launch(builder, 2, 350, 3);
	build_pop(builder, 2, 400);
	kernel_on(builder, 1, "sm80_xmma_gemm_f32", 500, 600, 7);
	kernel_on(builder, 2,
		"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> "
		">(int)",
		600, 650, 7);
	kernel_on(builder, 3, "ncclKernel_AllReduce_RING", 700, 900, 8);
	kernel_on(builder, 99, "mystery", 950, 980, 8); /* nobody is known to have launched it */
	return builder;
}

static void has(const char *out, const char *part)
{
	ck_assert_msg(strstr(out, part) != NULL, "no `%s` in\n%s", part, out);
}

/* The rows: what comes before the legend. */
static const char *without_legend(struct report_run run)
{
	char *legend = strstr(run.out, "legend ");

	if (legend)
		*legend = '\0';
	return run.out;
}

static void expect(const char *by, const char *rows)
{
	struct report_run run;
	char arguments[64];

	snprintf(arguments, sizeof arguments, "table trace.bin --ascii --width 110 --by %s", by);
	run = run_report(traced(true), arguments);
	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(without_legend(run), rows);
	ck_assert_int_eq(run.status, 0);
}

START_TEST(each_column_of_percentages_says_what_it_is_a_fraction_of)
{
	struct report_run run = run_report(
		traced(true), "table trace.bin --ascii --width 150 --by thread");

	has(run.out, "\nlegend    %, gpu self %: of all GPU time, 380 ns; "
		     "cpu self %: of the time of all threads in ranges, 210 ns\n");
	run = run_report(NULL, "table trace.bin --ascii --width 150 --by thread -m cpu");
	has(run.out, "%: of the time of all threads in ranges, 210 ns");
	run = run_report(NULL, "kernels trace.bin --ascii");
	has(run.out, "\nlegend    %: of all GPU time, 380 ns\n");
	run = run_report(NULL, "table trace.bin --ascii -m calls --columns name,share");
	ck_assert_ptr_null(strstr(run.out, "00 %"));
}
END_TEST

START_TEST(an_operator_inside_of_itself_is_in_its_total_once)
{
	expect("name",
		"   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  name\n"
		"200 ns    200 ns    100 ns      1  52.6 %  100 ns   200 ns  aten::add\n"
		"200 ns  (200 ns)                1  52.6 %           200 ns  "
		"ncclKernel_AllReduce_RING\n"
		"150 ns      0 ns     20 ns      1  39.5 %  110 ns   150 ns  Net\n"
		"150 ns      0 ns     20 ns      1  39.5 %   90 ns   150 ns  * (Linear)\n"
		"150 ns    100 ns     40 ns      2  39.5 %   70 ns    75 ns  aten::linear\n"
		"150 ns     50 ns     30 ns      1  39.5 %   50 ns   150 ns  aten::addmm\n"
		"100 ns  (100 ns)                1  26.3 %           100 ns  sm80_xmma_gemm_f32  "
		"<<<(64,1,1),(128,1,1)>>>\n"
		" 50 ns   (50 ns)                1  13.2 %            50 ns  "
		"vectorized_elementwise_kernel<AddFunctor>\n"
		" 30 ns   (30 ns)                1   7.9 %            30 ns  mystery  "
		"<<<(64,1,1),(128,1,1)>>>\n"
		" 30 ns     30 ns                    7.9 %                   unattributed\n"
		"                                3           15 ns           cudaLaunchKernel\n");
}
END_TEST

START_TEST(only_the_kinds_that_are_named)
{
	struct report_run run = run_report(
		traced(true), "table trace.bin --ascii --width 80 --kind kernel");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(without_legend(run),
		"   gpu  gpu self  calls       %  gpu avg  name\n"
		"200 ns  (200 ns)      1  52.6 %   200 ns  ncclKernel_AllReduce_RING\n"
		"100 ns  (100 ns)      1  26.3 %   100 ns  sm80_xmma_gemm_f32\n"
		" 50 ns   (50 ns)      1  13.2 %    50 ns  vectorized_elemen...kernel<AddFunctor>\n"
		" 30 ns   (30 ns)      1   7.9 %    30 ns  mystery  <<<(64,1,1),(128,1,1)>>>\n");
	run = run_report(NULL, "table trace.bin --ascii --width 80 --kind op,api");
	ck_assert_str_eq(without_legend(run),
		"   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  name\n"
		"200 ns    200 ns    100 ns      1  52.6 %  100 ns   200 ns  aten::add\n"
		"150 ns    100 ns     40 ns      2  39.5 %   70 ns    75 ns  aten::linear\n"
		"150 ns     50 ns     30 ns      1  39.5 %   50 ns   150 ns  aten::addmm\n"
		"                                3           15 ns           cudaLaunchKernel\n");
	run = run_report(NULL, "table trace.bin --kind kernle");
	ck_assert_int_eq(run.status, 64);
	ck_assert_ptr_nonnull(strstr(run.err, "there is no kind `kernle`; did you mean `kernel`?"));
	ck_assert_int_eq(run_report(NULL, "tree trace.bin --kind op").status, 64);
	ck_assert_int_eq(run_report(NULL, "table trace.bin --by step --kind op").status, 64);
	run = run_report(NULL, "table trace.bin --kind memset");
	ck_assert_str_eq(
		without_legend(run), "no rows of kind memset; without --kind all rows are shown\n");
}
END_TEST

START_TEST(modules_have_what_runs_in_them)
{
	expect("module", "   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  cpu avg  gpu "
			 "self %  cpu self %  name\n"
			 "230 ns    230 ns    100 ns      1  60.5 %  100 ns   230 ns   100 ns      "
			 "60.5 %      47.6 %  (in no module)\n"
			 "150 ns      0 ns     20 ns      1  39.5 %  110 ns   150 ns   110 ns      "
			 " 0.0 %       9.5 %  Net\n"
			 "150 ns    150 ns     90 ns      1  39.5 %   90 ns   150 ns    90 ns      "
			 "39.5 %      42.9 %  Net.* (Linear)\n");
}
END_TEST

START_TEST(categories_share_out_the_time_of_operators_and_of_kernels_and_what_none_knows_comes_last)
{
	expect("category", "   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  cpu avg  "
			   "gpu self %  cpu self %  name\n"
			   "250 ns     50 ns    100 ns      2  65.8 %  100 ns   125 ns    50 ns    "
			   "  13.2 %      47.6 %  elementwise\n"
			   "200 ns    200 ns      0 ns      1  52.6 %    0 ns   200 ns     0 ns    "
			   "  52.6 %       0.0 %  communication\n"
			   "150 ns    100 ns     70 ns      1  39.5 %   70 ns   150 ns    70 ns    "
			   "  26.3 %      33.3 %  GEMM\n"
			   " 30 ns     30 ns     40 ns      1   7.9 %   40 ns    30 ns    40 ns    "
			   "   7.9 %      19.0 %  other\n");
}
END_TEST

START_TEST(streams_have_what_ran_on_them)
{
	expect("stream", "   gpu  gpu self  calls       %  gpu avg  gpu self %    p50     max     "
			 "p95    min  name\n"
			 "230 ns    230 ns      2  60.5 %   115 ns      60.5 %  30 ns  200 ns  200 "
			 "ns  30 ns  device 0, stream 8\n"
			 "150 ns    150 ns      2  39.5 %    75 ns      39.5 %  50 ns  100 ns  100 "
			 "ns  50 ns  device 0, stream 7\n");
}
END_TEST

START_TEST(threads_have_what_ran_and_was_launched_on_them)
{
	expect("thread",
		"   gpu  gpu self  cpu self       %     cpu  gpu self %  cpu self %  name\n"
		"200 ns    200 ns    100 ns  52.6 %  100 ns      52.6 %      47.6 %  thread 1002\n"
		"150 ns    150 ns    110 ns  39.5 %  110 ns      39.5 %      52.4 %  thread 1001\n"
		" 30 ns     30 ns             7.9 %               7.9 %              (launch not "
		"in the trace)\n");
}
END_TEST

START_TEST(shapes_tell_calls_of_an_operator_apart)
{
	expect("shape", "   gpu  gpu self  cpu self  calls       %     cpu  gpu avg  cpu avg  gpu "
			"self %  name\n"
			"200 ns    200 ns    100 ns      1  52.6 %  100 ns   200 ns   100 ns      "
			"52.6 %  aten::add\n"
			"150 ns      0 ns     20 ns      1  39.5 %  110 ns   150 ns   110 ns       "
			"0.0 %  Net\n"
			"150 ns      0 ns     20 ns      1  39.5 %   90 ns   150 ns    90 ns       "
			"0.0 %  0\n"
			"150 ns    100 ns     40 ns      2  39.5 %   70 ns    75 ns    35 ns      "
			"26.3 %  aten::linear  [[2, 3]]\n"
			"150 ns     50 ns     30 ns      1  39.5 %   50 ns   150 ns    50 ns      "
			"13.2 %  aten::addmm  [[2, 3], [3, 4]]\n"
			" 30 ns     30 ns                    7.9 %                                 "
			"7.9 %  (no range)\n");
}
END_TEST

START_TEST(launches_are_distinguished_by_their_caller)
{
	expect("stack", "   gpu  gpu self  calls       %  gpu avg  gpu self %    p50     max     "
			"p95    min  name\n"
			"230 ns    230 ns      2  60.5 %   115 ns      60.5 %  30 ns  200 ns  200 "
			"ns  30 ns  (no call stack)\n"
			"150 ns    150 ns      2  39.5 %    75 ns      39.5 %  50 ns  100 ns  100 "
			"ns  50 ns  net.py:12 Net.forward\n");
}
END_TEST

START_TEST(a_rank_has_everything)
{
	expect("rank", "   gpu  gpu self  cpu self  calls        %     cpu  gpu avg  cpu avg  gpu "
		       "self %  cpu self %  name\n"
		       "380 ns    380 ns    210 ns      1  100.0 %  210 ns   380 ns   210 ns     "
		       "100.0 %     100.0 %  rank 3\n");
}
END_TEST

/* Without what it would be made of, a sentence stands there, and no table. */
static void expect_reason(struct trace_builder *builder, const char *by, const char *reason)
{
	char arguments[64], text[1024];
	struct report_run run;

	snprintf(arguments, sizeof arguments, "table trace.bin --by %s", by);
	snprintf(text, sizeof text, "warning: trace.bin: %s\n", reason);
	run = run_report(builder, arguments);
	ck_assert_str_eq(run.out, text);
	ck_assert_int_eq(run.status, 0);
	snprintf(arguments, sizeof arguments, "table trace.bin -f json --by %s", by);
	ck_assert_ptr_nonnull(strstr(run_report(NULL, arguments).out, "\"rows\": []"));
}

static struct trace_builder *plain(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "work");
	build_pop(builder, 1, 200);
	return builder;
}

START_TEST(what_is_not_in_the_trace_is_said_with_what_records_it)
{
	expect_reason(traced(false), "shape",
		"this trace has no input shapes; record them with PPERF_SHAPES=1");
	expect_reason(traced(false), "stack",
		"no launch in this trace has a call stack; record Python stacks with "
		"PPERF_PYSTACKS=launch, native stacks with "
		"PPERF_STACKS=launch");
	expect_reason(plain(), "stream",
		"this trace has no GPU work; pperf-report info shows which sources were on");
	expect_reason(plain(), "module",
		"this trace has no calls of modules; pperf records those of torch.nn.Module unless "
		"PPERF_MODULES=0, torch.profiler "
		"with with_stack=True or with_modules=True");
	expect_reason(plain(), "step",
		"no steps were found; set --step-marker NAME to the name of the ranges that are "
		"steps");
	expect_reason(builder_new(), "category", "this trace has no ranges and no GPU work");
}
END_TEST

/* The figure behind a key, of all rows together. */
static uint64_t sum_of(const char *json, const char *key)
{
	uint64_t sum = 0;

	for (const char *at = strstr(json, "\"rows\""); at && (at = strstr(at, key));
		at += strlen(key))
		sum += strtoull(at + strlen(key), NULL, 10);
	return sum;
}

START_TEST(own_times_add_up_to_the_whole)
{
	static const char *const keys[] = { "module", "category", "thread", "shape", "rank",
		"step" };
	struct training training = training_new();
	char arguments[64];
	uint64_t whole;

	training.correlation = 1;
	for (int i = 0; i < 6; i++)
		train_step(&training, "Net");
	whole = sum_of(
		run_report(training.builder, "table trace.bin -f json").out, "\"cpu_self_ns\": ");
	ck_assert_uint_gt(whole, 6 * 280);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (strcmp(keys[i], "shape") == 0)
			continue; /* there are none in this one */
		snprintf(arguments, sizeof arguments, "table trace.bin -f json --by %s", keys[i]);
		ck_assert_uint_eq(
			sum_of(run_report(NULL, arguments).out, "\"cpu_self_ns\": "), whole);
	}
}
END_TEST

START_TEST(steps_are_rows)
{
	struct training training = training_new();
	struct report_run run;

	for (int i = 0; i < 3; i++)
		train_step(&training, "Net");
	run = run_report(training.builder, "table trace.bin --ascii --by step");
	has(run.out, "legend    %, cpu self %: of the time of all threads in ranges, 1.85 us\n");
	ck_assert_str_eq(without_legend(run),
		"    cpu  cpu self  calls       %  cpu avg  cpu self %  name\n"
		"1.00 us   1.00 us         54.1 %               54.1 %  (before first step)\n"
		" 290 ns    290 ns      1  15.7 %   290 ns      15.7 %  step 0\n"
		" 290 ns    290 ns      1  15.7 %   290 ns      15.7 %  step 1\n"
		" 270 ns    270 ns      1  14.6 %   270 ns      14.6 %  step 2\n");
}
END_TEST

START_TEST(other_views_have_no_keys)
{
	const struct report_run run = run_report(plain(), "tree trace.bin --by module");

	ck_assert_str_eq(run.err,
		"pperf-report: --by works with the views table, diff, memory, flame and export "
		"only: pperf-report table --by KEY FILE\n");
	ck_assert_int_eq(run.status, 64);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("table_by");
	TCase *keys = tcase_create("keys");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(keys, run_report_setup, run_report_teardown);
	tcase_add_test(keys, an_operator_inside_of_itself_is_in_its_total_once);
	tcase_add_test(keys, each_column_of_percentages_says_what_it_is_a_fraction_of);
	tcase_add_test(keys, modules_have_what_runs_in_them);
	tcase_add_test(keys, only_the_kinds_that_are_named);
	tcase_add_test(keys,
		categories_share_out_the_time_of_operators_and_of_kernels_and_what_none_knows_comes_last);
	tcase_add_test(keys, streams_have_what_ran_on_them);
	tcase_add_test(keys, threads_have_what_ran_and_was_launched_on_them);
	tcase_add_test(keys, shapes_tell_calls_of_an_operator_apart);
	tcase_add_test(keys, launches_are_distinguished_by_their_caller);
	tcase_add_test(keys, a_rank_has_everything);
	tcase_add_test(keys, what_is_not_in_the_trace_is_said_with_what_records_it);
	tcase_add_test(keys, own_times_add_up_to_the_whole);
	tcase_add_test(keys, steps_are_rows);
	tcase_add_test(keys, other_views_have_no_keys);
	suite_add_tcase(suite, keys);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
