/* SPDX-License-Identifier: MIT
 *
 * Prints the JSON document: an envelope that is the same for every view, and one row a line. Rows
 * are written as they are computed, so a report of a million rows needs no more memory than one of
 * ten.
 */
#include "report/run/call_stack.h"
#include "report/base/alloc.h"
#include "report/print/print_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_json_key(struct output *out, const char *key, bool *first)
{
	if (!*first)
		output_string(out, ", ");
	*first = false;
	output_char(out, '"');
	output_string(out, key);
	output_string(out, "\": ");
}

void print_json_string(struct output *out, const char *text)
{
	output_json_text(out, text, strlen(text));
}

void print_json_text_or_null(struct output *out, struct trace_text text)
{
	if (text.known)
		output_json_text(out, text.bytes, text.length);
	else
		output_string(out, "null");
}

struct trace_text print_json_text_of(const char *text)
{
	return (struct trace_text){
		.bytes = text, .length = (uint32_t)strlen(text), .known = *text != '\0'
	};
}

void print_json_member(struct output *out, const char *key, uint64_t value, bool *first)
{
	print_json_key(out, key, first);
	output_unsigned(out, value);
}

void print_json_bool(struct output *out, const char *key, bool value, bool *first)
{
	print_json_key(out, key, first);
	output_string(out, value ? "true" : "false");
}

void print_json_path(struct output *out, const struct row *row)
{
	uint32_t few[64], *nodes = few;
	const size_t length = row_path(row, few, sizeof few / sizeof *few);

	if (length > sizeof few / sizeof *few) {
		nodes = xcalloc(length * sizeof *nodes);
		row_path(row, nodes, length);
	}
	output_char(out, '[');
	for (size_t i = 0; i < length; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		if (i)
			output_string(out, ", ");
		output_json_text(out, name.bytes, name.length);
	}
	output_char(out, ']');
	if (nodes != few)
		free(nodes);
}

static void put_json_frames(struct output *out, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	char text[4096];

	output_char(out, '[');
	for (uint32_t i = 0; i < frames; i++) {
		if (i)
			output_string(out, ", ");
		output_json_text(out, text,
			call_stack_frame(row->process, stack_id, i, false, text, sizeof text));
	}
	output_char(out, ']');
}

static void put_json_source(struct output *out, const struct row *row, uint32_t node)
{
	char *text = xcalloc(CALL_STACK_TEXT);

	output_json_text(
		out, text, call_stack_source(row->process, node, false, text, CALL_STACK_TEXT));
	free(text);
}

static void put_json_cell(struct output *out, const struct row *row, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_NONE:
	case CELL_NULL:
		output_string(out, "null");
		break;
	case CELL_INTEGER:
		output_signed(out, cell->integer);
		break;
	case CELL_UNSIGNED:
		output_unsigned(out, cell->unsigned_value);
		break;
	case CELL_REAL:
		output_json_double(out, cell->real);
		break;
	case CELL_BOOL:
		output_string(out, cell->boolean ? "true" : "false");
		break;
	case CELL_TEXT:
		output_json_text(out, cell->text.bytes, cell->text.length);
		break;
	case CELL_TRIPLE:
		output_char(out, '[');
		for (int i = 0; i < 3; i++) {
			output_unsigned(out, cell->triple[i]);
			output_string(out, i < 2 ? ", " : "]");
		}
		break;
	case CELL_SPAN:
		output_char(out, '[');
		output_unsigned(out, cell->unsigned_value);
		output_string(out, ", ");
		output_unsigned(out, cell->max);
		output_char(out, ']');
		break;
	case CELL_PATH:
		print_json_path(out, row);
		break;
	case CELL_FRAMES:
		put_json_frames(out, row, (uint32_t)cell->unsigned_value);
		break;
	case CELL_SOURCE:
		put_json_source(out, row, (uint32_t)cell->unsigned_value);
		break;
	}
}

/* Writes a row. Keys with a dot form an object; the keys of one object are side by side in the list
 * of columns. */
static void put_json_row(struct output *out, const struct report *report, const struct row *row)
{
	const char *keys = report->options->row_columns, *dot;
	const struct column *column;
	char object[32] = "";
	bool first = true, inner_first = true;

	output_char(out, '{');
	while ((column = column_next(&keys))) {
		const struct cell cell = column_value(column, row, &report->rows);
		const size_t length = (dot = strchr(column->key, '.')) ? (size_t)(dot - column->key)
								       : 0;

		if (cell.kind == CELL_NONE)
			continue;
		if (*object &&
			(length != strlen(object) || memcmp(object, column->key, length) != 0)) {
			output_char(out, '}');
			*object = '\0';
		}
		if (length && !*object) {
			memcpy(object, column->key, length);
			object[length] = '\0';
			print_json_key(out, object, &first);
			output_char(out, '{');
			inner_first = true;
		}
		print_json_key(out, dot ? dot + 1 : column->key, dot ? &inner_first : &first);
		put_json_cell(out, row, &cell);
	}
	output_string(out, *object ? "}}" : "}");
}

static void put_json_warnings(struct output *out, const struct processes *processes)
{
	bool first = true;

	output_char(out, '[');
	for (size_t i = 0; i < processes->warning_count; i++) {
		if (!first)
			output_string(out, ", ");
		first = false;
		print_json_string(out, processes->warnings[i]);
	}
	for (size_t i = 0; i < processes->shown; i++) {
		const struct memory_counts *counts = &processes->all[i].profile->memory->counts;

		if (!counts->ooms && !counts->failed_allocations)
			continue;
		if (!first)
			output_string(out, ", ");
		first = false;
		print_json_string(out, counts->ooms ? "PyTorch ran out of memory: see totals.ooms"
						    : "a CUDA allocation ran out of memory: see "
						      "totals.failed_allocations");
	}
	output_char(out, ']');
}

static void put_json_files(struct output *out, const struct options *options)
{
	output_char(out, '[');
	for (size_t i = 0; i < options->file_count; i++) {
		if (i)
			output_string(out, ", ");
		print_json_string(out, options->files[i]);
	}
	output_char(out, ']');
}

void print_json_head(const struct report *report, struct output *out)
{
	output_string(out, "{\"schema\": \"pperf.report/1\", \"view\": \"");
	output_string(out, report->options->view->name);
	output_string(out, "\", \"files\": ");
	put_json_files(out, report->options);
	output_string(out, ",\n \"capture\": ");
	print_json_capture(out, report->processes);
	output_string(out, ",\n \"integrity\": ");
	print_json_integrity(out, report->processes);
	output_string(out, ",\n \"totals\": ");
	print_json_totals(out, report->processes);
	output_string(out, ",\n \"warnings\": ");
	put_json_warnings(out, report->processes);
}

void print_json(const struct report *report, struct output *out)
{
	print_json_head(report, out);
	output_string(out, ",\n \"rows\": [");
	for (size_t i = 0; i < report->rows.count; i++) {
		output_string(out, i ? ",\n  " : "\n  ");
		put_json_row(out, report, &report->rows.rows[i]);
	}
	output_string(out, "]}\n");
}
