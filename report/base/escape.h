/* SPDX-License-Identifier: MIT
 * visible.h: names as a terminal may get them. Any bytes come in; what goes out is valid UTF-8 (or ASCII) without
 * control characters: those, bytes that are no UTF-8, and characters that change the direction or hide text are
 * written `\x1b`, `\xff`, `\u202e`.
 */
#ifndef PPERF_REPORT_BASE_ESCAPE_H
#define PPERF_REPORT_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point at `text` and in *length its bytes; UINT32_MAX with length 1: no valid UTF-8 begins here. */
uint32_t utf8_decode(const char *text, size_t bytes, size_t *length);

/* Would act on a terminal, turn text round, or not be seen. */
bool is_hidden_code_point(uint32_t point);

/* Writes `text` visibly, terminated, as much as fits whole into `room` (6 bytes for each of `bytes`, and 1, always
 * suffice). ascii: what is beyond ASCII is written `\u00b5`. Returns the bytes written. */
size_t escape_text(char *out, size_t room, const char *text, size_t bytes, bool ascii);

/* Columns that visible text takes: wide characters two, combining ones none. */
size_t escaped_width(const char *text, size_t bytes);

/* Shortens visible text to `columns` by an ellipsis (`...` in ASCII) in its middle, in place; the end, which tells
 * names apart, gets the larger half. Returns its bytes. `room`: of the buffer. */
size_t escaped_shorten(char *text, size_t room, size_t columns, bool ascii);
/* The same of a path, whose end tells most: at its beginning. */
size_t escaped_shorten_path(char *text, size_t room, size_t columns, bool ascii);

#endif
