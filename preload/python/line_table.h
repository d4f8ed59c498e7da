/* SPDX-License-Identifier: MIT
 * python_lines.h: the line of an instruction, from the table that a code object of CPython keeps. Pure: from any
 * thread, any bytes.
 *
 * LNOTAB (3.9): pairs of bytes: how many bytes of code, how many lines (signed) further on.
 * RANGES (3.10): pairs: the length of a range in bytes of code, and its line's distance (signed) from the one
 * before; -128: a range without a line.
 * LOCATIONS (3.11 on): entries of varying length. The first byte of each has bit 7 set, a code in bits 3 to 6, and
 * one less than the range's length, in code units of 2 bytes, in bits 0 to 2. Codes 0 to 9: the line stays, one
 * byte follows. 10 to 12: 0 to 2 lines further, two follow. 13: a signed varint of lines. 14: that and three
 * varints. 15: no line. A varint has 6 bits a byte, the lowest first; bit 6: another byte follows. A signed one has
 * its sign in bit 0.
 */
#ifndef PPERF_PRELOAD_PYTHON_LINE_TABLE_H
#define PPERF_PRELOAD_PYTHON_LINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum python_line_format { PYTHON_LINES_LNOTAB, PYTHON_LINES_RANGES, PYTHON_LINES_LOCATIONS };

/* offset: of the instruction, in bytes of code; below 0: the function has not begun. first: the code object's first
 * line. 0: the table gives no line. */
uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t bytes,
	uint32_t first, int64_t offset);

#endif
