/* SPDX-License-Identifier: MIT
 * test_tree_frames.c: the stacks that exports write, of a tree of any depth.
 */
#include "tests/support/view_test.h"

#include <stdio.h>

#define RANGES 1100u
#define SHOWN 1001u /* deeper ranges are one node */

static struct trace_builder *deep_ranges(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < RANGES; i++)
		build_push(builder, 1, 10 + i, "a");
	build_launch(builder, 1, 2000, 1);
	for (unsigned i = 0; i < RANGES; i++)
		build_pop(builder, 1, 3000 + i);
	build_kernel(builder, 9, 9000, 1, "gemm", 4000, 4100);
	return builder;
}

START_TEST(a_folded_stack_has_all_its_frames)
{
	const struct report_run run = run_report(deep_ranges(), "export folded trace.bin");
	size_t frames = 1;

	ck_assert_int_eq(run.status, 0);
	for (const char *at = run.out; *at; at++)
		frames += *at == ';';
	ck_assert_uint_eq(frames, SHOWN + 2);
	output_has(run.out, "a;(deeper);gemm 100\n");
}
END_TEST

START_TEST(other_exports_have_stacks_of_any_depth)
{
	static const char *const formats[] = { "speedscope", "pprof", "dot", "graph" };
	char command[64];

	run_report(deep_ranges(), "info trace.bin");
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		snprintf(command, sizeof command, "export %s trace.bin", formats[i]);
		ck_assert_msg(run_report(NULL, command).status == 0, "%s", command);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { a_folded_stack_has_all_its_frames,
		other_exports_have_stacks_of_any_depth };

	return run_view_suite("tree_frames", tests, sizeof tests / sizeof *tests);
}
