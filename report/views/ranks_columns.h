/* SPDX-License-Identifier: MIT
 *
 * Lists the columns of a rank's row in the view `ranks`, for text, JSON, CSV and --legend. They are
 * not in column_list.h because a rank is not a row of a tree.
 */
#ifndef PPERF_REPORT_VIEWS_RANKS_COLUMNS_H
#define PPERF_REPORT_VIEWS_RANKS_COLUMNS_H

#include "report/text/format_number.h"
#include "report/analysis/ranks/rank_set.h"
#include <assert.h>

#define RANK_COLUMN_COUNT 19

/* A column of rank_columns. The most important come first: text prints as many as fit. */
struct rank_column {
	const char *key, *title;
	enum unit unit;
	const char *help;
};

extern const struct rank_column rank_columns[RANK_COLUMN_COUNT];

/* Stores the rank's value of column `column` in `value`. Returns false if it is not known. */
bool rank_column_value(const struct rank_process *rank, size_t column, int64_t *value);
/* Returns the word that text has instead of a value that is not known. */
const char *rank_column_unknown(const struct rank_process *rank, size_t column);

#endif
