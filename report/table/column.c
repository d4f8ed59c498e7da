/* SPDX-License-Identifier: MIT */
#include "report/table/column.h"
#include "report/table/column_list.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
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

const struct column *column_find(const char *key, size_t length)
{
	for (size_t i = 0; i < all_column_count; i++)
		if (strlen(all_columns[i].key) == length &&
			memcmp(all_columns[i].key, key, length) == 0)
			return &all_columns[i];
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

/* Whether the column identifies a row. It is then always shown, if the view has it. */
static bool identifies_row(const char *key)
{
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
			!(identifies_row(column->key) &&
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

static void check_sort(const struct options *options)
{
	const char *sort = options->sort;

	if (sort && !column_find(sort, strlen(sort)))
		refuse_column(sort, strlen(sort), " to sort by");
}

void columns_select(struct options *options)
{
	const char *key = options->columns;

	check_sort(options);
	options->row_columns = options->view->columns;
	if (!key)
		return;
	if (options->view->run && !*options->view->columns)
		fatal(STATUS_USAGE,
			"--columns works with views that have a row per node, not with %s",
			options->view->name);
	if (options->view->layout == LAYOUT_CRITICAL && options->format == FORMAT_TEXT)
		fatal(STATUS_USAGE,
			"%s has fixed columns in text; --columns works with -f json and -f csv",
			options->view->name);
	for (key += strspn(key, " ,"); *key; key += strspn(key, " ,")) {
		const size_t length = strcspn(key, " ,");

		if (!column_find(key, length))
			refuse_column(key, length, "");
		key += length;
	}
	if (!options->columns[strspn(options->columns, " ,")])
		fatal(STATUS_USAGE,
			"--columns needs column names separated by commas; pperf-report --legend "
			"lists them");
	options->row_columns = selected_keys(options);
}
