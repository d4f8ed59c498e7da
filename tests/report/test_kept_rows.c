/* SPDX-License-Identifier: MIT
 * test_kept_rows.c: rows of a view as bytes and back, and damaged bytes, which are refused or read
 * within bounds.
 */
#include "report/table/computed_row.h"
#include "report/table/kept_rows.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct made {
	struct profile_fixture fixture;
	struct process process;
	struct processes processes;
	struct rows rows;
	struct kept_rows kept;
};

static void make_process(struct made *made)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 10, "step");
	build_push(builder, 1, 11, "layer");
	build_pop(builder, 1, 20);
	build_pop(builder, 1, 30);
	made->fixture = fixture_of(builder, NULL);
	made->process = (struct process){ .reader = made->fixture.reader,
		.texts = made->fixture.texts,
		.profile = made->fixture.profile };
	made->rows = (struct rows){ .hidden_by_top = 3 };
	made->processes = (struct processes){ .all = &made->process, .count = 1 };
	processes_warn(&made->processes, "before");
	made->kept = (struct kept_rows){ .process = &made->process,
		.processes = &made->processes,
		.warnings = 1,
		.rows = &made->rows,
		.before = made->rows };
}

static void add_rows(struct made *made)
{
	struct process *process = &made->process;
	struct computed_row *computed = computed_row_new(process, 0, "device");
	uint32_t parent;

	computed_row_set_name(computed, "device 0", 8);
	computed_row_set_real(computed, "share", 0.25);
	parent = computed_row_add(&made->rows, computed, NO_ROW);
	computed = computed_row_new(process, 2, "gap");
	computed_row_set_unsigned(computed, "idle_ns", UINT64_MAX);
	computed_row_set_integer(computed, "value", -5);
	computed_row_set_unknown(computed, "count");
	computed_row_set_text(computed, "cause", "a\0b\xff", 4);
	computed->is_call_path = computed->is_duplicate = true;
	computed->launch_stack = 7;
	computed->last_call = string_table_intern(process->texts, "cudaMalloc", 10);
	computed_row_add(&made->rows, computed, parent);
	made->rows.hidden_by_percent = 9;
	made->rows.hidden_by_top = 4;
	processes_warn(&made->processes, "a warning of %d words", 5);
}

static void free_made(struct made *made)
{
	for (size_t i = 0; i < made->processes.warning_count; i++)
		free(made->processes.warnings[i]);
	free(made->processes.warnings);
	free(made->rows.rows);
	process_detach_all(&made->process);
	fixture_free(&made->fixture);
}

static char *encode(struct made *made, size_t *bytes)
{
	made->kept.before = made->rows;
	add_rows(made);
	return kept_rows_encode(&made->kept, bytes);
}

START_TEST(rows_are_read_as_they_were)
{
	struct made made;
	const struct computed_row *computed;
	struct string_view text;
	size_t bytes;
	char *kept;

	make_process(&made);
	kept = encode(&made, &bytes);
	ck_assert_ptr_nonnull(kept);
	ck_assert(kept_rows_decode(&made.kept, kept, bytes));
	ck_assert_uint_eq(made.rows.count, 4);
	ck_assert_uint_eq(made.processes.warning_count, 3);
	ck_assert_str_eq(made.processes.warnings[2], "a warning of 5 words");
	ck_assert_uint_eq(made.rows.hidden_by_percent, 18);
	ck_assert_uint_eq(made.rows.hidden_by_top, 5);
	ck_assert_uint_eq(made.rows.rows[2].parent, NO_ROW);
	ck_assert_uint_eq(made.rows.rows[3].parent, 2);
	ck_assert_uint_eq(made.rows.rows[3].depth, 1);
	ck_assert_uint_eq(made.rows.rows[3].node, 2);
	ck_assert_ptr_eq(made.rows.rows[3].tree, made.process.profile->tree);
	ck_assert_str_eq(made.rows.rows[2].of.computed->name, "device 0");
	ck_assert(computed_row_is(&made.rows.rows[2], "kind", "device"));
	ck_assert_double_eq(computed_row_real(&made.rows.rows[2], "share"), 0.25);
	computed = made.rows.rows[3].of.computed;
	ck_assert_ptr_null(computed->name);
	ck_assert(computed->is_call_path && computed->is_duplicate && !computed->is_second_place);
	ck_assert_uint_eq(computed->launch_stack, 7);
	ck_assert_uint_eq(computed->last_call, made.rows.rows[1].of.computed->last_call);
	ck_assert_uint_eq(computed->next_operation, 0);
	ck_assert_uint_eq(computed_row_number(&made.rows.rows[3], "idle_ns"), UINT64_MAX);
	text = computed_row_text(&made.rows.rows[3], "cause");
	ck_assert_uint_eq(text.length, 4);
	ck_assert_mem_eq(text.bytes, "a\0b\xff", 4);
	for (size_t i = 0; i < computed->count; i++) {
		const struct computed_cell *was = &made.rows.rows[1].of.computed->cells[i];

		ck_assert_ptr_eq(computed->cells[i].column, was->column);
		ck_assert_int_eq(computed->cells[i].cell.kind, was->cell.kind);
		ck_assert_int_eq(computed->cells[i].cell.integer, was->cell.integer);
	}
	free(kept);
	free_made(&made);
}
END_TEST

START_TEST(some_rows_are_not_kept)
{
	struct made made;
	struct row row;
	size_t bytes;

	make_process(&made);
	row = tree_row(&made.process, made.process.profile->tree, 1);
	rows_add(&made.rows, &row);
	ck_assert_ptr_null(kept_rows_encode(&made.kept, &bytes));
	made.rows.count = 0;
	row = computed_row_new(&made.process, 1, "gap")->row;
	row.tree = NULL; /* another one */
	rows_add(&made.rows, &row);
	ck_assert_ptr_null(kept_rows_encode(&made.kept, &bytes));
	made.rows.count = 0;
	processes_warn(&made.processes, "moved to the first");
	processes_raise_warning(&made.processes);
	processes_raise_warning(&made.processes);
	ck_assert_ptr_null(kept_rows_encode(&made.kept, &bytes));
	free_made(&made);
}
END_TEST

START_TEST(rows_that_are_cut_anywhere_are_refused)
{
	struct made made;
	size_t bytes;
	char *kept, *cut;

	make_process(&made);
	kept = encode(&made, &bytes);
	for (size_t count = 0; count < bytes; count++) {
		cut = malloc(count + 1); /* of its own, for the sanitizer */
		memcpy(cut, kept, count);
		cut = realloc(cut, count ? count : 1);
		ck_assert(!kept_rows_decode(&made.kept, cut, count));
		ck_assert_uint_eq(made.rows.count, 2);
		ck_assert_uint_eq(made.rows.hidden_by_top, 4);
		ck_assert_uint_eq(made.processes.warning_count, 2);
		free(cut);
	}
	kept = realloc(kept, bytes + 1);
	kept[bytes] = 0;
	ck_assert(!kept_rows_decode(&made.kept, kept, bytes + 1));
	free(kept);
	free_made(&made);
}
END_TEST

/* Each byte with each of some values: refused, or rows whose nodes, parents and texts can be
 * used. */
START_TEST(damaged_rows_are_refused_or_usable)
{
	static const unsigned char values[] = { 0, 1, 2, 0x7f, 0x80, 0xff };
	struct made made;
	size_t bytes, read = 0;
	char *kept;

	make_process(&made);
	kept = encode(&made, &bytes);
	for (size_t at = 0; at < bytes * sizeof values; at++) {
		const char was = kept[at / sizeof values];
		bool good;

		kept[at / sizeof values] = (char)values[at % sizeof values];
		good = kept_rows_decode(&made.kept, kept, bytes);
		for (size_t i = 2; i < made.rows.count; i++) {
			const struct row *row = &made.rows.rows[i];

			ck_assert_uint_lt(row->node, made.process.profile->tree->count);
			ck_assert(row->parent == NO_ROW || row->parent < i);
			ck_assert_ptr_nonnull(
				string_table_get(made.process.texts, row->of.computed->last_call)
					.bytes);
		}
		ck_assert(good || made.rows.count == 2);
		read += good;
		made.rows.count = 2;
		kept[at / sizeof values] = was;
	}
	ck_assert_uint_gt(read, 0);
	free(kept);
	free_made(&made);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kept_rows");
	TCase *all = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(all, run_report_setup, run_report_teardown);
	tcase_add_test(all, rows_are_read_as_they_were);
	tcase_add_test(all, some_rows_are_not_kept);
	tcase_add_test(all, rows_that_are_cut_anywhere_are_refused);
	tcase_add_test(all, damaged_rows_are_refused_or_usable);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
