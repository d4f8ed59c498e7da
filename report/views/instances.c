/* SPDX-License-Identifier: MIT
 *
 * Shows single instances of a node, or of each root: either one with the instances inside it, or a
 * row for each.
 */
#include "report/views/critical_stayed.h"
#include "report/views/views.h"
#include "report/analysis/pick_instances.h"
#include "report/table/column.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include "report/print/print.h"
#include <stdlib.h>

#define TREES_MAX 4u /* each takes a pass over the trace */
#define ROWS_TEXT_DEFAULT 20u
#define ROWS_DEFAULT 1000u
#define ROWS_MAX 100000u /* most rows of a node even with --top, since they are kept in memory */

static bool has_instances(const struct process *process, uint32_t id)
{
	const struct node *node = &process->profile->tree->nodes[id];

	return node_kind_class(node->kind) == NODE_RANGES && node->calls && !node->is_group &&
	       !node->is_counted && node->kind != NODE_ASYNC && node->kind != NODE_UNATTRIBUTED &&
	       !(process->profile->async_ranges && node->parent == process->profile->async_ranges);
}

static void require_instances(const struct process *process, bool no_fold, const char *focus,
	const struct node_list *all, const struct node_list *found)
{
	if (!all->count)
		fatal(STATUS_USAGE,
			"there is no node `%s`; names are joined by /, a / in a name is written "
			"\\/%s",
			focus, node_lookup_suggest(process, no_fold, focus, NULL));
	if (!found->count)
		fatal(STATUS_USAGE, "`%s` has no instances: it is not a range, or was only counted",
			focus);
}

/* Finds the nodes that have instances: the roots, or the nodes of --focus. Ends the program with a
 * message if --focus has none. */
static struct node_list find_nodes(const struct options *options, const struct process *process)
{
	const struct tree *tree = process->profile->tree;
	struct node_list all = { .nodes = NULL },
			 found = { .nodes = xcalloc(tree->count * sizeof *found.nodes) };
	size_t room = 0;

	if (options->focus)
		all = node_lookup_path(process, options->no_fold, options->focus, NULL);
	for (uint32_t id = options->focus ? 0 : tree->nodes[0].first_child; id;
		id = tree->nodes[id].next) {
		*ARRAY_ADD(all.nodes, room, all.count) = id;
	}
	for (size_t i = 0; i < all.count; i++)
		if (has_instances(process, all.nodes[i]))
			found.nodes[found.count++] = all.nodes[i];
	if (options->focus)
		require_instances(process, options->no_fold, options->focus, &all, &found);
	free(all.nodes);
	return found;
}

static struct rows rows_of_nodes(struct process *process, const struct node_list *selected)
{
	struct rows rows = { .rows = NULL };

	for (size_t i = 0; i < selected->count; i++) {
		const struct row row = tree_row(
			process, process->profile->tree, selected->nodes[i]);

		rows_add(&rows, &row);
	}
	return rows;
}

/* Orders `selected` as the view is ordered, and removes nodes by the view's limits. Those removed
 * are counted in `cut`. */
static void cut_nodes(const struct options *options, struct process *process,
	struct node_list *selected, struct rows *cut)
{
	const struct column *sort = view_sort(options, process);
	const bool keep_small = options->focus || metrics[process->metric].nature == METRIC_LEVEL,
		   has_top = options->top && options->instances != INSTANCES_ALL;
	struct rows level = rows_of_nodes(process, selected);

	rows_sort(level.rows, level.count, sort);
	rows_prune(&level, 0, sort, keep_small ? 0 : view_min_percent(options),
		has_top ? options->top : TREES_MAX);
	for (size_t i = 0; i < level.count; i++)
		selected->nodes[i] = level.rows[i].node;
	selected->count = level.count;
	cut->hidden_by_percent += level.hidden_by_percent;
	cut->hidden_by_top += level.hidden_by_top;
	free(level.rows);
}

static void keep_instance(struct process *process, struct kept_instance kept)
{
	*ARRAY_ADD(process->instances, process->instance_room, process->instance_count) = kept;
}

/* Profiles the trace again, with the tree of one instance. */
static struct profile *profile_of_instance(
	struct process *process, const struct profile_target *target)
{
	struct profile_options wanted = process->profile->options;
	struct profile *profile;

	wanted.metric = process->metric;
	wanted.pick_metric = false;
	wanted.target = target;
	wanted.no_owners_and_delays = true;
	profile = profile_build(process->reader, process->texts, &wanted);
	keep_instance(process, (struct kept_instance){ .profile = profile });
	profile->options.target = NULL;
	return profile;
}

/* Adds the instance and the instances inside it, from one more pass over the trace. */
static void add_instance_tree(const struct options *options, struct process *process,
	struct rows *rows, const struct picked_instance *of)
{
	const struct profile_target target = { .stream = of->stream,
		.node = of->node,
		.begin_ns = of->begin_ns,
		.end_ns = of->end_ns,
		.value = of->value,
		.previous_tree = process->profile->tree };
	struct profile *profile = profile_of_instance(process, &target);

	if (!profile->target)
		return;
	profile->target->number = of->number;
	arrange_instance(options, process, rows, profile->tree, profile->target);
}

/* Adds one row for the instance, without the instances inside it. */
static void add_instance_row(
	struct process *process, struct rows *rows, const struct picked_instance *of)
{
	struct row row = tree_row(process, process->profile->tree, of->node);
	struct instance *instance = xcalloc(sizeof *instance);

	keep_instance(process, (struct kept_instance){ .instance = instance });
	*instance = (struct instance){ .node = of->node,
		.trace_node = of->trace_node,
		.stream = of->stream,
		.times = 1,
		.begin_ns = of->begin_ns,
		.end_ns = of->end_ns,
		.total_ns = of->end_ns - of->begin_ns,
		.gpu_ns = process->metric == METRIC_GPU ? clamp_to_u64(of->value) : 0,
		.change = of->value,
		.value = of->value,
		.number = of->number };
	row.kind = ROW_INSTANCE;
	row.of.instance = instance;
	rows_add(rows, &row);
}

static size_t max_rows(const struct options *options)
{
	if (!options->top)
		return options->format == FORMAT_TEXT ? ROWS_TEXT_DEFAULT : ROWS_DEFAULT;
	return options->top < ROWS_MAX ? options->top : ROWS_MAX;
}

static void add_instances_of_node(const struct options *options, struct process *process,
	struct rows *rows, const struct picked_instances *picked)
{
	const bool all = options->instances == INSTANCES_ALL;

	for (size_t i = 0; i < picked->count; i++)
		if (all)
			add_instance_row(process, rows, &picked->list[i]);
		else
			add_instance_tree(options, process, rows, &picked->list[i]);
	rows->hidden_by_top += all ? picked->instances - picked->count : 0;
}

void arrange_instances(
	const struct options *options, struct processes *processes, struct rows *rows)
{
	const size_t most = options->instances == INSTANCES_ALL ? max_rows(options) : 1;

	for (size_t p = 0; p < processes->shown; p++) {
		struct process *process = &processes->all[p];
		struct node_list selected = find_nodes(options, process);
		struct picked_instances *picked;

		cut_nodes(options, process, &selected, rows);
		picked = pick_instances(process, &selected, options->instances, most);
		for (size_t i = 0; i < selected.count; i++)
			add_instances_of_node(options, process, rows, &picked[i]);
		picked_instances_free(picked, selected.count);
		free(selected.nodes);
		if (options->view->footer == critical_print_stayed &&
			options->format != FORMAT_TEXT)
			critical_add_stayed_row(options, process, rows);
	}
}
