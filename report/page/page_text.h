/* SPDX-License-Identifier: MIT
 * Prepares foreign text, such as names of a trace, for pages: valid UTF-8, control and direction
 * characters shown as in text views, and at most PAGE_TEXT_CHARACTERS characters. A name of 100 kB
 * made a browser measure it for 40 s.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_TEXT_H
#define PPERF_REPORT_PAGE_PAGE_TEXT_H

#include "report/text/json_writer.h"
#include <stdbool.h>

#define PAGE_TEXT_CHARACTERS 400u
#define PAGE_SENTENCE_CHARACTERS 2000u
#define PAGE_TEXT_HEAD 260u /* characters kept at the begin of a longer text */

struct page_text {
	/* Terminated, with at least 7 bytes to spare after it. The caller frees it. */
	char *text;
	size_t length;
	bool changed; /* the text differs from the foreign one */
};

struct page_text page_text_of(const char *bytes, size_t length);

/* Writes prepared text as a JSON string that may be in a script element: `<`, `>` and `&` are
 * escaped. */
void page_write_json_text(struct output *out, const char *text, size_t length);
/* Prepares foreign text and writes it as a JSON string that may be in a script element. For
 * json_writer.write_string. */
void page_write_foreign_text(struct output *out, const char *bytes, size_t length);
/* The same for our own sentences with foreign names in them: they are cut only beyond
 * PAGE_SENTENCE_CHARACTERS. */
void page_write_foreign_sentence(struct output *out, const char *bytes, size_t length);
/* Writes a sentence of text views, in which names are escaped, as a JSON value. It is cut as names
 * are, but only beyond PAGE_SENTENCE_CHARACTERS. */
void page_write_sentence(struct json_writer *json, const char *text, size_t length);
/* Writes prepared text as the content of an element or attribute of HTML, SVG or XML. */
void page_write_markup_text(struct output *out, const char *text, size_t length);

#endif
