/* SPDX-License-Identifier: MIT
 *
 * Defines the columns: every value that a row can show. One table makes the output, the sort keys,
 * the CSV header and the legend.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_H
#define PPERF_REPORT_TABLE_COLUMN_H

#include "report/profile/module_group.h"
#include "report/table/view.h"

enum cell_kind {
	CELL_NONE, /* the row has no such value */
	CELL_NULL, /* the value is known to be empty, such as a root's parent */
	CELL_INTEGER,
	CELL_UNSIGNED,
	CELL_REAL,
	CELL_BOOL,
	CELL_TEXT,   /* any bytes */
	CELL_TRIPLE, /* a grid or block */
	CELL_PATH,   /* the names from the root to the row's node */
	CELL_FRAMES, /* a call stack */
	CELL_SOURCE, /* source line where a trace node was first entered */
	CELL_SPAN,   /* from `number` to `max` */
};

struct cell {
	enum cell_kind kind;
	int64_t integer;
	/* UNSIGNED; SPAN: minimum; FRAMES: id of the stack; SOURCE: trace node. */
	uint64_t unsigned_value;
	uint64_t max; /* SPAN: maximum */
	double real;
	bool boolean;
	struct string_view text; /* valid until the same column is computed again */
	uint32_t triple[3];
};

struct column {
	/* Key for JSON, CSV (there with `_` for a dot) and --sort. `worst.label` is `label` in the
	 * object `worst`. */
	const char *key;
	const char *title; /* for text output, short */
	enum unit unit;
	const char *help;
	struct cell (*value)(const struct row *row, const struct rows *rows);
};

extern const struct column all_columns[];
extern const size_t all_column_count;

/* Returns the value of a row in a column. Its text is valid until the next call for that column. */
struct cell column_value(
	const struct column *column, const struct row *row, const struct rows *rows);

const struct column *column_find(const char *key, size_t length); /* NULL: unknown key */

/* Whether the column identifies a row (id, parent, depth, name). It is then always shown, if the
 * view has it. */
bool column_identifies_row(const struct column *column);

/* Returns the next column of a list of keys, separated by blanks or commas, and advances `*keys`.
 * NULL: no more. */
const struct column *column_next(const char **keys);

/* Replaces the names in --sort and --columns by keys and sets options->output_columns. A name is
 * the key of a column or its title. Ends the program with a message if there is no such column. */
void columns_select(struct options *options);

/* Converts a cell to a number for sorting. Returns false if it has none. */
bool cell_number(const struct cell *cell, long double *number);

/* Stores the nodes from the root to the row's node, at most `room`. Returns how many there are. */
size_t row_path(const struct row *row, uint32_t *nodes, size_t room);

/* The row's name, and the launch of its kernel: NULL if the row has no kernel, or several launch
 * configurations. Names are valid until the next call. */
struct string_view row_name(const struct row *row);
const struct trace_kernel *row_shape(const struct row *row);

/* Number of distinct labels with the node's label pattern; at most its number of instances. */
uint32_t row_labels(const struct node *node);

/* Compares the modules that share the row's label pattern. Returns false if there are fewer than
 * two. */
bool row_spread(const struct row *row, struct module_spread *spread);

/* The row's name for text output. The short label leaves out the module's class and the kernel's
 * launch configuration. Each is valid until the next call. */
struct string_view row_label(const struct row *row, bool ascii);
/* Returns the whole that column `share` of a row is a fraction of, in the unit of the metric. */
long double row_share_whole(const struct row *row);
struct string_view row_short_label(const struct row *row, bool ascii);
/* Whether the label is a call path, not a node's name. */
bool row_has_path(const struct row *row);

#endif
