/* SPDX-License-Identifier: MIT
 * test_idle.c: the view of when a GPU had nothing to do, who ended that and why it came to it.
 */
#include "tests/support/view_test.h"

#include <check.h>
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

/* One of every cause. Between are all gaps: 1595 of 2200. */
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
	build_kernel(builder, 9, 3000, 2, "k", 410, 500); /* 110, launch-bound, late */
	build_kernel(builder, 9, 3000, 3, "k", 530, 600); /* 30, asked for at 415 */
	build_kernel(builder, 9, 3000, 4, "k", 640, 700); /* 40, it waited until 605 */
	build_kernel(builder, 9, 3000, 5, "k", 810, 900); /* 110, of which 80 in cudaMalloc */
	build_gpu_copy(
		builder, 9, 3000, TRACE_GPU_COPY, 6, 64, 990, 995); /* 90, in the call since 880 */
	build_kernel(builder, 9, 3000, 7, "k", 2010,
		2020); /* 1015: the copy took 115, and then something else 1000 */
	build_kernel(builder, 9, 3000, 88, "stray", 2100, 2110);             /* 80, nobody knows */
	build_gpu_copy(builder, 9, 3000, TRACE_GPU_COPY, 9, 64, 2200, 2290); /* 90, launch-bound */
	build_kernel(builder, 9, 3000, 10, "last", 2320,
		2400); /* 30, it was in that copy's call until 2300 */
	return builder;
}

START_TEST(every_gap_has_an_owner_and_a_cause)
{
	const struct report_run run = run_report(a_trace(), "idle trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,label,kind,cause,path,device,share,gap_ns,gaps,gap_max_ns,"
		"start_ns,ended_by,blocked_by,"
		"thread,provenance\r\n"
		"0,,0,device 0,device 0,device,,,0,1,1595,9,1015,,,,,\r\n"
		"1,0,1,launch-bound,launch-bound,cause,launch-bound,,0,0.7617554858934169,1215,3,"
		"1015,,,,,\r\n"
		"2,1,2,step,step,place,launch-bound,step,0,0.6927899686520376,1105,2,1015,,,,,\r\n"
		"3,1,2,late,step / "
		"late,place,launch-bound,step/late,0,0.06896551724137931,110,1,110,,,,,\r\n"
		"4,0,1,copy,copy,cause,copy,,0,0.07523510971786834,120,2,90,,,,,\r\n"
		"5,4,2,step,step,place,copy,step,0,0.07523510971786834,120,2,90,,,,,\r\n"
		"6,0,1,allocation,allocation,cause,allocation,,0,0.06896551724137931,110,1,110,,,,,"
		"\r\n"
		"7,6,2,step,step,place,allocation,step,0,0.06896551724137931,110,1,110,,,,,\r\n"
		"8,0,1,unknown,unknown,cause,unknown,,0,0.050156739811912224,80,1,80,,,,,\r\n"
		"9,8,2,unattributed,unattributed,place,unknown,unattributed,0,0.050156739811912224,"
		"80,1,80,,,,,\r\n"
		"10,0,1,synchronisation,synchronisation,cause,synchronisation,,0,0."
		"025078369905956112,40,1,40,,,,,\r\n"
		"11,10,2,step,step,place,synchronisation,step,0,0.025078369905956112,40,1,40,,,,,"
		"\r\n"
		"12,0,1,dependency,dependency,cause,dependency,,0,0.018808777429467086,30,1,30,,,,,"
		"\r\n"
		"13,12,2,step,step,place,dependency,step,0,0.018808777429467086,30,1,30,,,,,\r\n"
		"14,,0,longest,longest,gaps,,,,,,,,,,,,\r\n"
		"15,14,1,step,step,gap,launch-bound,step,0,0.6363636363636364,1015,,,995,k,,1001,"
		"\r\n"
		"16,14,1,late,step / "
		"late,gap,launch-bound,step/late,0,0.06896551724137931,110,,,300,k,,1001,\r\n"
		"17,14,1,step,step,gap,allocation,step,0,0.06896551724137931,110,,,700,k,"
		"cudaMalloc,1001,\r\n"
		"18,14,1,step,step,gap,copy,step,0,0.05642633228840126,90,,,900,memcpy "
		"HtoD,,1001,\r\n"
		"19,14,1,step,step,gap,launch-bound,step,0,0.05642633228840126,90,,,2110,memcpy "
		"HtoD,,1001,\r\n"
		"20,14,1,unattributed,unattributed,gap,unknown,unattributed,0,0.050156739811912224,"
		"80,,,2020,stray,,,\r\n"
		"21,14,1,step,step,gap,synchronisation,step,0,0.025078369905956112,40,,,600,k,"
		"cudaDeviceSynchronize,1001,\r\n"
		"22,14,1,step,step,gap,dependency,step,0,0.018808777429467086,30,,,500,k,,1001,\r\n"
		"23,14,1,step,step,gap,copy,step,0,0.018808777429467086,30,,,2290,last,"
		"cudaMemcpyAsync,1001,\r\n");
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

	output_has(run.out, "gap,launch-bound,step,0,0.6363636363636364,1015,");
	output_lacks(run.out, "gap,allocation");
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
	output_has(run.out, "device 0,device,,,0,0,0,0,0,");
	output_has(run.out, "device 1,device,,,1,1,140,1,140,");
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

START_TEST(text_tells_the_causes)
{
	const struct report_run run = run_report(a_trace(), "idle trace.bin --ascii -n 2");

	output_has(run.out, "device 0");
	output_has(run.out, "  |-- launch-bound ");
	output_has(run.out, "longest\n");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { every_gap_has_an_owner_and_a_cause, gaps_are_the_idle_time,
		the_longest_are_as_many_as_requested, devices_and_streams,
		steps_have_their_part_of_a_gap, text_tells_the_causes };

	return run_view_suite("idle", tests, sizeof tests / sizeof *tests);
}
