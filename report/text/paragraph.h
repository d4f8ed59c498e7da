/* SPDX-License-Identifier: MIT
 * paragraph.h: text that is put together from pieces, then printed under a title, wrapped between words.
 */
#ifndef PPERF_REPORT_TEXT_PARAGRAPH_H
#define PPERF_REPORT_TEXT_PARAGRAPH_H

#include "report/text/format_number.h"
#include "report/text/style.h"
#include "report/base/text_builder.h"

#define PARAGRAPH_INDENT 10 /* columns of titles, unless it says otherwise */

/* Begins as { .style = style } or with an indent too, and is that again after paragraph_put. */
struct paragraph {
	struct text_builder built;
	const struct style *style;
	size_t indent; /* 0: INDENT */
};

/* Ours, as printf; somebody else's, made visible; a figure with its unit; a share. */
void paragraph_add(struct paragraph *paragraph, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void paragraph_text(struct paragraph *paragraph, const char *bytes, size_t length);
/* Somebody else's name: made visible, and shortened in its middle where it would be wider than a line. */
void paragraph_name(struct paragraph *paragraph, const char *bytes, size_t length);
/* Shortens what was added behind the first `from` bytes in its middle, to `columns`. */
void paragraph_shorten(struct paragraph *paragraph, size_t from, size_t columns);
void paragraph_value(struct paragraph *paragraph, enum unit unit, uint64_t value);
void paragraph_percent(struct paragraph *paragraph, uint64_t part, uint64_t whole);

/* Prints it, at least one line, and empties it. */
void paragraph_print(struct paragraph *paragraph, const char *title);

#endif
