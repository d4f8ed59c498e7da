/* SPDX-License-Identifier: MIT
 * test_html_ranks.c: the page of several ranks: what it has of each rank, and its exit status.
 */
#include "tests/support/rank_traces.h"
#include "tests/support/view_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	for (text = strstr(text, part); text; text = strstr(text + 1, part))
		count++;
	return count;
}

START_TEST(each_rank_has_a_head_a_row_and_its_parts)
{
	struct report_run run;

	rank_traces_write(3, 4, 1);
	run = run_report(NULL, "html rank0.bin rank1.bin rank2.bin -o -");
	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "<title>");
	output_has(run.out, "rank 1 was last in ");
	ck_assert_uint_eq(count_of(run.out, "\"verdict\":"), 3);
	ck_assert_uint_eq(count_of(run.out, "\"flame\":"), 3);
	output_lacks(run.out, "\"diff\":");
}
END_TEST

START_TEST(the_order_of_files_does_not_matter)
{
	struct report_run run;
	const char *data;
	char *first;

	rank_traces_write(3, 4, 2);
	run = run_report(NULL, "html rank0.bin rank1.bin rank2.bin -o -");
	data = strstr(run.out, "\"sentences\"");
	ck_assert_ptr_nonnull(data);
	first = strndup(data, 400);
	run = run_report(NULL, "html rank2.bin rank0.bin rank1.bin -o -");
	output_has(run.out, first);
	free(first);
}
END_TEST

START_TEST(a_cut_rank_is_shown_and_strict_says_so)
{
	struct report_run run;

	rank_traces_write(2, 8, UINT32_MAX);
	ck_assert_int_eq(truncate("rank1.bin", 900000), 0);
	run = run_report(NULL, "html rank0.bin rank1.bin -o -");
	ck_assert_int_eq(run.status, 0);
	ck_assert_uint_eq(count_of(run.out, "\"verdict\":"), 2);
	run = run_report(NULL, "html --strict rank0.bin rank1.bin -o page.html");
	ck_assert_int_ne(run.status, 0);
}
END_TEST

START_TEST(ranks_without_collectives_are_no_job)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 100, "alone");
	build_pop(builder, 1, 200);
	run = run_report(builder, "html trace.bin trace.bin trace.bin -o -");
	ck_assert_int_ne(run.status, 0);
	output_has(run.err, "of one process: pperf-report html TRACE");
	ck_assert_str_eq(run.out, "");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { each_rank_has_a_head_a_row_and_its_parts,
		the_order_of_files_does_not_matter, a_cut_rank_is_shown_and_strict_says_so,
		ranks_without_collectives_are_no_job };

	return run_view_suite("html of ranks", tests, sizeof tests / sizeof *tests);
}
