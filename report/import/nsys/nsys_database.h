/* SPDX-License-Identifier: MIT
 * nsys_db.h: an SQLite database that may come from anybody, and the rows of its plain tables. The one place that knows
 * libsqlite3.
 *
 * It is read only, as it lies there (no journal is played back, no lock is taken); nothing that its schema would run (views,
 * virtual tables, triggers, functions, extensions) is. A value may have 64 MiB; a table that has more rows than its file
 * has room for is broken. What is broken ends a table's rows; the first such place is remembered.
 *
 *	struct nsys_rows *rows = nsys_rows(db, "T", (const char *const[]){ "start", "end" }, 2);
 *
 *	while (nsys_rows_next(rows))
 *		use(nsys_number(rows, 0), nsys_has(rows, 1));
 *	nsys_rows_end(rows);
 */
#ifndef PPERF_REPORT_IMPORT_NSYS_NSYS_DATABASE_H
#define PPERF_REPORT_IMPORT_NSYS_NSYS_DATABASE_H

#include "report/text/string_table.h"
#include <stdbool.h>

#define NSYS_COLUMNS_MAX 24u

struct nsys_database;
struct nsys_rows;

/* The file stays the caller's, and open. NULL: `problem` says why, as in "it ...". */
struct nsys_database *nsys_database_open(int fd, char *problem, size_t problem_bytes);
void nsys_database_close(struct nsys_database *db);

/* The plain tables, from 0; NULL behind the last. */
const char *nsys_database_table(const struct nsys_database *db, size_t number);
bool nsys_database_has_column(struct nsys_database *db, const char *table, const char *column);
/* The text of StringIds with that id; it lives until the next call. False: there is none. */
bool nsys_database_string(struct nsys_database *db, int64_t id, struct string_view *text);
/* What was broken, and where; NULL: nothing. */
const char *nsys_database_problem(const struct nsys_database *db, const char **table);

/* The rows of a table as they lie there; none if there is no such table. A column that it lacks is without values. */
struct nsys_rows *nsys_rows_open(
	struct nsys_database *db, const char *table, const char *const *columns, unsigned count);
bool nsys_rows_next(struct nsys_rows *rows);
void nsys_rows_close(struct nsys_rows *rows);

bool nsys_rows_has_value(
	const struct nsys_rows *rows, unsigned column); /* a value that is not NULL */
int64_t nsys_rows_number(const struct nsys_rows *rows, unsigned column); /* 0: none */
struct string_view nsys_rows_text(
	const struct nsys_rows *rows, unsigned column); /* until the next row */

#endif
