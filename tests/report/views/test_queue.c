/* SPDX-License-Identifier: MIT
 * test_queue.c: the view of how long work waited, and how much was asked for and not done.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* One thread asks at 115, 135, 145 (a copy, on stream 8), 395, 415 (which is not timed), 49995
 * (which began long before). */
static struct trace_builder *a_trace(void)
{
	static const uint64_t runs[][2] = { { 200, 300 }, { 300, 350 }, { 310, 320 }, { 420, 430 },
		{ 0, 0 }, { 20000, 20010 } };
	static const uint64_t asked[] = { 120, 140, 150, 400, 420, 50000 };
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "step");
	for (uint64_t i = 0; i < 6; i++)
		if (i == 2)
			build_copy(builder, 1, asked[i], TRACE_COPY, i + 1, 64);
		else
			build_launch(builder, 1, asked[i], i + 1);
	build_pop(builder, 1, 50010);
	for (uint64_t i = 0; i < 6; i++)
		if (i == 2)
			build_gpu_copy(builder, 9, 60000, TRACE_GPU_COPY, i + 1, 64, runs[i][0],
				runs[i][1])
				->gpu.stream = 8;
		else
			build_kernel(builder, 9, 60000, i + 1, i == 3 ? "late" : "k", runs[i][0],
				runs[i][1]);
	return builder;
}

START_TEST(delays_and_what_was_outstanding)
{
	const struct report_run run = run_report(a_trace(), "queue trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "id,parent,depth,name,label,kind,path,device,stream,calls,delays,"
			    "early,untimed,delay_total_ns,"
			    "delay_p50_ns,delay_p95_ns,delay_max_ns,delay_stream_ns,"
			    "delay_start_ns,delay_event_ns,delay_others_ns,delay_unknown_ns,"
			    "outstanding_max,outstanding_"
			    "mean,queue_empty_ns,"
			    "queue_asked_ns,queue_unknown_ns,queue_ahead_ns,provenance");
	/* delays 25, 85, 165, 165; three at most are asked for; from 200 to 20010 it is idle for
	 * 19640, and 25 of these come after a launch; for 110 it was busy and had more
	 * to do. The second waited for its stream, the copy for 110 while the other stream ran. */
	output_has(run.out, "0,,0,device 0,device "
			    "0,device,,0,,6,4,1,1,440,85,165,165,165,165,0,110,0,3,0."
			    "020949015648662292,19615,25,0,110,");
	output_has(run.out,
		",stream 8,stream,,0,8,1,1,0,0,165,165,165,165,0,55,0,110,0,1,1,0,165,0,0,"); /* the first of its stream */
	output_has(
		run.out, ",step,step,place,step,,,6,4,1,1,440,85,165,165,165,165,0,110,0,,,,,,,");
	output_has(run.out, ",late,late,work,,,,1,1,0,0,25,25,25,25,0,25,0,0,0,,,,,,,");
	output_has(run.out, ",k,k,work,,,,4,2,1,1,250,85,165,165,165,85,0,0,0,,,,,,,");
}
END_TEST

START_TEST(before_and_after_the_launch_are_idle)
{
	const struct report_run run = run_report(a_trace(), "queue trace.bin -f json");

	output_has(run.out, "\"gpu_idle_ns\": 19640,");
}
END_TEST

START_TEST(of_a_graph_only_the_first_waited)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "replay");
	build_graph_launch(builder, 1, 105, 1, 3);
	build_graph_launch(builder, 1, 125, 2, 3);
	build_pop(builder, 1, 190);
	for (uint64_t i = 0; i < 6; i++)
		build_kernel(builder, 9, 900, 1 + i / 3, "k", 200 + 10 * i, 205 + 10 * i);
	build_kernel(builder, 9, 900, 77, "stray", 300, 310); /* nobody knows who asked */
	run = run_report(builder, "queue trace.bin -f csv --columns all");
	output_has(run.out, "device 0,device,,0,,7,2,0,0,210,100,110,110,105,105,0,0,0,");
}
END_TEST

/* Streams and device say the same of a gap whose launch is not in the trace: nothing. */
START_TEST(idle_time_without_a_launch_is_unknown)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 105, 1);
	build_launch(builder, 1, 405, 2);
	build_pop(builder, 1, 500);
	build_kernel(builder, 9, 900, 1, "k", 200, 300);
	build_kernel(builder, 9, 900, 77, "stray", 350, 360);
	build_kernel(builder, 9, 900, 2, "k", 420, 430);
	run = run_report(builder, "queue trace.bin -f csv --columns all");
	output_has(run.out, "device 0,device,,0,,3,2,0,0,120,20,100,100,0,120,0,0,0,1,");
	output_has(run.out, ",40,20,50,0,"); /* 360 to 400, 400 to 420; 300 to 350 */
}
END_TEST

/* A call about an event, which ends at `end`. */
static void build_event_call(
	struct trace_builder *builder, const char *name, uint32_t type, uint64_t end)
{
	const uint32_t api = build_name(builder, name);
	struct trace_sync *sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, end);

	sync->call.api = api;
	sync->call.duration = 10;
	sync->type = type;
	sync->event = 77;
}

/* On stream 7: one that runs from 10000 to 100000, then one that was launched meanwhile and starts
 * 30000 later, for no reason that is known. On stream 8, launched at 1000: 1 starts at 40000, 2
 * behind a wait for an event at 200000, after 1 has ended at 50000. On stream 9, launched at 1000
 * too: it starts at 160000, when the device has worked on other streams for 90000 + 20000. */
static struct trace_builder *all_reasons(bool event_recorded)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 1000, 1);
	build_launch(builder, 1, 1100, 2);
	build_launch(builder, 1, 1200, 3);
	build_launch(builder, 1, 1300, 4);
	if (event_recorded)
		build_event_call(builder, "cudaEventRecord", TRACE_EVENT_RECORD, 1390);
	build_event_call(builder, "cudaStreamWaitEvent", TRACE_SYNC_STREAM_WAIT, 1410);
	build_launch(builder, 1, 1500, 5);
	build_pop(builder, 1, 2000);
	build_kernel(builder, 9, 900000, 1, "long", 10000, 100000)->gpu.stream = 7;
	build_kernel(builder, 9, 900000, 3, "first", 40000, 50000)->gpu.stream = 8;
	build_kernel(builder, 9, 900000, 2, "later", 130000, 150000)->gpu.stream = 7;
	build_kernel(builder, 9, 900000, 4, "other", 160000, 170000)->gpu.stream = 9;
	build_kernel(builder, 9, 900000, 5, "event", 200000, 210000)->gpu.stream = 8;
	return builder;
}

/* What each operation waited for sums to its latency. */
START_TEST(a_delay_is_divided_by_what_it_waited_for)
{
	static const char command[] =
		"queue trace.bin -f csv --columns "
		"name,delay_total_ns,delay_stream_ns,delay_start_ns,delay_event_ns,"
		"delay_others_ns,delay_unknown_ns";
	struct report_run run = run_report(all_reasons(true), command);

	output_has(run.out, "long,9005,0,9005,0,0,0");
	output_has(run.out, "later,128905,98905,0,0,0,30000");
	output_has(run.out, "first,38805,0,8805,0,30000,0");
	output_has(run.out, "other,158705,0,5,0,110000,48700");
	output_has(run.out, "event,198505,48505,0,150000,0,0");
	output_has(run.out, "device 0,533925,147410,17815,150000,140000,78700");
	/* what the event is for is not known without its record */
	run = run_report(all_reasons(false), command);
	output_has(run.out, "event,198505,48505,0,0,0,150000");
	output_has(run.out, "device 0,533925,147410,17815,0,140000,228700");
}
END_TEST

/* What starts before the end of a kernel that fills the device had no room beside it. */
START_TEST(a_wait_without_room_is_not_for_the_event)
{
	static const struct {
		uint32_t blocks;
		const char *row;
	} cases[] = { { 15000, "event,98495,0,5,0,98490,0" }, { 64, "event,98495,0,5,0,0,98490" } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_builder *builder = builder_new();
		const uint32_t api = build_name(builder, "cudaStreamWaitEvent");
		struct trace_sync *sync;

		build_device(builder, 0, "a GPU");
		build_push(builder, 1, 10, "a");
		build_launch(builder, 1, 1000, 1);
		sync = build_record(builder, 1, TRACE_SYNC, sizeof *sync, 1410);
		sync->call.api = api;
		sync->type = TRACE_SYNC_STREAM_WAIT;
		sync->call.duration = 10;
		build_launch(builder, 1, 1510, 2);
		build_pop(builder, 1, 2000);
		build_kernel(builder, 9, 900000, 1, "filling", 1100, 160000)->grid[0] =
			cases[i].blocks;
		build_kernel(builder, 9, 900000, 2, "event", 100000, 210000)->gpu.stream = 8;
		output_has(
			run_report(builder,
				"queue trace.bin -f csv --columns "
				"name,delay_total_ns,delay_stream_ns,delay_start_ns,delay_event_ns,"
				"delay_others_ns,delay_unknown_ns")
				.out,
			cases[i].row);
	}
}
END_TEST

START_TEST(nothing_ran)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	run = run_report(builder, "queue trace.bin");
	ck_assert_str_eq(run.out,
		"no rows   the trace has no GPU work: record on a machine with a GPU and CUPTI\n"
		"          (pperf doctor says what is missing)\n");
}
END_TEST

START_TEST(text_fits)
{
	const struct report_run run = run_report(a_trace(), "queue trace.bin --ascii");

	output_has(run.out,
		"                    lat p50  lat p95  after launch  not launched  delays   ahead");
	output_has(run.out, "call paths\n  +-- step");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { delays_and_what_was_outstanding,
		before_and_after_the_launch_are_idle, of_a_graph_only_the_first_waited,
		idle_time_without_a_launch_is_unknown, a_delay_is_divided_by_what_it_waited_for,
		a_wait_without_room_is_not_for_the_event, nothing_ran, text_fits };

	return run_view_suite("queue", tests, sizeof tests / sizeof *tests);
}
