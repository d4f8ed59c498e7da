/* SPDX-License-Identifier: MIT
 * figures.h: the function of each column: its value for a row, CELL_NONE if the row has no such thing.
 */
#ifndef PPERF_FIGURES_H
#define PPERF_FIGURES_H

#include "report/column.h"
#include "report/column_list.h"

#define X(key, title, unit, function, help) \
	struct cell figure_##function(const struct row *row, const struct rows *rows);
COLUMNS(X)
#undef X

#endif
