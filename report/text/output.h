/* SPDX-License-Identifier: MIT
 * Writes large outputs: a buffer, numbers without printf, texts escaped for JSON and CSV.
 */
#ifndef PPERF_REPORT_TEXT_OUTPUT_H
#define PPERF_REPORT_TEXT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUTPUT_BUFFER_BYTES 65536u

struct gzip_writer;

struct output {
	int fd;
	struct gzip_writer *gzip; /* NULL: what is written is not compressed */
	char *temporary;  /* the file that is renamed to the output at the end; NULL: none */
	int error;        /* errno of the first failed write; later output is dropped */
	bool has_written; /* something was written */
	uint64_t flushed; /* bytes that left the buffer, as they were before compression */
	size_t used;
	char buffer[OUTPUT_BUFFER_BYTES];
};

/* Opens `path`, or stdout if it is NULL. Never returns NULL: the program ends with an error
 * message if the file cannot be opened or is a trace. */
struct output *output_open(const char *path);
/* Ends the program with an error message if `path` is a trace, which no output may overwrite. NULL
 * is none. */
void output_refuse_trace(const char *path);
/* What is written from now on becomes a gzip file. To be called before the first write. */
void output_compress(struct output *out);
/* Flushes, closes and frees `out`. If a write failed, ends the program with an error message. There
 * is one exception: if the output is a pipe whose reader has closed it (EPIPE), returns false.
 * Returns true if that reader is the pager, which the user may leave early. */
bool output_close(struct output *out, const char *path);

/* Appends like output_bytes. Flushes the buffer as often as needed. Only output_bytes calls it. */
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
/* Writes `value` as 0x1f, with at least `digits` digits. */
void output_hex(struct output *out, uint64_t value, unsigned digits, bool upper);
/* Writes the shortest form that reads back as the same number, or nan, inf, -inf. */
void output_double(struct output *out, double value);

/* Writes a JSON string with its quotes. Control characters and hidden code points, which are
 * invisible or control the terminal (is_hidden_code_point), are written as \uXXXX. A byte XX that
 * is not UTF-8 becomes the private-use character \uefXX, as in MirBSD's OPTU-8. The bytes of a
 * character that the text itself has in U+EF80 to U+EFFF are written in the same way, so every
 * text can be restored. Surrogates would not do: strict parsers refuse those without a pair. */
void output_json_text(struct output *out, const char *text, size_t bytes);
#define JSON_RAW_BYTES 0xef00u /* the code point of raw byte 0 */
/* Restores a text that a parser has read from output_json_text, in place. Returns its length. */
size_t output_restore_json_text(char *text, size_t bytes);
/* Writes a number as output_double does, but NaN and infinities as strings: JSON has no number
 * for them. */
void output_json_double(struct output *out, double value);

/* Writes a CSV cell (RFC 4180), which is valid UTF-8 and from which the bytes can be restored.
 *
 *  quote, backslash                                  doubled
 *  hidden code points, bytes that are not UTF-8      \xXX
 *  = + - @ at the start or after a semicolon         \xXX, as spreadsheets read a formula
 */
void output_csv_text(struct output *out, const char *text, size_t bytes);

#endif
