/* SPDX-License-Identifier: MIT
 *
 * Prints the rows of a view as text, CSV or JSON. No printer knows a particular view. The same
 * report always gives the same bytes.
 */
#ifndef PPERF_REPORT_PRINT_PRINT_H
#define PPERF_REPORT_PRINT_PRINT_H

#include "report/table/column.h"
#include "report/text/style.h"

struct report {
	const struct options *options;
	struct processes *processes;
	struct rows rows;
};

/* Writes everything before the rows. The caller writes the rows and the closing brace. */
void print_json_head(const struct report *report, struct output *out);
void print_json(const struct report *report, struct output *out);
/* Writes an array with an element for each GPU of each process shown, for the whole trace. */
void print_json_gpus(const struct processes *processes, struct output *out);
void print_csv(const struct report *report, struct output *out);
/* Writes a cell of a row; nothing if the row has no such value. */
void print_csv_cell(struct output *out, const struct row *row, const struct cell *cell);
void print_text(const struct report *report, const struct style *style);

/* Prints a table. The name column is first, with the tree's lines (LAYOUT_TREE), or last. */
void print_table(const struct report *report, const struct rows *rows, enum layout layout,
	const struct style *style);
/* Prints the critical tree. */
void print_critical(
	const struct rows *rows, const struct options *options, const struct style *style);

/* How the lines of a tree are drawn: `  │   ├── `, or narrow `│ ├ `. */
struct branches {
	const bool *last; /* by row: it is the last child of its parent */
	bool ascii, narrow;
};
/* Writes the tree's lines before a row to `out`, terminated. Returns their bytes; 0 for roots. */
size_t print_branch(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches);
/* Writes the lines before a second line of the row. */
size_t print_branch_below(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches);
/* Returns the width of these lines in screen columns. */
size_t print_branch_width(uint32_t depth, bool narrow);
bool *print_last_children(const struct rows *rows); /* by row; the caller frees it */

/* Whether a process shown was recorded on the simulated device. */
bool report_is_simulated(const struct report *report);

#endif
