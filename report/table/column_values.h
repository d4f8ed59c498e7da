/* SPDX-License-Identifier: MIT
 *
 * Declares the function of each column. It returns the column's value for a row, or CELL_NONE if
 * the row has none.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_VALUES_H
#define PPERF_REPORT_TABLE_COLUMN_VALUES_H

#include "report/table/column.h"
#include "report/table/column_list.h"

#define X(key, title, unit, function, help) \
	struct cell column_value_##function(const struct row *row, const struct rows *rows);
COLUMNS(X)
#undef X

#endif
