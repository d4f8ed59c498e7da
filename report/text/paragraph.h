/* SPDX-License-Identifier: MIT
 * Collects a text from pieces and prints it under a title, wrapped between words.
 */
#ifndef PPERF_REPORT_TEXT_PARAGRAPH_H
#define PPERF_REPORT_TEXT_PARAGRAPH_H

#include "report/text/format_number.h"
#include "report/text/style.h"
#include "report/base/text_builder.h"

#define PARAGRAPH_INDENT 10 /* columns of a title if `indent` is 0 */

/* Initialised as { .style = style }, optionally with an indent. paragraph_print resets it to
 * that. */
struct paragraph {
	struct text_builder built;
	const struct style *style;
	size_t indent; /* 0: PARAGRAPH_INDENT */
};

/* Appends text of pperf itself, formatted as by printf (at most 2047 bytes) and not escaped. */
void paragraph_add(struct paragraph *paragraph, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends text from a trace, such as a setting, and escapes it. */
void paragraph_text(struct paragraph *paragraph, const char *bytes, size_t length);
/* Appends a name from a trace, escapes it, and shortens it in its middle if it is wider than a
 * line. */
void paragraph_name(struct paragraph *paragraph, const char *bytes, size_t length);
/* Shortens the text after the first `from` bytes to at most `columns`, by an ellipsis in the
 * middle. */
void paragraph_shorten(struct paragraph *paragraph, size_t from, size_t columns);
void paragraph_value(struct paragraph *paragraph, enum unit unit, uint64_t value);
/* Appends part / whole as a percentage. */
void paragraph_percent(struct paragraph *paragraph, uint64_t part, uint64_t whole);

/* Prints at least one line and empties the paragraph. */
void paragraph_print(struct paragraph *paragraph, const char *title);

#endif
