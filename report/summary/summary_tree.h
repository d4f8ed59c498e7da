/* SPDX-License-Identifier: MIT
 *
 * Shortens the tree of the first screen to a number of lines. `tree` shows all of it.
 *
 *	step                     100 ms          step                     100 ms
 *	├── forward               60 ms          ├── forward               60 ms
 *	│   └── mm                60 ms          │   └── … / gemm          60 ms
 *	│       └── gemm          60 ms    ->    └── (2 more)              40 ms
 *	├── loss                  25 ms
 *	└── optimizer             15 ms
 *
 * 1. Rows between two others that have the same value as both are left out. `… /` marks them.
 * 2. If the tree is still too long, the rows with the largest values are kept.
 * 3. What has no row beside rows that are kept is summed up in a row `(N more)`, if that has as
 *    much as the smallest row that is kept.
 */
#ifndef PPERF_REPORT_SUMMARY_SUMMARY_TREE_H
#define PPERF_REPORT_SUMMARY_SUMMARY_TREE_H

#include "report/print/print.h"

/* Prints at most `most` rows of the tree of the first process, and how many are left out. Prints
 * all rows if options select rows (--min-percent, --focus, --all). */
void summary_tree_put(const struct report *report, size_t most, const struct style *style);

#endif
