/* SPDX-License-Identifier: MIT
 * test_page_memory_map.c: the map of memory segments in a page: blocks, gaps and what holds them.
 */
#include "tests/support/view_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB UINT64_C(1000)
#define SEGMENT UINT64_C(0x100000000) /* 1 MB */
#define EMPTY UINT64_C(0x200000000)   /* 500 kB, without a tensor at the end */

static uint64_t allocated, reserved;

static void segment(struct trace_builder *builder, uint64_t at, uint64_t address, uint64_t bytes)
{
	build_alloc(builder, 1, at, address, bytes);
	reserved += bytes;
}

static void tensor(struct trace_builder *builder, uint64_t at, uint64_t address, int64_t bytes)
{
	allocated += (uint64_t)bytes;
	build_tensor(builder, 1, at, address, bytes, allocated, reserved);
}

/* 100 kB at 0 and 200 kB at 300 kB of one segment, whose last block ends 500 kB before its end. */
static struct trace_builder *two_blocks(const char *holder)
{
	struct trace_builder *builder = builder_new();

	allocated = reserved = 0;
	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 1000, "start");
	segment(builder, 1100, SEGMENT, 1000 * KB);
	segment(builder, 1150, EMPTY, 500 * KB);
	tensor(builder, 1200, EMPTY, 500 * (int64_t)KB);
	tensor(builder, 1300, SEGMENT, 100 * (int64_t)KB);
	build_pop(builder, 1, 1400);
	build_push(builder, 1, 1500, holder);
	tensor(builder, 1600, SEGMENT + 300 * KB, 200 * (int64_t)KB);
	tensor(builder, 1700, EMPTY, -500 * (int64_t)KB);
	build_pop(builder, 1, 1800);
	return builder;
}

START_TEST(blocks_are_distances_and_sizes)
{
	const struct report_run run = run_report(two_blocks("keep"), "html trace.bin -o -");

	ck_assert_str_eq(run.err, "");
	output_has(run.out, "\"memory_map\":{");
	/* 100 kB from the begin, and 200 kB after a gap of 200 kB. */
	output_has(run.out,
		"{\"begin\":[0,200000],\"bytes\":[100000,200000],\"since_ns\":[1300,1600],");
	/* At the peak the other segment was full. */
	output_has(run.out, "{\"begin\":[0],\"bytes\":[500000],\"since_ns\":[1200],");
	output_has(run.out, "\"holders\":[\"\",");
	output_has(strstr(run.out, "\"holders\":["), "\"keep\"");
}
END_TEST

START_TEST(the_command_shows_the_same_moments)
{
	const struct report_run page = run_report(two_blocks("keep"), "html trace.bin -o -");
	const char *command = strstr(page.out, "pperf-report memory --map --at ");
	struct report_run text;
	char arguments[256];

	ck_assert_ptr_nonnull(command);
	snprintf(arguments, sizeof arguments, "%.*s", (int)strcspn(command, "\""), command);
	text = run_report(two_blocks("keep"), arguments + strlen("pperf-report "));
	ck_assert_int_eq(text.status, 0);
	output_has(text.out, "1.50 MB reserved in 2 segments");
}
END_TEST

START_TEST(names_of_holders_stay_text)
{
	const struct report_run run = run_report(
		two_blocks("</script><img src=x>"), "html trace.bin -o -");

	output_lacks(run.out, "<img src");
	output_has(run.out, "\\u003cimg src=x\\u003e");
}
END_TEST

START_TEST(without_blocks_there_is_no_map)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 1000, "range");
	segment(builder, 1100, SEGMENT, 1000 * KB);
	build_pop(builder, 1, 1200);
	run = run_report(builder, "html trace.bin -o -");
	ck_assert_int_eq(run.status, 0);
	output_lacks(run.out, "\"memory_map\":{");
}
END_TEST

START_TEST(adjacent_blocks_are_one_where_there_are_too_many)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	allocated = reserved = 0;
	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 1000, "many");
	segment(builder, 1100, SEGMENT, 10000 * KB);
	for (uint64_t i = 0; i < 3000; i++)
		tensor(builder, 2000 + i, SEGMENT + i * KB, (int64_t)KB);
	build_pop(builder, 1, 9000);
	run = run_report(builder, "html trace.bin -o -");
	output_has(run.out, "{\"begin\":[0],\"bytes\":[3000000],\"since_ns\":[2000],\"holder\":[0],"
			    "\"count\":[3000]}");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { blocks_are_distances_and_sizes,
		the_command_shows_the_same_moments, names_of_holders_stay_text,
		without_blocks_there_is_no_map, adjacent_blocks_are_one_where_there_are_too_many };

	return run_view_suite("memory map of a page", tests, sizeof tests / sizeof *tests);
}
