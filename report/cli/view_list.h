/* SPDX-License-Identifier: MIT
 * Lists all views: their names, columns, limits and functions. A new view is an entry here.
 */
#ifndef PPERF_REPORT_CLI_VIEW_LIST_H
#define PPERF_REPORT_CLI_VIEW_LIST_H

#include "report/table/view.h"

/* Ends with an entry without a name; the first entry is the default view. */
extern const struct view view_list[];

/* Returns the view to show: options->view, or with --instances the view that shows the single
 * instances after its rows. Ends the program with a message if there is no such view. */
const struct view *view_for_instances(const struct options *options);
/* Returns the view to show: that of --map, --over-time, --at or --by of the view memory, else
 * `view`. */
const struct view *view_for_memory(const struct options *options, const struct view *view);

#endif
