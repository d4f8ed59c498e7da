/* SPDX-License-Identifier: MIT
 * test_api.c: the view of the calls to CUDA by name.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* In 1000: three launches of 5, 5 and 45, one of which failed; an allocation of 100, which CUPTI
 * timed too; two queries that only CUPTI saw, of 30 and 50. */
static struct trace_builder *a_trace(void)
{
	struct trace_builder *builder = builder_new();
	struct trace_memory *memory;
	uint32_t api;

	build_push(builder, 1, 10, "step");
	build_launch(builder, 1, 100, 1);
	build_push(builder, 1, 110, "slow");
	build_launch(builder, 1, 200, 2)->call.duration = 45;
	build_pop(builder, 1, 210);
	build_launch(builder, 1, 300, 3)->call.result = 2;
	api = build_name(builder, "cudaMalloc");
	memory = build_memory(builder, 1, 500, TRACE_ALLOC, 0x1000, 64, TRACE_MEMORY_DEVICE, 0);
	memory->call.duration = 100;
	memory->call.api = api;
	build_api(builder, "cudaMalloc", 401, 499);
	build_api(builder, "cudaOccupancy\033[31m", 600, 630);
	build_api(builder, "cudaOccupancy\033[31m", 650, 700)->result = 1;
	build_pop(builder, 1, 1000);
	return builder;
}

START_TEST(calls_are_counted_once)
{
	const struct report_run run = run_report(a_trace(), "api trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(run.out,
		"name,label,kind,path,share,wall_share,calls,failed,captured,cpu_total_ns,mean_ns,"
		"min_ns,p50_ns,p95_ns,max_ns,"
		"start_ns,timed_by,provenance\r\n"
		"cudaMalloc,cudaMalloc,alloc,step,0.425531914893617,0.1,1,0,0,100,100,100,100,100,"
		"100,400,record,\r\n"
		"cudaOccupancy\\x1b[31m,cudaOccupancy\\x1b[31m,api,,0.3404255319148936,0.08,2,1,0,"
		"80,40,30,30,50,50,650,cupti,"
		"\r\n"
		"cudaLaunchKernel,cudaLaunchKernel,launch,step/"
		"slow,0.23404255319148937,0.055,3,1,0,55,18,5,5,45,45,155,record,"
		"\r\n");
}
END_TEST

/* The call took 5 and was written after 40 of a seal's; the next one was not. */
START_TEST(what_a_seal_took_is_no_part_of_the_call_that_it_made_room_for)
{
	struct trace_builder *builder = builder_new();
	struct trace_self *self;
	struct report_run run;

	build_push(builder, 1, 10, "step");
	self = build_record(builder, 1, TRACE_SELF, sizeof *self, 145);
	self->duration = 40;
	self->what = TRACE_SELF_SEAL;
	build_launch(builder, 1, 145, 1)->call.duration = 45;
	self = build_record(builder, 2, TRACE_SELF, sizeof *self, 180);
	self->duration = 40;
	self->what = TRACE_SELF_SEAL;
	build_launch(builder, 1, 190, 2)->call.duration = 7; /* of another thread */
	self = build_record(builder, 1, TRACE_SELF, sizeof *self, 250);
	self->duration = 10;
	self->what = TRACE_SELF_STACK;
	build_launch(builder, 1, 260, 3)->call.duration = 30;
	build_pop(builder, 1, 1000);
	run = run_report(builder,
		"api trace.bin -f csv --columns name,calls,cpu_total_ns,min_ns,max_ns,start_ns");
	ck_assert_str_eq(run.out, "name,calls,cpu_total_ns,min_ns,max_ns,start_"
				  "ns\r\ncudaLaunchKernel,3,42,5,30,230\r\n");
}
END_TEST

START_TEST(steps_are_a_part)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	for (uint64_t i = 0; i < 3; i++) {
		build_push(builder, 1, 100 + 100 * i,
			i == 0   ? "step 0"
			: i == 1 ? "step 1"
				 : "step 2");
		build_launch(builder, 1, 120 + 100 * i, i + 1);
		build_api(builder, "cudaOccupancy", 130 + 100 * i, 140 + 100 * i);
		build_pop(builder, 1, 190 + 100 * i);
	}
	run = run_report(builder, "api trace.bin -f csv --columns all --steps 1-2");
	output_has(run.out, "cudaLaunchKernel,cudaLaunchKernel,launch,step *,");
	output_has(run.out, ",2,0,0,10,5,5,5,5,5,");
	output_has(run.out, ",2,0,0,20,10,10,10,10,10,");
}
END_TEST

START_TEST(text_is_a_table)
{
	const struct report_run run = run_report(a_trace(), "api trace.bin");

	ck_assert_ptr_null(strchr(run.out, '\033'));
	output_has(run.out, "   cpu       %  calls  failed    mean     max  of wall");
	output_has(run.out, "100 ns  42.6 %      1       0  100 ns  100 ns   10.0 %");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { calls_are_counted_once,
		what_a_seal_took_is_no_part_of_the_call_that_it_made_room_for, steps_are_a_part,
		text_is_a_table };

	return run_view_suite("api", tests, sizeof tests / sizeof *tests);
}
