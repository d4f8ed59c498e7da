/* SPDX-License-Identifier: MIT
 * text.h: texts by number. The same bytes get the same id, 0 is the empty text; ids count up in the order of first
 * use. A text may hold any bytes, zeros too; each is also terminated, for convenience.
 */
#ifndef PPERF_REPORT_TEXT_STRING_TABLE_H
#define PPERF_REPORT_TEXT_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct text {
	const char *bytes; /* lives as long as the table */
	uint32_t length;
};

struct texts;

struct texts *texts_new(void);
void texts_free(struct texts *texts);

uint32_t text_id(struct texts *texts, const char *bytes, size_t length);
/* The same, but 0 if the text has no id. */
uint32_t text_find(const struct texts *texts, const char *bytes, size_t length);
struct text text_of(const struct texts *texts, uint32_t id);

/* By their bytes as unsigned numbers, the shorter first: <0, 0, >0. */
int text_compare(const struct texts *texts, uint32_t a, uint32_t b);

#endif
