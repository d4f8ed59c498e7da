/* SPDX-License-Identifier: MIT
 * test_functions.c: what samples of threads become: nodes, functions, callers, findings.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define SAMPLER 9u /* stream of the sampler */
#define MS 1000000u
#define SAMPLE_NS (10u * MS)

/* Returns the id of a Python frame. */
static uint32_t build_python(struct trace_builder *builder, uint32_t id, uint32_t parent,
	const char *function, const char *file, uint32_t line)
{
	const uint32_t name = build_name(builder, function), path = build_name(builder, file);
	struct trace_python_node *frame = build_dictionary(
		builder, TRACE_PYTHON_FRAME, sizeof *frame);

	frame->frame = id;
	frame->parent = parent;
	frame->at = (struct trace_python_frame){
		.function = name, .file = path, .line = line, .reserved = parent == 0
	};
	return id;
}

/* Builds a sample of 10 ms that was taken `ago` before it was written. */
static struct trace_sample *build_sample(struct trace_builder *builder, uint64_t at, uint32_t ago,
	uint32_t stream, enum trace_sample_state state)
{
	struct trace_sample *sample = build_record(
		builder, SAMPLER, TRACE_SAMPLE, sizeof *sample, at);

	sample->ago = ago;
	sample->tid = 1000 + stream;
	sample->state = state;
	sample->weight = SAMPLE_NS / TRACE_SAMPLE_WEIGHT_NS;
	return sample;
}

static void build_clock(struct trace_builder *builder, uint64_t at, uint64_t cpu_ns, uint16_t flags)
{
	const uint32_t name = build_name(builder, "python3");
	struct trace_sampled_thread *thread = build_record(
		builder, SAMPLER, TRACE_SAMPLED_THREAD, sizeof *thread, at);

	thread->head.flags = (uint8_t)flags;
	thread->tid = 1001;
	thread->cpu_ns = cpu_ns;
	thread->name = name;
}

/* main calls load (twice sampled) and train (once). No ranges. */
static struct trace_builder *plain_python(void)
{
	struct trace_builder *builder = builder_new();

	build_python(builder, 1, 0, "<module>", "/home/u/job.py", 20);
	build_python(builder, 2, 1, "load", "/home/u/job.py", 7);
	build_python(builder, 3, 1, "train", "/x/site-packages/lib/train.py", 9);
	build_clock(builder, 0, 5 * MS, TRACE_SAMPLED_THREAD_RESUMED);
	build_sample(builder, 10 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 2;
	build_sample(builder, 20 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 2;
	build_sample(builder, 30 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 3;
	build_clock(builder, 30 * MS, 45 * MS, 0);
	return builder;
}

START_TEST(a_table_has_the_functions_with_shares_and_errors)
{
	const struct report_run run = run_report(plain_python(),
		"table --by function trace.bin -f csv --columns "
		"label,kind,module,samples,cpu_sampled_ns,cpu_sampled_share,cpu_sampled_error_ns,"
		"cpu_sampled_total_ns");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"name,label,kind,cpu_sampled_ns,cpu_sampled_share,cpu_sampled_error_ns,"
		"cpu_sampled_total_ns,samples,module\r\n"
		"load,load "
		"[job.py],python,20000000,0.6666666666666666,16003333,20000000,2,job.py\r\n"
		"train,train [lib/train.py],python,10000000,0.3333333333333333,16003333,10000000,1,"
		"lib/train.py\r\n"
		"<module>,<module> [job.py],python,,,,30000000,,job.py\r\n");
}
END_TEST

START_TEST(lines_and_libraries_are_keys_too)
{
	struct report_run run = run_report(
		plain_python(), "table --by line trace.bin -f csv --columns label,samples");

	output_has(run.out, "load [job.py:7],2\r\n");
	run = run_report(NULL, "table --by library trace.bin -f csv --columns label,samples");
	output_has(run.out, "job.py,2\r\n");
	output_has(run.out, "lib,1\r\n");
}
END_TEST

/* load ran for 20 ms, of them 10 in the kernel. */
START_TEST(a_line_has_the_time_of_what_it_calls_outside_of_python)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_python(builder, 1, 0, "load", "/home/u/job.py", 7);
	build_sample(builder, 10 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 1;
	build_sample(builder, 20 * MS, 0, 1, TRACE_SAMPLE_KERNEL)->python = 1;
	run = run_report(builder, "table --by line trace.bin -f csv --columns label,samples");
	output_has(run.out, "load [job.py:7],2\r\n");
	ck_assert_ptr_null(strstr(run.out, "(kernel)"));
	run = run_report(NULL, "table --by function trace.bin -f csv --columns label,samples");
	output_has(run.out, "load [job.py],1\r\n");
	output_has(run.out, "(kernel),1\r\n");
	run = run_report(
		NULL, "table --by line --native all trace.bin -f csv --columns label,samples");
	output_has(run.out, "(kernel),1\r\n");
}
END_TEST

START_TEST(callers_are_below_each_function)
{
	const struct report_run run = run_report(plain_python(),
		"table --by function --callers trace.bin -f csv --columns "
		"label,cpu_sampled_total_ns");

	output_has(run.out, "0,,0,load,load [job.py],20000000\r\n"
			    "1,0,1,<module>,<module> [job.py],20000000\r\n"
			    "2,,0,train,train [lib/train.py],10000000\r\n"
			    "3,2,1,<module>,<module> [job.py],10000000\r\n");
}
END_TEST

/* 40 ms passed on the thread's clock, of which samples have 30. */
START_TEST(what_no_sample_represents_is_said)
{
	const struct report_run run = run_report(
		plain_python(), "table --by function trace.bin --width 100");

	output_has(run.out, "3 samples of 30.00 ms of CPU time in 1 thread; the clocks of these "
			    "threads counted\n          40.00 ms: 10.00 ms (25.0 %) not sampled\n");
}
END_TEST

/* The second thread has 10 ms of samples, and its clock counted 30 ms. */
START_TEST(the_thread_that_differs_most_is_named)
{
	struct trace_builder *builder = plain_python();
	struct trace_sampled_thread *thread;
	struct report_run run;

	build_clock(builder, 31 * MS, 35 * MS, 0);
	for (unsigned i = 0; i < 2; i++) {
		thread = build_record(
			builder, SAMPLER, TRACE_SAMPLED_THREAD, sizeof *thread, (32 + i) * MS);
		if (!i)
			thread->head.flags = TRACE_SAMPLED_THREAD_RESUMED;
		thread->tid = 1002;
		thread->cpu_ns = i * 30 * MS;
	}
	build_sample(builder, 34 * MS, 0, 2, TRACE_SAMPLE_ON_CPU)->python = 1;
	run = run_report(builder, "table --by function trace.bin --width 1000");
	output_has(run.out, "most in thread 1002 with 10.00 ms of 30.00 ms\n");
	run = run_report(NULL, "table --by function trace.bin -f json");
	output_has(run.out, "\"by_thread\"");
}
END_TEST

START_TEST(a_program_without_ranges_has_a_verdict)
{
	const struct report_run run = run_report(plain_python(), "trace.bin --width 200");

	output_has(run.out, "66.7 % of the sampled CPU time is in load [job.py:7] and what it "
			    "calls, 33.3 % in <module> [job.py:20]; the shares are rough: "
			    "there are only 3 samples\n");
	output_has(run.out, "pperf-report table --by function --callers trace.bin");
	output_has(run.out, "2  load [job.py]\n");
}
END_TEST

/* Self times are in a package, and in a function of the standard library that it called. */
START_TEST(the_first_screen_leaves_out_callers_in_libraries)
{
	struct trace_builder *builder = plain_python();
	struct report_run run;

	build_python(builder, 4, 2, "wrap", "/usr/lib/python3.11/functools.py", 5);
	build_python(builder, 5, 4, "decode", "/x/site-packages/codec/decode.py", 3);
	build_sample(builder, 31 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 5;
	run = run_report(builder, "trace.bin --width 100");
	output_has(run.out, "75.0 % of the sampled CPU time is in load [job.py:7]");
	output_has(run.out, "decode [codec/decode.py]\n");
	output_has(run.out, "<module> [job.py]\n");
	ck_assert_ptr_null(strstr(run.out, "wrap [functools.py]"));
}
END_TEST

START_TEST(code_of_pperf_is_one_row)
{
	struct trace_builder *builder = plain_python();
	struct report_run run;

	build_python(builder, 4, 1, "probe", "<pperf: the frames are tried>", 5);
	build_python(builder, 5, 4, "deeper", "<pperf: the frames are tried>", 6);
	build_sample(builder, 31 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 4;
	build_sample(builder, 32 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 5;
	run = run_report(builder, "table --by function trace.bin -f csv --columns label,samples");
	output_has(run.out, "(pperf),2\r\n");
	ck_assert_ptr_null(strstr(run.out, "probe"));
	ck_assert_ptr_null(strstr(run.out, "deeper"));
}
END_TEST

/* A generator expression has a frame of its own; a text that a library executes is not the user's
 * (python -c), and has the same file name. */
START_TEST(lines_count_what_runs_in_them)
{
	struct trace_builder *builder = plain_python();
	struct report_run run;

	build_python(builder, 4, 2, "load.<locals>.<genexpr>", "/home/u/job.py", 8);
	build_python(builder, 5, 3, "<module>", "<string>", 1);
	build_sample(builder, 31 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 4;
	build_sample(builder, 32 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 5;
	run = run_report(builder, "trace.bin --width 200");
	output_has(run.out, "60.0 % of the sampled CPU time is in load [job.py:7] and what it "
			    "calls, 40.0 % in <module> [job.py:20]; ");
}
END_TEST

START_TEST(lines_that_wait_are_named)
{
	struct trace_builder *builder = plain_python();
	struct report_run run;

	build_python(builder, 4, 0, "metric", "/home/u/job.py", 17);
	build_sample(builder, 31 * MS, 0, 1, TRACE_SAMPLE_BLOCKED)->python = 1;
	build_clock(builder, 40 * MS, 0, TRACE_SAMPLED_THREAD_RESUMED);
	build_sample(builder, 42 * MS, 0, 2, TRACE_SAMPLE_BLOCKED)->python = 4;
	run = run_report(builder, "trace.bin --width 1000");
	output_has(run.out,
		"; <module> [job.py:20] waits for 10.00 ms of the 40.00 ms of its "
		"thread; in another thread, metric [job.py:17] waits for 10.00 ms of the "
		"10.00 ms\n");
}
END_TEST

START_TEST(a_tree_without_ranges_is_of_functions)
{
	const struct report_run run = run_report(
		plain_python(), "tree trace.bin -f csv --columns label,cpu_sampled_total_ns");

	output_has(run.out, "0,,0,<module>,<module> [job.py],30000000\r\n"
			    "1,0,1,load,load [job.py],20000000\r\n"
			    "2,0,1,train,train [lib/train.py],10000000\r\n");
}
END_TEST

/* Written after the ranges have closed, out of order, and beside another thread's ranges. */
static struct trace_builder *with_ranges(void)
{
	struct trace_builder *builder = builder_new();

	build_python(builder, 1, 0, "main", "/a.py", 1);
	build_python(builder, 2, 1, "inner", "/a.py", 2);
	build_clock(builder, 0, 0, TRACE_SAMPLED_THREAD_RESUMED);
	build_push(builder, 1, 10 * MS, "outer");
	build_push(builder, 2, 10 * MS, "other");
	build_push(builder, 1, 20 * MS, "inside");
	build_pop(builder, 1, 30 * MS);
	build_pop(builder, 1, 40 * MS);
	build_pop(builder, 2, 50 * MS);
	build_sample(builder, 90 * MS, 55 * MS, 1, TRACE_SAMPLE_ON_CPU)->python = 1; /* at 35 */
	build_sample(builder, 90 * MS, 65 * MS, 1, TRACE_SAMPLE_ON_CPU)->python = 2; /* at 25 */
	build_sample(builder, 90 * MS, 85 * MS, 1, TRACE_SAMPLE_KERNEL);             /* at 5 */
	return builder;
}

START_TEST(samples_belong_to_the_range_of_their_moment)
{
	const struct report_run run = run_report(with_ranges(),
		"tree trace.bin -f csv --columns "
		"label,samples,cpu_sampled_ns,cpu_sampled_total_ns");

	output_has(run.out, "0,,0,other,other,,,\r\n"
			    "1,,0,outer,outer,10000000,20000000,1\r\n"
			    "2,1,1,inside,inside,10000000,10000000,1\r\n"
			    "3,,0,unattributed,unattributed,10000000,10000000,1\r\n");
}
END_TEST

/* The sampler's own reading of the open range goes before the time: a range that was only counted
 * has no begin and end. */
START_TEST(the_range_that_was_read_with_a_sample_owns_it)
{
	struct trace_builder *builder = with_ranges();
	const uint32_t node = build_node(builder, 0, "counted", NULL, TRACE_NODE_OP);
	struct trace_sample *sample = build_sample(builder, 91 * MS, 0, 1, TRACE_SAMPLE_ON_CPU);
	struct report_run run;

	sample->head.node = node;
	sample->head.flags = TRACE_SAMPLE_HAS_NODE;
	run = run_report(builder, "tree trace.bin -f csv --columns label,samples");
	output_has(run.out, "counted,1\r\n");
}
END_TEST

START_TEST(functions_are_below_the_ranges_in_which_they_ran)
{
	const struct report_run run = run_report(with_ranges(),
		"tree --functions trace.bin -f csv --columns label,kind,cpu_sampled_ns");

	output_has(run.out, "0,,0,outer,outer,range,\r\n"
			    "1,0,1,inside,inside,range,\r\n"
			    "2,1,2,inner,inner [a.py],python,10000000\r\n"
			    "3,0,1,main,main [a.py],python,10000000\r\n"
			    "4,,0,(no range),(no range),unattributed,\r\n"
			    "5,4,1,(kernel),(kernel),state,10000000\r\n");
}
END_TEST

/* The thread reads its frames when the range ends: they replace those of the samples in it. */
START_TEST(frames_that_the_thread_read_itself_replace_those_of_the_sampler)
{
	struct trace_builder *builder = builder_new();
	struct trace_sample_python *exact;
	struct report_run run;

	build_python(builder, 1, 0, "wrong", "/a.py", 1);
	build_python(builder, 2, 0, "right", "/a.py", 2);
	build_push(builder, 1, 10 * MS, "op");
	build_sample(builder, 9 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 1;
	build_sample(builder, 15 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 1;
	exact = build_record(builder, 1, TRACE_SAMPLE_PYTHON, sizeof *exact, 20 * MS);
	exact->since = BUILDER_START + 10 * MS;
	exact->python = 2;
	build_pop(builder, 1, 20 * MS);
	run = run_report(builder, "table --by function trace.bin -f csv --columns label,samples");
	output_has(run.out, "right [a.py],1\r\n");
	output_has(run.out, "wrong [a.py],1\r\n");
}
END_TEST

/* The operator called Python: the thread's own frames are those outside of it. */
START_TEST(frames_that_an_operator_called_stay_unless_they_moved)
{
	struct trace_builder *builder = builder_new();
	struct trace_sample_python *exact;
	struct trace_sample *moved;
	struct report_run run;

	build_python(builder, 1, 0, "outside", "/a.py", 1);
	build_python(builder, 2, 1, "called", "/a.py", 2);
	build_python(builder, 3, 1, "moved", "/a.py", 3);
	build_push(builder, 1, 10 * MS, "op");
	build_sample(builder, 12 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 2;
	moved = build_sample(builder, 15 * MS, 0, 1, TRACE_SAMPLE_ON_CPU);
	moved->python = 3;
	moved->head.flags = TRACE_SAMPLE_MOVED;
	build_sample(builder, 17 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->head.flags =
		TRACE_SAMPLE_UNEQUAL;
	exact = build_record(builder, 1, TRACE_SAMPLE_PYTHON, sizeof *exact, 20 * MS);
	exact->since = BUILDER_START + 10 * MS;
	exact->python = 1;
	build_pop(builder, 1, 20 * MS);
	run = run_report(builder, "table --by function trace.bin -f csv --columns label,samples");
	output_has(run.out, "called [a.py],1\r\n");
	output_has(run.out, "outside [a.py],2\r\n");
	output_lacks(run.out, "moved [a.py]");
}
END_TEST

START_TEST(frames_are_exported_as_folded_stacks)
{
	struct report_run run = run_report(
		with_ranges(), "export folded -m sampled trace.bin -o -");

	output_has(run.out, "outer;inside;inner 10000000\n");
	output_has(run.out, "outer;main 10000000\n");
	run = run_report(NULL, "export folded --by python trace.bin -o -");
	output_has(run.out, "main;inner 10000000\n");
}
END_TEST

START_TEST(a_thread_that_runs_python_alone_is_a_finding)
{
	const struct report_run few = run_report(plain_python(),
					"diagnose trace.bin -f csv --columns name,confidence,why"),
				run = run_report(NULL,
					"diagnose trace.bin -f csv --columns name,kind,finding");

	output_has(run.out,
		"python-bound,finding,\"The busiest thread spends 100 % of its CPU time "
		"in Python code outside of operators, most of it in load [job.py:7].\"");
	output_has(few.out, "C functions that Python calls count as well,low\r\n");
	output_has(run.out, "garbage-collection,not checked,");
}
END_TEST

/* Imported samples are leaf functions without times. */
START_TEST(imported_samples_are_in_the_same_tables)
{
	struct trace_builder *builder = builder_new();
	const uint32_t function = build_name(builder, "poll"),
		       module = build_name(builder, "/lib/libc.so.6");
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		struct trace_cpu_sample *sample = build_record(
			builder, 1, TRACE_CPU_SAMPLE, sizeof *sample, 100 + i);

		sample->function = function;
		sample->module = module;
	}
	run = run_report(builder,
		"table --by function trace.bin -f csv --columns label,samples,cpu_sampled_share");
	output_has(run.out, "poll,poll [libc.so.6],1,3\r\n");
}
END_TEST

/* A frame that is its own caller, one that the trace does not have, and a state that is none. */
START_TEST(damaged_frames_end_a_stack)
{
	struct trace_builder *builder = builder_new();
	struct trace_sample *sample;
	struct report_run run;

	build_python(builder, 5, 5, "loop", "/a.py", 1);
	build_sample(builder, 10, 0, 1, (enum trace_sample_state)77)->python = 5;
	sample = build_sample(builder, 20, UINT32_MAX, 1, TRACE_SAMPLE_ON_CPU);
	sample->python = sample->native = 4000000000u;
	run = run_report(builder, "table --by function trace.bin -f csv --columns label,samples");
	output_has(run.out, "loop [a.py],1\r\n");
	output_has(run.out, "(no frames),1\r\n");
}
END_TEST

START_TEST(a_trace_without_samples_says_how_to_record_them)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	output_has(run_report(builder, "table --by function trace.bin").out,
		"set PPERF_SAMPLE=99 when the program is");
}
END_TEST

/* `load` and `train` of a run, so often sampled. `folder`: where the program is. */
static struct trace_builder *loads_and_trains(const char *folder, unsigned loads, unsigned trains)
{
	struct trace_builder *builder = builder_new();
	const unsigned samples = loads + trains;
	char file[64];

	snprintf(file, sizeof file, "%s/job.py", folder);
	build_python(builder, 1, 0, "<module>", file, 20);
	build_python(builder, 2, 1, "load", file, 7);
	build_python(builder, 3, 1, "train", file, 9);
	build_clock(builder, 0, 5 * MS, TRACE_SAMPLED_THREAD_RESUMED);
	for (unsigned i = 0; i < samples; i++)
		build_sample(builder, (i + 1) * SAMPLE_NS, 0, 1, TRACE_SAMPLE_ON_CPU)->python =
			i < loads ? 2 : 3;
	build_clock(builder, samples * SAMPLE_NS, 5 * MS + samples * SAMPLE_NS, 0);
	return builder;
}

/* Compares a run of `loads` and `trains` with before.bin. */
static struct report_run compare_with_before(unsigned loads, unsigned trains, const char *options)
{
	char command[128];

	snprintf(command, sizeof command, "diff --by function before.bin trace.bin %s", options);
	return run_report(loads_and_trains("/new", loads, trains), command);
}

START_TEST(a_function_with_another_share_of_the_samples_is_found)
{
	struct report_run run;

	run_report(loads_and_trains("/old", 20, 180), "info trace.bin");
	ck_assert_int_eq(rename("trace.bin", "before.bin"), 0);
	run = compare_with_before(60, 340, "-f csv");
	ck_assert_int_eq(run.status, 0);
	output_has(
		run.out, "load [job.py],python,both,20,60,200000000,600000000,0.1,0.15,0.0499999");
	output_has(run.out, ",0.0894");
	run = compare_with_before(100, 300, "-f csv");
	ck_assert_int_eq(run.status, 1);
	output_has(run.out, "load [job.py],python,both,20,100,200000000,1000000000,0.1,0.25,0.15");
	output_has(run.out, ",true\r\n");
	run = compare_with_before(100, 300, "--width 100");
	ck_assert_str_eq(run.err, "");
	output_has(run.out, "2 of 2 functions changed significantly");
	output_has(run.out,
		"   10.0 %   25.0 %   +15.0  <0.0001    200.00 ms      1.00 s  load [job.py]\n");
	output_has(run.out,
		"   90.0 %   75.0 %   -15.0  <0.0001       1.80 s      3.00 s  train [job.py]\n");
	run = compare_with_before(100, 300, "-f json");
	output_has(run.out, "\"by\":\"function\"");
	output_has(run.out, "\"tested\":2,\"found\":2,\"rows\":[{\"name\":\"train\"");
}
END_TEST

START_TEST(a_comparison_of_samples_says_what_it_needs)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	run_report(loads_and_trains("/old", 20, 180), "info trace.bin");
	ck_assert_int_eq(rename("trace.bin", "before.bin"), 0);
	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	run = run_report(builder, "diff --by line before.bin trace.bin");
	ck_assert_int_eq(run.status, 2);
	output_has(
		run.err, "trace.bin has no CPU samples to compare; PPERF_SAMPLE=99 records them");
	run = run_report(NULL, "diff --by shape before.bin trace.bin");
	output_has(run.err, "the view diff has --by function, line and library, of CPU samples");
	run = run_report(NULL, "diff --by function -m gpu before.bin trace.bin");
	output_has(run.err, "diff --by compares CPU samples, and has no -m");
}
END_TEST

/* Of a stack of more than 700 frames, the outermost 698 and the innermost one are shown. One of 700
 * frames is shown whole, also after a deeper one that begins as it does. */
START_TEST(what_is_deeper_than_the_limit_is_one_frame)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;
	char name[32];

	for (uint32_t id = 1; id <= 800; id++) {
		snprintf(name, sizeof name, "level_%u", id);
		build_python(builder, id, id - 1, name, "/home/u/job.py", id);
	}
	build_sample(builder, 10 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 800;
	build_sample(builder, 20 * MS, 0, 1, TRACE_SAMPLE_ON_CPU)->python = 700;
	run = run_report(builder, "table --by function trace.bin -f csv --top 2000 --columns "
				  "label,samples,cpu_sampled_total_ns");
	ck_assert_str_eq(run.err, "");
	output_has(run.out, "\nlevel_698,level_698 [job.py],20000000,\r\n");
	output_has(run.out, "\nlevel_699,level_699 [job.py],10000000,\r\n");
	output_has(run.out, "\nlevel_700,level_700 [job.py],10000000,1\r\n");
	output_has(run.out, "\nlevel_800,level_800 [job.py],10000000,1\r\n");
	output_has(run.out, "\n(deeper),(deeper),10000000,\r\n");
	ck_assert_ptr_null(strstr(run.out, "level_701 "));
	run = run_report(NULL, "export chrome trace.bin -o x.gz 2> errors; gunzip -c x.gz");
	output_has(run.out, "level_800");
	ck_assert_ptr_null(strstr(run.out, "level_701"));
}
END_TEST

int main(void)
{
	const TTest *const cases[] = { a_table_has_the_functions_with_shares_and_errors,
		lines_and_libraries_are_keys_too,
		a_line_has_the_time_of_what_it_calls_outside_of_python,
		callers_are_below_each_function, what_no_sample_represents_is_said,
		the_thread_that_differs_most_is_named, a_program_without_ranges_has_a_verdict,
		the_first_screen_leaves_out_callers_in_libraries, code_of_pperf_is_one_row,
		lines_count_what_runs_in_them, lines_that_wait_are_named,
		a_tree_without_ranges_is_of_functions, samples_belong_to_the_range_of_their_moment,
		the_range_that_was_read_with_a_sample_owns_it,
		functions_are_below_the_ranges_in_which_they_ran,
		frames_that_the_thread_read_itself_replace_those_of_the_sampler,
		frames_that_an_operator_called_stay_unless_they_moved,
		frames_are_exported_as_folded_stacks, a_thread_that_runs_python_alone_is_a_finding,
		imported_samples_are_in_the_same_tables, damaged_frames_end_a_stack,
		a_trace_without_samples_says_how_to_record_them,
		a_function_with_another_share_of_the_samples_is_found,
		a_comparison_of_samples_says_what_it_needs,
		what_is_deeper_than_the_limit_is_one_frame };

	return run_view_suite("functions", cases, sizeof cases / sizeof *cases);
}
