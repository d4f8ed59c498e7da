/* SPDX-License-Identifier: MIT
 * rank_columns.h: what a rank's row of the view `ranks` can have, in text, JSON and CSV, and what it means. They are not in column_list.h, as a
 * rank is no row of a tree; --legend has both.
 */
#ifndef PPERF_REPORT_VIEWS_RANKS_COLUMNS_H
#define PPERF_REPORT_VIEWS_RANKS_COLUMNS_H

#include "report/text/format_number.h"
#include "report/analysis/ranks/rank_set.h"
#include <assert.h>

#define RANK_COLUMN_COUNT 19

/* The most important first; text has as many as there is room for. */
struct rank_column {
	const char *key, *title;
	enum unit unit;
	const char *help;
};

extern const struct rank_column rank_columns[RANK_COLUMN_COUNT];

/* False: not known. */
bool rank_column_value(const struct rank_process *rank, size_t column, int64_t *value);

#endif
