/* SPDX-License-Identifier: MIT
 * tally.h: a row whose figures its view has reckoned itself: a name, perhaps the place in the tree that it is about, and
 * a cell for each column that it has something for. What it has no cell for, the row has not.
 *
 *	struct tally *tally = tally_new(process, owner);
 *
 *	tally_unsigned(tally, "idle_ns", gap);
 *	tally_text(tally, "cause", "allocation", 10);
 *	rows_add(rows, &tally->row);
 *
 * Keys are the columns' (column_list.h); a new figure needs an entry there, with `reckoned` as its function. A tally
 * belongs to its process, and goes with it.
 */
#ifndef PPERF_REPORT_TABLE_COMPUTED_ROW_H
#define PPERF_REPORT_TABLE_COMPUTED_ROW_H

#include "report/table/column.h"

struct computed_cell {
	const struct column *column;
	struct cell cell;
	char *own; /* the text's bytes */
};

struct computed_row {
	struct row row; /* to be added as it is, or with a parent */
	char *name;     /* NULL: the place's: the whole path, as it lies in different ones */
	uint32_t name_bytes;
	struct computed_cell *cells;
	size_t count, room;
};

/* About that node of process->fold's tree; 0: about none. */
struct computed_row *computed_row_new(struct process *process, uint32_t node);
/* How it is called; any bytes, which are copied. */
void computed_row_set_name(struct computed_row *computed, const char *bytes, size_t length);
void computed_row_format_name(struct computed_row *computed, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Its value in a column; a later one replaces it. The key must be one. */
void computed_row_set_unsigned(struct computed_row *computed, const char *key, uint64_t value);
void computed_row_set_integer(struct computed_row *computed, const char *key, int64_t value);
void computed_row_set_real(struct computed_row *computed, const char *key, double value);
void computed_row_set_share(struct computed_row *computed, const char *key, uint64_t part,
	uint64_t whole); /* none of nothing */
void computed_row_set_text(
	struct computed_row *computed, const char *key, const char *bytes, size_t length);
void computed_row_set_string(struct computed_row *computed, const char *key, const char *words);
void computed_row_set_unknown(struct computed_row *computed,
	const char *key); /* it has one, and nobody knows it: null, `-` */

/* Adds it: below the row `parent`, or as a root (NO_ROW). Returns its own row. */
uint32_t computed_row_add(struct rows *rows, struct computed_row *computed, uint32_t parent);
/* Adds a root that others are to lie in: a heading. */
uint32_t computed_row_add_heading(
	struct process *process, struct rows *rows, const char *name, const char *kind);

/* NULL: it has none. */
const struct cell *computed_row_cell(
	const struct computed_row *computed, const struct column *column);

#endif
