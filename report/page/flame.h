/* SPDX-License-Identifier: MIT
 * Writes the view `flame`: a page with flame graphs of a trace, or of the difference of two traces.
 */
#ifndef PPERF_REPORT_PAGE_FLAME_H
#define PPERF_REPORT_PAGE_FLAME_H

#include "report/run/options.h"

/* Does the whole view. Returns the exit status. */
int flame_view(const struct options *options);

#endif
