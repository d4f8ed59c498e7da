/* SPDX-License-Identifier: MIT
 * text.h: texts by number. The same bytes get the same id, 0 is the empty text; ids count up in the order of first
 * use. A text may hold any bytes, zeros too; each is also terminated, for convenience.
 */
#ifndef PPERF_REPORT_TEXT_STRING_TABLE_H
#define PPERF_REPORT_TEXT_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct string_view {
	const char *bytes; /* lives as long as the table */
	uint32_t length;
};

struct string_table;

struct string_table *string_table_new(void);
void string_table_free(struct string_table *table);

uint32_t string_table_intern(struct string_table *table, const char *bytes, size_t length);
/* The same, but 0 if the text has no id. */
uint32_t string_table_find(const struct string_table *table, const char *bytes, size_t length);
struct string_view string_table_get(const struct string_table *table, uint32_t id);

/* By their bytes as unsigned numbers, the shorter first: <0, 0, >0. */
int string_table_compare(const struct string_table *table, uint32_t a, uint32_t b);

#endif
