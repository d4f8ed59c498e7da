/* SPDX-License-Identifier: MIT
 * test_html_sides.c: the page of two traces: both runs, what changed, and the exit status.
 */
#include "tests/support/view_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `name` launches a kernel of `ns` in each of three steps. */
static void write_trace(const char *path, const char *name, uint64_t ns)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	build_device(builder, 0, "a GPU");
	for (uint64_t step = 1; step <= 3; step++, at += 20000) {
		build_push(builder, 1, at, "step");
		build_push(builder, 1, at + 100, name);
		build_launch(builder, 1, at + 200, step);
		build_pop(builder, 1, at + 300);
		build_pop(builder, 1, at + 15000);
	}
	for (uint64_t step = 1; step <= 3; step++)
		build_kernel(builder, 1, at + 1000, step, "saxpy", 1000 + step * 20000 - 19000,
			1000 + step * 20000 - 19000 + ns);
	builder_write(builder, path);
	builder_free(builder);
}

/* The text from `key` on, or fails the test. */
static const char *after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	ck_assert_msg(found != NULL, "no %s in the page", key);
	return found + strlen(key);
}

START_TEST(the_page_has_both_runs_and_the_change)
{
	struct report_run run;
	const char *sides;

	write_trace("before.bin", "work", 1000);
	write_trace("after.bin", "work", 3000);
	run = run_report(NULL, "html before.bin after.bin -m gpu -o -");
	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(run.status, 0);
	output_has(after(run.out, "\"diff\":{"), "3.00 \xc2\xb5s");
	sides = after(run.out, "\"sides\":[");
	after(after(sides, "\"verdict\":"), "\"verdict\":");
	output_has(after(run.out, "\"flame\":{"), "\"sides\":2");
	ck_assert_ptr_null(
		strstr(after(after(sides, "\"verdict\":"), "\"verdict\":"), "\"verdict\":"));
}
END_TEST

START_TEST(equal_traces_have_no_change)
{
	struct report_run run;

	write_trace("before.bin", "work", 1000);
	write_trace("after.bin", "work", 1000);
	run = run_report(NULL, "html before.bin after.bin -m gpu -o -");
	ck_assert_int_eq(run.status, 0);
	output_lacks(run.out, "\"significant\":[true");
}
END_TEST

START_TEST(a_name_of_one_side_is_renamed_and_stays_text)
{
	struct report_run run;

	write_trace("before.bin", "</script><b>", 1000);
	write_trace("after.bin", "other", 1000);
	run = run_report(NULL, "html before.bin after.bin -m gpu -o -");
	ck_assert_int_eq(run.status, 0);
	output_lacks(run.out, "</script><b>");
	output_has(run.out, "\\u003c/script\\u003e\\u003cb\\u003e");
	/* A range with the same work below it is taken for the same one, under another name. */
	output_has(after(run.out, "\"diff\":{"), "; 1 renamed\"");
}
END_TEST

START_TEST(strict_fails_for_a_cut_trace_but_writes_the_page)
{
	struct report_run run;

	write_trace("before.bin", "work", 1000);
	run = run_report(NULL, "html before.bin nothing.bin -o page.html");
	ck_assert_int_ne(run.status, 0);
	ck_assert_ptr_null(fopen("page.html", "r"));
	{
		struct trace_builder *builder = builder_new();

		build_push(builder, 1, 100, "work");
		build_pop(builder, 1, 200);
		build_seal(builder, 1, SEAL_TORN);
		build_push(builder, 1, 300, "work");
		build_pop(builder, 1, 400);
		run = run_report(builder, "html --strict before.bin trace.bin -o -");
	}
	ck_assert_int_eq(run.status, 2);
	output_has(run.out, "\"sides\":[");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { the_page_has_both_runs_and_the_change,
		equal_traces_have_no_change, a_name_of_one_side_is_renamed_and_stays_text,
		strict_fails_for_a_cut_trace_but_writes_the_page };

	return run_view_suite("html of two traces", tests, sizeof tests / sizeof *tests);
}
