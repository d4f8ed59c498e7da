/* SPDX-License-Identifier: MIT
 *
 * The functions that CPU samples found: table --by function, line and library, with --callers; and
 * tree --functions.
 */
#ifndef PPERF_REPORT_VIEWS_FUNCTIONS_H
#define PPERF_REPORT_VIEWS_FUNCTIONS_H

#include "report/print/print.h"
#include "report/table/view.h"

extern const struct view functions_view, callers_view, function_tree_view;
/* Returns the view to show: that of tree --functions, or of table --by function, line or library,
 * else `view`. */
const struct view *view_for_samples(const struct options *options, const struct view *view);

void arrange_functions(const struct options *options, struct process *process, struct rows *rows);
void arrange_function_tree(
	const struct options *options, struct process *process, struct rows *rows);
/* Prints how many samples there are, and what is known to be missing or uncertain. */
void functions_footer(const struct report *report, const struct style *style);
/* Prints why the trace has no samples, and how to record them. */
void functions_explain_empty(const struct report *report, const struct style *style);
/* Adds the member `cpu_samples` of the JSON document. */
void functions_put_json(const struct report *report, struct output *out);

#endif
