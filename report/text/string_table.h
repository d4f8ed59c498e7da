/* SPDX-License-Identifier: MIT
 * Interns strings. Equal bytes get the same id, and ids count up in the order of first use. The
 * empty string is 0. A string may hold any bytes, even zeros, and is also terminated.
 */
#ifndef PPERF_REPORT_TEXT_STRING_TABLE_H
#define PPERF_REPORT_TEXT_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct string_view {
	const char *bytes; /* valid as long as the table */
	uint32_t length;
};

static inline bool string_view_is(struct string_view view, const char *text)
{
	return view.length == strlen(text) && memcmp(view.bytes, text, view.length) == 0;
}

struct string_table;

struct string_table *string_table_new(void);
void string_table_free(struct string_table *table);

uint32_t string_table_intern(struct string_table *table, const char *bytes, size_t length);
/* Returns the id of a string, or 0 if it has none. */
uint32_t string_table_find(const struct string_table *table, const char *bytes, size_t length);
/* Returns the number of ids: those below it are in use. */
uint32_t string_table_count(const struct string_table *table);
struct string_view string_table_get(const struct string_table *table, uint32_t id);

/* Compares the bytes as unsigned numbers, the shorter string first. Returns <0, 0 or >0. */
int string_table_compare(const struct string_table *table, uint32_t a, uint32_t b);

#endif
