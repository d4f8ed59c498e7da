/* SPDX-License-Identifier: MIT
 * Reads JSON in place, value by value, from a buffer. No tree is built. Strings are spans of the
 * buffer, numbers keep their digits, and unwanted values are skipped.
 *
 *	struct json_scanner scan = { .at = buffer, .end = buffer + bytes };
 *	struct json_text key, value;
 *
 *	for (more = json_open(&scan, '{'); more && json_key(&scan, &key);
 *			more = json_next(&scan, '}'))
 *		if (!json_value(&scan, &value))
 *			break;
 *	if (scan.problem) ...
 *
 * The buffer must have JSON_SLACK readable zero bytes after `end`. If it ends too early,
 * `problem` is JSON_MORE: the caller gets more bytes and reads the value again. Any other
 * `problem` completes a sentence about the byte at `at`.
 *
 * The scanner is strict about the structure of what it does not skip: brackets, colons, commas,
 * quotes, the form of numbers. It accepts what real traces contain:
 *
 *  - NaN and Infinity
 *  - raw control characters
 *  - bytes that are not UTF-8
 *  - lone surrogates
 *  - a comma before the closing bracket
 */
#ifndef PPERF_REPORT_TEXT_JSON_SCANNER_H
#define PPERF_REPORT_TEXT_JSON_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_SLACK 32
#define JSON_DEPTH_MAX 4096 /* nested brackets */

extern const char JSON_MORE[];

struct json_scanner {
	const char *at, *end;
	const char *problem; /* NULL: none so far */
	/* Number of NaN and Infinity values, which JSON does not have but programs write. */
	uint64_t nonstandard_values;
};

/* The kind of a value. true and false have two kinds. */
enum json_form {
	JSON_NONE = 0, /* there is no value */
	JSON_STRING = '"',
	JSON_NUMBER = '0',
	JSON_NULL = 'n',
	JSON_TRUE = 't',
	JSON_FALSE = 'f',
	JSON_NONSTANDARD = 'N', /* NaN, Infinity, -Infinity */
	JSON_OBJECT = '{',
	JSON_ARRAY = '[',
};

/* A value in the buffer. */
struct json_text {
	const char *bytes; /* of a string: without its quotes */
	size_t length;
	char form;    /* enum json_form */
	bool escaped; /* the string contains backslashes */
};

/* These functions return false and set `problem` if the text is not what they expect. */

/* Skips white space and the bracket `open`. Returns false without a problem if the bracket
 * closes immediately; the closing bracket is skipped too. What follows a bracket or comma must
 * be in the buffer, so json_open and json_next are repeated after JSON_MORE like json_value. */
bool json_open(struct json_scanner *scan, char open);
/* Reads a key and its colon. */
bool json_key(struct json_scanner *scan, struct json_text *key);
/* Skips a comma and returns true. Skips `close`, also after a comma, and returns false without a
 * problem. */
bool json_next(struct json_scanner *scan, char close);
/* Reads any value. Objects and arrays are skipped as a whole; `bytes` and `length` are their
 * text with brackets. */
bool json_value(struct json_scanner *scan, struct json_text *value);
/* Returns the next byte after white space without skipping it, or 0 at the end (JSON_MORE). */
char json_peek(struct json_scanner *scan);

/* Writes the string without escapes to `out`, which has room for text->length bytes. Returns the
 * number of bytes. They are not terminated, and `\u0000` becomes a zero byte. A lone surrogate
 * becomes the three bytes that it would have in UTF-8. An unknown escape is copied. */
size_t json_unescape(const struct json_text *text, char *out);

/* Converts a number, or a string that holds one, to an integer. `0x` begins a hexadecimal one.
 * Returns false if it is not an integer or does not fit. A number must have JSON_SLACK readable
 * bytes after it, which is true in a buffer. */
bool json_unsigned(const struct json_text *text, uint64_t *value);
bool json_signed(const struct json_text *text, int64_t *value);
/* Converts a number times 10 to the power of `digits`, rounded half to even. It uses the digits
 * of the text, so no precision is lost. Needs JSON_SLACK readable bytes after it. */
bool json_scaled(const struct json_text *text, int digits, int64_t *value);

static inline bool json_is(const struct json_text *text, const char *word)
{
	const size_t length = strlen(word);

	return text->length == length && !memcmp(text->bytes, word, length);
}

#endif
