/* SPDX-License-Identifier: MIT */
#include "report/views/functions.h"
#include <string.h>

#define FUNCTION_COLUMNS                                                                 \
	"name label kind module path domain samples cpu_sampled_ns "                     \
	"cpu_sampled_share cpu_sampled_error_ns cpu_sampled_total_ns waits_for_core_ns " \
	"blocked_ns"

const struct view functions_view = { .name = "table",
	.explain_empty = functions_explain_empty,
	.summary = "",
	.layout = LAYOUT_TABLE,
	.columns = FUNCTION_COLUMNS,
	.text = "cpu_sampled_ns cpu_sampled_share cpu_sampled_error_ns cpu_sampled_total_ns "
		"samples waits_for_core_ns blocked_ns",
	.sort = "cpu_sampled_ns",
	.top = 40,
	.next = "table --by function --callers",
	.no_percentiles = true,
	.shows_samples = true,
	.arrange_process = arrange_functions,
	.footer = functions_footer,
	.put_json = functions_put_json };
const struct view callers_view = { .name = "table",
	.explain_empty = functions_explain_empty,
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = "id parent depth " FUNCTION_COLUMNS,
	.text = "cpu_sampled_total_ns samples waits_for_core_ns blocked_ns",
	.sort = "cpu_sampled_total_ns",
	.min_percent = 1,
	.top = 20,
	.reads = "below each function its callers, with the time of the function in those calls",
	.next = "tree --functions",
	.no_percentiles = true,
	.shows_samples = true,
	.arrange_process = arrange_functions,
	.footer = functions_footer,
	.put_json = functions_put_json };
const struct view function_tree_view = { .name = "tree",
	.explain_empty = functions_explain_empty,
	.summary = "",
	.layout = LAYOUT_TREE,
	.columns = "id parent depth " FUNCTION_COLUMNS,
	.text = "cpu_sampled_total_ns cpu_sampled_ns samples waits_for_core_ns blocked_ns",
	.sort = "cpu_sampled_total_ns",
	.min_percent = 1,
	.focus = true,
	.next = "table --by function",
	.no_percentiles = true,
	.shows_samples = true,
	.arrange_process = arrange_function_tree,
	.footer = functions_footer,
	.put_json = functions_put_json };

const struct view *view_for_samples(const struct options *options, const struct view *view)
{
	if (strcmp(view->name, "tree") == 0 && options->functions)
		return &function_tree_view;
	if (strcmp(view->name, "table") != 0 || !rows_by_samples(options->by))
		return view;
	return options->callers ? &callers_view : &functions_view;
}
