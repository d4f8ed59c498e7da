/* SPDX-License-Identifier: MIT
 * test_overlap.c: the view of what was copied and communicated while a GPU computed.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Computation 100-200 and 300-400; communication 150-350, in it a second one 160-170 of another
 * stream; copies 50-120 (of a), 340-380 (of b), 390-500 (of a) and 450-520 (of b); a memset
 * 600-650, with a copy 640-660 of a. */
static struct trace_builder *a_trace(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 11, 1);
	build_launch(builder, 1, 12, 2);
	build_copy(builder, 1, 13, TRACE_COPY, 3, 100);
	build_copy(builder, 1, 14, TRACE_COPY, 4, 100);
	build_copy(builder, 1, 15, TRACE_COPY, 5, 100);
	build_copy(builder, 1, 16, TRACE_SET, 6, 1);
	build_pop(builder, 1, 20);
	build_push(builder, 1, 21, "b");
	build_launch(builder, 1, 22, 7);
	build_launch(builder, 1, 23, 8);
	build_copy(builder, 1, 24, TRACE_COPY, 9, 1000);
	build_copy(builder, 1, 25, TRACE_COPY, 10, 1000);
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 900, 1, "gemm", 100, 200);
	build_kernel(builder, 9, 900, 2, "gemm", 300, 400);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 3, 100, 50, 120);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 4, 100, 390, 500);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 5, 100, 640, 660);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_SET, 6, 1, 600, 650);
	build_kernel(builder, 9, 900, 7, "ncclDevKernel_AllReduce", 150, 350);
	build_kernel(builder, 9, 900, 8, "ncclDevKernel_AllReduce", 160, 170);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 9, 1000, 340, 380);
	build_gpu_copy(builder, 9, 900, TRACE_GPU_COPY, 10, 1000, 450, 520);
	return builder;
}

START_TEST(what_is_hidden_and_what_is_not)
{
	const struct report_run run = run_report(
		a_trace(), "overlap trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	/* Communication: 150-200 and 300-350 hidden. Copies: 100-120, 340-380, 390-400, 640-650;
	 * exposed 50-100, 400-520 (of a until 500, of b from 450 on), 650-660. */
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,label,kind,traffic,path,device,calls,bytes,message_bytes_per_"
		"s,"
		"bus_bytes_per_s,gpu_total_ns,busy_ns,hidden_ns,exposed_ns,"
		"hidden_share,min_ns,p50_ns,max_ns,provenance\r\n"
		"0,,0,device 0,device 0,device,,,0,10,,,,770,530,,,,,,,\r\n"
		"1,0,1,communication,communication,communication,communication,,0,2,,,,210,200,"
		"100,100,0.5,,,,\r\n"
		"2,1,2,b,b,place,communication,b,0,2,,,,210,200,100,100,0.5,,,,\r\n"
		"3,0,1,copies,copies,copies,copies,,0,5,2300,7419354838,,310,260,80,180,0."
		"3076923076923077,,,,\r\n"
		"4,3,2,a,a,place,copies,a,0,3,300,1500000000,,200,200,40,160,0.2,,,,\r\n"
		"5,3,2,b,b,place,copies,b,0,2,2000,18181818181,,110,110,40,70,0.36363636363636365,,"
		",,"
		"\r\n"
		"6,0,1,computation,computation,computation,,,0,3,,,,250,250,,,,,,,\r\n"
		"7,6,2,memsets,memsets,memsets,,,0,1,1,,,50,50,,,,,,,\r\n");
}
END_TEST

START_TEST(they_are_the_totals)
{
	const struct report_run run = run_report(a_trace(), "overlap trace.bin -f json");

	output_has(run.out, "\"gpu_busy_ns\": 530, ");
	output_has(run.out, "\"gpu_computation_ns\": 250, \"gpu_communication_ns\": 200, "
			    "\"gpu_exposed_communication_ns\": 100, "
			    "\"gpu_copy_ns\": 260, \"gpu_exposed_copy_ns\": 180");
}
END_TEST

START_TEST(fewer_rows_can_be_requested)
{
	struct report_run run = run_report(a_trace(), "overlap trace.bin -d 2");

	output_has(run.out, "copies");
	output_has(run.out, "not shown: 4 deeper (--depth)");
	run = run_report(NULL, "overlap trace.bin --device 1");
	ck_assert_int_eq(run.status, 64);
	ck_assert_str_eq(run.out, "");
	output_has(run.err, "trace.bin has no records of GPU 1");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { what_is_hidden_and_what_is_not, they_are_the_totals,
		fewer_rows_can_be_requested };

	return run_view_suite("overlap", tests, sizeof tests / sizeof *tests);
}
