/* SPDX-License-Identifier: MIT
 * test_streams.c: the view of what ran on which stream of which GPU.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void run_on(struct trace_builder *builder, uint64_t correlation, uint32_t device,
	uint32_t stream, uint64_t start, uint64_t end)
{
	struct trace_kernel *kernel = build_kernel(builder, 9, 900, correlation, "k", start, end);

	kernel->gpu.device = device;
	kernel->gpu.stream = stream;
}

/* Device 0: stream 7 at work 100-200 and 300-400, stream 8 at 150-350, of which another thread
 * asked for the second half; stream 9 not timed. Device 1: 100-200. */
static struct trace_builder *a_trace(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "step");
	for (uint64_t i = 1; i < 7; i++)
		build_launch(builder, i == 3 ? 2 : 1, 20 + i, i);
	build_pop(builder, 1, 80);
	run_on(builder, 1, 0, 7, 100, 200);
	run_on(builder, 2, 0, 8, 150, 260);
	run_on(builder, 3, 0, 8, 250, 350);
	run_on(builder, 4, 0, 7, 300, 400);
	run_on(builder, 5, 0, 9, 0, 0);
	run_on(builder, 6, 1, 7, 100, 200);
	return builder;
}

START_TEST(a_stream_is_busy_alone_or_beside_others)
{
	const struct report_run run = run_report(
		a_trace(), "streams trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "id,parent,depth,name,label,kind,device,stream,streams,share,calls,"
			    "kernels,copies,sets,untimed,"
			    "bytes,gpu_total_ns,busy_ns,busy_share,concurrent_ns,start_ns,last_"
			    "ns,threads,thread_ids,provenance");
	/* 50 of the first with the second, 50 of the third with the last */
	output_has(run.out, "0,,0,device 0,device "
			    "0,device,0,,3,0.803921568627451,5,5,0,0,1,0,410,300,1,100,100,400,2,"
			    "\"1001, 1002\",");
	output_has(run.out, "1,0,1,stream 7,stream 7,stream,0,7,,0.3921568627450");
	output_has(run.out, ",2,2,0,0,0,0,200,200,0.666666666666");
	output_has(run.out, ",100,150,350,2,\"1001, 1002\","); /* stream 8: 210 in sum, 200 busy */
	output_has(run.out, ",2,2,0,0,0,0,210,200,");
	output_has(run.out,
		"3,0,1,stream 9,stream 9,stream,0,9,,,1,1,0,0,1,0,,,,,,,1,1001,"); /* nobody knows when */
	output_has(run.out,
		"4,,0,device 1,device "
		"1,device,1,,1,0.19607843137254902,1,1,0,0,0,0,100,100,1,0,100,200,1,1001,");
}
END_TEST

START_TEST(one_device_and_no_streams_can_be_selected)
{
	struct report_run run = run_report(
		a_trace(), "streams trace.bin --device 1 -f csv --columns all");

	output_has(run.out, "device 1");
	output_lacks(run.out, "device 0");
	run = run_report(NULL, "streams trace.bin -d 1");
	output_lacks(run.out, "stream 7");
	output_has(run.out, "not shown: 4 deeper (--depth)");
}
END_TEST

START_TEST(text_is_a_tree)
{
	const struct report_run run = run_report(a_trace(), "streams trace.bin --width 60");

	ck_assert_str_eq(run.out, "                  busy   busy %  concurrent  calls     gpu\n"
				  "device 0        300 ns  100.0 %      100 ns      5  410 ns\n"
				  "  ├── stream 7  200 ns   66.7 %      100 ns      2  200 ns\n"
				  "  ├── stream 8  200 ns   66.7 %      100 ns      2  210 ns\n"
				  "  └── stream 9       -                           1\n"
				  "device 1        100 ns  100.0 %        0 ns      1  100 ns\n"
				  "  └── stream 7  100 ns  100.0 %        0 ns      1  100 ns\n");
}
END_TEST

START_TEST(a_named_stream_has_its_name)
{
	struct trace_builder *builder = a_trace();
	const uint32_t name = build_name(builder, "copies \033[31m");
	struct trace_object *object = build_record(builder, 1, TRACE_OBJECT, sizeof *object, 90);
	struct trace_context *context;
	struct report_run run;

	object->object = 0xabc;
	object->type = TRACE_OBJECT_CUDA_STREAM;
	object->name = name;
	context = build_dictionary(builder, TRACE_CONTEXT, sizeof *context);
	context->context = 1;
	context->stream = 8;
	context->handle = 0xabc;
	run = run_report(builder, "streams trace.bin");
	output_has(run.out, "stream 8 \"copies ");
	ck_assert_ptr_null(strchr(run.out, '\033'));
	output_lacks(run.out, "stream 7 \"");
}
END_TEST

START_TEST(nothing_ran)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	run = run_report(builder, "streams trace.bin");
	ck_assert_str_eq(run.out,
		"no rows   the trace has no GPU work: record on a machine with a GPU and CUPTI\n"
		"          (pperf doctor says what is missing)\n");
	ck_assert_int_eq(run.status, 0);
}
END_TEST

/* A step's share of it: work launched in it. */
START_TEST(steps_are_a_part)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	for (uint64_t i = 0; i < 2; i++) {
		build_push(builder, 1, 10 + 100 * i, i ? "step 1" : "step 0");
		build_launch(builder, 1, 20 + 100 * i, i + 1);
		build_pop(builder, 1, 90 + 100 * i);
		run_on(builder, i + 1, 0, 7, 60 + 100 * i, 80 + 110 * i);
	}
	run = run_report(builder, "streams trace.bin --steps 1 -f csv --columns all");
	output_has(run.out, "stream 7,stream,0,7,,1,1,1,0,0,0,0,30,30,1,0,160,190,");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { a_stream_is_busy_alone_or_beside_others,
		one_device_and_no_streams_can_be_selected, text_is_a_tree,
		a_named_stream_has_its_name, nothing_ran, steps_are_a_part };

	return run_view_suite("streams", tests, sizeof tests / sizeof *tests);
}
