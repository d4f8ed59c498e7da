/* SPDX-License-Identifier: MIT
 * print_csv.c: rows as RFC 4180: a header, figures as plain integers, no unit in a cell.
 */
#include "report/run/call_stack.h"
#include "report/base/alloc.h"
#include "report/print/print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_path(struct out *out, const struct row *row)
{
	const size_t length = row_path(row, NULL, 0);
	uint32_t *nodes = need((length + 1) * sizeof *nodes);
	char *path = NULL;
	size_t used = 0, room = 0;

	row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct text name = text_of(row->process->texts, row->tree->nodes[nodes[i]].name);

		grow(&path, &room, used + 2 * (size_t)name.length + 2, 1);
		if (i)
			path[used++] = '/';
		for (uint32_t at = 0; at < name.length; at++) {
			if (name.bytes[at] == '/' || name.bytes[at] == '\\')
				path[used++] = '\\';
			path[used++] = name.bytes[at];
		}
	}
	out_csv_text(out, path ? path : "", used);
	free(path);
	free(nodes);
}

static void put_frames(struct out *out, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	char *text = need(CALL_STACK_TEXT), *all = NULL;
	size_t used = 0, room = 0;

	for (uint32_t i = 0; i < frames; i++) {
		const size_t length = call_stack_frame(row->process, stack_id, i, false, text, CALL_STACK_TEXT);

		grow(&all, &room, used + length + 3, 1);
		if (i) {
			memcpy(all + used, " < ", 3);
			used += 3;
		}
		memcpy(all + used, text, length);
		used += length;
	}
	out_csv_text(out, all ? all : "", used);
	free(all);
	free(text);
}

static void put_source(struct out *out, const struct row *row, uint32_t place)
{
	char *text = need(CALL_STACK_TEXT);

	out_csv_text(out, text, call_stack_source(row->process, place, false, text, CALL_STACK_TEXT));
	free(text);
}

static void put_cell(struct out *out, const struct row *row, const struct cell *cell)
{
	char triple[64];

	switch (cell->kind) {
	case CELL_NONE:
	case CELL_NULL:
		break;
	case CELL_WHOLE:
		out_signed(out, cell->whole);
		break;
	case CELL_SPAN:
	case CELL_UNSIGNED:
		out_unsigned(out, cell->number);
		break;
	case CELL_REAL:
		out_double(out, cell->real);
		break;
	case CELL_BOOL:
		out_string(out, cell->truth ? "true" : "false");
		break;
	case CELL_TEXT:
		out_csv_text(out, cell->text.bytes, cell->text.length);
		break;
	case CELL_TRIPLE:
		snprintf(triple, sizeof triple, "(%u,%u,%u)", cell->triple[0], cell->triple[1], cell->triple[2]);
		out_csv_text(out, triple, strlen(triple));
		break;
	case CELL_PATH:
		put_path(out, row);
		break;
	case CELL_FRAMES:
		put_frames(out, row, (uint32_t)cell->number);
		break;
	case CELL_SOURCE:
		put_source(out, row, (uint32_t)cell->number);
		break;
	}
}

static void put_header(struct out *out, const char *keys)
{
	const struct column *column;

	for (bool first = true; (column = column_next(&keys)); first = false) {
		if (!first)
			out_char(out, ',');
		for (const char *c = column->key; *c; c++)
			out_char(out, *c == '.' ? '_' : *c);
	}
	out_string(out, "\r\n");
}

void print_csv(const struct report *report, struct out *out)
{
	const char *columns_of_view = report->options->row_columns;

	put_header(out, columns_of_view);
	for (size_t i = 0; i < report->rows.count; i++) {
		const struct row *row = &report->rows.rows[i];
		const char *keys = columns_of_view;
		const struct column *column;

		for (bool first = true; (column = column_next(&keys)); first = false) {
			const struct cell cell = column_value(column, row, &report->rows);

			if (!first)
				out_char(out, ',');
			put_cell(out, row, &cell);
		}
		out_string(out, "\r\n");
	}
}
