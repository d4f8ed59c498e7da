/* SPDX-License-Identifier: MIT
 * Writes what pages of several traces share: tables whose rows are not those of a tree, in the
 * shape of page_table_write, and sentences of text views.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_COLUMNS_H
#define PPERF_REPORT_PAGE_PAGE_COLUMNS_H

#include "report/text/json_writer.h"
#include "report/text/paragraph.h"

/* Begins a column. The caller writes its members `text` and `value`, and ends the object. */
void page_column_begin(struct json_writer *json, const char *key, const char *title,
	const char *help, bool is_left);
/* Writes the members `rows`, `left_out`, `kind` and `depth` of a table without levels. */
void page_put_flat_rows(struct json_writer *json, size_t count, size_t left_out, const char *kind);
/* Writes a sentence as a member, and empties it. */
void page_put_sentence(struct json_writer *json, const char *key, struct paragraph *sentence);

#endif
