/* SPDX-License-Identifier: MIT
 * legend.h: what the tool says of itself: --help, --version, --legend. Made from the lists of options, views, metrics
 * and columns.
 */
#ifndef PPERF_REPORT_CLI_HELP_H
#define PPERF_REPORT_CLI_HELP_H

#include "report/run/options.h"

#define PPERF_VERSION "0.1.0"

/* Where the options say; returns the exit status. */
int help_show(const struct options *options);

#endif
