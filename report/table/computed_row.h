/* SPDX-License-Identifier: MIT
 *
 * A row whose values its view computes itself. It has a name, an optional node of the call tree,
 * and a cell for each column with a value. Columns without a cell stay empty.
 *
 *	struct computed_row *computed = computed_row_new(process, owner, "gap");
 *
 *	computed_row_set_unsigned(computed, "idle_ns", gap);
 *	computed_row_set_text(computed, "cause", "allocation", 10);
 *	rows_add(rows, &computed->row);
 *
 * Keys are those of column_list.h. A new value needs an entry there, with `computed` as its
 * function. Computed rows belong to their process and are freed with it.
 */
#ifndef PPERF_REPORT_TABLE_COMPUTED_ROW_H
#define PPERF_REPORT_TABLE_COMPUTED_ROW_H

#include "report/table/column.h"

struct computed_cell {
	const struct column *column;
	struct cell cell;
	char *own; /* owned copy of a text; NULL: none */
};

struct computed_row {
	struct row row; /* added to rows as it is, or with a parent */
	/* NULL: the row is named by the path of its node. Rows of one node may have different
	 * parents. */
	char *name;
	uint32_t name_bytes;
	struct computed_cell *cells;
	size_t count, room;
	bool is_call_path; /* the path leaves out steps and sections of the run */
	/* texts of the process that the label has after the path, 0: none: a call at its end, and
	 * the GPU operation that came next */
	uint32_t last_call, next_operation;
	uint32_t launch_stack; /* call stack of a launch that the row is about; 0: none */
	/* findings: more of their time than at their node is at no node */
	bool is_second_place;
	bool is_duplicate; /* findings: all of their time is idle time of another finding */
};

/* Makes a row for a node of process->profile's tree; 0: for no node. `kind`: its value in the
 * column of that name. */
struct computed_row *computed_row_new(struct process *process, uint32_t node, const char *kind);
/* Frees all computed rows of a process before it is freed. */
void computed_rows_free(struct process *process);
/* Sets the name; the bytes are copied and may be any. */
void computed_row_set_name(struct computed_row *computed, const char *bytes, size_t length);
void computed_row_format_name(struct computed_row *computed, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets the value of a column; a later call replaces it. An unknown key ends the program. */
void computed_row_set_unsigned(struct computed_row *computed, const char *key, uint64_t value);
void computed_row_set_integer(struct computed_row *computed, const char *key, int64_t value);
void computed_row_set_real(struct computed_row *computed, const char *key, double value);
/* Sets part / whole; no cell if `whole` is 0. */
void computed_row_set_share(
	struct computed_row *computed, const char *key, uint64_t part, uint64_t whole);
void computed_row_set_text(
	struct computed_row *computed, const char *key, const char *bytes, size_t length);
void computed_row_set_string(struct computed_row *computed, const char *key, const char *words);
/* Sets a value that exists but is unknown: null in JSON, - in text. */
void computed_row_set_unknown(struct computed_row *computed, const char *key);

/* Adds the row below the row `parent`, or as a root (NO_ROW). Returns its index. */
uint32_t computed_row_add(struct rows *rows, struct computed_row *computed, uint32_t parent);
/* Adds a root row without values as a heading for other rows. Returns its index. */
uint32_t computed_row_add_heading(
	struct process *process, struct rows *rows, const char *name, const char *kind);

/* Returns the cell of a column, or NULL if there is none. */
const struct cell *computed_row_cell(
	const struct computed_row *computed, const struct column *column);
/* Returns the value of a column of a computed row, or 0 if it has none or no whole number. */
uint64_t computed_row_number(const struct row *row, const char *key);
/* Returns the text of a column of a computed row; empty if it has none. */
struct string_view computed_row_text(const struct row *row, const char *key);
/* Returns the share or other real number of a column, or 0 if it has none. */
double computed_row_real(const struct row *row, const char *key);
/* Returns true if the column's text is `word`. */
bool computed_row_is(const struct row *row, const char *key, const char *word);

#endif
