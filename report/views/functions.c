/* SPDX-License-Identifier: MIT */
#include "report/views/functions.h"
#include "report/analysis/sample_tree.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/run/node_lookup.h"
#include "report/table/column.h"
#include <stdlib.h>
#include <string.h>

struct function_walk {
	const struct options *options;
	struct process *process;
	struct rows *rows;
	const struct tree *tree;
	const struct column *sort;
	long double min_value; /* rows with less are left out */
};

static void release_tree(void *data)
{
	tree_free(data);
}

/* Keeps the tree with the process, whose rows refer to it. */
static const struct tree *keep_tree(struct process *process, struct tree *tree)
{
	process_attach(process, tree, tree, release_tree);
	return tree;
}

static enum sample_frames frames_of(const struct options *options)
{
	return options->native_all ? SAMPLE_FRAMES_ALL : SAMPLE_FRAMES_MERGED;
}

/* Returns --sort, else the time of the samples, else their number, which is all that is known of
 * imported ones. */
static const struct column *sort_column(
	const struct options *options, const struct process *process, const char *time_key)
{
	const char *key = options->sort                          ? options->sort
			  : process->profile->sampled.cpu_ns     ? time_key
			  : process->profile->sampled.samples    ? "samples"
			  : process->profile->sampled.blocked_ns ? "blocked_ns"
								 : "waits_for_core_ns";

	return column_find(key, strlen(key));
}

static long double value_of(const struct function_walk *walk, uint32_t node)
{
	const struct row row = tree_row(walk->process, walk->tree, node);
	const struct cell cell = column_value(walk->sort, &row, walk->rows);
	long double number;

	return cell_number(&cell, &number) ? number : 0;
}

/* Returns what the rows of a tree are ordered by: --sort, else the time of all samples in the node
 * and below, else their number. */
static long double tree_value(const struct function_walk *walk, uint32_t node)
{
	const struct sample_sums *total = &walk->tree->nodes[node].sampled->total;

	if (walk->options->sort)
		return value_of(walk, node);
	if (walk->process->profile->sampled.cpu_ns)
		return (long double)total->cpu_ns;
	return (long double)(total->samples ? total->samples : total->waits_ns + total->blocked_ns);
}

/* ---- trees ---- */

#define CALLERS_SHOWN 5u /* levels of callers in text without --depth */

/* Returns the only child of a function without samples of its own; 0: it has another number of
 * children, or samples. */
static uint32_t only_child(const struct tree *tree, uint32_t id)
{
	const struct node *node = &tree->nodes[id];
	const struct sample_sums *self = &node->sampled->self;

	if ((node->kind != NODE_FUNCTION && node->kind != NODE_PYTHON) || self->samples ||
		self->waits_ns || self->blocked_ns || !node->first_child ||
		tree->nodes[node->first_child].next)
		return 0;
	return node->first_child;
}

static uint32_t levels_shown(const struct options *options)
{
	return options->callers && options->format == FORMAT_TEXT && options->depth == UINT32_MAX
		       ? CALLERS_SHOWN
		       : options->depth;
}

struct weighted_row {
	long double weight;
	size_t at; /* in its level */
	struct row row;
};

static int compare_weights(const void *left, const void *right)
{
	const struct weighted_row *a = left, *b = right;

	return a->weight != b->weight ? COMPARE(b->weight, a->weight) : COMPARE(a->at, b->at);
}

static void add_children(
	struct function_walk *walk, uint32_t node, uint32_t parent_row, uint32_t depth);

/* Adds the row of a node and those below. Text leaves out functions that only call one other. */
static void add_with_children(struct function_walk *walk, struct row row)
{
	const bool shortens = walk->options->format == FORMAT_TEXT && row.parent != NO_ROW;
	uint32_t next;

	while (shortens && (next = only_child(walk->tree, row.node))) {
		row.node = next;
		row.skips_rows = true;
	}
	rows_add(walk->rows, &row);
	add_children(walk, row.node, (uint32_t)walk->rows->count - 1, row.depth + 1);
}

/* Moves the rows with more samples in them and below to the front; others keep their order. */
static void order_by_total(const struct function_walk *walk, struct row *level, size_t count)
{
	struct weighted_row *rows = xcalloc(count * sizeof *rows);

	for (size_t i = 0; i < count; i++)
		rows[i] = (struct weighted_row){ tree_value(walk, level[i].node), i, level[i] };
	qsort(rows, count, sizeof *rows, compare_weights);
	for (size_t i = 0; i < count; i++)
		level[i] = rows[i].row;
	free(rows);
}

/* Adds the rows of one level, the largest first. */
static void add_level(struct function_walk *walk, struct row *level, size_t count)
{
	const uint32_t top = view_top(walk->options);
	size_t shown = 0;

	rows_sort(level, count, walk->sort);
	if (!walk->options->sort)
		order_by_total(walk, level, count);
	for (size_t i = 0; i < count; i++)
		if (level[i].depth >= levels_shown(walk->options))
			walk->rows->hidden_by_depth++;
		else if (tree_value(walk, level[i].node) < walk->min_value)
			walk->rows->hidden_by_percent++;
		else if (shown++ >= top)
			walk->rows->hidden_by_top++;
		else
			add_with_children(walk, level[i]);
}

static void add_children(
	struct function_walk *walk, uint32_t node, uint32_t parent_row, uint32_t depth)
{
	struct row *level = NULL;
	size_t count = 0, room = 0;

	for (uint32_t id = walk->tree->nodes[node].first_child; id;
		id = walk->tree->nodes[id].next) {
		struct row row = tree_row(walk->process, walk->tree, id);

		if (!walk->tree->nodes[id].sampled)
			continue;
		row.parent = parent_row;
		row.depth = depth;
		*ARRAY_ADD(level, room, count) = row;
	}
	if (count)
		add_level(walk, level, count);
	free(level);
}

static void set_limit(struct function_walk *walk)
{
	long double sum = 0;

	for (uint32_t id = walk->tree->nodes[0].first_child; id; id = walk->tree->nodes[id].next)
		sum += walk->tree->nodes[id].sampled ? tree_value(walk, id) : 0;
	walk->min_value = sum * (long double)view_min_percent(walk->options) / 100;
}

/* Adds the nodes that --focus selects as roots. */
static void add_focused(struct function_walk *walk, const uint32_t *node_of)
{
	struct node_list selected = node_lookup_path(
		walk->process, walk->options->no_fold, walk->options->focus, NULL);
	size_t found = 0;

	for (size_t i = 0; i < selected.count; i++)
		if (node_of[selected.nodes[i]]) {
			add_with_children(walk,
				tree_row(walk->process, walk->tree, node_of[selected.nodes[i]]));
			found++;
		}
	free(selected.nodes);
	if (!found)
		fatal(STATUS_USAGE,
			"no sample is at a node `%s`; pperf-report tree --functions "
			"without --focus lists the nodes that have samples",
			walk->options->focus);
}

void arrange_function_tree(
	const struct options *options, struct process *process, struct rows *rows)
{
	struct sample_cells *cells = sample_cells_of(process);
	struct function_walk walk = { .options = options, .process = process, .rows = rows };
	uint32_t *node_of;

	if (!cells)
		return;
	walk.tree = keep_tree(process, sample_tree_by_path(cells, &node_of));
	walk.sort = sort_column(options, process, "cpu_sampled_total_ns");
	set_limit(&walk);
	if (options->focus)
		add_focused(&walk, node_of);
	else
		add_children(&walk, 0, NO_ROW, 0);
	free(node_of);
}

/* ---- tables ---- */

/* Returns whether a row says something: samples of its own, or a function of the program. */
static bool is_worth_a_row(
	struct function_walk *walk, const struct sample_cells *cells, uint32_t id)
{
	const struct node *node = &walk->tree->nodes[id];
	const struct sample_function *function;

	if (node->sampled->self.samples)
		return true;
	function = sample_function_find(&cells->functions, node->name, node->domain, SAMPLE_PYTHON);
	return node->kind == NODE_PYTHON && function && function->is_own;
}

static void add_flat_functions(struct function_walk *walk, const struct sample_cells *cells)
{
	const size_t first = walk->rows->count;

	for (uint32_t id = 1; id < walk->tree->count; id++) {
		const struct row row = tree_row(walk->process, walk->tree, id);

		if (!walk->options->only_telling || is_worth_a_row(walk, cells, id))
			rows_add(walk->rows, &row);
	}
	rows_sort(walk->rows->rows + first, walk->rows->count - first, walk->sort);
	rows_prune(walk->rows, first, walk->sort, view_min_percent(walk->options),
		view_top(walk->options));
}

void arrange_functions(const struct options *options, struct process *process, struct rows *rows)
{
	struct sample_cells *cells = sample_cells_of(process);
	struct function_walk walk = { .options = options, .process = process, .rows = rows };

	if (!cells)
		return;
	walk.sort = sort_column(
		options, process, options->callers ? "cpu_sampled_total_ns" : "cpu_sampled_ns");
	if (options->callers) {
		walk.tree = keep_tree(process, sample_tree_of_callers(cells, frames_of(options)));
		set_limit(&walk);
		add_children(&walk, 0, NO_ROW, 0);
		return;
	}
	walk.tree = keep_tree(process, sample_tree_flat(cells, options->by, frames_of(options)));
	add_flat_functions(&walk, cells);
}
