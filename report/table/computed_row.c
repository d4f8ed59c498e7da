/* SPDX-License-Identifier: MIT */
#include "report/table/computed_row.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *bytes, size_t length)
{
	char *text = xcalloc(length + 1);

	memcpy(text, bytes, length);
	return text;
}

/* The computed rows of a process, attached to the process. */
struct computed_rows {
	struct computed_row **computed_rows;
	size_t count, room;
};

static void empty_rows(struct computed_rows *computed_rows)
{
	for (size_t i = 0; i < computed_rows->count; i++) {
		for (size_t cell = 0; cell < computed_rows->computed_rows[i]->count; cell++)
			free(computed_rows->computed_rows[i]->cells[cell].own);
		free(computed_rows->computed_rows[i]->cells);
		free(computed_rows->computed_rows[i]->name);
		free(computed_rows->computed_rows[i]);
	}
	computed_rows->count = 0;
}

static void release_rows(void *data)
{
	struct computed_rows *computed_rows = data;

	empty_rows(computed_rows);
	free(computed_rows->computed_rows);
	free(computed_rows);
}

/* The key under which the rows are attached. */
static const char rows_key;

void computed_rows_free(struct process *process)
{
	struct computed_rows *computed_rows = process_attached(process, &rows_key);

	if (computed_rows)
		empty_rows(computed_rows);
}

static void attach_to_process(struct process *process, struct computed_row *computed)
{
	struct computed_rows *computed_rows = process_attached(process, &rows_key);

	if (!computed_rows) {
		computed_rows = xcalloc(sizeof *computed_rows);
		process_attach(process, &rows_key, computed_rows, release_rows);
	}
	array_grow_zeroed(&computed_rows->computed_rows, &computed_rows->room,
		computed_rows->count + 1, sizeof(struct computed_row *));
	computed_rows->computed_rows[computed_rows->count++] = computed;
}

struct computed_row *computed_row_new(struct process *process, uint32_t node, const char *kind)
{
	struct computed_row *computed = xcalloc(sizeof *computed);

	attach_to_process(process, computed);
	computed->row = (struct row){ .process = process,
		.kind = ROW_COMPUTED,
		.parent = NO_ROW,
		.node = node,
		.tree = process->profile->tree,
		.of.computed = computed };
	computed_row_set_string(computed, "kind", kind);
	return computed;
}

void computed_row_set_name(struct computed_row *computed, const char *bytes, size_t length)
{
	free(computed->name);
	computed->name = copy_text(bytes, length);
	computed->name_bytes = (uint32_t)length;
}

void computed_row_format_name(struct computed_row *computed, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	computed_row_set_name(computed, text, strlen(text));
}

static struct computed_cell *cell_for_key(struct computed_row *computed, const char *key)
{
	const struct column *column = column_find(key, strlen(key));
	size_t i = 0;

	if (!column)
		fatal(STATUS_USAGE, "there is no column %s", key);
	while (i < computed->count && computed->cells[i].column != column)
		i++;
	if (i == computed->count) {
		ARRAY_GROW(computed->cells, computed->room, ++computed->count);
		computed->cells[i] = (struct computed_cell){ .column = column };
	}
	free(computed->cells[i].own);
	computed->cells[i].own = NULL;
	return &computed->cells[i];
}

void computed_row_set_unsigned(struct computed_row *computed, const char *key, uint64_t value)
{
	cell_for_key(computed, key)->cell = (struct cell){ .kind = CELL_UNSIGNED,
		.unsigned_value = value };
}

void computed_row_set_integer(struct computed_row *computed, const char *key, int64_t value)
{
	cell_for_key(computed, key)->cell = (struct cell){ .kind = CELL_INTEGER, .integer = value };
}

void computed_row_set_real(struct computed_row *computed, const char *key, double value)
{
	cell_for_key(computed, key)->cell = (struct cell){ .kind = CELL_REAL, .real = value };
}

void computed_row_set_share(
	struct computed_row *computed, const char *key, uint64_t part, uint64_t whole)
{
	if (whole)
		computed_row_set_real(computed, key, (double)part / (double)whole);
}

void computed_row_set_text(
	struct computed_row *computed, const char *key, const char *bytes, size_t length)
{
	struct computed_cell *at = cell_for_key(computed, key);

	at->own = copy_text(bytes, length);
	at->cell = (struct cell){ .kind = CELL_TEXT,
		.text = { .bytes = at->own, .length = (uint32_t)length } };
}

void computed_row_set_string(struct computed_row *computed, const char *key, const char *words)
{
	computed_row_set_text(computed, key, words, strlen(words));
}

void computed_row_set_unknown(struct computed_row *computed, const char *key)
{
	cell_for_key(computed, key)->cell = (struct cell){ .kind = CELL_NULL };
}

uint32_t computed_row_add(struct rows *rows, struct computed_row *computed, uint32_t parent)
{
	computed->row.parent = parent;
	computed->row.depth = parent == NO_ROW ? 0 : rows->rows[parent].depth + 1;
	rows_add(rows, &computed->row);
	return (uint32_t)rows->count - 1;
}

uint32_t computed_row_add_heading(
	struct process *process, struct rows *rows, const char *name, const char *kind)
{
	struct computed_row *computed = computed_row_new(process, 0, kind);

	computed_row_set_name(computed, name, strlen(name));
	return computed_row_add(rows, computed, NO_ROW);
}

const struct cell *computed_row_cell(
	const struct computed_row *computed, const struct column *column)
{
	for (size_t i = 0; i < computed->count; i++)
		if (computed->cells[i].column == column)
			return &computed->cells[i].cell;
	return NULL;
}

static const struct cell *cell_of_key(const struct row *row, const char *key)
{
	return computed_row_cell(row->of.computed, column_find(key, strlen(key)));
}

uint64_t computed_row_number(const struct row *row, const char *key)
{
	const struct cell *cell = cell_of_key(row, key);

	return cell && cell->kind == CELL_UNSIGNED ? cell->unsigned_value : 0;
}

bool computed_row_is(const struct row *row, const char *key, const char *word)
{
	const struct cell *cell = cell_of_key(row, key);

	return cell && cell->kind == CELL_TEXT && string_view_is(cell->text, word);
}

struct string_view computed_row_text(const struct row *row, const char *key)
{
	const struct cell *cell = cell_of_key(row, key);

	return cell && cell->kind == CELL_TEXT ? cell->text : (struct string_view){ .bytes = "" };
}

double computed_row_real(const struct row *row, const char *key)
{
	const struct cell *cell = cell_of_key(row, key);

	return cell && cell->kind == CELL_REAL ? cell->real : 0;
}
