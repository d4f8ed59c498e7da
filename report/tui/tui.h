/* SPDX-License-Identifier: MIT
 *
 * The view `tui`: browses a tree, or the comparison of two, on a terminal.
 *
 *	options, files -> model (model_trace, model_diff) -> state (keys) -> draw -> terminal
 */
#ifndef PPERF_REPORT_TUI_TUI_H
#define PPERF_REPORT_TUI_TUI_H

#include "report/run/options.h"

/* Runs the view until the user quits. Returns the exit status. */
int tui_view(const struct options *options);

#endif
