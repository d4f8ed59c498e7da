/* SPDX-License-Identifier: MIT
 * mutate_database.c: changes of an SQLite database that leave it one: cells are others, of any
 * type; rows come again or go; columns and tables have other names. SQLite itself makes them.
 */
#include "tests/fuzz/mutate.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 100
#define STEPS_MOST 100 /* of 1000 each: a changed database may lead in circles */

struct name {
	char text[NAME_BYTES];
};

static int enough(void *left)
{
	return --*(int *)left < 0;
}

/* One of what `query` lists, by chance. */
static int choose(sqlite3 *db, const char *query, struct dice *dice, struct name *name)
{
	struct name names[32];
	sqlite3_stmt *statement;
	size_t count = 0;

	if (sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
		return 0;
	while (count < sizeof names / sizeof *names && sqlite3_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		if (text && strlen(text) < NAME_BYTES && !strpbrk(text, "\"'"))
			snprintf(names[count++].text, NAME_BYTES, "%s", text);
	}
	sqlite3_finalize(statement);
	if (count)
		*name = names[dice_below(dice, count)];
	return count > 0;
}

static void bind_some(sqlite3_stmt *statement, struct dice *dice)
{
	static const int64_t numbers[] = { 0, 1, -1, 2, 7, 34, 59, 60, 75, 100, 510, INT64_MAX,
		INT64_MIN, INT32_MAX, UINT32_MAX, (int64_t)1 << 24, (int64_t)1 << 48,
		(int64_t)1 << 56, 281474976710656, 281474976710657, 281474993487874,
		1000000000000000000 };
	static const char *const texts[] = { "", "\x1b[31m", "\xff\xfe", "=1+1", "step",
		"_Z4gemmPfi", "cudaGraphLaunch_v10000", "\xe2\x80\xae", "12", "1e9" };

	switch (dice_below(dice, 8)) {
	case 0:
		sqlite3_bind_null(statement, 1);
		break;
	case 1:
		sqlite3_bind_double(statement, 1, dice_below(dice, 2) ? 1e300 : 0.5);
		break;
	case 2:
		sqlite3_bind_blob(statement, 1, "\0\1\2", 3, SQLITE_STATIC);
		break;
	case 3:
		sqlite3_bind_text(statement, 1,
			texts[dice_below(dice, sizeof texts / sizeof *texts)], -1, SQLITE_STATIC);
		break;
	case 4:
		sqlite3_bind_int64(statement, 1, (int64_t)dice_below(dice, 2000));
		break;
	default:
		sqlite3_bind_int64(
			statement, 1, numbers[dice_below(dice, sizeof numbers / sizeof *numbers)]);
	}
}

/* What is done to a table T, a column C or D of it, and a row N; ?1 is any value. */
static void make_query(
	char *query, size_t room, struct dice *dice, const char *t, const char *c, const char *d)
{
	const unsigned n = (unsigned)dice_below(dice, 4);

	switch (dice_below(dice, 24)) {
	case 0:
		snprintf(query, room,
			"DELETE FROM \"%s\" WHERE rowid = (SELECT rowid FROM \"%s\" LIMIT 1 OFFSET "
			"%u)",
			t, t, n);
		break;
	case 1:
	case 2:
	case 3:
		snprintf(query, room,
			"INSERT OR IGNORE INTO \"%s\" SELECT * FROM \"%s\" LIMIT 1 OFFSET %u", t, t,
			n);
		break;
	case 4:
	case 5:
		snprintf(query, room, "UPDATE OR IGNORE \"%s\" SET \"%s\" = \"%s\"", t, c, d);
		break;
	case 6:
	case 7:
		snprintf(query, room, "UPDATE OR IGNORE \"%s\" SET \"%s\" = \"%s\" + 1", t, c, c);
		break;
	case 8:
		snprintf(query, room, "UPDATE OR IGNORE \"%s\" SET \"%s\" = ?1", t, c);
		break;
	case 9:
		snprintf(
			query, room, "ALTER TABLE \"%s\" RENAME COLUMN \"%s\" TO \"%s_\"", t, c, c);
		break;
	default:
		snprintf(query, room,
			"UPDATE OR IGNORE \"%s\" SET \"%s\" = ?1 WHERE rowid = (SELECT rowid FROM "
			"\"%s\" LIMIT 1 OFFSET %u)",
			t, c, t, n);
	}
}

static void change(sqlite3 *db, struct dice *dice)
{
	struct name table, column, other;
	sqlite3_stmt *statement;
	char query[800];

	if (!choose(db, "SELECT name FROM sqlite_master WHERE type = 'table'", dice, &table))
		return;
	snprintf(query, sizeof query, "SELECT name FROM pragma_table_info('%s')", table.text);
	if (!choose(db, query, dice, &column) || !choose(db, query, dice, &other))
		return;
	make_query(query, sizeof query, dice, table.text, column.text, other.text);
	if (sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
		return;
	if (sqlite3_bind_parameter_count(statement))
		bind_some(statement, dice);
	sqlite3_step(statement);
	sqlite3_finalize(statement);
}

size_t mutate_database(unsigned char *bytes, size_t count, size_t room, struct dice *dice)
{
	unsigned char *copy = sqlite3_malloc64(count), *serial;
	sqlite3_int64 size = 0;
	int left = STEPS_MOST;
	sqlite3 *db;

	if (!copy)
		return count;
	memcpy(copy, bytes, count);
	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		abort();
	/* It frees the copy, also where it fails. */
	sqlite3_deserialize(db, "main", copy, (sqlite3_int64)count, (sqlite3_int64)count,
		SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
	sqlite3_progress_handler(db, 1000, enough, &left);
	for (size_t changes = 1 + dice_below(dice, 5); changes; changes--)
		change(db, dice);
	serial = sqlite3_serialize(db, "main", &size, 0);
	if (serial && size > 0 && (size_t)size <= room) {
		memcpy(bytes, serial, (size_t)size);
		count = (size_t)size;
	}
	sqlite3_free(serial);
	sqlite3_close(db);
	return count;
}
