/* SPDX-License-Identifier: MIT
 * Writes an SQLite database in one transaction. An error ends the program.
 *
 *	struct sqlite_file *file = sqlite_file_new("CREATE TABLE step(number, begin_ns)");
 *	struct sqlite_rows *steps = sqlite_rows_new(file, "step", 2);
 *
 *	sqlite_put_number(steps, 7);
 *	sqlite_put_null(steps);
 *	sqlite_row_end(steps);
 *	sqlite_file_end(file, "CREATE INDEX ...", out);
 */
#ifndef PPERF_REPORT_EXPORT_SQLITE_FILE_H
#define PPERF_REPORT_EXPORT_SQLITE_FILE_H

#include "report/text/output.h"
#include "report/text/string_table.h"

struct sqlite_file;
struct sqlite_rows;

/* Makes a database in a temporary file, and runs the statements `schema`. */
struct sqlite_file *sqlite_file_new(const char *schema);
/* Runs the statements `last`, such as indexes, writes the database to `out`, and frees all. */
void sqlite_file_end(struct sqlite_file *file, const char *last, struct output *out);

/* Prepares to add rows of `columns` columns to a table. Freed with the file. */
struct sqlite_rows *sqlite_rows_new(struct sqlite_file *file, const char *table, unsigned columns);
/* Each sets the next column of the current row. A number above INT64_MAX is stored as negative. */
void sqlite_put_number(struct sqlite_rows *rows, uint64_t value);
void sqlite_put_signed(struct sqlite_rows *rows, int64_t value);
void sqlite_put_text(struct sqlite_rows *rows, struct string_view text);
void sqlite_put_null(struct sqlite_rows *rows);
/* Adds the row, all of whose columns were set. */
void sqlite_row_end(struct sqlite_rows *rows);

#endif
