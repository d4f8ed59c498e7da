/* SPDX-License-Identifier: MIT */
#include "report/page/page_table.h"
#include "report/base/alloc.h"
#include "report/print/print_json.h"
#include "report/table/cell_text.h"
#include "report/table/computed_row.h"
#include <stdlib.h>

/* The rows of a view that a page has. */
struct shown_rows {
	const struct page_table *table;
	struct style style;
	struct rows all;
	uint32_t *rows; /* indices in `all` */
	size_t count, left_out;
};

static bool is_summary(const struct row *row)
{
	return row->kind == ROW_COMPUTED && computed_row_is(row, "kind", "summary");
}

static struct shown_rows arrange(
	const struct page_table *table, const struct options *given, struct processes *processes)
{
	struct shown_rows shown = { .table = table,
		.style = { .whole_names = true, .iec = given->style.iec } };
	struct options options = *given;

	options.view = view_find(table->view);
	options.output_columns = options.view->columns;
	options.no_percentiles = options.view->no_percentiles;
	options.rows_max = (uint32_t)table->most;
	if (table->arrange)
		table->arrange(&options, &processes->all[0], &shown.all);
	else if (options.view->arrange)
		options.view->arrange(&options, processes, &shown.all);
	else
		options.view->arrange_process(&options, &processes->all[0], &shown.all);
	shown.rows = xcalloc((shown.all.count + 1) * sizeof *shown.rows);
	for (size_t i = 0; i < shown.all.count; i++)
		if (shown.count < table->most || is_summary(&shown.all.rows[i]))
			shown.rows[shown.count++] = (uint32_t)i;
	shown.left_out = shown.all.count - shown.count + shown.all.beyond_max;
	return shown;
}

static const struct row *row_at(const struct shown_rows *shown, size_t i)
{
	return &shown->all.rows[shown->rows[i]];
}

static size_t text_of(const struct shown_rows *shown, const struct column *column, size_t i,
	char out[CELL_TEXT_BYTES])
{
	return cell_text(out, &shown->style, column, row_at(shown, i), &shown->all);
}

static bool is_empty(const struct shown_rows *shown, const struct column *column)
{
	char text[CELL_TEXT_BYTES];

	for (size_t i = 0; i < shown->count; i++)
		if (text_of(shown, column, i, text))
			return false;
	return true;
}

static void write_value(struct json_writer *json, const struct shown_rows *shown,
	const struct column *column, size_t i)
{
	const struct cell cell = column_value(column, row_at(shown, i), &shown->all);
	long double number;

	if (!cell_number(&cell, &number))
		json_write_null(json);
	else if (cell.kind == CELL_UNSIGNED)
		json_write_unsigned(json, cell.unsigned_value);
	else if (cell.kind == CELL_INTEGER)
		json_write_signed(json, cell.integer);
	else
		json_write_double(json, (double)number);
}

static void write_column(
	struct json_writer *json, const struct shown_rows *shown, const struct column *column)
{
	char text[CELL_TEXT_BYTES];

	if (is_empty(shown, column))
		return;
	json_write_begin(json, '{');
	json_put_string(json, "key", column->key);
	json_put_string(json, "title", column->title);
	json_put_string(json, "help", column->help);
	json_put_bool(json, "left", cell_is_left_aligned(column));
	json_put_begin(json, "text", '[');
	for (size_t i = 0; i < shown->count; i++) {
		const size_t length = text_of(shown, column, i, text);

		json_write_text(json, (struct string_view){ text, (uint32_t)length });
	}
	json_write_end(json, ']');
	json_put_begin(json, "value", '[');
	for (size_t i = 0; i < shown->count; i++)
		write_value(json, shown, column, i);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_rows(struct json_writer *json, const struct shown_rows *shown)
{
	json_put_begin(json, "label", '[');
	for (size_t i = 0; i < shown->count; i++)
		json_write_text(json, row_label(row_at(shown, i), false));
	json_write_end(json, ']');
	json_put_begin(json, "kind", '[');
	for (size_t i = 0; i < shown->count; i++) {
		const struct row *row = row_at(shown, i);
		const struct string_view none = { "", 0 };

		json_write_text(
			json, row->kind == ROW_COMPUTED ? computed_row_text(row, "kind") : none);
	}
	json_write_end(json, ']');
	json_put_begin(json, "depth", '[');
	for (size_t i = 0; i < shown->count; i++)
		json_write_unsigned(json, row_at(shown, i)->depth);
	json_write_end(json, ']');
	if (!shown->table->has_paths)
		return;
	json_put_begin(json, "path", '[');
	for (size_t i = 0; i < shown->count; i++)
		if (row_at(shown, i)->tree && row_at(shown, i)->node) {
			print_json_path(json, row_at(shown, i));
		} else {
			json_write_begin(json, '[');
			json_write_end(json, ']');
		}
	json_write_end(json, ']');
}

void page_table_write(struct json_writer *json, const struct page_table *table,
	const struct options *options, struct processes *processes)
{
	struct shown_rows shown = arrange(table, options, processes);
	const char *keys = table->columns;
	const struct column *column;

	json_put_begin(json, table->key ? table->key : table->view, '{');
	json_put_unsigned(json, "rows", shown.count);
	json_put_unsigned(json, "left_out", shown.left_out);
	write_rows(json, &shown);
	json_put_begin(json, "columns", '[');
	while ((column = column_next(&keys)))
		write_column(json, &shown, column);
	json_write_end(json, ']');
	json_write_end(json, '}');
	free(shown.rows);
	free(shown.all.rows);
}
