/* SPDX-License-Identifier: MIT
 * Writes the view `html`: a page about one process of a run. It has the verdict, findings, a
 * timeline, flame graphs, and tables.
 */
#ifndef PPERF_REPORT_PAGE_HTML_H
#define PPERF_REPORT_PAGE_HTML_H

#include "report/run/options.h"

/* Does the whole view. Returns the exit status. */
int html_view(const struct options *options);

#endif
