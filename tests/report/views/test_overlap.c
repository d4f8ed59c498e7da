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
		"3,2,3,size not recorded,size not recorded,size,,,0,2,,,,210,200,100,100,0.5,10,10,"
		"200,\r\n"
		"4,0,1,copies,copies,copies,copies,,0,5,2300,7419354838,,310,260,80,180,0."
		"3076923076923077,,,,\r\n"
		"5,4,2,a,a,place,copies,a,0,3,300,1500000000,,200,200,40,160,0.2,,,,\r\n"
		"6,4,2,b,b,place,copies,b,0,2,2000,18181818181,,110,110,40,70,0.36363636363636365,,"
		",,"
		"\r\n"
		"7,0,1,computation,computation,computation,,,0,3,,,,250,250,,,,,,,\r\n"
		"8,7,2,memsets,memsets,memsets,,,0,1,1,,,50,50,,,,,,,\r\n");
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

/* Collectives of 4 ranks, each of which has one kernel of 100 ns: alone, three in a group, a send
 * and a receive in a group; and calls without a size: two kernels, two communicators, a failed one,
 * one of more bytes than there are. */
static struct trace_builder *calls_of_nccl(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_communicator(builder, 1, 4, 0);
	build_communicator(builder, 2, 2, 0);
	build_push(builder, 1, 10, "alone");
	build_launch(builder, 1, 15, 1);
	build_collective(builder, 18, TRACE_NCCL_ALL_GATHER, 1000, 1);
	build_pop(builder, 1, 19);
	build_push(builder, 1, 20, "group");
	for (unsigned i = 0; i < 3; i++)
		build_collective(builder, 21 + i, TRACE_NCCL_ALL_REDUCE, 100, 1)->head.flags =
			TRACE_COLLECTIVE_GROUPED;
	build_launch(builder, 1, 30, 2);
	build_collective(builder, 33, TRACE_NCCL_GROUP, 0, 0)->calls = 3;
	build_pop(builder, 1, 39);
	build_push(builder, 1, 40, "peers");
	for (unsigned i = 0; i < 2; i++) {
		struct trace_collective *record = build_collective(
			builder, 41 + i, i ? TRACE_NCCL_RECV : TRACE_NCCL_SEND, i ? 300 : 200, 1);

		record->head.flags = TRACE_COLLECTIVE_GROUPED;
		record->peer = 3;
	}
	build_launch(builder, 1, 50, 3);
	build_collective(builder, 53, TRACE_NCCL_GROUP, 0, 0)->calls = 2;
	build_pop(builder, 1, 59);
	build_push(builder, 1, 60, "unknown");
	build_launch(builder, 1, 66, 4);
	build_launch(builder, 1, 67, 5);
	build_collective(builder, 68, TRACE_NCCL_ALL_REDUCE, 1000, 1);
	for (unsigned i = 0; i < 2; i++)
		build_collective(builder, 71 + i, TRACE_NCCL_ALL_REDUCE, 100, 1 + i)->head.flags =
			TRACE_COLLECTIVE_GROUPED;
	build_launch(builder, 1, 78, 6);
	build_launch(builder, 1, 79, 7);
	build_collective(builder, 80, TRACE_NCCL_GROUP, 0, 0)->calls = 2;
	build_launch(builder, 1, 85, 8);
	build_collective(builder, 88, TRACE_NCCL_ALL_REDUCE, 1000, 1)->result = 5;
	build_launch(builder, 1, 95, 9);
	build_collective(builder, 98, TRACE_NCCL_ALL_GATHER, UINT64_MAX / 2, 77);
	build_pop(builder, 1, 99);
	for (uint64_t i = 1; i < 10; i++)
		build_kernel(builder, 9, 900, i, "ncclDevKernel_AllReduce", 100 * i, 100 * i + 100);
	return builder;
}

START_TEST(kernels_have_the_size_of_their_calls)
{
	const struct report_run run = run_report(calls_of_nccl(),
		"overlap trace.bin -f csv --columns name,kind,calls,bytes,message_bytes_per_s,"
		"bus_bytes_per_s");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "alone,place,1,4000,40000000000,30000000000\r\n");
	output_has(run.out, "group,place,1,300,3000000000,4500000000\r\n");
	output_has(run.out, "peers,place,1,300,3000000000,3000000000\r\n");
	output_has(run.out, "unknown,place,6,,,\r\n");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { what_is_hidden_and_what_is_not, they_are_the_totals,
		fewer_rows_can_be_requested, kernels_have_the_size_of_their_calls };

	return run_view_suite("overlap", tests, sizeof tests / sizeof *tests);
}
