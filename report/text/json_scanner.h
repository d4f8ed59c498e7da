/* SPDX-License-Identifier: MIT
 * json_scan.h: JSON read in place, value by value, from a window of bytes. Nothing is built: texts are spans of the
 * window, numbers keep their digits, what nobody asks for is passed over.
 *
 *	struct json_scan scan = { .at = window, .end = window + bytes };
 *	struct json_text key, value;
 *
 *	for (more = json_open(&scan, '{'); more && json_key(&scan, &key); more = json_next(&scan, '}'))
 *		if (!json_value(&scan, &value))
 *			break;
 *	if (scan.problem) ...
 *
 * The window must have JSON_SLACK readable bytes behind `end`, zeros. Where it ends too early, `problem` is
 * JSON_MORE: the caller gets more bytes and begins the value again. Anything else is a sentence's end, about the byte
 * at `at`.
 *
 * Strict about structure (brackets, colons, commas, quotes, the form of numbers), whatever is not passed over; not about
 * what real traces hold: NaN and Infinity, raw control characters, bytes that are not UTF-8, lone surrogates, a comma before
 * the bracket that closes.
 */
#ifndef PPERF_REPORT_TEXT_JSON_SCANNER_H
#define PPERF_REPORT_TEXT_JSON_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_SLACK 32
#define JSON_DEPTH_MAX 4096 /* brackets within brackets */

extern const char JSON_MORE[];

struct json_scanner {
	const char *at, *end;
	const char *problem; /* NULL: none so far */
	uint64_t
		nonstandard_values; /* values that JSON does not have, but programs write: NaN, Infinity */
};

/* A value, as it stands in the window. */
struct json_text {
	const char *bytes; /* of a string: without its quotes */
	size_t length;
	char form; /* '"', '0' a number, 'n' null, 't' true, 'f' false, 'N' NaN or infinite, '{', '['; 0: none */
	bool escaped; /* a string with backslashes */
};

/* All of these return false, and say so in `problem`, where the text is not as they want it. */

/* Past white space and the bracket `open`. False without a problem: it closes again at once, and was passed. What comes
 * behind a bracket or comma must be at hand: json_open and json_next are begun again as a value is. */
bool json_open(struct json_scanner *scan, char open);
/* A key and its colon. */
bool json_key(struct json_scanner *scan, struct json_text *key);
/* Past a comma: true. Past `close`, be it behind a comma: false without a problem. */
bool json_next(struct json_scanner *scan, char close);
/* Any value. Objects and arrays are passed over whole; `bytes` and `length` are their text, brackets included. */
bool json_value(struct json_scanner *scan, struct json_text *value);
/* What comes next, not passed; 0: nothing does (JSON_MORE). */
char json_peek(struct json_scanner *scan);

/* The string without its escapes; `out` has room for text->length bytes. A lone surrogate becomes the three bytes
 * that it would have in UTF-8. An escape that JSON does not have stays as it is. */
size_t json_unescape(const struct json_text *text, char *out);

/* A number, or a string that holds one, as an integer; hexadecimal after 0x. False: it is none, or does not fit. A number
 * must lie in a window, as json_scaled's text must: JSON_SLACK bytes behind it are readable. */
bool json_unsigned(const struct json_text *text, uint64_t *value);
bool json_signed(const struct json_text *text, int64_t *value);
/* A number times 10 to the power of `digits`, rounded half to even, from its text: nothing is lost on the way. */
bool json_scaled(const struct json_text *text, int digits, int64_t *value);

static inline bool json_is(const struct json_text *text, const char *word)
{
	const size_t length = strlen(word);

	return text->length == length && !memcmp(text->bytes, word, length);
}

#endif
