/* SPDX-License-Identifier: MIT
 * test_column_names.c: what --sort and --columns call a column, in every view.
 */
#include "report/base/text_builder.h"
#include "report/cli/view_list.h"
#include "report/table/column.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct view *view_named(const char *name)
{
	const struct view *view = view_list;

	while (strcmp(view->name, name) != 0)
		view++;
	return view;
}

/* The key that --sort has after `name` was given. */
static const char *sort_key(const struct view *view, const char *name)
{
	struct options options = { .view = view, .sort = name };

	columns_select(&options);
	return options.sort;
}

static const char *column_keys(const struct view *view, const char *names)
{
	struct options options = { .view = view, .columns = names };

	columns_select(&options);
	return options.columns;
}

START_TEST(every_title_that_a_view_shows_means_the_column_below_it)
{
	for (const struct view *view = view_list; view->name; view++) {
		struct text_builder titles = { .text = NULL }, keys = { .text = NULL };
		const char *list = view->text;
		const struct column *column;

		while ((column = column_next(&list))) {
			ck_assert_msg(strcmp(sort_key(view, column->title), column->key) == 0,
				"%s: `%s` is %s, not %s", view->name, column->title,
				sort_key(view, column->title), column->key);
			text_add(&titles, "%s%s", titles.used ? "," : "", column->title);
			text_add(&keys, "%s%s", keys.used ? "," : "", column->key);
		}
		if (titles.text && view->layout != LAYOUT_CRITICAL)
			ck_assert_str_eq(column_keys(view, titles.text), keys.text);
		free(titles.text);
		free(keys.text);
	}
}
END_TEST

START_TEST(every_key_of_a_view_means_its_column)
{
	for (const struct view *view = view_list; view->name; view++) {
		const char *list = view->columns;
		const struct column *column;

		while ((column = column_next(&list)))
			ck_assert_str_eq(sort_key(view, column->key), column->key);
	}
}
END_TEST

START_TEST(a_title_of_several_columns_means_that_of_the_view)
{
	ck_assert_str_eq(sort_key(view_named("tree"), "peak"), "reserved_peak_bytes");
	ck_assert_str_eq(sort_key(view_named("memory"), "peak"), "most_bytes");
	ck_assert_str_eq(sort_key(view_named("tree"), "idle"), "idle_ns");
	ck_assert_str_eq(sort_key(view_named("idle"), "idle"), "gap_ns");
	ck_assert_str_eq(sort_key(view_named("memory"), "gap_ns"), "gap_ns");
}
END_TEST

START_TEST(names_are_separated_by_commas_and_keys_also_by_blanks)
{
	const struct view *view = view_named("tree");

	ck_assert_str_eq(column_keys(view, "gpu,cpu self,calls"), "gpu_total_ns,cpu_self_ns,calls");
	ck_assert_str_eq(column_keys(view, " gpu self , calls,"), "gpu_self_ns,calls");
	ck_assert_str_eq(column_keys(view, "gpu_total_ns  calls , %"), "gpu_total_ns,calls,share");
	ck_assert_str_eq(column_keys(view, "cpu self x,lat p50"), "cpu_self_x_ns,delay_p50_ns");
}
END_TEST

static void expect_exit_on(const char *names)
{
	column_keys(view_named("tree"), names);
	ck_abort_msg("`%s` was accepted", names);
}

static const char *const wrong[] = { "gpu slef", "calls,,nothing", "GPU", " , ", "" };

START_TEST(an_unknown_name_ends_the_program)
{
	expect_exit_on(wrong[_i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("column names");
	TCase *cases = tcase_create("names");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, every_title_that_a_view_shows_means_the_column_below_it);
	tcase_add_test(cases, every_key_of_a_view_means_its_column);
	tcase_add_test(cases, a_title_of_several_columns_means_that_of_the_view);
	tcase_add_test(cases, names_are_separated_by_commas_and_keys_also_by_blanks);
	tcase_add_loop_exit_test(
		cases, an_unknown_name_ends_the_program, 64, 0, sizeof wrong / sizeof *wrong);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
