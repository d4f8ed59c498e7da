/* SPDX-License-Identifier: MIT
 * test_idle.c: the view of when a GPU was idle, and why.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void build_wait(struct trace_builder *builder, uint64_t begin, uint64_t end)
{
	const uint32_t api = build_name(builder, "cudaDeviceSynchronize");
	struct trace_sync *sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, end);

	sync->call.duration = end - begin;
	sync->call.api = api;
	sync->type = TRACE_SYNC_CONTEXT;
}

static void build_long_alloc(struct trace_builder *builder, uint64_t begin, uint64_t end)
{
	const uint32_t api = build_name(builder, "cudaMalloc");
	struct trace_memory *memory = build_memory(
		builder, 1, end, TRACE_ALLOC, 0x1000, 64, TRACE_MEMORY_DEVICE, 0);

	memory->call.duration = end - begin;
	memory->call.api = api;
}

/* A launch without a kernel. It blocks nothing, so it does not split a gap. */
static void build_long_launch(struct trace_builder *builder, uint64_t begin, uint64_t end)
{
	build_launch(builder, 1, end, 77)->call.duration = end - begin;
}

/* Most causes. All gaps together: 1595 of 2200. */
static struct trace_builder *a_trace(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "step");
	build_launch(builder, 1, 100, 1); /* each was called 5 before */
	build_push(builder, 1, 310, "late");
	build_launch(builder, 1, 405, 2);
	build_pop(builder, 1, 410);
	build_launch(builder, 1, 420, 3);
	build_wait(builder, 430, 605);
	build_launch(builder, 1, 620, 4);
	build_long_alloc(builder, 710, 790);
	build_launch(builder, 1, 805, 5);
	build_copy(builder, 1, 1000, TRACE_COPY, 6, 64)->call.duration = 120;
	build_launch(builder, 1, 2005, 7);
	build_copy(builder, 1, 2300, TRACE_COPY, 9, 64)->call.duration = 180;
	build_launch(builder, 1, 2315, 10);
	build_pop(builder, 1, 2500);
	build_kernel(builder, 9, 3000, 1, "k", 200, 300);
	build_kernel(builder, 9, 3000, 2, "k", 410, 500); /* 110; launched at 400, late */
	build_kernel(builder, 9, 3000, 3, "k", 530, 600); /* 30, launched at 415 */
	build_kernel(builder, 9, 3000, 4, "k", 640,
		700); /* 40, launched at 615; the host waited until 605 */
	build_kernel(
		builder, 9, 3000, 5, "k", 810, 900); /* 110, launched at 800; 80 in cudaMalloc */
	build_gpu_copy(
		builder, 9, 3000, TRACE_GPU_COPY, 6, 64, 990, 995); /* 90, in the call since 880 */
	build_kernel(builder, 9, 3000, 7, "k", 2010,
		2020); /* 1015, launched at 2000; in the copy's call until 1000 */
	build_kernel(builder, 9, 3000, 88, "stray", 2100, 2110); /* 80, without a launch */
	build_gpu_copy(
		builder, 9, 3000, TRACE_GPU_COPY, 9, 64, 2200, 2290); /* 90, launched at 2120 */
	build_kernel(builder, 9, 3000, 10, "last", 2320,
		2400); /* 30, launched at 2310, in that copy's call until 2300 */
	return builder;
}

START_TEST(every_gap_is_split_at_its_launch)
{
	const struct report_run run = run_report(a_trace(), "idle trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out,
		"id,parent,depth,name,label,kind,cause,path,device,share,gap_ns,unknown_ns,gaps,"
		"gap_max_ns,start_ns,ended_by,blocked_by,host_call,thread,provenance,time_share,"
		"waits_for,stream,samples,sample_share,module\r\n"
		"0,,0,device 0,device 0,device,,,0,1,1595,,9,1015,,,,,,,0.725,,,,,\r\n");
	output_has(run.out, ",cause,launch-bound,,0,0.7210031347962382,1150,,7,1000,");
	output_has(run.out, ",step,step,place,launch-bound,step,0,0.658307210031348,1050,,6,1000,");
	output_has(run.out, ",cause,copy calls,,0,0.11598746081504702,185,,4,90,");
	output_has(run.out, ",cause,allocation,,0,0.050156739811912224,80,,1,80,");
	output_has(run.out, ",cause,unknown,,0,0.050156739811912224,80,,1,80,");
	output_has(run.out, ",unattributed,place,unknown,unattributed,0,0.050156739811912224,80,");
	output_has(run.out, ",cause,launch latency,,0,0.04075235109717868,65,,5,25,");
	output_has(run.out, ",cause,gap between kernels,,0,0.018808777429467086,30,,1,30,");
	output_has(run.out, ",cause,synchronisation,,0,0.003134796238244514,5,,1,5,");
}
END_TEST

START_TEST(the_longest_parts_have_their_cause_and_call)
{
	const struct report_run run = run_report(
		a_trace(), "idle trace.bin -f csv --columns all --top 20");

	output_has(run.out, ",gap,launch-bound,step,0,0.6269592476489029,1000,,,,1000,k,,,1001,");
	output_has(run.out, ",gap,allocation,step,0,0.050156739811912224,80,,,,710,k,cudaMalloc,");
	output_has(run.out,
		",gap,copy calls,step,0,0.05642633228840126,90,,,,900,memcpy HtoD,,,1001,");
	output_has(run.out, ",gap,launch latency,step,0,");
	output_has(run.out, "5,,,,600,k,cudaDeviceSynchronize,,1001,");
	output_has(run.out, "10,,,,2290,last,cudaMemcpyAsync,,1001,");
}
END_TEST

/* The sums that findings have: without steps those of the GPU span. */
START_TEST(idle_time_before_a_launch_and_its_latency_have_a_sum)
{
	const struct report_run run = run_report(
		a_trace(), "idle trace.bin -f csv --columns kind,time_share,gap_ns");

	output_has(run.out, ",from the first operation to the last,steps,1595,0.725");
	output_has(run.out, ",late launches,class,1215,0.552");
	output_has(run.out, ",launch-bound,part,1150,0.522");
	output_has(run.out, ",launch latency,part,65,0.029");
	output_lacks(run.out, "before the first operation or after the last");
	output_lacks(run.out, "meanwhile");
}
END_TEST

/* A gap of 10 ms: 4 in a range, 3 of them in a range inside it, 1 in a launch that failed, 1 in
 * cudaMalloc, which is a cause of its own, the rest in none. */
START_TEST(long_gaps_are_divided_by_what_the_thread_did)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "main");
	build_launch(builder, 1, 100, 1);
	build_pop(builder, 1, 150);
	build_push(builder, 1, 2000000, "MPI_Recv");
	build_push(builder, 1, 2500000, "poll");
	build_pop(builder, 1, 5500000);
	build_pop(builder, 1, 6000000);
	build_long_launch(builder, 7000000, 8000000);
	build_long_alloc(builder, 8000000, 9000000);
	build_launch(builder, 1, 10000200, 2);
	build_kernel(builder, 9, 10000900, 1, "k", 200, 300);
	build_kernel(builder, 9, 10000900, 2, "k", 10000300, 10000400);
	run = run_report(builder, "idle trace.bin -f csv --columns kind,gap_ns,gaps");
	output_has(run.out, ",host-bound: the thread was in,meanwhile,8999895,2");
	output_has(run.out, ",(in no recorded range or call),host,3999895,");
	output_has(run.out, ",poll,host,3000000,");
	output_has(run.out, ",MPI_Recv,host,1000000,");
	output_has(run.out, ",cudaLaunchKernel,host,1000000,");
}
END_TEST

/* The first operation of a GPU began 2 ms after its launch. That is before the GPU's span. */
START_TEST(the_first_operation_waited)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_launch(builder, 1, 100, 1);
	build_launch(builder, 1, 200, 2);
	build_kernel(builder, 9, 3000000, 1, "k", 2000100, 2000200);
	build_kernel(builder, 9, 3000000, 2, "k", 2000300, 2000400);
	run = run_report(
		builder, "idle trace.bin -f csv --columns name,kind,gap_ns,unknown_ns,start_ns");
	output_has(run.out, ",device,,100,\r\n");
	output_has(run.out, "after its launch (busy or idle)\",before,100,,2000000\r\n");
	output_lacks(run.out, ",unknown,");
}
END_TEST

static void build_sample(struct trace_builder *builder, uint64_t at, const char *function,
	const char *module, bool in_call)
{
	const uint32_t name = build_name(builder, function), file = build_name(builder, module);
	struct trace_cpu_sample *sample = build_record(
		builder, 1, TRACE_CPU_SAMPLE, sizeof *sample, at);

	sample->function = name;
	sample->module = file;
	sample->head.flags = in_call ? TRACE_SAMPLE_IN_CALL : 0;
}

/* A gap of 10 ms in which the thread computes, receives and launches in vain. Samples beside the gap do
 * not count. */
static struct trace_builder *a_sampled_trace(void)
{
	struct trace_builder *builder = builder_new();

	build_launch(builder, 1, 100, 1);
	build_sample(builder, 250, "early", "a.out", false);
	for (uint64_t i = 0; i < 5; i++)
		build_sample(builder, 1000000 + i, i ? "check" : "main", "a.out", false);
	build_sample(builder, 1100000, NULL, "libc.so", false);
	build_sample(builder, 1200000, "rand", "libc.so", false);
	build_sample(builder, 1300000, "rand", "libc.so", false);
	build_push(builder, 1, 2000000, "MPI_Recv");
	build_sample(builder, 2500000, "progress", "libmpi.so", false);
	build_pop(builder, 1, 4000000);
	build_sample(builder, 7100000, "inside", "libcuda.so", true);
	build_sample(builder, 7900000, "inside", "libcuda.so", true);
	build_long_launch(builder, 7000000, 8000000);
	build_launch(builder, 1, 10000200, 2);
	build_sample(builder, 10000350, "after", "a.out", false);
	build_kernel(builder, 9, 10000900, 1, "k", 200, 300);
	build_kernel(builder, 9, 10000900, 2, "k", 10000300, 10000400);
	return builder;
}

START_TEST(samples_say_which_functions_the_thread_was_in)
{
	const struct report_run run = run_report(a_sampled_trace(),
		"idle trace.bin -f csv --columns name,kind,samples,sample_share,module --top 2");

	output_has(run.out, ",host-bound: the thread was in,meanwhile,11,,\r\n");
	output_has(run.out, ",(in no recorded range or call),host,8,,\r\n");
	output_has(run.out, ",check [a.out],function,4,0.5,a.out\r\n");
	output_has(run.out, ",rand [libc.so],function,2,0.25,libc.so\r\n");
	output_has(run.out, ",(2 other functions),functions,2,0.25,\r\n");
	output_has(run.out, ",MPI_Recv,host,1,,\r\n");
	output_has(run.out, ",progress [libmpi.so],function,1,1,libmpi.so\r\n");
	output_lacks(run.out, "inside");
	output_lacks(run.out, "early");
	output_lacks(run.out, "after [");
}
END_TEST

/* A sample in a CUDA call counts for the call. Without a name, its file is known. */
START_TEST(samples_in_calls_and_without_a_function_are_counted)
{
	const struct report_run run = run_report(a_sampled_trace(),
		"idle trace.bin -f csv --columns name,kind,samples,sample_share --min-percent 0 "
		"--top 9");

	output_has(run.out, ",cudaLaunchKernel,host,2,\r\n");
	output_has(run.out, ",(not resolved) [libc.so],function,1,0.125\r\n");
	output_lacks(run.out, "other functions");
}
END_TEST

START_TEST(gaps_are_the_idle_time)
{
	const struct report_run run = run_report(a_trace(), "idle trace.bin -f json");

	output_has(run.out, "\"gpu_idle_ns\": 1595,");
}
END_TEST

START_TEST(the_longest_are_as_many_as_requested)
{
	const struct report_run run = run_report(
		a_trace(), "idle trace.bin -f csv --columns all --top 1");

	output_has(run.out, "gap,launch-bound,step,0,0.6269592476489029,1000,");
	output_lacks(run.out, "gap,allocation");
}
END_TEST

/* A gate waits for the GPU, and then `linear` launches: the gate cost the time. */
START_TEST(a_wait_before_the_launch_is_at_the_call_that_waited)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "linear");
	build_launch(builder, 1, 20, 1);
	build_pop(builder, 1, 30);
	build_push(builder, 1, 40, "gate");
	build_wait(builder, 50, 250);
	build_pop(builder, 1, 260);
	build_push(builder, 1, 265, "linear");
	build_launch(builder, 1, 280, 2);
	build_pop(builder, 1, 290);
	build_kernel(builder, 9, 900, 1, "k", 100, 200);
	build_kernel(builder, 9, 900, 2, "k", 300, 400);
	run = run_report(builder, "idle trace.bin -f csv --columns all");
	output_has(run.out, ",gate,gate,place,synchronisation,gate,0,0.5,50,,1,50,");
	output_has(run.out, ",linear,linear,place,launch-bound,linear,0,0.25,25,,1,25,");
	output_has(run.out, ",linear,linear,place,launch latency,linear,0,0.25,25,,1,25,");
	output_has(run.out, ",gap,synchronisation,gate,0,0.5,50,,,,200,k,cudaDeviceSynchronize,");
}
END_TEST

/* Two devices: a gap of one is none of the other. Work beside other work ends none. */
START_TEST(devices_and_streams)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	for (uint64_t i = 1; i < 6; i++)
		build_launch(builder, 1, 20, i);
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 900, 1, "k", 100, 300);
	build_kernel(builder, 9, 900, 2, "k", 150, 200)->gpu.stream = 8;
	build_kernel(builder, 9, 900, 3, "k", 250, 260)->gpu.stream = 8;
	build_kernel(builder, 9, 900, 4, "k", 100, 150)->gpu.device = 1;
	build_kernel(builder, 9, 900, 5, "k", 290, 295)->gpu.device = 1;
	run = run_report(builder, "idle trace.bin -f csv --columns all");
	output_has(run.out, "device 0,device,,,0,0,0,,0,0,");
	output_has(run.out, "device 1,device,,,1,1,140,,1,140,");
	run = run_report(NULL, "idle trace.bin -f csv --columns all --device 0");
	output_lacks(run.out, "device 1");
}
END_TEST

/* With --steps a gap counts for its part in them, as idle does. */
START_TEST(steps_have_their_part_of_a_gap)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		build_push(builder, 1, 10 + 100 * i,
			i == 0   ? "step 0"
			: i == 1 ? "step 1"
				 : "step 2");
		build_launch(builder, 1, 20 + 100 * i, i + 1);
		build_pop(builder, 1, 90 + 100 * i);
		build_kernel(builder, 9, 900, i + 1, "k", 40 + 100 * i, 60 + 100 * i);
	}
	run = run_report(builder, "idle trace.bin --steps 1 -f json");
	output_has(run.out, "\"gpu_idle_ns\": 60,"); /* 110 to 140, 160 to 190 */
	output_has(run.out, "\"name\": \"device 0\", \"label\": \"device 0\", \"kind\": "
			    "\"device\", \"device\": 0, \"share\": 1, "
			    "\"gap_ns\": 60, \"gaps\": 2, \"gap_max_ns\": 30}");
}
END_TEST

/* Three steps of 100, each with a kernel from 40 to 60 after its begin. The launch of the first is
 * in the trace, or not. */
static struct report_run first_operation(bool has_launch)
{
	static const char *const names[] = { "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3" };
	struct trace_builder *builder = builder_new();

	for (uint64_t i = 0; i < 3; i++) {
		build_push(builder, 1, 10 + 100 * i, names[i]);
		if (i || has_launch)
			build_launch(builder, 1, 20 + 100 * i, i + 1);
		build_pop(builder, 1, 110 + 100 * i);
		build_kernel(builder, 9, 900, i + 1, "k", 50 + 100 * i, 70 + 100 * i);
	}
	return run_report(builder, "idle trace.bin -f csv --columns kind,gap_ns");
}

/* Work whose launch is not in the trace may have been launched before the trace began. So it is not
 * known whether the host was late. */
START_TEST(time_before_a_first_operation_without_a_launch_is_unknown)
{
	struct report_run run = first_operation(true);

	output_has(run.out, ",late launches,class,240\r\n");
	output_has(run.out, ",before the first operation or after the last,part,80\r\n");
	output_lacks(run.out, "unknown");
	run = first_operation(false);
	output_has(run.out, ",late launches,class,200\r\n");
	output_has(run.out, ",unknown,class,40\r\n");
	output_has(run.out, ",before the first operation or after the last,part,40\r\n");
}
END_TEST

/* A call about an event. */
static void build_event_call(struct trace_builder *builder, const char *name, uint32_t type,
	uint64_t begin, uint64_t end)
{
	const uint32_t api = build_name(builder, name);
	struct trace_sync *sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, end);

	sync->call.duration = end - begin;
	sync->call.api = api;
	sync->type = type;
	sync->event = 77;
}

/* A stream waits at `at` for an event, which is `recorded` before it. A kernel is launched 38 us
 * into the gap, which begins at 10 us, and starts 463 ms later. */
static struct trace_builder *a_stream_wait_at(uint64_t at, bool recorded)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 1000, 1);
	if (recorded)
		build_event_call(builder, "cudaEventRecord", TRACE_EVENT_RECORD, 1500, 1600);
	build_event_call(builder, "cudaStreamWaitEvent", TRACE_SYNC_STREAM_WAIT, at, at + 10000);
	build_launch(builder, 1, 48000, 2); /* called 5 before */
	build_launch(builder, 1, 60000, 3);
	build_pop(builder, 1, 463500000);
	build_kernel(builder, 9, 463600000, 1, "k", 5000, 10000);
	build_kernel(builder, 9, 463600000, 2, "k", 463310000, 463320000);
	build_kernel(builder, 9, 463600000, 3, "k", 463345001, 463346000);
	return builder;
}

static struct trace_builder *a_stream_wait(void)
{
	return a_stream_wait_at(20000, true);
}

/* What launched work waits for is known only if the event's record is in the trace. */
START_TEST(what_it_waits_for_is_not_invented)
{
	static const struct {
		uint64_t at;
		bool recorded;
		const char *cause, *waits_for, *verdict;
	} cases[] = {
		{ 20000, true, "\"cause\": \"event wait\"", "\"waits_for\": \"event\"",
			"while launched work waits for an event (cudaStreamWaitEvent)" },
		{ 20000, false, "\"cause\": \"unexplained wait\"",
			"\"waits_for\": \"earlier work or event\"",
			"the trace does not show for what (unexplained wait); most likely for work "
			"from before the trace began." },
		{ 3000, false, "\"cause\": \"unexplained wait\"",
			"\"waits_for\": \"event or earlier work\"",
			"for what: for an event (cudaStreamWaitEvent), or for earlier work of its "
			"stream." },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_builder *builder = a_stream_wait_at(cases[i].at, cases[i].recorded);

		/* Fewer operations would be too few for a verdict. */
		for (unsigned k = 0; k < 10; k++) {
			build_launch(builder, 1, 463502000 + k * 1000, 10 + k);
			build_kernel(builder, 9, 463700000, 10 + k, "k", 463600000 + k * 1000,
				463601000 + k * 1000);
		}
		output_has(run_report(builder, "idle trace.bin -f json").out, cases[i].waits_for);
		output_has(run_report(NULL, "idle trace.bin -f json").out, cases[i].cause);
		output_has(run_report(NULL, "diagnose trace.bin -f json").out, cases[i].verdict);
	}
}
END_TEST

/* A copy ends a gap, in most of which the thread was in its call, and in that of a copy before. */
static struct trace_builder *gap_in_copies(uint32_t copy_kind)
{
	struct trace_builder *builder = builder_new();
	struct trace_copy *call;

	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 1000, 1);
	for (uint64_t i = 2; i < 4; i++) {
		call = build_copy(builder, 1, 40000 * i, TRACE_COPY, i, 64);
		call->call.duration = 30000;
		call->copy_kind = copy_kind;
	}
	build_pop(builder, 1, 200000);
	build_kernel(builder, 9, 300000, 1, "k", 5000, 10000);
	build_gpu_copy(builder, 9, 300000, TRACE_GPU_COPY, 2, 64, 6000, 7000)->copy_kind =
		copy_kind;
	build_gpu_copy(builder, 9, 300000, TRACE_GPU_COPY, 3, 64, 119000, 120000)->copy_kind =
		copy_kind;
	return builder;
}

/* A copy within the GPU's memory waits for nothing: its call is like a launch. */
START_TEST(copies_within_the_gpu_are_launches)
{
	struct report_run run = run_report(gap_in_copies(TRACE_COPY_HTOD), "idle trace.bin -f csv");

	output_has(run.out, ",cause,copy calls,");
	ck_assert_ptr_null(strstr(run.out, ",cause,launch latency"));
	run = run_report(gap_in_copies(TRACE_COPY_DTOD), "idle trace.bin -f csv");
	ck_assert_ptr_null(strstr(run.out, ",cause,copy calls"));
	output_has(run.out, ",cause,launch-bound,");
	output_has(run.out, ",cause,launch latency,");
}
END_TEST

/* A copy's call returns 8 us into a gap. The thread launches 1.5 ms later. */
static struct trace_builder *gap_behind_a_call(bool is_copy)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "a");
	if (is_copy)
		build_copy(builder, 1, 4008000, TRACE_COPY, 1, 64)->call.duration = 4000000;
	else
		build_wait(builder, 8000, 4008000);
	build_launch(builder, 1, 5500000, 2);
	build_pop(builder, 1, 6000000);
	build_gpu_copy(builder, 9, 7000000, TRACE_GPU_COPY, 1, 64, 3900000, 4000000);
	build_kernel(builder, 9, 7000000, 2, "k", 5500000, 5600000);
	return builder;
}

START_TEST(a_gap_is_split_where_the_call_returns)
{
	struct report_run run = run_report(gap_behind_a_call(true), "idle trace.bin -f csv");

	output_has(run.out, ",cause,copy calls,,0,0.005333333333333333,8000,1,8000,");
	output_has(run.out, ",cause,host-bound,,0,0.99466");
	run = run_report(gap_behind_a_call(false), "idle trace.bin -f csv");
	output_lacks(run.out, ",cause,copy calls,");
}
END_TEST

START_TEST(after_the_launch_it_waits_for_the_event)
{
	struct report_run run = run_report(a_stream_wait(), "idle trace.bin -f csv --columns all");

	output_has(run.out, ",cause,event wait,,0,0.999864");
	output_has(run.out, ",463262000,,,,48000,k,cudaStreamWaitEvent,,1001,");
	output_has(run.out, ",cause,launch-bound,,0,8.2005");
	output_has(run.out, ",37995,,1,37995,");
	/* The kernel after it was launched long before, and behind no wait. */
	output_has(run.out, ",gap,unexplained wait,a,0,");
	output_has(run.out, ",25001,,,,463320000,k,,,1001,");
	run = run_report(NULL, "queue trace.bin -f csv --columns all");
	output_has(run.out, ",37995,463287006,0,");
	run = run_report(NULL, "critical-path trace.bin -f json");
	output_has(run.out, "\"name\": \"event wait\", \"label\": \"event wait\", \"kind\": "
			    "\"part\"");
	output_has(run.out, "\"path_wait_ns\": 463262000,");
}
END_TEST

/* Between two nodes of a graph 30 us are missing, in which a copy ran for 5 us. */
static struct trace_builder *a_graph(bool names_nodes)
{
	static const uint64_t times[3][2] = { { 1000, 2000 }, { 32000, 33000 }, { 33500, 34000 } };
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "a");
	build_graph_launch(builder, 1, 105, 1, 3);
	build_copy(builder, 1, 120, TRACE_COPY, 2, 64);
	build_pop(builder, 1, 190);
	for (unsigned i = 0; i < 3; i++)
		build_kernel(builder, 9, 60000, 1, "k", times[i][0], times[i][1])->gpu.graph_node =
			names_nodes ? i + 1 : 0;
	build_gpu_copy(builder, 9, 60000, TRACE_GPU_COPY, 2, 64, 10000, 15000)->gpu.stream = 8;
	return builder;
}

/* The same, and the host waits for the device meanwhile. */
START_TEST(what_the_host_did_meanwhile_is_named)
{
	struct trace_builder *builder = a_stream_wait();
	struct trace_sync *sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, 463550000);
	struct report_run run;

	sync->call.duration = 463480000;
	sync->call.api = build_name(builder, "cudaDeviceSynchronize");
	run = run_report(builder, "idle trace.bin -f csv --columns all");
	output_has(
		run.out, ",463262000,,,,48000,k,cudaStreamWaitEvent,cudaDeviceSynchronize,1001,");
}
END_TEST

START_TEST(inside_a_graph_of_unknown_nodes_nothing_is_known)
{
	struct report_run run = run_report(a_graph(false), "idle trace.bin -f json");

	output_has(
		run.out, "\"gpu_busy_ns\": 7500, \"gpu_idle_ns\": 500, \"gpu_unknown_ns\": 25000,");
	output_has(run.out, "\"gap_ns\": 500, \"unknown_ns\": 25000, \"gaps\": 1,");
	output_has(run.out, "\"kind\": \"unknown\", \"device\": 0, \"unknown_ns\": 25000, ");
	output_has(run_report(NULL, "idle trace.bin").out, "unknown (busy or idle)");
	run = run_report(NULL, "tree trace.bin -f json --columns name,idle_before_ns");
	output_has(run.out, "\"idle_before_ns\": 500");
	run = run_report(NULL, "trace.bin");
	output_has(run.out, "inside CUDA graphs");
	run = run_report(a_graph(true), "idle trace.bin -f json");
	output_has(run.out, "\"gpu_idle_ns\": 25500, \"gpu_unknown_ns\": 0,");
}
END_TEST

START_TEST(text_tells_the_causes)
{
	const struct report_run run = run_report(a_trace(), "idle trace.bin --ascii -n 2");

	output_has(run.out, "device 0");
	output_has(run.out, "  |-- launch-bound ");
	output_has(run.out, "longest parts\n");
}
END_TEST

/* One gap of 1 ms, one of 2 us, and thirty of 1 ns. */
START_TEST(gaps_of_no_share_are_counted_and_not_listed)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;
	unsigned gaps = 0;
	struct report_run run;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "step");
	for (unsigned id = 1; id <= 33; id++) {
		build_launch(builder, 1, 100 + id, id);
		build_kernel(builder, 9, 3000000, id, "k", at, at + 100);
		at += id == 10 ? 1000100 : id == 20 ? 2100 : 101;
	}
	build_pop(builder, 1, 3000000);
	run = run_report(builder, "idle trace.bin --ascii --width 120");
	output_has(run.out, "longest parts\n  |-- step -> k  ");
	output_has(run.out, "\n  +-- step -> k                       2.00 us ");
	output_has(run.out, "\nnot shown: 8 below 1 % (--min-percent 0)\n");
	run = run_report(NULL, "idle trace.bin --ascii --width 120 --min-percent 0");
	output_has(run.out, "longest parts\n  |-- step -> k  ");
	output_has(run.out, "    2.00 us ");
	/* other formats have all ten */
	run = run_report(NULL, "idle trace.bin -f csv --columns kind,gap_ns");
	for (const char *gap = run.out; (gap = strstr(gap, ",gap,")) != NULL; gap++)
		gaps++;
	ck_assert_uint_eq(gaps, 10);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { gaps_of_no_share_are_counted_and_not_listed,
		every_gap_is_split_at_its_launch, the_longest_parts_have_their_cause_and_call,
		gaps_are_the_idle_time, idle_time_before_a_launch_and_its_latency_have_a_sum,
		long_gaps_are_divided_by_what_the_thread_did, the_first_operation_waited,
		samples_say_which_functions_the_thread_was_in,
		samples_in_calls_and_without_a_function_are_counted,
		the_longest_are_as_many_as_requested, after_the_launch_it_waits_for_the_event,
		a_gap_is_split_where_the_call_returns, copies_within_the_gpu_are_launches,
		what_it_waits_for_is_not_invented, what_the_host_did_meanwhile_is_named,
		inside_a_graph_of_unknown_nodes_nothing_is_known, devices_and_streams,
		a_wait_before_the_launch_is_at_the_call_that_waited, steps_have_their_part_of_a_gap,
		a_wait_before_the_launch_is_at_the_call_that_waited,
		time_before_a_first_operation_without_a_launch_is_unknown, text_tells_the_causes };

	return run_view_suite("idle", tests, sizeof tests / sizeof *tests);
}
