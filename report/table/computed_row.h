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

struct tally_cell {
	const struct column *column;
	struct cell cell;
	char *own; /* the text's bytes */
};

struct tally {
	struct row row; /* to be added as it is, or with a parent */
	char *name;     /* NULL: the place's: the whole path, as it lies in different ones */
	uint32_t name_bytes;
	struct tally_cell *cells;
	size_t count, room;
};

/* About that node of process->fold's tree; 0: about none. */
struct tally *tally_new(struct process *process, uint32_t node);
/* How it is called; any bytes, which are copied. */
void tally_name(struct tally *tally, const char *bytes, size_t length);
void tally_name_format(struct tally *tally, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Its value in a column; a later one replaces it. The key must be one. */
void tally_unsigned(struct tally *tally, const char *key, uint64_t value);
void tally_whole(struct tally *tally, const char *key, int64_t value);
void tally_real(struct tally *tally, const char *key, double value);
void tally_share(struct tally *tally, const char *key, uint64_t part, uint64_t whole); /* none of nothing */
void tally_text(struct tally *tally, const char *key, const char *bytes, size_t length);
void tally_words(struct tally *tally, const char *key, const char *words);
void tally_unknown(struct tally *tally, const char *key); /* it has one, and nobody knows it: null, `-` */

/* Adds it: below the row `parent`, or as a root (NO_ROW). Returns its own row. */
uint32_t tally_add(struct rows *rows, struct tally *tally, uint32_t parent);
/* Adds a root that others are to lie in: a heading. */
uint32_t tally_head(struct process *process, struct rows *rows, const char *name, const char *kind);

/* NULL: it has none. */
const struct cell *tally_cell(const struct tally *tally, const struct column *column);

#endif
