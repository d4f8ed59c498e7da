/* SPDX-License-Identifier: MIT */
#include "report/table/cell_text.h"
#include "report/run/call_stack.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <string.h>

static size_t frames_text(char *out, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	/* Bytes of a frame. */
	const int most = reader_python_stack(row->process->reader, stack_id) ? 40 : 24;
	char text[512];
	size_t used = 0;

	for (uint32_t i = 0; i < frames && i < 3 && used < CELL_TEXT_BYTES - 8; i++) {
		call_stack_frame(row->process, stack_id, i, true, text, sizeof text);
		used += (size_t)snprintf(
			out + used, CELL_TEXT_BYTES - used, "%s%.*s", i ? " < " : "", most, text);
	}
	return used < CELL_TEXT_BYTES ? used : CELL_TEXT_BYTES - 1;
}

static size_t number_text(
	char *out, const struct style *style, enum unit unit, const struct cell *cell)
{
	long double number;

	if (!cell_number(cell, &number))
		return 0;
	if (unit == UNIT_PERCENT)
		return format_real(out, number * 100, 1) +
		       (size_t)snprintf(out + strlen(out), 8, " %%");
	if (cell->kind == CELL_REAL)
		return format_real(out, number, 2);
	return format_with_unit(out, unit,
		cell->kind == CELL_INTEGER ? cell->integer : clamp_to_i64(cell->unsigned_value),
		style->iec, style->ascii);
}

/* Writes both in the unit of the larger, such as `1.02 to 1.31 ms`. */
static size_t range_text(
	char *out, const struct style *style, enum unit unit, const struct cell *cell)
{
	const struct scale scale = scale_for(unit, cell->max, style->iec, style->ascii);
	const unsigned decimals = scale.divisor > 1 ? 2 : 0;
	size_t used = format_unsigned(out, cell->unsigned_value, scale.divisor, decimals);

	used += (size_t)snprintf(out + used, 8, " to ");
	used += format_unsigned(out + used, cell->max, scale.divisor, decimals);
	return used + (size_t)snprintf(out + used, 8, " %s", scale.name);
}

/* Whether the row's own GPU time is also that of the range that launched it (`table --by name`), so
 * that a sum over the rows must leave it out. */
static bool is_counted_elsewhere(const struct column *column, const struct row *row)
{
	const struct node_gpu *gpu = row->kind == ROW_NODE && row->tree && row->node
					     ? row->tree->nodes[row->node].gpu
					     : NULL;

	return gpu && gpu->duplicate_ns && gpu->duplicate_ns == gpu->self_ns &&
	       (strcmp(column->key, "gpu_self_ns") == 0 ||
		       strcmp(column->key, "gpu_self_share") == 0);
}

/* Whether the row's CPU time is not part of the row above: a backward pass, which ran on another
 * thread or later, below its forward pass. */
static bool is_outside_parent(const struct column *column, const struct row *row)
{
	const struct node *node;

	if (row->kind != ROW_NODE || !row->tree || !row->node || !row->depth ||
		strcmp(column->key, "cpu_total_ns") != 0)
		return false;
	node = &row->tree->nodes[row->node];
	return node->ran_elsewhere && !row->tree->nodes[node->parent].ran_elsewhere;
}

/* Puts a text in parentheses. */
static size_t add_parentheses(char *out, size_t length)
{
	if (!length || length + 3 > CELL_TEXT_BYTES)
		return length;
	memmove(out + 1, out, length);
	out[0] = '(';
	out[length + 1] = ')';
	out[length + 2] = '\0';
	return length + 2;
}

size_t cell_text(char *out, const struct style *style, const struct column *column,
	const struct row *row, const struct rows *rows)
{
	const struct cell cell = column_value(column, row, rows);
	char raw[CELL_TEXT_BYTES];

	out[0] = '\0';
	switch (cell.kind) {
	case CELL_NULL:
		return (size_t)snprintf(out, CELL_TEXT_BYTES, "-");
	case CELL_TEXT:
		return escape_text(
			out, CELL_TEXT_BYTES, cell.text.bytes, cell.text.length, style->ascii);
	case CELL_TRIPLE:
		return (size_t)snprintf(out, CELL_TEXT_BYTES, "(%u,%u,%u)", cell.triple[0],
			cell.triple[1], cell.triple[2]);
	case CELL_SPAN:
		return range_text(out, style, column->unit, &cell);
	case CELL_SOURCE:
		return escape_text(out, CELL_TEXT_BYTES, raw,
			call_stack_source(
				row->process, (uint32_t)cell.unsigned_value, true, raw, sizeof raw),
			style->ascii);
	case CELL_FRAMES:
		return escape_text(out, CELL_TEXT_BYTES, raw,
			frames_text(raw, row, (uint32_t)cell.unsigned_value), style->ascii);
	default:
		return is_outside_parent(column, row) || is_counted_elsewhere(column, row)
			       ? add_parentheses(out, number_text(out, style, column->unit, &cell))
			       : number_text(out, style, column->unit, &cell);
	}
}

bool cell_is_left_aligned(const struct column *column)
{
	return column->unit == UNIT_TEXT && strcmp(column->key, "grid") != 0 &&
	       strcmp(column->key, "block") != 0;
}
