/* SPDX-License-Identifier: MIT */
#include "report/import/nsys/nsys_database.h"
#include "report/base/alloc.h"
#include "report/base/temporary_file.h"
#include "report/base/text_builder.h"
#include <ctype.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_BYTES_MAX (64 << 20)
#define TABLES_MAX 1024u
#define ROW_BYTES_MIN 4u /* a cell's pointer and a cell */
/* A row of a real export takes less than one step per byte. */
#define STEPS_PER_BYTE 16u
#define STEPS_MIN 20000000u
#define STEPS_PER_CALLBACK 1000

struct nsys_database {
	sqlite3 *sqlite;
	uint64_t rows_max;   /* rows that fit into the file */
	uint64_t steps_left; /* remaining steps of SQLite's virtual machine */
	/* views and virtual tables, which are not read */
	char *tables[TABLES_MAX], *unreadable_tables[TABLES_MAX];
	size_t table_count, unreadable_count;
	sqlite3_stmt *string;
	char problem[256], problem_table[128];
};

struct nsys_rows {
	struct nsys_database *db;
	sqlite3_stmt *statement; /* NULL: no rows */
	const char *table;
	uint64_t count;
};

/* Allows only pperf's own queries: rows of tables, and the columns of a table. */
static int authorize_statement(void *context, int action, const char *first, const char *second,
	const char *base, const char *inner)
{
	(void)context;
	(void)second;
	(void)base;
	if (inner)
		return SQLITE_DENY; /* from a trigger or a view */
	if (action == SQLITE_PRAGMA)
		return sqlite3_stricmp(first, "table_info") ? SQLITE_DENY : SQLITE_OK;
	return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static void note_database_problem(struct nsys_database *db, const char *table, const char *problem)
{
	if (*db->problem)
		return;
	snprintf(db->problem, sizeof db->problem, "%s", problem);
	snprintf(db->problem_table, sizeof db->problem_table, "%s", table);
}

/* Stops a query when its steps are used up. Pages that form a cycle can make a file of a few
 * kilobytes endless. */
static int count_steps(void *context)
{
	struct nsys_database *db = context;

	if (db->steps_left <= STEPS_PER_CALLBACK) {
		note_database_problem(db, "all of them", "its pages form a cycle");
		return 1;
	}
	db->steps_left -= STEPS_PER_CALLBACK;
	return 0;
}

static void restrict_database(struct nsys_database *db)
{
	sqlite3 *sqlite = db->sqlite;

	static const int off[] = { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
		SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
		SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_FKEY };

	for (size_t i = 0; i < sizeof off / sizeof *off; i++)
		sqlite3_db_config(sqlite, off[i], 0, NULL);
	sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(sqlite, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	sqlite3_limit(sqlite, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(sqlite, SQLITE_LIMIT_EXPR_DEPTH, 32);
	sqlite3_limit(sqlite, SQLITE_LIMIT_WORKER_THREADS, 0);
	sqlite3_exec(sqlite, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", NULL, NULL, NULL);
	sqlite3_set_authorizer(sqlite, authorize_statement, NULL);
	sqlite3_progress_handler(sqlite, STEPS_PER_CALLBACK, count_steps, db);
}

static sqlite3_stmt *prepare_query(struct nsys_database *db, const char *table, const char *query)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db->sqlite, query, -1, &statement, NULL) != SQLITE_OK)
		note_database_problem(db, table, sqlite3_errmsg(db->sqlite));
	return statement;
}

/* Lists tables, and separately views and virtual tables. A virtual table has no root page. Names
 * that no export uses are skipped. */
static bool list_tables(struct nsys_database *db)
{
	sqlite3_stmt *statement = prepare_query(db, "sqlite_master",
		"SELECT name, type = 'table' AND rootpage > 0 FROM sqlite_master WHERE type IN "
		"('table', 'view')");
	int result = SQLITE_ERROR;

	while (statement && (result = sqlite3_step(statement)) == SQLITE_ROW &&
		db->table_count < TABLES_MAX && db->unreadable_count < TABLES_MAX) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);

		if (!name || strlen(name) >= 100 || strchr(name, '"'))
			continue;
		if (sqlite3_column_int(statement, 1))
			db->tables[db->table_count++] = strdup(name);
		else
			db->unreadable_tables[db->unreadable_count++] = strdup(name);
	}
	if (statement && result != SQLITE_DONE && result != SQLITE_ROW)
		note_database_problem(db, "sqlite_master", sqlite3_errmsg(db->sqlite));
	sqlite3_finalize(statement);
	return !*db->problem;
}

#define OPEN_FLAGS (SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX)

/* Opens the database in an open file. Returns SQLite's result. */
static int open_descriptor(struct nsys_database *db, int fd)
{
	char path[64];

	snprintf(path, sizeof path, "file:/proc/self/fd/%d?immutable=1", fd);
	return sqlite3_open_v2(path, &db->sqlite, OPEN_FLAGS, NULL);
}

/* Returns the URI of a path, which the caller frees. */
static char *uri_of(const char *path)
{
	struct text_builder uri = { .text = NULL };

	text_add(&uri, "file:");
	for (; *path; path++)
		text_add(&uri, isalnum((unsigned char)*path) || *path == '/' ? "%c" : "%%%02x",
			(unsigned char)*path);
	text_add(&uri, "?immutable=1");
	return uri.text;
}

/* As open_descriptor, for a file without a name, such as the copy of a pipe: SQLite opens files by
 * their names only. So the file gets one in the folder of temporary files until it is open. */
static int open_unnamed(struct nsys_database *db, int fd)
{
	struct text_builder name = { .text = NULL };
	char descriptor[64], *uri;
	int result;

	snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd);
	text_add(&name, "%s/pperf-%ld-%d.sqlite", temporary_folder(), (long)getpid(), fd);
	if (linkat(AT_FDCWD, descriptor, AT_FDCWD, name.text, AT_SYMLINK_FOLLOW)) {
		free(name.text);
		return open_descriptor(db, fd);
	}
	uri = uri_of(name.text);
	result = sqlite3_open_v2(uri, &db->sqlite, OPEN_FLAGS, NULL);
	unlink(name.text);
	free(name.text);
	free(uri);
	return result;
}

struct nsys_database *nsys_database_open(int fd, char *problem, size_t problem_bytes)
{
	struct nsys_database *db = xcalloc(sizeof *db);
	struct stat status = { .st_size = 0 };
	int result;

	db->rows_max = fstat(fd, &status) ? 0 : (uint64_t)status.st_size / ROW_BYTES_MIN;
	db->steps_left = STEPS_MIN + db->rows_max * ROW_BYTES_MIN * STEPS_PER_BYTE;
	result = status.st_nlink ? open_descriptor(db, fd) : open_unnamed(db, fd);
	if (result == SQLITE_OK) {
		restrict_database(db);
		if (list_tables(db))
			return db;
	}
	snprintf(problem, problem_bytes, "is an SQLite database that cannot be read (%s)",
		*db->problem ? db->problem : sqlite3_errmsg(db->sqlite));
	nsys_database_close(db);
	return NULL;
}

void nsys_database_close(struct nsys_database *db)
{
	sqlite3_finalize(db->string);
	sqlite3_close(db->sqlite);
	for (size_t i = 0; i < db->table_count; i++)
		free(db->tables[i]);
	for (size_t i = 0; i < db->unreadable_count; i++)
		free(db->unreadable_tables[i]);
	free(db);
}

const char *nsys_database_table(const struct nsys_database *db, size_t number)
{
	return number < db->table_count ? db->tables[number] : NULL;
}

const char *nsys_database_problem(const struct nsys_database *db, const char **table)
{
	*table = db->problem_table;
	return *db->problem ? db->problem : NULL;
}

static bool is_in_list(char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* A requested view or virtual table counts as damage, because exports of Nsight Systems have
 * tables only. */
static bool has_table(struct nsys_database *db, const char *table)
{
	if (is_in_list(db->unreadable_tables, db->unreadable_count, table))
		note_database_problem(
			db, table, "it is a view or a virtual table; pperf reads tables only");
	return is_in_list(db->tables, db->table_count, table);
}

/* Returns 0 if there is no such column, 1 if there is, 2 if it is the integer primary key. */
static int find_table_column(struct nsys_database *db, const char *table, const char *column)
{
	sqlite3_stmt *statement = NULL;
	char query[256];
	int found = 0;

	snprintf(query, sizeof query, "PRAGMA table_info(\"%s\")", table);
	if (has_table(db, table))
		statement = prepare_query(db, table, query);
	while (statement && !found && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 1);
		const char *type = (const char *)sqlite3_column_text(statement, 2);

		if (name && !sqlite3_stricmp(name, column))
			found = sqlite3_column_int(statement, 5) == 1 && type &&
						!sqlite3_stricmp(type, "INTEGER")
					? 2
					: 1;
	}
	sqlite3_finalize(statement);
	return found;
}

bool nsys_database_has_column(struct nsys_database *db, const char *table, const char *column)
{
	return find_table_column(db, table, column) > 0;
}

static bool prepare_string_query(struct nsys_database *db)
{
	if (!db->string && find_table_column(db, "StringIds", "id") == 2 &&
		nsys_database_has_column(db, "StringIds", "value"))
		db->string = prepare_query(
			db, "StringIds", "SELECT value FROM StringIds WHERE id = ?");
	return db->string;
}

/* In every version, the id is the primary key. If it is not, each lookup would scan the whole
 * table, so nothing is returned. */
bool nsys_database_string(struct nsys_database *db, int64_t id, struct string_view *text)
{
	int result;

	if (!prepare_string_query(db))
		return false;
	sqlite3_reset(db->string);
	sqlite3_bind_int64(db->string, 1, id);
	result = sqlite3_step(db->string);
	if (result != SQLITE_ROW) {
		if (result != SQLITE_DONE)
			note_database_problem(db, "StringIds", sqlite3_errmsg(db->sqlite));
		return false;
	}
	text->bytes = (const char *)sqlite3_column_text(db->string, 0);
	text->length = (uint32_t)sqlite3_column_bytes(db->string, 0);
	return text->bytes != NULL;
}

struct nsys_rows *nsys_rows_open(
	struct nsys_database *db, const char *table, const char *const *columns, unsigned count)
{
	struct nsys_rows *rows = xcalloc(sizeof *rows);
	struct text_builder query = { .text = NULL };

	rows->db = db;
	rows->table = table;
	if (!has_table(db, table))
		return rows;
	text_add(&query, "SELECT ");
	for (unsigned i = 0; i < count; i++)
		text_add(&query,
			nsys_database_has_column(db, table, columns[i]) ? "%s\"%s\"" : "%sNULL",
			i ? "," : "", columns[i]);
	text_add(&query, "%s FROM \"%s\"", count ? "" : "1", table);
	rows->statement = prepare_query(db, table, query.text);
	free(query.text);
	return rows;
}

bool nsys_rows_next(struct nsys_rows *rows)
{
	const int result = rows->statement ? sqlite3_step(rows->statement) : SQLITE_DONE;

	if (result == SQLITE_ROW && rows->count++ < rows->db->rows_max)
		return true;
	if (result == SQLITE_ROW)
		note_database_problem(
			rows->db, rows->table, "it has more rows than fit in the file");
	else if (result != SQLITE_DONE)
		note_database_problem(rows->db, rows->table, sqlite3_errmsg(rows->db->sqlite));
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
	return false;
}

void nsys_rows_close(struct nsys_rows *rows)
{
	sqlite3_finalize(rows->statement);
	free(rows);
}

bool nsys_rows_has_value(const struct nsys_rows *rows, unsigned column)
{
	return sqlite3_column_type(rows->statement, (int)column) != SQLITE_NULL;
}

int64_t nsys_rows_number(const struct nsys_rows *rows, unsigned column)
{
	return sqlite3_column_int64(rows->statement, (int)column);
}

struct string_view nsys_rows_text(const struct nsys_rows *rows, unsigned column)
{
	const char *bytes = (const char *)sqlite3_column_text(rows->statement, (int)column);

	return (struct string_view){ bytes ? bytes : "",
		bytes ? (uint32_t)sqlite3_column_bytes(rows->statement, (int)column) : 0 };
}
