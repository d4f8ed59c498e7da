/* SPDX-License-Identifier: MIT
 * print.h: formats. Each takes any view's rows; none knows a view. The same report always gives the same bytes.
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

/* The envelope up to the rows, which are the caller's; the brace is left open. */
void print_json_head(const struct report *report, struct output *out);
void print_json(const struct report *report, struct output *out);
/* An array: of each process that is shown and each of its GPUs, the whole trace. */
void print_json_gpus(const struct processes *processes, struct output *out);
void print_csv(const struct report *report, struct output *out);
void print_text(const struct report *report, const struct style *style);

/* Parts of text. A table: its name column first with the tree's lines (LAYOUT_TREE), or last. */
void print_table(const struct report *report, const struct rows *rows, enum layout layout,
	const struct style *style);
/* The critical tree. */
void print_critical(
	const struct rows *rows, const struct options *options, const struct style *style);

/* How a tree is drawn: `  │   ├── `, or with less room `│ ├ `. */
struct branches {
	const bool *last; /* by row: whether it is the last of its parent */
	bool ascii, narrow;
};
/* The lines before each row of a tree. Terminated, in `out`; 0 for roots. */
size_t print_branch(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches);
/* The columns that they take. */
size_t print_branch_width(uint32_t depth, bool narrow);
bool *print_last_children(const struct rows *rows); /* to be freed */

/* Whether any process shown was recorded on the simulated device. */
bool report_is_simulated(const struct report *report);

#endif
