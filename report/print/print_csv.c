/* SPDX-License-Identifier: MIT
 *
 * Prints rows as CSV (RFC 4180): a header, then numbers without units. Columns that are empty in
 * all rows are left out, except those that identify a row and those that --columns names.
 */
#include "report/run/call_stack.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/text_builder.h"
#include "report/print/print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_csv_path(struct output *out, const struct row *row)
{
	const size_t length = row_path(row, NULL, 0);
	uint32_t *nodes = xcalloc((length + 1) * sizeof *nodes);
	struct text_builder path = { .text = NULL };

	row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		text_add_bytes(&path, "/", i > 0);
		text_add_path_name(&path, name.bytes, name.length);
	}
	output_csv_text(out, path.text ? path.text : "", path.used);
	free(path.text);
	free(nodes);
}

static void put_csv_frames(struct output *out, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	char *text = xcalloc(CALL_STACK_TEXT);
	struct text_builder all = { .text = NULL };

	for (uint32_t i = 0; i < frames; i++) {
		const size_t length = call_stack_frame(
			row->process, stack_id, i, false, text, CALL_STACK_TEXT);

		text_add_bytes(&all, " < ", i ? 3 : 0);
		text_add_bytes(&all, text, length);
	}
	output_csv_text(out, all.text ? all.text : "", all.used);
	free(all.text);
	free(text);
}

static void put_csv_source(struct output *out, const struct row *row, uint32_t node)
{
	char *text = xcalloc(CALL_STACK_TEXT);

	output_csv_text(
		out, text, call_stack_source(row->process, node, false, text, CALL_STACK_TEXT));
	free(text);
}

void print_csv_cell(struct output *out, const struct row *row, const struct cell *cell)
{
	char triple[64];

	switch (cell->kind) {
	case CELL_NONE:
	case CELL_NULL:
		break;
	case CELL_INTEGER:
		output_signed(out, cell->integer);
		break;
	case CELL_SPAN:
	case CELL_UNSIGNED:
		output_unsigned(out, cell->unsigned_value);
		break;
	case CELL_REAL:
		output_double(out, cell->real);
		break;
	case CELL_BOOL:
		output_string(out, cell->boolean ? "true" : "false");
		break;
	case CELL_TEXT:
		output_csv_text(out, cell->text.bytes, cell->text.length);
		break;
	case CELL_TRIPLE:
		snprintf(triple, sizeof triple, "(%u,%u,%u)", cell->triple[0], cell->triple[1],
			cell->triple[2]);
		output_csv_text(out, triple, strlen(triple));
		break;
	case CELL_PATH:
		put_csv_path(out, row);
		break;
	case CELL_FRAMES:
		put_csv_frames(out, row, (uint32_t)cell->unsigned_value);
		break;
	case CELL_SOURCE:
		put_csv_source(out, row, (uint32_t)cell->unsigned_value);
		break;
	}
}

static void put_csv_header(
	struct output *out, const struct column *const *columns, size_t column_count)
{
	for (size_t i = 0; i < column_count; i++) {
		if (i)
			output_char(out, ',');
		for (const char *c = columns[i]->key; *c; c++)
			output_char(out, *c == '.' ? '_' : *c);
	}
	output_string(out, "\r\n");
}

static bool is_empty_cell(const struct cell *cell)
{
	return cell->kind == CELL_NONE || cell->kind == CELL_NULL ||
	       (cell->kind == CELL_TEXT && !cell->text.length);
}

/* Returns whether a row has a value in the column. True without rows, where nothing is known. */
static bool has_value(const struct column *column, const struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct cell cell = column_value(column, &rows->rows[i], rows);

		if (!is_empty_cell(&cell))
			return true;
	}
	return !rows->count;
}

/* Returns the columns of --columns, else those of the view that identify a row or have a value in
 * some row. Sets `count`. The caller frees the array. */
static const struct column **choose_csv_columns(const struct report *report, size_t *count)
{
	const char *keys = report->options->output_columns;
	const struct column **columns = xcalloc((all_column_count + 1) * sizeof *columns), *column;

	*count = 0;
	while (*count < all_column_count && (column = column_next(&keys)))
		if (report->options->columns || column_identifies_row(column) ||
			has_value(column, &report->rows))
			columns[(*count)++] = column;
	return columns;
}

void print_csv(const struct report *report, struct output *out)
{
	size_t count;
	const struct column **columns = choose_csv_columns(report, &count);

	for (size_t i = 0; i < report->processes->warnings_first; i++)
		warn_user("%s", report->processes->warnings[i]);
	put_csv_header(out, columns, count);
	for (size_t i = 0; i < report->rows.count; i++) {
		const struct row *row = &report->rows.rows[i];

		for (size_t k = 0; k < count; k++) {
			const struct cell cell = column_value(columns[k], row, &report->rows);

			if (k)
				output_char(out, ',');
			print_csv_cell(out, row, &cell);
		}
		output_string(out, "\r\n");
	}
	free(columns);
}
