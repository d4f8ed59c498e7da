/* SPDX-License-Identifier: MIT
 * cell_text.h: a figure as people read it, the same wherever text is shown.
 */
#ifndef PPERF_REPORT_TABLE_CELL_TEXT_H
#define PPERF_REPORT_TABLE_CELL_TEXT_H

#include "report/table/column.h"
#include "report/text/style.h"

#define CELL_TEXT_BYTES 96 /* what `out` must have room for */

/* A cell as visible text, terminated; returns its bytes. 0: there is nothing to show. */
size_t cell_text(char *out, const struct style *style, const struct column *column,
	const struct row *row, const struct rows *rows);

/* Words stand at the left of their column, figures at the right. */
bool cell_is_left_aligned(const struct column *column);

#endif
