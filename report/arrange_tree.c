/* SPDX-License-Identifier: MIT
 * arrange_tree.c: the hierarchy as rows: parents first, children by weight, what was not asked for left out and
 * counted.
 */
#include "report/column.h"
#include "report/fatal.h"
#include "report/label.h"
#include <stdlib.h>
#include <string.h>

struct walk {
	const struct options *options;
	struct process *process;
	struct rows *rows;
	const struct column *sort;
	bool *alive;          /* by node: something happened in it or below */
	long double least;    /* rows below it are too small; 0: none is */
	uint32_t base;        /* depth of the roots: 1 below a process */
	uint32_t root_parent; /* their row */
	struct row *waiting;  /* the last one is next */
	size_t waiting_count, waiting_room;
};

static void find_alive(struct walk *walk)
{
	const struct tree *tree = walk->process->fold->tree;

	walk->alive = need(tree->count * sizeof *walk->alive);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];

		walk->alive[id] |= node->calls > 0 || node->gpu || node->memory;
		walk->alive[node->parent] |= walk->alive[id];
	}
}

static long double amount(const struct walk *walk, const struct row *row)
{
	const struct cell cell = walk->sort->value(row, walk->rows);
	long double number;

	if (!cell_number(&cell, &number))
		return 0;
	return number < 0 ? -number : number;
}

static bool too_small(const struct walk *walk, const struct row *row)
{
	const struct fold *fold = walk->process->fold;
	const struct node *node = &row->tree->nodes[row->node];

	/* What belongs to no range is a root of its own, however little it is. */
	if (row->node == fold->unattributed && (node->gpu || (node->memory && node->memory->alloc_bytes)))
		return false;
	if (fold->spans && (row->node == fold->spans || node->parent == fold->spans))
		return false;
	return amount(walk, row) < walk->least;
}

/* The nodes to be shown at one level, ordered, cut to what was asked for, and put on the heap, the first on top. */
static void wait_for(struct walk *walk, struct row *level, size_t count)
{
	const uint32_t top = view_top(walk->options);
	size_t kept = 0;

	rows_sort(level, count, walk->sort);
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
	grow(&walk->waiting, &walk->waiting_room, walk->waiting_count + kept, sizeof *walk->waiting);
	while (kept)
		walk->waiting[walk->waiting_count++] = level[--kept];
}

static void wait_for_children(struct walk *walk, uint32_t node, uint32_t parent_row, uint32_t depth)
{
	const struct tree *tree = walk->process->fold->tree;
	struct row *level = NULL;
	size_t count = 0, room = 0;

	for (uint32_t id = tree->nodes[node].first_child; id; id = tree->nodes[id].next) {
		if (!walk->alive[id])
			continue;
		grow(&level, &room, count + 1, sizeof *level);
		level[count++] = (struct row){ .process = walk->process,
			.kind = ROW_NODE,
			.parent = parent_row,
			.depth = depth,
			.node = id,
			.tree = tree };
	}
	if (count)
		wait_for(walk, level, count);
	free(level);
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

		if (id != fold->spans)
			sum += amount(walk, &row);
	}
	return sum;
}

static bool is_named(const struct walk *walk, uint32_t node, const char *name, size_t length)
{
	const struct process *process = walk->process;
	const struct text text = text_of(process->texts, process->fold->tree->nodes[node].name);
	char *folded = need(length + 1);
	const size_t folded_length = label_fold(name, length, folded);
	const bool same = (text.length == length && memcmp(text.bytes, name, length) == 0) ||
			  (!walk->options->no_fold && text.length == folded_length &&
				  memcmp(text.bytes, folded, folded_length) == 0);

	free(folded);
	return same;
}

/* Where --focus leads: the nodes of that path, of whatever kind and domain. */
static size_t find_focus(const struct walk *walk, uint32_t **found)
{
	const struct tree *tree = walk->process->fold->tree;
	const char *path = walk->options->focus;
	char *name = need(strlen(path) + 1);
	uint32_t *nodes = need(sizeof *nodes), *next;
	size_t count = 1, next_count, length, room;

	while (options_next_component(&path, name, &length)) {
		next = NULL;
		next_count = room = 0;
		for (size_t i = 0; i < count; i++)
			for (uint32_t id = tree->nodes[nodes[i]].first_child; id; id = tree->nodes[id].next)
				if (walk->alive[id] && is_named(walk, id, name, length)) {
					grow(&next, &room, next_count + 1, sizeof *next);
					next[next_count++] = id;
				}
		free(nodes);
		nodes = next;
		count = next_count;
	}
	free(name);
	*found = nodes;
	return count;
}

static void wait_for_roots(struct walk *walk)
{
	const struct tree *tree = walk->process->fold->tree;
	struct row *level;
	uint32_t *nodes;
	size_t count;

	if (!walk->options->focus) {
		wait_for_children(walk, 0, walk->root_parent, walk->base);
		return;
	}
	count = find_focus(walk, &nodes);
	level = need((count + 1) * sizeof *level);
	for (size_t i = 0; i < count; i++)
		level[i] = (struct row){ .process = walk->process,
			.kind = ROW_NODE,
			.parent = walk->root_parent,
			.depth = walk->base,
			.node = nodes[i],
			.tree = tree };
	if (count)
		wait_for(walk, level, count);
	free(level);
	free(nodes);
}

static void arrange_process(struct walk *walk)
{
	const struct row process_row = { .process = walk->process, .kind = ROW_PROCESS, .parent = NO_ROW };

	walk->sort = view_sort(walk->options, walk->process);
	find_alive(walk);
	walk->least = sum_of_roots(walk) * (long double)view_min_percent(walk->options) / 100;
	walk->root_parent = NO_ROW;
	if (walk->options->all) {
		rows_add(walk->rows, &process_row);
		walk->root_parent = (uint32_t)walk->rows->count - 1;
	}
	wait_for_roots(walk);
	while (walk->waiting_count) {
		const struct row row = walk->waiting[--walk->waiting_count];

		rows_add(walk->rows, &row);
		wait_for_children(walk, row.node, (uint32_t)walk->rows->count - 1, row.depth + 1);
	}
	free(walk->alive);
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
