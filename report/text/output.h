/* SPDX-License-Identifier: MIT
 * out.h: output by the million lines: a buffer, numbers without printf, and texts as JSON and CSV want them.
 */
#ifndef PPERF_REPORT_TEXT_OUTPUT_H
#define PPERF_REPORT_TEXT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUTPUT_BUFFER_BYTES 65536u

struct output {
	int fd;
	int error;        /* errno of the first write that failed; what follows goes nowhere */
	bool has_written; /* something was written */
	size_t used;
	char buffer[OUTPUT_BUFFER_BYTES];
};

/* To `path`, or to stdout if it is NULL. Never NULL: ends the program with a sentence if it cannot be opened, or is a
 * trace. */
struct output *output_open(const char *path);
/* Writes what is left, closes, frees. Ends the program with a sentence if not everything could be written (a reader
 * that went away, EPIPE, is no news: false). */
bool output_close(struct output *out, const char *path);

/* As out_bytes, where the buffer is nearly full. */
void output_bytes_slow(struct output *out, const char *bytes, size_t count);

static inline void output_bytes(struct output *out, const char *bytes, size_t count)
{
	if (__builtin_expect(count > OUTPUT_BUFFER_BYTES - out->used, 0)) {
		output_bytes_slow(out, bytes, count);
		return;
	}
	memcpy(out->buffer + out->used, bytes, count);
	out->used += count;
}

static inline void output_char(struct output *out, char c)
{
	output_bytes(out, &c, 1);
}

void output_string(struct output *out, const char *string);
void output_unsigned(struct output *out, uint64_t value);
void output_signed(struct output *out, int64_t value);
/* 0x1f; at least `digits` digits, upper case if asked for. */
void output_hex(struct output *out, uint64_t value, unsigned digits, bool upper);
/* The shortest form that reads back as the same number; nan, inf, -inf. */
void output_double(struct output *out, double value);

/* A JSON string, with its quotes. Control characters, and those that turn text round or that nobody sees
 * (text_hides), are escaped as \u00XX. A byte that is no UTF-8 becomes the lone surrogate \udcXX, which no text can contain: the bytes can be
 * had back (Python: errors="surrogateescape"). */
void output_json_text(struct output *out, const char *text, size_t bytes);
/* As out_double; nan and infinities, for which JSON has no number, as strings. */
void output_json_double(struct output *out, double value);

/* A CSV cell (RFC 4180). Backslashes are doubled; what JSON escapes, bytes that are no UTF-8, and a first character (or
 * one behind a semicolon) that a spreadsheet would take for a formula (= + - @) are written \xXX: a cell is valid
 * UTF-8 text, and the bytes can be had back. */
void output_csv_text(struct output *out, const char *text, size_t bytes);

#endif
