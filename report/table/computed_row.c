/* SPDX-License-Identifier: MIT */
#include "report/table/computed_row.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *bytes, size_t length)
{
	char *text = need(length + 1);

	memcpy(text, bytes, length);
	return text;
}

/* The rows of a process: attached to it. */
struct tallies {
	struct tally **tallies;
	size_t count, room;
};

static void tallies_free(void *data)
{
	struct tallies *tallies = data;

	for (size_t i = 0; i < tallies->count; i++) {
		for (size_t cell = 0; cell < tallies->tallies[i]->count; cell++)
			free(tallies->tallies[i]->cells[cell].own);
		free(tallies->tallies[i]->cells);
		free(tallies->tallies[i]->name);
		free(tallies->tallies[i]);
	}
	free(tallies->tallies);
	free(tallies);
}

static void keep(struct process *process, struct tally *tally)
{
	static const char key;
	struct tallies *tallies = process_attached(process, &key);

	if (!tallies) {
		tallies = need(sizeof *tallies);
		process_attach(process, &key, tallies, tallies_free);
	}
	grow(&tallies->tallies, &tallies->room, tallies->count + 1, sizeof(struct tally *));
	tallies->tallies[tallies->count++] = tally;
}

struct tally *tally_new(struct process *process, uint32_t node)
{
	struct tally *tally = need(sizeof *tally);

	keep(process, tally);
	tally->row = (struct row){ .process = process,
		.kind = ROW_TALLY,
		.parent = NO_ROW,
		.node = node,
		.tree = process->fold->tree,
		.of.tally = tally };
	return tally;
}

void tally_name(struct tally *tally, const char *bytes, size_t length)
{
	free(tally->name);
	tally->name = copy(bytes, length);
	tally->name_bytes = (uint32_t)length;
}

void tally_name_format(struct tally *tally, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	tally_name(tally, text, strlen(text));
}

static struct tally_cell *cell_of(struct tally *tally, const char *key)
{
	const struct column *column = column_find(key, strlen(key));
	size_t i = 0;

	if (!column)
		fatal(STATUS_USAGE, "there is no column %s", key);
	while (i < tally->count && tally->cells[i].column != column)
		i++;
	if (i == tally->count) {
		grow(&tally->cells, &tally->room, ++tally->count, sizeof *tally->cells);
		tally->cells[i] = (struct tally_cell){ .column = column };
	}
	free(tally->cells[i].own);
	tally->cells[i].own = NULL;
	return &tally->cells[i];
}

void tally_unsigned(struct tally *tally, const char *key, uint64_t value)
{
	cell_of(tally, key)->cell = (struct cell){ .kind = CELL_UNSIGNED, .number = value };
}

void tally_whole(struct tally *tally, const char *key, int64_t value)
{
	cell_of(tally, key)->cell = (struct cell){ .kind = CELL_WHOLE, .whole = value };
}

void tally_real(struct tally *tally, const char *key, double value)
{
	cell_of(tally, key)->cell = (struct cell){ .kind = CELL_REAL, .real = value };
}

void tally_share(struct tally *tally, const char *key, uint64_t part, uint64_t whole)
{
	if (whole)
		tally_real(tally, key, (double)part / (double)whole);
}

void tally_text(struct tally *tally, const char *key, const char *bytes, size_t length)
{
	struct tally_cell *at = cell_of(tally, key);

	at->own = copy(bytes, length);
	at->cell = (struct cell){ .kind = CELL_TEXT, .text = { .bytes = at->own, .length = (uint32_t)length } };
}

void tally_words(struct tally *tally, const char *key, const char *words)
{
	tally_text(tally, key, words, strlen(words));
}

void tally_unknown(struct tally *tally, const char *key)
{
	cell_of(tally, key)->cell = (struct cell){ .kind = CELL_NULL };
}

uint32_t tally_add(struct rows *rows, struct tally *tally, uint32_t parent)
{
	tally->row.parent = parent;
	tally->row.depth = parent == NO_ROW ? 0 : rows->rows[parent].depth + 1;
	rows_add(rows, &tally->row);
	return (uint32_t)rows->count - 1;
}

uint32_t tally_head(struct process *process, struct rows *rows, const char *name, const char *kind)
{
	struct tally *tally = tally_new(process, 0);

	tally_name(tally, name, strlen(name));
	tally_words(tally, "kind", kind);
	return tally_add(rows, tally, NO_ROW);
}

const struct cell *tally_cell(const struct tally *tally, const struct column *column)
{
	for (size_t i = 0; i < tally->count; i++)
		if (tally->cells[i].column == column)
			return &tally->cells[i].cell;
	return NULL;
}
