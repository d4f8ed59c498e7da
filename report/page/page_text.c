/* SPDX-License-Identifier: MIT */
#include "report/page/page_text.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdlib.h>

/* Returns how many bytes the first `characters` characters of UTF-8 have. */
static size_t bytes_of_characters(const char *text, size_t length, size_t characters)
{
	size_t at = 0;

	while (at < length && characters--)
		for (at++; at < length && ((unsigned char)text[at] & 0xc0) == 0x80;)
			at++;
	return at;
}

static size_t count_characters(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* If the text has more than `most` characters, replaces what is between its first PAGE_TEXT_HEAD
 * ones and its last ones by an ellipsis, so that PAGE_TEXT_CHARACTERS are left. */
static void cut_middle(struct page_text *page, size_t most)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	const size_t count = count_characters(page->text, page->length);
	size_t head, tail;

	if (count <= most)
		return;
	head = bytes_of_characters(page->text, page->length, PAGE_TEXT_HEAD);
	tail = bytes_of_characters(
		page->text, page->length, count - (PAGE_TEXT_CHARACTERS - PAGE_TEXT_HEAD - 1));
	memmove(page->text + head + 3, page->text + tail, page->length - tail + 1);
	memcpy(page->text + head, ellipsis, 3);
	page->length = head + 3 + page->length - tail;
	page->changed = true;
}

static struct page_text text_of(const char *bytes, size_t length, size_t most)
{
	/* Escaped text is at most six times as long. Of a longer text only the ends are used. */
	const size_t room = 6 * length + 8;
	struct page_text page = { .text = xcalloc(room) };

	page.length = escape_text(page.text, room, bytes, length, false);
	page.changed = page.length != length || memcmp(page.text, bytes, length) != 0;
	cut_middle(&page, most);
	return page;
}

struct page_text page_text_of(const char *bytes, size_t length)
{
	return text_of(bytes, length, PAGE_TEXT_CHARACTERS);
}

void page_write_json_text(struct output *out, const char *text, size_t length)
{
	output_char(out, '"');
	for (size_t i = 0; i < length; i++) {
		const char c = text[i];

		if (c == '"' || c == '\\') {
			output_char(out, '\\');
			output_char(out, c);
		} else if (c == '<' || c == '>' || c == '&') {
			output_string(out, c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026");
		} else {
			output_char(out, c);
		}
	}
	output_char(out, '"');
}

static void write_foreign(struct output *out, struct page_text text)
{
	page_write_json_text(out, text.text, text.length);
	free(text.text);
}

void page_write_foreign_text(struct output *out, const char *bytes, size_t length)
{
	write_foreign(out, text_of(bytes, length, PAGE_TEXT_CHARACTERS));
}

void page_write_foreign_sentence(struct output *out, const char *bytes, size_t length)
{
	write_foreign(out, text_of(bytes, length, PAGE_SENTENCE_CHARACTERS));
}

void page_write_sentence(struct json_writer *json, const char *text, size_t length)
{
	if (json->needs_comma)
		output_char(json->out, ',');
	if (count_characters(text, length) > PAGE_SENTENCE_CHARACTERS)
		page_write_foreign_text(json->out, text, length);
	else
		page_write_json_text(json->out, text, length);
	json->needs_comma = true;
}

void page_write_markup_text(struct output *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		switch (text[i]) {
		case '<':
			output_string(out, "&lt;");
			break;
		case '>':
			output_string(out, "&gt;");
			break;
		case '&':
			output_string(out, "&amp;");
			break;
		case '"':
			output_string(out, "&quot;");
			break;
		case '\'':
			output_string(out, "&#39;");
			break;
		default:
			output_char(out, text[i]);
		}
}
