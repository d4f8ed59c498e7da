/* SPDX-License-Identifier: MIT
 * Writes rows of a view as a table of a page: each cell as text views print it.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_TABLE_H
#define PPERF_REPORT_PAGE_PAGE_TABLE_H

#include "report/table/view.h"
#include "report/text/json_writer.h"

struct page_table {
	const char *view; /* its name */
	const char *key;  /* of the table; NULL: the view's name */
	/* NULL: the view's own function */
	void (*arrange)(const struct options *options, struct process *process, struct rows *rows);
	const char *columns; /* keys, separated by blanks */
	size_t most;         /* rows; those of the kind `summary` are written anyway */
	bool has_paths;      /* writes where each row belongs in the call tree */
};

/* Writes a member:
 *
 *	{"rows": N, "left_out": N, "label": [...], "kind": [...], "depth": [...], "path": [[...]],
 *	 "columns": [{"key", "title", "help", "left", "text": [...], "value": [...]}]}
 *
 * `value` has numbers to sort by, or null. A column that is empty in all rows is left out. */
void page_table_write(struct json_writer *json, const struct page_table *table,
	const struct options *options, struct processes *processes);

#endif
