/* SPDX-License-Identifier: MIT
 *
 * The view `diff --by function`, `line` or `library`: the CPU samples of two runs.
 */
#ifndef PPERF_REPORT_VIEWS_DIFF_FUNCTIONS_H
#define PPERF_REPORT_VIEWS_DIFF_FUNCTIONS_H

#include "report/run/options.h"

/* Prints the comparison of options->files, which are two. Returns the exit status. */
int diff_functions_view(const struct options *options);

#endif
