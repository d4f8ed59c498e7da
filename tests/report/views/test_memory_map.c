/* SPDX-License-Identifier: MIT
 * test_memory_map.c: the tables of memory at a moment: --map, --at, --by and --over-time.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB UINT64_C(1000000)
#define A UINT64_C(0x100000000) /* segment of 40 MB */
#define B UINT64_C(0x200000000) /* 20 MB, empty at the end */
#define C UINT64_C(0x300000000) /* 10 MB, in which no tensor is known */

/* What the program holds, so that the allocator's totals in the records are right. */
static uint64_t allocated, reserved;

static void segment(struct trace_builder *builder, uint64_t at, uint64_t address, uint64_t bytes)
{
	build_alloc(builder, 1, at, address, bytes);
	reserved += bytes;
}

static void tensor(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t address,
	int64_t bytes)
{
	allocated += (uint64_t)bytes;
	build_tensor(builder, stream, at, address, bytes, allocated, reserved);
}

/* `frame` allocates A for a large tensor, and leaves small ones of `keep` there. `spike` allocates
 * B and gives its tensor back. `library` allocates C with cudaMalloc. A tensor is freed by another
 * thread. */
static struct trace_builder *fragmented(void)
{
	struct trace_builder *builder = builder_new();

	allocated = reserved = 0;
	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 1000, "frame");
	segment(builder, 1100, A, 40 * MB);
	tensor(builder, 1, 1200, A, 30 * MB);
	build_push(builder, 1, 2000, "keep");
	tensor(builder, 1, 2100, A + 30 * MB, 2 * MB);
	tensor(builder, 1, 2200, A + 36 * MB, 4 * MB);
	build_pop(builder, 1, 2300);
	tensor(builder, 2, 2400, A, -30 * (int64_t)MB);
	build_pop(builder, 1, 2500);
	build_push(builder, 1, 3000, "spike");
	segment(builder, 3100, B, 20 * MB);
	tensor(builder, 1, 3200, B, 20 * MB);
	tensor(builder, 1, 3300, B, -20 * (int64_t)MB);
	build_pop(builder, 1, 3400);
	build_push(builder, 1, 4000, "library");
	build_alloc(builder, 1, 4100, C, 10 * MB);
	build_pop(builder, 1, 4200);
	return builder;
}

START_TEST(a_segment_is_drawn_with_who_keeps_it)
{
	const struct report_run run = run_report(
		fragmented(), "memory trace.bin --map --at end --width 80");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"memory    GPU 0 at the end (4.20 \xc2\xb5s): 70.00 MB reserved in 3 segments\n"
		"          6.00 MB in 2 tensors; 54.00 MB free inside the segments in 3 gaps, the\n"
		"          largest 30.00 MB: fragmentation 44.4 % (1 - largest gap / free\n"
		"          inside), free share 90.0 %\n"
		"          1 segment of 40.00 MB in all is less than a quarter full: held by\n"
		"          6.00 MB of tensors; 1 segment of 20.00 MB in all is empty: empty_cache\n"
		"          gives it back\n"
		"          10.00 MB in 1 segment without a tensor so far: it is not known what is\n"
		"          in them, and they do not count as free\n"
		"\n"
		"   40.00 MB \xe2\x94\x82                        "
		"\xe2\x96\x88\xe2\x96\x93  "
		"\xe2\x96\x91\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x94\x82 15.0 %  2 "
		"tensors, gap 30.00 MB\n"
		"            allocated at 1.10 \xc2\xb5s in `frame`, now held by 6.00 MB of "
		"tensors\n"
		"            allocated in `frame / keep` since 2.10 \xc2\xb5s\n"
		"   20.00 MB \xe2\x94\x82                                \xe2\x94\x82 empty\n"
		"            allocated at 3.10 \xc2\xb5s in `spike`, empty since 3.30 \xc2\xb5s\n"
		"   10.00 MB \xe2\x94\x82????????????????????????????????\xe2\x94\x82 not known\n"
		"            allocated at 4.10 \xc2\xb5s in `library`\n");
}
END_TEST

START_TEST(pictures_can_be_ascii_and_rows_limited)
{
	struct report_run run = run_report(
		fragmented(), "memory trace.bin --map --at end --ascii --width 80 --top 1");

	output_has(run.out, "|                        #+  .###| 15.0 %  2 tensors, gap 30.00 MB\n");
	output_has(run.out, "not shown: 2 more (--top 0)\n");
	output_lacks(run.out, "empty since");
	run = run_report(NULL, "memory trace.bin --map --at end --ascii --width 40");
	output_has(run.out, "   40.00 MB |         +.#| 15.0 %\n");
}
END_TEST

/* At 2.4 us the allocator's peak of 36 MB has just ended. */
START_TEST(the_peak_is_the_state_at_its_event)
{
	const struct report_run run = run_report(
		fragmented(), "memory trace.bin --map --ascii --width 100");

	output_has(run.out, "GPU 0 at the peak (2.20 us): 40.00 MB reserved in 1 segment\n");
	output_has(run.out, "36.00 MB in 3 tensors; 4.00 MB free inside the segments in 1 gap, ");
	output_has(run.out, "now held by 30.00 MB of tensors allocated in "
			    "`frame`\n            since 1.20 us and by 1 other call path\n");
}
END_TEST

START_TEST(every_block_and_gap_has_a_row)
{
	const struct report_run run = run_report(fragmented(),
		"memory trace.bin --map --at end -f csv --columns "
		"kind,address,bytes,tensor_bytes,free_inside_bytes,largest_gap_bytes,fill,"
		"since_ns,emptied_ns,holder,holder_bytes,holder_since_ns");

	ck_assert_str_eq(run.out,
		"id,parent,depth,name,kind,bytes,tensor_bytes,free_inside_bytes,largest_gap_bytes,"
		"address,since_ns,emptied_ns,fill,holder,holder_bytes,holder_since_ns\r\n"
		"0,,0,\"end, device 0\",moment,,6000000,54000000,30000000,,,,,,,\r\n"
		"1,0,1,segment 0x100000000,segment,40000000,6000000,34000000,30000000,4294967296,"
		"1100,,sparse,frame / keep,6000000,2100\r\n"
		"2,1,2,gap 0x100000000,gap,30000000,,,,4294967296,,,,,,\r\n"
		"3,1,2,block 0x101c9c380,block,2000000,,,,4324967296,2100,,,,,\r\n"
		"4,1,2,gap 0x101e84800,gap,4000000,,,,4326967296,,,,,,\r\n"
		"5,1,2,block 0x102255100,block,4000000,,,,4330967296,2200,,,,,\r\n"
		"6,0,1,segment 0x200000000,segment,20000000,0,20000000,20000000,8589934592,3100,"
		"3300,empty,,,\r\n"
		"7,6,2,gap 0x200000000,gap,20000000,,,,8589934592,,,,,,\r\n"
		"8,0,1,segment 0x300000000,segment,10000000,,,,12884901888,4100,,unknown,,,\r\n");
}
END_TEST

START_TEST(what_was_live_is_grouped_by_call_path)
{
	struct report_run run = run_report(fragmented(),
		"memory trace.bin --at 2.3us -f csv --columns "
		"name,kind,bytes,tensors,since_ns,pin_bytes,path");

	ck_assert_str_eq(run.out,
		"id,parent,depth,name,kind,path,bytes,tensors,since_ns,pin_bytes\r\n"
		"0,,0,\"time, device 0\",moment,,36000000,3,,\r\n"
		"1,0,1,frame,holder,frame,30000000,1,1200,0\r\n"
		"2,0,1,frame / keep,holder,frame/keep,6000000,2,2100,0\r\n");
	run = run_report(NULL, "memory trace.bin --at end -f csv --columns "
			       "name,kind,bytes,tensors,since_ns,pin_bytes");
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,kind,bytes,tensors,since_ns,pin_bytes\r\n"
		"0,,0,\"end, device 0\",moment,6000000,2,,\r\n"
		"1,0,1,frame / keep,holder,6000000,2,2100,34000000\r\n"
		"2,,0,\"device memory without known tensors, device 0\",unknown,10000000,1,,\r\n"
		"3,2,1,library,holder,10000000,1,4100,\r\n");
	run = run_report(NULL, "memory trace.bin --by size --at end -f csv --columns name,bytes");
	ck_assert_str_eq(run.out,
		"id,parent,depth,name,bytes\r\n"
		"0,,0,\"end, device 0\",6000000\r\n"
		"1,0,1,4000000 bytes,4000000\r\n"
		"2,0,1,2000000 bytes,2000000\r\n"
		"3,,0,\"device memory without known tensors, device 0\",10000000\r\n"
		"4,3,1,10000000 bytes,10000000\r\n");
}
END_TEST

START_TEST(the_history_has_the_figures_of_each_change)
{
	const struct report_run run = run_report(fragmented(),
		"memory trace.bin --over-time -f csv --columns "
		"name,at_ns,reserved_bytes,tensor_bytes,free_inside_bytes,largest_gap_bytes,"
		"fragmentation,free_share,segments,unknown_bytes --top 0");

	ck_assert_str_eq(run.out,
		"name,at_ns,reserved_bytes,tensor_bytes,free_inside_bytes,largest_gap_bytes,"
		"fragmentation,free_share,segments,unknown_bytes\r\n"
		"change,1200,40000000,30000000,10000000,10000000,0,0.25,1,\r\n"
		"peak,2200,40000000,36000000,4000000,4000000,0,0.1,1,\r\n"
		"change,3200,60000000,26000000,34000000,30000000,0.11764705882352944,"
		"0.5666666666666667,2,\r\n"
		"end,4200,70000000,6000000,54000000,30000000,0.4444444444444444,0.9,3,10000000\r\n"
		"change,4200,70000000,6000000,54000000,30000000,0.4444444444444444,0.9,3,"
		"10000000\r\n");
}
END_TEST

/* ---- programs without PyTorch, out of memory, damage ---- */

START_TEST(without_pytorch_segments_are_unknown_and_not_empty)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "load");
	build_alloc(builder, 1, 20, A, 5 * MB);
	build_alloc(builder, 1, 30, B, 7 * MB);
	build_pop(builder, 1, 40);
	run = run_report(builder, "memory trace.bin --map --ascii --width 80");
	output_has(run.out, "12.00 MB reserved in 2 segments\n");
	output_has(run.out,
		"each segment is one allocation of the program, such as a cudaMalloc;\n"
		"          what is in it is not known (only PyTorch's allocator reports its\n"
		"          tensors)\n");
	output_has(run.out, "| not known\n");
	output_lacks(run.out, "empty");
	output_lacks(run.out, "free inside");
	run = run_report(
		NULL, "memory trace.bin --at end -f csv --columns name,kind,bytes,tensors");
	ck_assert_str_eq(run.out, "id,parent,depth,name,kind,bytes,tensors\r\n"
				  "0,,0,\"device memory, device 0\",unknown,12000000,2\r\n"
				  "1,0,1,load,holder,12000000,2\r\n");
	run = run_report(NULL, "memory trace.bin --map -f json");
	output_lacks(run.out, "free_inside_bytes");
	output_has(run.out, "\"fill\": \"unknown\"");
}
END_TEST

START_TEST(out_of_memory_is_the_moment_unless_another_is_named)
{
	struct trace_builder *builder = fragmented();
	struct report_run run;

	build_tensor_oom(builder, 1, 5000, 35 * MB, 6 * MB, 60 * MB);
	run = run_report(builder, "memory trace.bin --map --ascii --width 120");
	output_has(run.out, "GPU 0 when memory ran out (5.00 us): 70.00 MB reserved in 3 segments; "
			    "35.00 MB more were requested\n");
	run = run_report(NULL, "memory trace.bin --map --at oom,peak -f csv --columns kind,name");
	output_has(run.out, "\"peak, device 0\"");
	output_has(run.out, "\"out of memory, device 0\"");
}
END_TEST

START_TEST(a_moment_that_is_not_there_is_explained)
{
	struct report_run run = run_report(fragmented(), "memory trace.bin --map --at 7");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "no such moment");
	run = run_report(NULL, "memory trace.bin --at oom");
	output_has(run.out, "no such moment");
	run = run_report(NULL, "memory trace.bin --at 12parsec");
	ck_assert_int_eq(run.status, 64);
	output_has(run.err, "--at needs peak, oom, end, the number of a step, or a time such as "
			    "12.5ms, not `12parsec`");
	run = run_report(NULL, "memory trace.bin --at pek");
	output_has(run.err, "not `pek`; did you mean `peak`?");
	run = run_report(NULL, "memory trace.bin --by stream");
	ck_assert_int_eq(run.status, 64);
	run = run_report(NULL, "table trace.bin --by size");
	ck_assert_int_eq(run.status, 64);
	run = run_report(NULL, "tree trace.bin --map");
	ck_assert_int_eq(run.status, 64);
	run = run_report(NULL, "memory trace.bin --map --over-time");
	ck_assert_int_eq(run.status, 64);
}
END_TEST

START_TEST(a_step_is_shown_at_its_end)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	allocated = reserved = 0;
	segment(builder, 5, A, 40 * MB);
	for (uint32_t step = 0; step < 4; step++) {
		const uint64_t at = 1000 * (step + 1);
		char name[16];

		snprintf(name, sizeof name, "step %u", step);
		build_push(builder, 1, at, name);
		tensor(builder, 1, at + 10, A + step * MB, (int64_t)MB);
		tensor(builder, 1, at + 20, A + 20 * MB, 5 * (int64_t)MB);
		tensor(builder, 1, at + 30, A + 20 * MB, -5 * (int64_t)MB);
		build_pop(builder, 1, at + 500);
	}
	run = run_report(builder, "memory trace.bin --at 2 --by step -f csv --columns "
				  "name,at_ns,bytes,tensors");
	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out, "id,parent,depth,name,bytes,at_ns,tensors\r\n"
				  "0,,0,\"end of step 2, device 0\",3000000,3500,3\r\n"
				  "1,0,1,step 0,1000000,,1\r\n"
				  "2,0,1,step 1,1000000,,1\r\n"
				  "3,0,1,step 2,1000000,,1\r\n");
}
END_TEST

START_TEST(devices_have_moments_of_their_own)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_device(builder, 0, "a GPU");
	build_device(builder, 1, "a GPU");
	build_memory(builder, 1, 10, TRACE_ALLOC, A, 8 * MB, TRACE_MEMORY_DEVICE, 0);
	build_memory(builder, 1, 11, TRACE_ALLOC, B, 9 * MB, TRACE_MEMORY_DEVICE, 1);
	build_tensor(builder, 1, 20, A, 2 * MB, 2 * MB, 8 * MB);
	build_tensor(builder, 1, 30, B, 3 * MB, 3 * MB, 9 * MB)->device = 1;
	run = run_report(builder, "memory trace.bin --map -f csv --columns "
				  "kind,device,at_ns,reserved_bytes,tensor_bytes,bytes");
	output_has(run.out, "moment,,0,20,8000000,2000000\r\n");
	output_has(run.out, "moment,,1,30,9000000,3000000\r\n");
	run = run_report(
		NULL, "memory trace.bin --map --device 1 -f csv --columns kind,device,at_ns");
	output_lacks(run.out, "moment,0");
	output_has(run.out, "moment,1,30\r\n");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { a_segment_is_drawn_with_who_keeps_it,
		pictures_can_be_ascii_and_rows_limited, the_peak_is_the_state_at_its_event,
		every_block_and_gap_has_a_row, what_was_live_is_grouped_by_call_path,
		the_history_has_the_figures_of_each_change,
		without_pytorch_segments_are_unknown_and_not_empty,
		out_of_memory_is_the_moment_unless_another_is_named,
		a_moment_that_is_not_there_is_explained, a_step_is_shown_at_its_end,
		devices_have_moments_of_their_own };

	return run_view_suite("memory_map", tests, sizeof tests / sizeof *tests);
}
