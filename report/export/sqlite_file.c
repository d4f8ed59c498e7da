/* SPDX-License-Identifier: MIT */
#include "report/export/sqlite_file.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/temporary_file.h"
#include "report/base/text_builder.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct sqlite_rows {
	struct sqlite_rows *next;
	struct sqlite_file *file;
	sqlite3_stmt *statement;
	int column; /* set so far in the current row */
};

struct sqlite_file {
	sqlite3 *sqlite;
	struct sqlite_rows *rows; /* all */
	char *path;               /* of the temporary file */
	int fd;
};

static void check(struct sqlite_file *file, int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE)
		return;
	fatal(STATUS_UNREADABLE, "cannot write the database %s: %s", file->path,
		sqlite3_errmsg(file->sqlite));
}

static void run(struct sqlite_file *file, const char *statements)
{
	check(file, sqlite3_exec(file->sqlite, statements, NULL, NULL, NULL));
}

struct sqlite_file *sqlite_file_new(const char *schema)
{
	struct sqlite_file *file = xcalloc(sizeof *file);
	struct text_builder path = { .text = NULL };

	text_add(&path, "%s/pperf-export-XXXXXX", temporary_folder());
	/* No locks and no statistics: only this thread uses SQLite. If it was used before, as to
	 * read a trace, this is refused, and writing is slower. */
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	file->path = path.text;
	file->fd = mkstemp(file->path);
	if (file->fd < 0)
		fatal(STATUS_UNREADABLE, "cannot create %s: %s", file->path, strerror(errno));
	check(file, sqlite3_open_v2(file->path, &file->sqlite,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
	run(file, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
		  "PRAGMA page_size=16384");
	run(file, "BEGIN");
	run(file, schema);
	unlink(file->path); /* it is open, and goes when the program ends */
	return file;
}

static void copy_file(int fd, struct output *out)
{
	char buffer[65536];
	ssize_t bytes;

	if (lseek(fd, 0, SEEK_SET) != 0)
		fatal(STATUS_UNREADABLE, "cannot read the database: %s", strerror(errno));
	while ((bytes = read(fd, buffer, sizeof buffer)) > 0)
		output_bytes(out, buffer, (size_t)bytes);
	if (bytes < 0)
		fatal(STATUS_UNREADABLE, "cannot read the database: %s", strerror(errno));
}

void sqlite_file_end(struct sqlite_file *file, const char *last, struct output *out)
{
	for (struct sqlite_rows *rows = file->rows, *next; rows; rows = next) {
		next = rows->next;
		sqlite3_finalize(rows->statement);
		free(rows);
	}
	run(file, last);
	run(file, "COMMIT");
	check(file, sqlite3_close(file->sqlite));
	copy_file(file->fd, out);
	close(file->fd);
	free(file->path);
	free(file);
}

struct sqlite_rows *sqlite_rows_new(struct sqlite_file *file, const char *table, unsigned columns)
{
	struct sqlite_rows *rows = xcalloc(sizeof *rows);
	struct text_builder insert = { .text = NULL };

	text_add(&insert, "INSERT INTO %s VALUES(?", table);
	for (unsigned i = 1; i < columns; i++)
		text_add(&insert, ",?");
	text_add(&insert, ")");
	rows->file = file;
	rows->next = file->rows;
	file->rows = rows;
	check(file, sqlite3_prepare_v2(file->sqlite, insert.text, -1, &rows->statement, NULL));
	free(insert.text);
	return rows;
}

void sqlite_put_number(struct sqlite_rows *rows, uint64_t value)
{
	check(rows->file, sqlite3_bind_int64(rows->statement, ++rows->column, (int64_t)value));
}

void sqlite_put_signed(struct sqlite_rows *rows, int64_t value)
{
	check(rows->file, sqlite3_bind_int64(rows->statement, ++rows->column, value));
}

/* A text may hold any bytes: what is not UTF-8 is escaped as in CSV. */
void sqlite_put_text(struct sqlite_rows *rows, struct string_view text)
{
	check(rows->file, sqlite3_bind_text(rows->statement, ++rows->column, text.bytes,
				  (int)text.length, SQLITE_TRANSIENT));
}

void sqlite_put_null(struct sqlite_rows *rows)
{
	check(rows->file, sqlite3_bind_null(rows->statement, ++rows->column));
}

void sqlite_row_end(struct sqlite_rows *rows)
{
	const int result = sqlite3_step(rows->statement);

	if (result != SQLITE_DONE)
		check(rows->file, result);
	sqlite3_reset(rows->statement);
	rows->column = 0;
}
