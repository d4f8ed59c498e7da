/* SPDX-License-Identifier: MIT */
#include "report/column.h"
#include "report/column_list.h"
#include "report/figures.h"
#include <string.h>

const struct column all_columns[] = {
#define X(name, heading, in, function, text) \
	{ .key = name, .title = heading, .unit = UNIT_##in, .value = figure_##function, .help = text },
	COLUMNS(X)
#undef X
};
const size_t all_column_count = sizeof all_columns / sizeof *all_columns;

const struct column *column_find(const char *key, size_t length)
{
	for (size_t i = 0; i < all_column_count; i++)
		if (strlen(all_columns[i].key) == length && memcmp(all_columns[i].key, key, length) == 0)
			return &all_columns[i];
	return NULL;
}

const struct column *column_next(const char **keys)
{
	const char *key = *keys + strspn(*keys, " ");
	const size_t length = strcspn(key, " ");

	*keys = key + length;
	return length ? column_find(key, length) : NULL;
}
