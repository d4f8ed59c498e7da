/* SPDX-License-Identifier: MIT
 * Writes the view `html`: a page about one process of a run, about its ranks, or about two runs.
 *
 * | traces                                        | page                  |
 * |-----------------------------------------------|-----------------------|
 * | one, or with --rank                           | of one process        |
 * | one whose run has several ranks; 3 or more    | of ranks              |
 * | two of different ranks, or with --all         | of ranks              |
 * | two                                           | of before and after   |
 */
#ifndef PPERF_REPORT_PAGE_HTML_H
#define PPERF_REPORT_PAGE_HTML_H

#include "report/run/options.h"

/* Does the whole view. Returns the exit status. */
int html_view(const struct options *options);

#endif
