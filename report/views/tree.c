/* SPDX-License-Identifier: MIT
 *
 * Arranges the call tree as rows: parents before children, heavy children first. Rows that --depth,
 * --top and --min-percent exclude are counted.
 */
#include "report/views/views.h"
#include "report/views/functions.h"
#include "report/views/tree_extra_rows.h"
#include "report/table/column.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include "report/run/node_lookup.h"
#include <stdlib.h>
#include <string.h>

#define LARGE_CPU_PART 10u /* of the CPU time of the roots */

struct tree_walk {
	const struct options *options;
	struct process *process;
	struct rows *rows;
	const struct column *sort;
	bool *has_events;        /* by node: something happened in the node or below */
	bool *without_gpu_work;  /* by node, from extra_rows_without_gpu_work() */
	uint32_t *ranges_within; /* by node: ranges with events, the node and those below */
	/* By node, while a level is ordered: the row of the node + 1, and the row of its backward
	 * node + 1. 0: none. */
	uint32_t *position, *backward;
	long double min_value; /* rows with less are too small; 0: no limit */
	/* limit for rows without GPU work: those with less CPU time are summed up */
	uint64_t min_cpu_ns;
	/* A range that takes so long is shown although it has little GPU work, such as a wait for
	 * data. 0: rows are not ordered by GPU time. */
	uint64_t large_cpu_ns;
	uint32_t base;        /* depth of the roots; 1 below the row of a process */
	uint32_t root_parent; /* row of the roots' parent, or NO_ROW */
	struct row *stack;    /* rows to visit; the last is next */
	size_t stack_count, stack_room;
};

static bool has_self_samples(const struct node *node)
{
	const struct sample_sums *self = &node->sampled->self;

	return self->samples || self->waits_ns || self->blocked_ns;
}

static void find_nodes_with_events(struct tree_walk *walk)
{
	const struct tree *tree = walk->process->profile->tree;

	walk->has_events = xcalloc(tree->count * sizeof *walk->has_events);
	walk->ranges_within = xcalloc(tree->count * sizeof *walk->ranges_within);
	walk->position = xcalloc(tree->count * sizeof *walk->position);
	walk->backward = xcalloc(tree->count * sizeof *walk->backward);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];

		walk->has_events[id] |= node->calls > 0 || node->gpu || node->memory ||
					(node->sampled && has_self_samples(node));
		walk->has_events[node->parent] |= walk->has_events[id];
		walk->ranges_within[id] += walk->has_events[id] &&
					   node_kind_class(node->kind) == NODE_RANGES &&
					   !node->is_group;
		walk->ranges_within[node->parent] += walk->ranges_within[id];
	}
}

static long double sort_value(const struct tree_walk *walk, const struct row *row)
{
	const struct cell cell = column_value(walk->sort, row, walk->rows);
	long double number;

	if (!cell_number(&cell, &number))
		return 0;
	return number < 0 ? -number : number;
}

static bool is_too_small(const struct tree_walk *walk, const struct row *row)
{
	const struct profile *profile = walk->process->profile;
	const struct node *node = &row->tree->nodes[row->node];

	if (row->tree != profile->tree)
		return false;
	/* What belongs to no range is a root of its own, however small. */
	if (node->kind == NODE_UNATTRIBUTED &&
		(node->gpu || (node->memory && node->memory->alloc_bytes)))
		return false;
	if (profile->async_ranges &&
		(row->node == profile->async_ranges || node->parent == profile->async_ranges))
		return false;
	if (walk->without_gpu_work && walk->without_gpu_work[row->node] &&
		node->total_ns >= walk->min_cpu_ns)
		return false;
	if (walk->large_cpu_ns && node->kind == NODE_RANGE && node->total_ns >= walk->large_cpu_ns)
		return false;
	return sort_value(walk, row) < walk->min_value;
}

static uint32_t forward_of(const struct tree_walk *walk, const struct row *row)
{
	return row->tree == walk->process->profile->tree ? row->tree->nodes[row->node].forward_node
							 : 0;
}

/* Stores the row and its partner in `out`, the forward row first. Returns their number, or 0 if
 * they were stored before. */
static size_t pop_pair(
	struct tree_walk *walk, const struct row *level, const struct row *row, struct row *out)
{
	uint32_t forward = forward_of(walk, row);
	size_t used = 1;

	*out = *row;
	if (row->tree != walk->process->profile->tree)
		return 1;
	if (!walk->position[row->node])
		return 0;
	if (!forward || !walk->position[forward])
		forward = row->node;
	*out = level[walk->position[forward] - 1];
	if (walk->backward[forward])
		out[used++] = level[walk->backward[forward] - 1];
	for (size_t i = 0; i < used; i++)
		walk->position[out[i].node] = 0;
	return used;
}

/* Moves an operator and its backward pass together, to the position of the first of them. */
static void pair_forward_backward(struct tree_walk *walk, struct row *level, size_t count)
{
	struct row *ordered = xcalloc((count + 1) * sizeof *ordered);
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (level[i].tree == walk->process->profile->tree)
			walk->position[level[i].node] = (uint32_t)i + 1;
	for (size_t i = 0; i < count; i++)
		walk->backward[forward_of(walk, &level[i])] = (uint32_t)i + 1;
	walk->backward[0] = 0;
	for (size_t i = 0; i < count; i++)
		used += pop_pair(walk, level, &level[i], ordered + used);
	for (size_t i = 0; i < count; i++)
		walk->backward[forward_of(walk, &level[i])] = 0;
	memcpy(level, ordered, count * sizeof *level);
	free(ordered);
}

/* Moves roots outside of steps after all others, even if they took longer. */
static void put_non_steps_last(const struct tree_walk *walk, struct row *level, size_t count)
{
	struct row *others = xcalloc((count + 1) * sizeof *others);
	size_t first = 0, other_count = 0;

	for (size_t i = 0; i < count; i++)
		if (level[i].kind == ROW_NODE &&
			!profile_root_has_share(walk->process->profile, level[i].node, true))
			others[other_count++] = level[i];
		else
			level[first++] = level[i];
	memcpy(level + first, others, other_count * sizeof *others);
	free(others);
}

static bool has_forward_row(const struct tree_walk *walk, const struct row *level, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (forward_of(walk, &level[i]))
			return true;
	return false;
}

/* Removes the rows that are not shown, and counts them. Returns how many remain. */
static size_t prune_level(struct tree_walk *walk, struct row *level, size_t count)
{
	const uint32_t top = view_top(walk->options);
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (level[i].depth - walk->base >= walk->options->depth)
			walk->rows->hidden_by_depth++;
		else if (is_too_small(walk, &level[i]))
			walk->rows->hidden_by_percent++;
		else if (kept >= top)
			walk->rows->hidden_by_top++;
		else
			level[kept++] = level[i];
	return kept;
}

/* Orders and prunes the rows of one level, counts what was left out, and pushes the rest. The first
 * row ends on top of the stack. */
static void push_level(struct tree_walk *walk, struct row *level, size_t count)
{
	size_t kept;

	rows_sort(level, count, walk->sort);
	if (walk->process->steps && walk->process->steps->count)
		put_non_steps_last(walk, level, count);
	kept = prune_level(walk, level, count);
	if (has_forward_row(walk, level, kept))
		pair_forward_backward(walk, level, kept);
	ARRAY_GROW(walk->stack, walk->stack_room, walk->stack_count + kept);
	while (kept)
		walk->stack[walk->stack_count++] = level[--kept];
}

/* The rows of one level. */
struct row_level {
	struct row *rows;
	size_t count, room;
	/* Left out, to be summed up: rows without GPU work that are too short for a row of their
	 * own. */
	uint64_t small_rows, small_ranges, small_ns;
};

static void add_to_level(struct row_level *level, const struct row *row)
{
	*ARRAY_ADD(level->rows, level->room, level->count) = *row;
}

/* Adds the rows that only text has. `like` is a row of the level, `of` the row around it. */
static void add_extra_rows(struct tree_walk *walk, struct row_level *level, const struct row *of,
	const struct row *like)
{
	struct row row;

	if (walk->options->format != FORMAT_TEXT || !walk->min_cpu_ns)
		return;
	if (of && (extra_row_outlier(of, like, &row) || extra_row_moved_backward(of, like, &row)) &&
		sort_value(walk, &row) >= walk->min_value)
		add_to_level(level, &row);
	if (level->small_ns >= walk->min_cpu_ns) {
		row = extra_row_without_gpu_work_sum(
			walk->process, like, level->small_ranges, level->small_ns);
		add_to_level(level, &row);
	} else {
		walk->rows->hidden_by_percent += level->small_rows;
	}
}

static void add_workless_node(const struct tree_walk *walk, struct row_level *level, uint32_t node)
{
	level->small_rows++;
	level->small_ranges += walk->ranges_within[node];
	level->small_ns += walk->process->profile->tree->nodes[node].total_ns;
}

static bool is_workless_row(const struct tree_walk *walk, uint32_t node)
{
	return walk->without_gpu_work && walk->without_gpu_work[node] &&
	       walk->process->profile->tree->nodes[node].total_ns < walk->min_cpu_ns;
}

/* Pushes the children of `node`. `of` is the row of `node`, or NULL if the children are roots. */
static void push_children(struct tree_walk *walk, uint32_t node, const struct row *of,
	uint32_t parent_row, uint32_t depth)
{
	const struct tree *tree = walk->process->profile->tree;
	struct row row = tree_row(walk->process, tree, 0);
	struct row_level level = { .count = 0 };

	row.parent = parent_row;
	row.depth = depth;
	for (uint32_t id = tree->nodes[node].first_child; id; id = tree->nodes[id].next) {
		row.node = id;
		if (walk->has_events[id] && is_workless_row(walk, id))
			add_workless_node(walk, &level, id);
		else if (walk->has_events[id])
			add_to_level(&level, &row);
	}
	add_extra_rows(walk, &level, of, &row);
	if (level.count)
		push_level(walk, level.rows, level.count);
	free(level.rows);
}

/* Returns the whole of which the rows' values of the sort column are shares. */
static long double sum_of_roots(const struct tree_walk *walk)
{
	const struct profile *profile = walk->process->profile;
	long double sum = 0;

	for (uint32_t id = profile->tree->nodes[0].first_child; id;
		id = profile->tree->nodes[id].next) {
		const struct row row = { .process = walk->process,
			.kind = ROW_NODE,
			.parent = NO_ROW,
			.node = id,
			.tree = profile->tree };

		if (profile_root_has_share(profile, id, strncmp(walk->sort->key, "cpu", 3) == 0))
			sum += sort_value(walk, &row);
	}
	return sum;
}

static void push_focused_roots(struct tree_walk *walk)
{
	struct node_list selected = node_lookup_path(
		walk->process, walk->options->no_fold, walk->options->focus, walk->has_events);
	struct row *level = xcalloc((selected.count + 1) * sizeof *level);

	for (size_t i = 0; i < selected.count; i++) {
		level[i] = tree_row(walk->process, walk->process->profile->tree, selected.nodes[i]);
		level[i].parent = walk->root_parent;
		level[i].depth = walk->base;
	}
	if (selected.count)
		push_level(walk, level, selected.count);
	free(level);
	free(selected.nodes);
}

static void push_roots(struct tree_walk *walk)
{
	if (walk->options->focus)
		push_focused_roots(walk);
	else
		push_children(walk, 0, NULL, walk->root_parent, walk->base);
}

static void arrange_process_tree(struct tree_walk *walk)
{
	const struct row process_row = {
		.process = walk->process, .kind = ROW_PROCESS, .parent = NO_ROW
	};

	walk->sort = view_sort(walk->options, walk->process);
	find_nodes_with_events(walk);
	walk->without_gpu_work = walk->options->format == FORMAT_TEXT
					 ? extra_rows_without_gpu_work(walk->process)
					 : NULL;
	walk->min_value = sum_of_roots(walk) * (long double)view_min_percent(walk->options) / 100;
	walk->min_cpu_ns = clamp_to_u64(profile_cpu_of_roots(walk->process->profile) *
					(long double)view_min_percent(walk->options) / 100);
	if (walk->without_gpu_work && strncmp(walk->sort->key, "gpu", 3) == 0)
		walk->large_cpu_ns = clamp_to_u64(
			profile_cpu_of_roots(walk->process->profile) / LARGE_CPU_PART);
	walk->root_parent = NO_ROW;
	if (walk->options->all) {
		rows_add(walk->rows, &process_row);
		walk->root_parent = (uint32_t)walk->rows->count - 1;
	}
	push_roots(walk);
	while (walk->stack_count) {
		const struct row row = walk->stack[--walk->stack_count];

		rows_add(walk->rows, &row);
		if (row.tree == walk->process->profile->tree)
			push_children(walk, row.node, &row, (uint32_t)walk->rows->count - 1,
				row.depth + 1);
	}
	free(walk->has_events);
	free(walk->ranges_within);
	free(walk->position);
	free(walk->backward);
	free(walk->without_gpu_work);
}

void arrange_tree(const struct options *options, struct processes *processes, struct rows *rows)
{
	struct tree_walk walk = { .options = options, .rows = rows, .base = options->all };
	const size_t before = rows->count;

	for (size_t i = 0; i < processes->shown; i++) {
		walk.process = &processes->all[i];
		if (walk.process->profile->only_samples)
			arrange_function_tree(options, walk.process, rows);
		else
			arrange_process_tree(&walk);
	}
	free(walk.stack);
	if (options->focus && rows->count - before == (options->all ? processes->shown : 0) &&
		!rows->hidden_by_percent && !rows->hidden_by_depth)
		fatal(STATUS_USAGE,
			"there is no node `%s`; names are joined by /, a / in a name is written "
			"\\/%s",
			options->focus,
			node_lookup_suggest(
				&processes->all[0], options->no_fold, options->focus, NULL));
}
