/* SPDX-License-Identifier: MIT
 * test_instances.c: single instances of a place, with what happened in them, against what was put
 * into a trace.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* `run` with four `step 1` to `step 4` of 100, 300, 300 and 50 ns; each has a `load` of 10 and a
 * `fit` of the rest but 20, in which a kernel is launched: of 40, 10, 20 and 5 ns. */
static struct trace_builder *four_steps(void)
{
	static const unsigned took[] = { 100, 300, 300, 50 }, worked[] = { 40, 10, 20, 5 };
	struct trace_builder *builder = builder_new();
	uint64_t at = 100;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "run");
	for (unsigned i = 0; i < 4; i++) {
		char label[] = "part 1";

		label[5] = (char)('1' + i);
		build_push(builder, 1, at, label);
		build_push(builder, 1, at + 5, "load");
		build_pop(builder, 1, at + 15);
		build_push(builder, 1, at + 20, "fit");
		build_launch(builder, 1, at + 26, 1 + i);
		build_pop(builder, 1, at + took[i] - 10);
		build_pop(builder, 1, at + took[i]);
		at += took[i] + 50;
	}
	build_pop(builder, 1, at);
	for (unsigned i = 0; i < 4; i++)
		build_kernel(builder, 9, 2000, 1 + i, "gemm", 1000 + 100 * i,
			1000 + 100 * i + worked[i]);
	return builder;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "`%s` is not in:\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "`%s` is in:\n%s", part, text);
}

START_TEST(the_worst_one_is_shown_with_what_was_in_it)
{
	const struct report_run run = run_report(four_steps(),
		"tree trace.bin --focus 'run/part *' --instances worst -m gpu -f csv "
		"--columns label,number,calls,gpu_total_ns,start_ns,duration_ns,share");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,label,share,calls,gpu_total_ns,number,start_ns,duration_"
		"ns\r\n"
		"0,,0,part *,part 1,1,1,40,1,100,100\r\n"
		"1,0,1,fit,fit,1,1,40,,120,70\r\n"
		"2,1,2,gemm,\"gemm  <<<(64,1,1),(128,1,1)>>>\",1,1,40,,1000,40\r\n");
}
END_TEST

START_TEST(by_another_metric_it_is_another_one_the_latest_of_equals)
{
	const struct report_run run = run_report(four_steps(),
		"tree trace.bin --focus 'run/part *' --instances worst -m cpu -f csv "
		"--columns label,number,start_ns,duration_ns,value");

	ck_assert_str_eq(run.out, "id,parent,depth,name,label,number,start_ns,duration_ns,value\r\n"
				  "0,,0,part *,part 3,3,600,300,300\r\n"
				  "1,0,1,fit,fit,,620,270,270\r\n"
				  "2,0,1,load,load,,605,10,10\r\n");
}
END_TEST

START_TEST(the_first_and_the_last_are_by_when_they_began)
{
	struct trace_builder *builder = four_steps();
	struct report_run run;

	builder_write(builder, "kept.bin");
	run = run_report(builder, "tree trace.bin --focus 'run/part *' --instances first -f "
				  "csv --columns label,number,value");
	has(run.out, "\r\n0,,0,part *,part 1,1,40\r\n");
	run = run_report(NULL, "tree kept.bin --focus 'run/part *' --instances last -f csv "
			       "--columns label,number,value");
	has(run.out, "\r\n0,,0,part *,part 4,4,5\r\n1,0,1,fit,fit,,5\r\n");
	run = run_report(NULL, "critical kept.bin --focus 'run/part *' --instances last -m gpu");
	has(run.out, "part 4 ");
	has_not(run.out, "part 1 ");
}
END_TEST

START_TEST(all_are_rows_the_worst_first)
{
	struct trace_builder *builder = four_steps();
	struct report_run run;

	builder_write(builder, "kept.bin");
	run = run_report(builder, "tree trace.bin --focus 'run/part *' --instances all -f csv "
				  "--columns label,number,value,start_ns");
	ck_assert_str_eq(run.out, "id,parent,depth,name,label,number,start_ns,value\r\n"
				  "0,,0,part *,part 1,1,100,40\r\n1,,0,part *,part 3,3,600,20\r\n"
				  "2,,0,part *,part 2,2,250,10\r\n3,,0,part *,part 4,4,950,5\r\n");
	run = run_report(NULL, "tree kept.bin --focus 'run/part *' --instances all -n 2 -m cpu");
	has(run.out, "part 3");
	has(run.out, "part 2");
	has_not(run.out, "part 1");
	has(run.out, "not shown: 2 more (--top 0)");
}
END_TEST

START_TEST(without_a_node_they_are_of_the_roots)
{
	const struct report_run run = run_report(four_steps(),
		"tree trace.bin --instances worst -f csv --columns label,number,value");

	has(run.out, "\r\n0,,0,run,run,1,75\r\n");
	has(run.out, "\r\n1,0,1,part *,part 1,,40\r\n");
}
END_TEST

START_TEST(a_node_on_two_threads_is_one_node)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 0, "a");
	build_push(builder, 2, 0, "a");
	build_push(builder, 1, 10, "b");
	build_push(builder, 2, 10, "b");
	build_pop(builder, 1, 20);
	build_pop(builder, 2, 45);
	build_pop(builder, 1, 50);
	build_pop(builder, 2, 50);
	run = run_report(builder,
		"tree trace.bin --focus a/b --instances all -f csv --columns number,duration_ns");
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,number,duration_ns\r\n0,,0,b,1,35\r\n1,,0,b,1,10\r\n");
}
END_TEST

START_TEST(what_has_no_instances_is_said)
{
	struct trace_builder *builder = four_steps();
	struct report_run run;

	builder_write(builder, "kept.bin");
	run = run_report(builder, "tree trace.bin --focus run/nowhere --instances all");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "there is no node `run/nowhere`");
	run = run_report(NULL, "tree kept.bin --focus 'run/part */fit/gemm' --instances worst");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "has no instances");
	run = run_report(NULL, "table kept.bin --instances worst");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "--instances works with the views tree, and for worst, first and last also "
		     "critical");
	run = run_report(NULL, "tree kept.bin --instances best");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "--instances needs one of worst, first, last, all, not `best`");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("instances");
	TCase *screens = tcase_create("screens");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, the_worst_one_is_shown_with_what_was_in_it);
	tcase_add_test(screens, by_another_metric_it_is_another_one_the_latest_of_equals);
	tcase_add_test(screens, the_first_and_the_last_are_by_when_they_began);
	tcase_add_test(screens, all_are_rows_the_worst_first);
	tcase_add_test(screens, without_a_node_they_are_of_the_roots);
	tcase_add_test(screens, a_node_on_two_threads_is_one_node);
	tcase_add_test(screens, what_has_no_instances_is_said);
	suite_add_tcase(suite, screens);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
