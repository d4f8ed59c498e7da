/* SPDX-License-Identifier: MIT
 * Escapes names for a terminal. The input may be any bytes. The output is valid UTF-8 (or ASCII)
 * without control characters. What is escaped:
 *
 * control characters                                `\x1b`
 * bytes that are not UTF-8                          `\xff`
 * characters that change direction or are hidden    `\u202e`
 */
#ifndef PPERF_REPORT_BASE_ESCAPE_H
#define PPERF_REPORT_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the code point at `text` and sets `*length` to its bytes. Returns UINT32_MAX and sets
 * length 1 if no valid UTF-8 begins there. */
uint32_t utf8_decode(const char *text, size_t bytes, size_t *length);

/* Returns whether `point` would control a terminal, change the text direction, or be invisible. */
bool is_hidden_code_point(uint32_t point);

/* Writes `text` escaped and terminated to `out`, up to the last character that fits into `room`.
 * 6 * bytes + 1 always suffice. `ascii`: characters beyond ASCII are written as `\u00b5`.
 * Returns the bytes written. */
size_t escape_text(char *out, size_t room, const char *text, size_t bytes, bool ascii);

/* Returns the columns of escaped text. A wide character has two, a combining mark none. */
size_t escaped_width(const char *text, size_t bytes);

/* Shortens escaped text in place to `columns`, by an ellipsis (`...` in ASCII) in its middle.
 * The end distinguishes names, so it gets the larger half. `room`: bytes of the buffer. Returns
 * the new length in bytes. */
size_t escaped_shorten(char *text, size_t room, size_t columns, bool ascii);
/* Shortens like escaped_shorten, but at the beginning: the end of a path says most. */
size_t escaped_shorten_path(char *text, size_t room, size_t columns, bool ascii);

#endif
