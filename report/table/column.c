/* SPDX-License-Identifier: MIT */
#include "report/table/column.h"
#include "report/table/column_list.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/hash_index.h"
#include "report/base/text_builder.h"
#include "report/table/column_values.h"
#include "report/table/computed_row.h"
#include "report/text/suggest.h"
#include <string.h>

const struct column all_columns[] = {
#define X(name, heading, in, function, text)      \
	{ .key = name,                            \
		.title = heading,                 \
		.unit = UNIT_##in,                \
		.value = column_value_##function, \
		.help = text },
	COLUMNS(X)
#undef X
};
const size_t all_column_count = sizeof all_columns / sizeof *all_columns;

struct cell column_value(
	const struct column *column, const struct row *row, const struct rows *rows)
{
	const struct cell *own = row->kind == ROW_COMPUTED
					 ? computed_row_cell(row->of.computed, column)
					 : NULL;

	return own ? *own : column->value(row, rows);
}

static uint64_t hash_of_key(const char *key, size_t length)
{
	uint64_t hash = length;

	for (size_t i = 0; i < length; i++)
		hash = hash * 131 + (unsigned char)key[i];
	return hash_u64(hash);
}

/* Returns an index of all columns by key, made at the first call. It is never freed. */
static const struct hash_index *columns_by_key(void)
{
	static struct hash_index index;

	while (index.count < all_column_count) {
		const char *key = all_columns[index.count].key;
		const uint64_t hash = hash_of_key(key, strlen(key));
		struct hash_slot *slot;

		hash_index_reserve(&index);
		for (slot = hash_index_first(&index, hash); slot->number;
			slot = hash_index_next(&index, slot))
			;
		hash_index_add(&index, slot, hash, (uint32_t)index.count + 1);
	}
	return &index;
}

const struct column *column_find(const char *key, size_t length)
{
	const struct hash_index *index = columns_by_key();
	const struct hash_slot *slot = hash_index_first(index, hash_of_key(key, length));

	for (; slot->number; slot = hash_index_next(index, slot)) {
		const struct column *column = &all_columns[slot->number - 1];

		if (strlen(column->key) == length && memcmp(column->key, key, length) == 0)
			return column;
	}
	return NULL;
}

const struct column *column_next(const char **keys)
{
	const char *key = *keys + strspn(*keys, " ,");
	const size_t length = strcspn(key, " ,");

	*keys = key + length;
	return length ? column_find(key, length) : NULL;
}

static bool key_is_listed(const char *keys, const struct column *column)
{
	const struct column *listed;

	while ((listed = column_next(&keys)))
		if (listed == column)
			return true;
	return false;
}

bool column_identifies_row(const struct column *column)
{
	const char *key = column->key;

	return strcmp(key, "id") == 0 || strcmp(key, "parent") == 0 || strcmp(key, "depth") == 0 ||
	       strcmp(key, "name") == 0;
}

/* Returns the identifying keys and those of --columns, each once, in the order of the list. Thus
 * the columns of one JSON object stay side by side. The text is never freed. */
static const char *selected_keys(const struct options *options)
{
	static char *keys;
	static size_t room;
	size_t used = 0;

	for (size_t i = 0; i < all_column_count; i++) {
		const struct column *column = &all_columns[i];
		const size_t length = strlen(column->key);

		if (!key_is_listed(options->columns, column) &&
			!(column_identifies_row(column) &&
				key_is_listed(options->view->columns, column)))
			continue;
		array_grow_zeroed(&keys, &room, used + length + 2, 1);
		memcpy(keys + used, column->key, length);
		memcpy(keys + used + length, " ", 2);
		used += length + 1;
	}
	return keys;
}

static _Noreturn void refuse_column(const char *key, size_t length, const char *use)
{
	struct suggestion near = suggest_for(key, length);

	for (size_t i = 0; i < all_column_count; i++) {
		suggest_offer(&near, all_columns[i].key);
		suggest_offer(&near, all_columns[i].title);
	}
	fatal(STATUS_USAGE, "there is no column `%.*s`%s%s", (int)(length < 100 ? length : 100),
		key, use, suggest_text(&near, "pperf-report --legend lists the columns"));
}

/* Returns whether `name` is these bytes. */
static bool is_named(const char *name, const char *text, size_t length)
{
	return length && strlen(name) == length && memcmp(name, text, length) == 0;
}

/* How well a column fits what the user calls it, by its key or its title; 0: not at all. Titles
 * are shared by columns of different views, so those of the view come first. */
static unsigned name_fits(
	const struct column *column, const struct view *view, const char *text, size_t length)
{
	const bool listed = key_is_listed(view->columns, column);

	if (is_named(column->key, text, length))
		return listed ? 5 : 2;
	if (!is_named(column->title, text, length))
		return 0;
	return key_is_listed(view->text, column) ? 4 : listed ? 3 : 1;
}

static const struct column *column_named(const struct view *view, const char *text, size_t length)
{
	const struct column *best = NULL;
	unsigned most = 0;

	for (size_t i = 0; i < all_column_count; i++) {
		const unsigned fits = name_fits(&all_columns[i], view, text, length);

		if (fits <= most)
			continue;
		best = &all_columns[i];
		most = fits;
	}
	return best;
}

/* Returns the keys of the columns that --columns names. Names are separated by commas, keys also
 * by blanks. The text is never freed. */
static const char *requested_keys(const struct view *view, const char *names)
{
	struct text_builder keys = { .text = NULL };
	const char *item = names; /* from one comma to the next */

	text_add(&keys, "%s", "");
	for (names += strspn(names, " ,"); *names; names += strspn(names, " ,")) {
		const struct column *column = NULL;
		size_t length = strcspn(names, ",");

		if (memchr(item, ',', (size_t)(names - item)) || !keys.used)
			item = names;

		while (length && !(column = column_named(view, names, length)))
			do
				length--;
			while (length && names[length] != ' ');
		if (!column)
			refuse_column(item, strcspn(item, ","), "");
		text_add(&keys, "%s%s", keys.used ? "," : "", column->key);
		names += length;
	}
	return keys.text;
}

static void select_sort(struct options *options)
{
	const char *sort = options->sort;
	const struct column *column = sort ? column_named(options->view, sort, strlen(sort)) : NULL;

	if (sort && !column)
		refuse_column(sort, strlen(sort), " to sort by");
	if (column)
		options->sort = column->key;
}

void columns_select(struct options *options)
{
	select_sort(options);
	options->output_columns = options->view->columns;
	if (!options->columns)
		return;
	if (options->view->run && !*options->view->columns)
		fatal(STATUS_USAGE,
			"--columns works with views that have a row per node, not with %s",
			options->view->name);
	if (options->view->layout == LAYOUT_CRITICAL && options->format == FORMAT_TEXT)
		fatal(STATUS_USAGE,
			"%s has fixed columns in text; --columns works with -f json and -f csv",
			options->view->name);
	if (!strcmp(options->columns, "all")) {
		options->columns = options->view->columns;
		return;
	}
	options->columns = requested_keys(options->view, options->columns);
	if (!*options->columns)
		fatal(STATUS_USAGE, "--columns needs column names separated by commas; "
				    "pperf-report --legend lists them");
	options->output_columns = selected_keys(options);
}
