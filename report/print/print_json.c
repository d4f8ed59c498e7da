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

void print_json_path(struct json_writer *json, const struct row *row)
{
	uint32_t few[64], *nodes = few;
	const size_t length = row_path(row, few, sizeof few / sizeof *few);

	if (length > sizeof few / sizeof *few) {
		nodes = xcalloc(length * sizeof *nodes);
		row_path(row, nodes, length);
	}
	json_write_begin(json, '[');
	for (size_t i = 0; i < length; i++)
		json_write_text(json,
			string_table_get(row->process->texts, row->tree->nodes[nodes[i]].name));
	json_write_end(json, ']');
	if (nodes != few)
		free(nodes);
}

static void put_json_frames(struct json_writer *json, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	char text[4096];

	json_write_begin(json, '[');
	for (uint32_t i = 0; i < frames; i++) {
		const size_t length = call_stack_frame(
			row->process, stack_id, i, false, text, sizeof text);

		json_write_text(json, (struct string_view){ text, (uint32_t)length });
	}
	json_write_end(json, ']');
}

static void put_json_source(struct json_writer *json, const struct row *row, uint32_t node)
{
	char *text = xcalloc(CALL_STACK_TEXT);
	const size_t length = call_stack_source(row->process, node, false, text, CALL_STACK_TEXT);

	json_write_text(json, (struct string_view){ text, (uint32_t)length });
	free(text);
}

static void put_json_cell(struct json_writer *json, const struct row *row, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_NONE:
	case CELL_NULL:
		json_write_null(json);
		break;
	case CELL_INTEGER:
		json_write_signed(json, cell->integer);
		break;
	case CELL_UNSIGNED:
		json_write_unsigned(json, cell->unsigned_value);
		break;
	case CELL_REAL:
		json_write_double(json, cell->real);
		break;
	case CELL_BOOL:
		json_write_bool(json, cell->boolean);
		break;
	case CELL_TEXT:
		json_write_text(json, cell->text);
		break;
	case CELL_TRIPLE:
		json_write_triple(json, cell->triple);
		break;
	case CELL_SPAN:
		json_write_begin(json, '[');
		json_write_unsigned(json, cell->unsigned_value);
		json_write_unsigned(json, cell->max);
		json_write_end(json, ']');
		break;
	case CELL_PATH:
		print_json_path(json, row);
		break;
	case CELL_FRAMES:
		put_json_frames(json, row, (uint32_t)cell->unsigned_value);
		break;
	case CELL_SOURCE:
		put_json_source(json, row, (uint32_t)cell->unsigned_value);
		break;
	}
}

/* Writes a row. Keys with a dot form an object; the keys of one object are side by side in the list
 * of columns. */
static void put_json_row(struct output *out, const struct report *report, const struct row *row)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;
	const char *keys = report->options->output_columns, *dot, *key;
	const struct column *column;
	char object[32] = "";

	json_write_begin(json, '{');
	while ((column = column_next(&keys))) {
		const struct cell cell = column_value(column, row, &report->rows);
		const size_t length = (dot = strchr(column->key, '.')) ? (size_t)(dot - column->key)
								       : 0;

		if (cell.kind == CELL_NONE)
			continue;
		if (*object &&
			(length != strlen(object) || memcmp(object, column->key, length) != 0)) {
			json_write_end(json, '}');
			*object = '\0';
		}
		if (length && !*object) {
			memcpy(object, column->key, length);
			object[length] = '\0';
			json_put_begin(json, object, '{');
		}
		key = dot ? dot + 1 : column->key;
		json_write_plain_key(json, key, strlen(key));
		put_json_cell(json, row, &cell);
	}
	output_string(out, *object ? "}}" : "}");
}

static void put_json_warnings(struct output *out, const struct processes *processes)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;

	json_write_begin(json, '[');
	for (size_t i = 0; i < processes->warning_count; i++)
		json_write_string(json, processes->warnings[i]);
	for (size_t i = 0; i < processes->shown; i++) {
		const struct memory_counts *counts = &processes->all[i].profile->memory->counts;

		if (counts->ooms)
			json_write_string(json, "PyTorch ran out of memory: see totals.ooms");
		else if (counts->failed_allocations)
			json_write_string(json, "a CUDA allocation ran out of memory: see "
						"totals.failed_allocations");
	}
	json_write_end(json, ']');
}

static void put_json_files(struct output *out, const struct options *options)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;

	json_write_begin(json, '[');
	for (size_t i = 0; i < options->file_count; i++)
		json_write_string(json, options->files[i]);
	json_write_end(json, ']');
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
	if (report->options->view->put_json)
		report->options->view->put_json(report, out);
	output_string(out, ",\n \"rows\": [");
	for (size_t i = 0; i < report->rows.count; i++) {
		output_string(out, i ? ",\n  " : "\n  ");
		put_json_row(out, report, &report->rows.rows[i]);
	}
	output_string(out, "]}\n");
}
