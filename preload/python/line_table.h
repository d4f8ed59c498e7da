/* SPDX-License-Identifier: MIT
 * Finds the line of an instruction in the line table of a CPython code object. Pure functions: any
 * thread, any bytes. The formats are:
 *
 *   LNOTAB     3.9: pairs of bytes: the number of code bytes, and how many lines further
 *              (signed).
 *   RANGES     3.10: pairs of bytes: the length of a range in code bytes, and the distance of its
 *              line from the one before (signed). -128: the range has no line.
 *   LOCATIONS  3.11 on: entries of varying length. The first byte has bit 7 set and a code in bits
 *              3 to 6. Bits 0 to 2 hold the length of the range minus 1, in code units of 2 bytes.
 *
 * The codes of LOCATIONS:
 *
 *   0 to 9     the same line; one byte follows
 *   10 to 12   0 to 2 lines further; two bytes follow
 *   13         a signed varint of lines follows
 *   14         a signed varint of lines and three varints follow
 *   15         no line
 *
 * A varint has 6 bits per byte, the lowest first. Bit 6 is set if another byte follows. A signed
 * varint has its sign in bit 0.
 */
#ifndef PPERF_PRELOAD_PYTHON_LINE_TABLE_H
#define PPERF_PRELOAD_PYTHON_LINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum python_line_format { PYTHON_LINES_LNOTAB, PYTHON_LINES_RANGES, PYTHON_LINES_LOCATIONS };

/* Returns the line of an instruction; 0 if the table has none. `offset`: of the instruction in the
 * code, in bytes; negative if the function has not begun. `first`: the first line of the code
 * object. */
uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t bytes,
	uint32_t first, int64_t offset);

#endif
