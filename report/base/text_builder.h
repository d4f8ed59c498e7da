/* SPDX-License-Identifier: MIT
 * Puts a string of any length together from pieces.
 *
 *	struct text_builder line = { .text = NULL };
 *	text_add(&line, "%u nodes", count);
 *	text_add_bytes(&line, name.bytes, name.length);
 *	free(line.text);
 */
#ifndef PPERF_REPORT_BASE_TEXT_BUILDER_H
#define PPERF_REPORT_BASE_TEXT_BUILDER_H

#include <stdarg.h>
#include <stddef.h>

/* Zeroed: nothing was added, and text is NULL. */
struct text_builder {
	char *text; /* terminated; the caller frees it */
	size_t used, room;
};

/* Adds as printf does. */
void text_add(struct text_builder *builder, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds as vprintf does. */
void text_add_list(struct text_builder *builder, const char *format, va_list list)
	__attribute__((format(printf, 2, 0)));
void text_add_bytes(struct text_builder *builder, const char *bytes, size_t length);
/* Adds a name of a path as --focus reads it: `\/` for a slash, `\\` for a backslash, `\xff` for a
 * byte that is not UTF-8. The caller adds the / between names. */
void text_add_path_name(struct text_builder *builder, const char *bytes, size_t length);

#endif
