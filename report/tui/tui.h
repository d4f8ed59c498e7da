/* SPDX-License-Identifier: MIT
 * tui.h: the view `tui`: the tree, or two compared, to be walked through on a terminal.
 *
 *	options, files -> tui_model (tui_trace, tui_diff) -> tui_state (keys) -> tui_paint -> tui_terminal
 */
#ifndef PPERF_REPORT_TUI_TUI_H
#define PPERF_REPORT_TUI_TUI_H

#include "report/run/options.h"

/* Returns the exit status. */
int tui_view(const struct options *options);

#endif
