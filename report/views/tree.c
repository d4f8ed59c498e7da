/* SPDX-License-Identifier: MIT
 * arrange_tree.c: the hierarchy as rows: parents first, children by weight, what was not asked for left out and
 * counted.
 */
#include "report/views/views.h"
#include "report/views/tree_extra_rows.h"
#include "report/table/column.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include "report/run/node_lookup.h"
#include <stdlib.h>
#include <string.h>

struct walk {
	const struct options *options;
	struct process *process;
	struct rows *rows;
	const struct column *sort;
	bool *alive;          /* by node: something happened in it or below */
	bool *workless;       /* asides_workless */
	uint32_t *operators;  /* by node: ranges that are alive, in it and below */
	uint32_t *seat, *backward; /* by node, while a level is ordered: its row and that of its backward, + 1 */
	long double least;    /* rows below it are too small; 0: none is */
	uint64_t least_cpu_ns; /* and of those without work, what took less time */
	uint32_t base;        /* depth of the roots: 1 below a process */
	uint32_t root_parent; /* their row */
	struct row *waiting;  /* the last one is next */
	size_t waiting_count, waiting_room;
};

static void find_alive(struct walk *walk)
{
	const struct tree *tree = walk->process->fold->tree;

	walk->alive = need(tree->count * sizeof *walk->alive);
	walk->operators = need(tree->count * sizeof *walk->operators);
	walk->seat = need(tree->count * sizeof *walk->seat);
	walk->backward = need(tree->count * sizeof *walk->backward);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];

		walk->alive[id] |= node->calls > 0 || node->gpu || node->memory;
		walk->alive[node->parent] |= walk->alive[id];
		walk->operators[id] += walk->alive[id] && node_kind_class(node->kind) == NODE_RANGES && !node->is_group;
		walk->operators[node->parent] += walk->operators[id];
	}
}

static long double amount(const struct walk *walk, const struct row *row)
{
	const struct cell cell = column_value(walk->sort, row, walk->rows);
	long double number;

	if (!cell_number(&cell, &number))
		return 0;
	return number < 0 ? -number : number;
}

static bool too_small(const struct walk *walk, const struct row *row)
{
	const struct fold *fold = walk->process->fold;
	const struct node *node = &row->tree->nodes[row->node];

	if (row->tree != fold->tree)
		return false;
	/* What belongs to no range is a root of its own, however little it is. */
	if (node->kind == NODE_UNATTRIBUTED && (node->gpu || (node->memory && node->memory->alloc_bytes)))
		return false;
	if (fold->spans && (row->node == fold->spans || node->parent == fold->spans))
		return false;
	if (walk->workless && walk->workless[row->node] &&
		node->total_ns >= walk->least_cpu_ns)
		return false;
	return amount(walk, row) < walk->least;
}

static uint32_t forward_of(const struct walk *walk, const struct row *row)
{
	return row->tree == walk->process->fold->tree ? row->tree->nodes[row->node].beside : 0;
}

/* Takes a row and its partner, the forward one first. Returns how many it took: none if they are taken. */
static size_t take_pair(struct walk *walk, const struct row *level, const struct row *row, struct row *out)
{
	uint32_t forward = forward_of(walk, row);
	size_t used = 1;

	*out = *row;
	if (row->tree != walk->process->fold->tree)
		return 1;
	if (!walk->seat[row->node])
		return 0;
	if (!forward || !walk->seat[forward])
		forward = row->node;
	*out = level[walk->seat[forward] - 1];
	if (walk->backward[forward])
		out[used++] = level[walk->backward[forward] - 1];
	for (size_t i = 0; i < used; i++)
		walk->seat[out[i].node] = 0;
	return used;
}

/* An operator and its backward stand together, where the first of them does. */
static void bring_together(struct walk *walk, struct row *level, size_t count)
{
	struct row *ordered = need((count + 1) * sizeof *ordered);
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (level[i].tree == walk->process->fold->tree)
			walk->seat[level[i].node] = (uint32_t)i + 1;
	for (size_t i = 0; i < count; i++)
		walk->backward[forward_of(walk, &level[i])] = (uint32_t)i + 1;
	walk->backward[0] = 0;
	for (size_t i = 0; i < count; i++)
		used += take_pair(walk, level, &level[i], ordered + used);
	for (size_t i = 0; i < count; i++)
		walk->backward[forward_of(walk, &level[i])] = 0;
	memcpy(level, ordered, count * sizeof *level);
	free(ordered);
}

/* What is in no step goes behind what is, however long it took. */
static void put_steps_first(const struct walk *walk, struct row *level, size_t count)
{
	struct row *others = need((count + 1) * sizeof *others);
	size_t first = 0, other_count = 0;

	for (size_t i = 0; i < count; i++)
		if (level[i].kind == ROW_NODE && !fold_shares(walk->process->fold, level[i].node, true))
			others[other_count++] = level[i];
		else
			level[first++] = level[i];
	memcpy(level + first, others, other_count * sizeof *others);
	free(others);
}

/* The nodes to be shown at one level, ordered, cut to what was asked for, and put with those that wait, the first on top. */
static void wait_for(struct walk *walk, struct row *level, size_t count)
{
	const uint32_t top = view_top(walk->options);
	size_t kept = 0;

	rows_sort(level, count, walk->sort);
	if (walk->process->steps && walk->process->steps->count)
		put_steps_first(walk, level, count);
	for (size_t i = 0; i < count; i++) {
		if (level[i].depth - walk->base >= walk->options->depth)
			walk->rows->deep++;
		else if (too_small(walk, &level[i]))
			walk->rows->small++;
		else if (kept >= top)
			walk->rows->more++;
		else
			level[kept++] = level[i];
	}
	for (size_t i = 0; i < kept; i++)
		if (forward_of(walk, &level[i])) {
			bring_together(walk, level, kept);
			break;
		}
	grow(&walk->waiting, &walk->waiting_room, walk->waiting_count + kept, sizeof *walk->waiting);
	while (kept)
		walk->waiting[walk->waiting_count++] = level[--kept];
}

/* The rows of one level. */
struct level {
	struct row *rows;
	size_t count, room;
	uint64_t idle_rows, idle_operators, idle_ns; /* left out: without work, and too short for a row of their own */
};

static void add_to_level(struct level *level, const struct row *row)
{
	grow(&level->rows, &level->room, level->count + 1, sizeof *level->rows);
	level->rows[level->count++] = *row;
}

/* What only text has, beside the nodes: `like` is a row of that level, `of` the one around it. */
static void add_asides(struct walk *walk, struct level *level, const struct row *of, const struct row *like)
{
	struct row row;

	if (walk->options->format != FORMAT_TEXT || !walk->least_cpu_ns)
		return;
	if (of && (asides_odd(of, like, &row) || asides_moved(of, like, &row)) && amount(walk, &row) >= walk->least)
		add_to_level(level, &row);
	if (level->idle_ns >= walk->least_cpu_ns) {
		row = asides_sum(walk->process, like, level->idle_operators, level->idle_ns);
		add_to_level(level, &row);
	} else {
		walk->rows->small += level->idle_rows;
	}
}

/* of: their row; NULL: they are roots. */
static void wait_for_children(struct walk *walk, uint32_t node, const struct row *of, uint32_t parent_row, uint32_t depth)
{
	const struct tree *tree = walk->process->fold->tree;
	struct row row = {
		.process = walk->process, .kind = ROW_NODE, .parent = parent_row, .depth = depth, .tree = tree
	};
	struct level level = { .count = 0 };

	for (uint32_t id = tree->nodes[node].first_child; id; id = tree->nodes[id].next) {
		row.node = id;
		if (!walk->alive[id])
			continue;
		if (walk->workless && walk->workless[id] && tree->nodes[id].total_ns < walk->least_cpu_ns) {
			level.idle_rows++;
			level.idle_operators += walk->operators[id];
			level.idle_ns += tree->nodes[id].total_ns;
			continue;
		}
		add_to_level(&level, &row);
	}
	add_asides(walk, &level, of, &row);
	if (level.count)
		wait_for(walk, level.rows, level.count);
	free(level.rows);
}

/* What the shares of the sort key are shares of. */
static long double sum_of_roots(const struct walk *walk)
{
	const struct fold *fold = walk->process->fold;
	long double sum = 0;

	for (uint32_t id = fold->tree->nodes[0].first_child; id; id = fold->tree->nodes[id].next) {
		const struct row row = {
			.process = walk->process, .kind = ROW_NODE, .parent = NO_ROW, .node = id, .tree = fold->tree
		};

		if (fold_shares(fold, id, strncmp(walk->sort->key, "cpu", 3) == 0))
			sum += amount(walk, &row);
	}
	return sum;
}

static long double cpu_of_roots(const struct walk *walk)
{
	const struct fold *fold = walk->process->fold;
	long double sum = 0;

	for (uint32_t id = fold->tree->nodes[0].first_child; id; id = fold->tree->nodes[id].next)
		if (fold_shares(fold, id, true))
			sum += fold->tree->nodes[id].total_ns;
	return sum;
}

static void wait_for_roots(struct walk *walk)
{
	const struct tree *tree = walk->process->fold->tree;
	struct row *level;
	struct places places;

	if (!walk->options->focus) {
		wait_for_children(walk, 0, NULL, walk->root_parent, walk->base);
		return;
	}
	places = places_at(walk->process, walk->options->no_fold, walk->options->focus, walk->alive);
	level = need((places.count + 1) * sizeof *level);
	for (size_t i = 0; i < places.count; i++)
		level[i] = (struct row){ .process = walk->process,
			.kind = ROW_NODE,
			.parent = walk->root_parent,
			.depth = walk->base,
			.node = places.nodes[i],
			.tree = tree };
	if (places.count)
		wait_for(walk, level, places.count);
	free(level);
	free(places.nodes);
}

static void arrange_process(struct walk *walk)
{
	const struct row process_row = { .process = walk->process, .kind = ROW_PROCESS, .parent = NO_ROW };

	walk->sort = view_sort(walk->options, walk->process);
	find_alive(walk);
	walk->workless = walk->options->format == FORMAT_TEXT ? asides_workless(walk->process) : NULL;
	walk->least = sum_of_roots(walk) * (long double)view_min_percent(walk->options) / 100;
	walk->least_cpu_ns = number_whole(cpu_of_roots(walk) * (long double)view_min_percent(walk->options) / 100);
	walk->root_parent = NO_ROW;
	if (walk->options->all) {
		rows_add(walk->rows, &process_row);
		walk->root_parent = (uint32_t)walk->rows->count - 1;
	}
	wait_for_roots(walk);
	while (walk->waiting_count) {
		const struct row row = walk->waiting[--walk->waiting_count];

		rows_add(walk->rows, &row);
		if (row.tree == walk->process->fold->tree)
			wait_for_children(walk, row.node, &row, (uint32_t)walk->rows->count - 1, row.depth + 1);
	}
	free(walk->alive);
	free(walk->operators);
	free(walk->seat);
	free(walk->backward);
	free(walk->workless);
}

void arrange_tree(const struct options *options, struct processes *processes, struct rows *rows)
{
	struct walk walk = { .options = options, .rows = rows, .base = options->all };
	const size_t before = rows->count;

	for (size_t i = 0; i < processes->shown; i++) {
		walk.process = &processes->all[i];
		arrange_process(&walk);
	}
	free(walk.waiting);
	if (options->focus && rows->count - before == (options->all ? processes->shown : 0) && !rows->small &&
		!rows->deep)
		fatal(STATUS_USAGE, "there is no place `%s`; names are joined by /, a / in a name is written \\/",
			options->focus);
}
