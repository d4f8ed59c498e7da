/* SPDX-License-Identifier: MIT
 *
 * Prints --help, --version and --legend, from the lists of options, views, metrics and columns.
 */
#ifndef PPERF_REPORT_CLI_HELP_H
#define PPERF_REPORT_CLI_HELP_H

#include "report/run/options.h"

#define PPERF_VERSION "0.1.0"

/* Prints what `options` select, to options->output. Returns the exit status. */
int help_show(const struct options *options);

#endif
