/* SPDX-License-Identifier: MIT
 *
 * Formats a cell for text output, in the same form in every view.
 */
#ifndef PPERF_REPORT_TABLE_CELL_TEXT_H
#define PPERF_REPORT_TABLE_CELL_TEXT_H

#include "report/table/column.h"
#include "report/text/style.h"

#define CELL_TEXT_BYTES 96 /* size of `out` */

/* Writes the cell with control characters escaped, terminated by a zero byte. Returns the number of
 * bytes; 0: the cell is empty. */
size_t cell_text(char *out, const struct style *style, const struct column *column,
	const struct row *row, const struct rows *rows);

/* Text is aligned to the left of its column, numbers to the right. */
bool cell_is_left_aligned(const struct column *column);

#endif
