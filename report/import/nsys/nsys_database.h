/* SPDX-License-Identifier: MIT
 * Reads the rows of plain tables in an untrusted SQLite database. The only user of libsqlite3.
 *
 * The database is opened read-only and immutable: no journal is replayed, no lock is taken.
 * Nothing that its schema could execute is executed: views, virtual tables, triggers, functions,
 * extensions. A value may have 64 MiB. A table with more rows than the file can hold is damaged.
 * Damage ends the rows of a table. The first damage is remembered.
 *
 *	struct nsys_rows *rows = nsys_rows_open(
 *		db, "T", (const char *const[]){ "start", "end" }, 2);
 *
 *	while (nsys_rows_next(rows))
 *		use(nsys_rows_number(rows, 0), nsys_rows_has_value(rows, 1));
 *	nsys_rows_close(rows);
 */
#ifndef PPERF_REPORT_IMPORT_NSYS_NSYS_DATABASE_H
#define PPERF_REPORT_IMPORT_NSYS_NSYS_DATABASE_H

#include "report/text/string_table.h"
#include <stdbool.h>

#define NSYS_COLUMNS_MAX 24u

struct nsys_database;
struct nsys_rows;

/* Opens the database in `fd`. The caller keeps `fd` and must leave it open. Returns NULL with
 * the end of a sentence that begins with "it" in `problem`. */
struct nsys_database *nsys_database_open(int fd, char *problem, size_t problem_bytes);
void nsys_database_close(struct nsys_database *db);

/* Returns the name of plain table `number`, or NULL past the last one. */
const char *nsys_database_table(const struct nsys_database *db, size_t number);
bool nsys_database_has_column(struct nsys_database *db, const char *table, const char *column);
/* Finds the text of StringIds with this id. It is valid until the next call. Returns false if
 * there is none. */
bool nsys_database_string(struct nsys_database *db, int64_t id, struct string_view *text);
/* Returns the first damage found and its table, or NULL. */
const char *nsys_database_problem(const struct nsys_database *db, const char **table);

/* Starts reading the rows of a table, in file order. Never returns NULL: an absent table has no
 * rows, and an absent column has no values. */
struct nsys_rows *nsys_rows_open(
	struct nsys_database *db, const char *table, const char *const *columns, unsigned count);
bool nsys_rows_next(struct nsys_rows *rows);
void nsys_rows_close(struct nsys_rows *rows);

/* Returns true if the column has a value that is not NULL. */
bool nsys_rows_has_value(const struct nsys_rows *rows, unsigned column);
int64_t nsys_rows_number(const struct nsys_rows *rows, unsigned column); /* 0: no value */
/* The text is valid until the next row. It is empty if there is no value. */
struct string_view nsys_rows_text(const struct nsys_rows *rows, unsigned column);

#endif
