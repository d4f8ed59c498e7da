/* SPDX-License-Identifier: MIT
 * Prints the ranks view in each format.
 */
#ifndef PPERF_REPORT_VIEWS_RANKS_H
#define PPERF_REPORT_VIEWS_RANKS_H

#include "report/analysis/ranks/rank_set.h"
#include "report/text/output.h"
#include "report/text/style.h"

void ranks_print_json(const struct ranks *ranks, const struct options *options, struct output *out);
void ranks_print_csv(const struct ranks *ranks, const struct options *options, struct output *out);

/* Prints a paragraph for each collective that some ranks wait in and others have not requested. */
void ranks_print_hangs(const struct ranks *ranks, const struct style *style);

#endif
