/* SPDX-License-Identifier: MIT
 * column.h: every figure that a row can show. One table makes the output, the sort keys, the CSV header and the
 * legend.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_H
#define PPERF_REPORT_TABLE_COLUMN_H

#include "report/profile/module_group.h"
#include "report/table/view.h"

enum cell_kind {
	CELL_NONE, /* the row has no such thing */
	CELL_NULL, /* it has, and it is nothing: a root's parent */
	CELL_WHOLE,
	CELL_UNSIGNED,
	CELL_REAL,
	CELL_BOOL,
	CELL_TEXT,   /* any bytes */
	CELL_TRIPLE, /* a grid or block */
	CELL_PATH,   /* the names from the root to the row's node */
	CELL_FRAMES, /* a call stack */
	CELL_SOURCE, /* where a place of the trace was first entered */
	CELL_SPAN,   /* from `number` to `most` */
};

struct cell {
	enum cell_kind kind;
	int64_t whole;
	uint64_t number; /* UNSIGNED; SPAN; FRAMES: id of the stack; SOURCE: the place */
	uint64_t max;    /* SPAN */
	double real;
	bool truth;
	struct string_view text; /* lives until the same column is asked again */
	uint32_t triple[3];
};

struct column {
	const char *
		key; /* JSON, CSV (a dot becomes `_` there), --sort; `worst.label` is `label` in the object `worst` */
	const char *title; /* in text, short */
	enum unit unit;
	const char *help;
	struct cell (*value)(const struct row *row, const struct rows *rows);
};

extern const struct column all_columns[];
extern const size_t all_column_count;

/* What a row shows in a column. Lives as the cell's text does. */
struct cell column_value(
	const struct column *column, const struct row *row, const struct rows *rows);

const struct column *column_find(const char *key, size_t length); /* NULL: none */

/* The next column of a list of keys separated by blanks or commas; moves *keys on. NULL: no more. */
const struct column *column_next(const char **keys);

/* Sets options->row_columns. A wrong --columns ends the program with a sentence. */
void columns_select(struct options *options);

/* A cell as a number to be ordered by; false: it has none. */
bool cell_number(const struct cell *cell, long double *number);

/* The parts of a path, from the root: fills `nodes` (room for `room`), returns how many there are. */
size_t row_path(const struct row *row, uint32_t *nodes, size_t room);

/* Its name; a kernel's launch, NULL if it is no kernel or there were several. Names live until the next call. */
struct string_view row_name(const struct row *row);
const struct trace_kernel *row_shape(const struct row *row);

/* How many distinct labels fold into the node; never more than instances that count. */
uint32_t row_labels(const struct node *node);

/* What the modules have that fold into the row; false: they do not, or are no two. */
bool row_spread(const struct row *row, struct module_spread *spread);

/* What text shows as the row's name: the label; and where there is little room, without what tells least: a module's
 * class, how a kernel was launched. Each lives until the next call. */
struct string_view row_label(const struct row *row, bool ascii);
struct string_view row_short_label(const struct row *row, bool ascii);
/* Whether its label is a path, not the name of one place. */
bool row_has_path(const struct row *row);

#endif
