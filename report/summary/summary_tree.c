/* SPDX-License-Identifier: MIT */
#include "report/summary/summary_tree.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/text/paragraph.h"
#include "report/views/tree_extra_rows.h"
#include <stdlib.h>
#include <string.h>

#define EQUAL_SHARE 0.99L /* a value that is this part of another says the same */

struct summary_tree {
	const struct report *report;
	struct process *process;
	const struct column *sort;
	struct rows rows;
	long double *values; /* of the sort column, by row; freed with the rows */
	uint64_t equal, cut; /* rows left out: of equal value, and too small for the screen */
};

/* What has no row below a row, or beside the roots. */
struct rest {
	uint64_t nodes, gpu_ns, cpu_ns;
	bool has_children; /* rows below the row are kept */
};

static bool selects_rows(const struct options *options)
{
	return options->min_percent >= 0 || options->all || options->focus;
}

static long double shown_value(const struct summary_tree *tree, const struct row *row)
{
	const struct cell cell = column_value(tree->sort, row, &tree->report->rows);
	long double number = 0;

	return cell_number(&cell, &number) && number < 0 ? -number : number;
}

/* Returns what decides whether a row is kept: its value; of a range that is shown for its CPU time,
 * although it has little GPU work, as much of the whole as it has of the CPU time, and at most what
 * the row around it has. */
static long double row_weight(const struct summary_tree *tree, const struct row *row)
{
	const struct profile *profile = tree->process->profile;
	const long double value = shown_value(tree, row), cpu = profile_cpu_of_roots(profile),
			  whole = (long double)profile->totals.gpu_sum_ns;
	long double weight;

	if (row->kind != ROW_NODE || row->tree != profile->tree ||
		profile->tree->nodes[row->node].kind != NODE_RANGE ||
		strncmp(tree->sort->key, "gpu", 3) != 0 || value * 100 >= whole || cpu <= 0)
		return value;
	weight = (long double)profile->tree->nodes[row->node].total_ns / cpu * whole;
	return row->parent != NO_ROW && weight > tree->values[row->parent]
		       ? tree->values[row->parent]
		       : weight;
}

/* Takes over the rows of which `kept` has a number, in their order. A row below one that is left
 * out moves up. */
static void take_rows(struct summary_tree *tree, const bool *kept)
{
	uint32_t *positions = xcalloc((tree->rows.count + 1) * sizeof *positions);
	size_t count = 0;

	for (size_t i = 0; i < tree->rows.count; i++) {
		struct row row = tree->rows.rows[i];
		const uint32_t parent = row.parent;

		if (parent != NO_ROW) {
			row.skips_rows |= !kept[parent];
			row.parent = positions[parent];
			row.depth = tree->rows.rows[row.parent].depth + 1;
		}
		positions[i] = kept[i] ? (uint32_t)count : row.parent;
		if (!kept[i])
			continue;
		tree->values[count] = tree->values[i];
		tree->rows.rows[count++] = row;
	}
	tree->rows.count = count;
	free(positions);
}

/* Leaves out the rows between two others that have the same value as both. */
static void merge_equal_rows(struct summary_tree *tree)
{
	const size_t count = tree->rows.count;
	long double *largest_child = xcalloc((count + 1) * sizeof *largest_child);
	bool *kept = xcalloc(count + 1);

	for (size_t i = 0; i < count; i++) {
		const uint32_t parent = tree->rows.rows[i].parent;

		if (parent != NO_ROW && tree->values[i] > largest_child[parent])
			largest_child[parent] = tree->values[i];
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t parent = tree->rows.rows[i].parent;

		kept[i] = parent == NO_ROW || tree->values[i] <= 0 ||
			  tree->values[i] < EQUAL_SHARE * tree->values[parent] ||
			  largest_child[i] < EQUAL_SHARE * tree->values[i];
		tree->equal += !kept[i];
	}
	take_rows(tree, kept);
	free(largest_child);
	free(kept);
}

struct row_value {
	long double value;
	uint32_t row;
};

/* The largest value first. */
COMPARE_BY_LARGEST(by_row_value, struct row_value, value, row)

/* Marks the `most` rows with the largest values. Work outside of ranges is kept, however little. */
static bool *largest_rows(const struct summary_tree *tree, size_t most)
{
	const struct profile *profile = tree->process->profile;
	struct row_value *order = xcalloc((tree->rows.count + 1) * sizeof *order);
	bool *kept = xcalloc(tree->rows.count + 1);
	size_t count = 0, used = 0;

	for (uint32_t i = 0; i < tree->rows.count; i++) {
		const struct row *row = &tree->rows.rows[i];

		if (row->kind != ROW_NODE || row->tree != profile->tree)
			continue;
		kept[i] = row->parent == NO_ROW &&
			  profile->tree->nodes[row->node].kind == NODE_UNATTRIBUTED;
		used += kept[i];
		if (!kept[i])
			order[count++] = (struct row_value){ tree->values[i], i };
	}
	qsort(order, count, sizeof *order, by_row_value);
	for (size_t i = 0; i < count && used < most; i++) {
		const uint32_t parent = tree->rows.rows[order[i].row].parent;

		kept[order[i].row] = parent == NO_ROW || kept[parent];
		used += kept[order[i].row];
	}
	free(order);
	return kept;
}

static bool has_figures(const struct node *node)
{
	return node->calls || node->gpu || node->memory;
}

/* Adds what has no row to the nearest row around it. `owners`: by node, its row + 1. */
static void add_to_rests(const struct summary_tree *tree, const uint32_t *owners,
	const bool *covered, struct rest *rests)
{
	const struct profile *profile = tree->process->profile;
	const bool is_cpu = tree->process->metric != METRIC_GPU;

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];
		struct rest *rest = &rests[owners[node->parent]];

		if (covered[id] || (!node->parent && !profile_root_has_share(profile, id, is_cpu)))
			continue;
		rest->nodes += has_figures(node);
		if (node->parent && !covered[node->parent])
			continue;
		rest->gpu_ns += node->gpu ? node->gpu->total_ns : 0;
		rest->cpu_ns += node->ran_elsewhere ? 0 : node->total_ns;
	}
}

/* Returns what has no row, by kept row + 1; 0: beside the roots. */
static struct rest *find_rests(const struct summary_tree *tree, const bool *kept)
{
	const struct tree *nodes = tree->process->profile->tree;
	struct rest *rests = xcalloc((tree->rows.count + 1) * sizeof *rests);
	uint32_t *owners = xcalloc(nodes->count * sizeof *owners);
	bool *covered = xcalloc(nodes->count);

	rests[0].has_children = true;
	for (uint32_t i = 0; i < tree->rows.count; i++) {
		const struct row *row = &tree->rows.rows[i];

		if (!kept[i])
			continue;
		owners[row->node] = i + 1;
		covered[row->node] = true;
		if (row->parent != NO_ROW)
			rests[row->parent + 1].has_children = true;
	}
	for (uint32_t id = nodes->count - 1; id > 0; id--)
		covered[nodes->nodes[id].parent] |= covered[id];
	for (uint32_t id = 1; id < nodes->count; id++)
		owners[id] = owners[id] ? owners[id] : owners[nodes->nodes[id].parent];
	add_to_rests(tree, owners, covered, rests);
	free(owners);
	free(covered);
	return rests;
}

static bool metric_is_time(enum metric metric)
{
	return metric == METRIC_GPU || metric == METRIC_CPU || metric == METRIC_WALL;
}

/* Clears the rests that are smaller than every kept row. Returns how many remain. */
static size_t keep_large_rests(
	const struct summary_tree *tree, const bool *kept, struct rest *rests)
{
	long double least = -1;
	size_t count = 0;

	for (size_t i = 0; i < tree->rows.count; i++)
		if (kept[i] && tree->values[i] > 0 && (least < 0 || tree->values[i] < least))
			least = tree->values[i];
	for (size_t i = 0; i <= tree->rows.count; i++) {
		const uint64_t ns = tree->process->metric == METRIC_GPU ? rests[i].gpu_ns
									: rests[i].cpu_ns;

		if (!rests[i].has_children || !rests[i].nodes || (long double)ns < least ||
			!metric_is_time(tree->process->metric))
			rests[i] = (struct rest){ .nodes = 0 };
		count += rests[i].nodes > 0;
	}
	return count;
}

/* Appends the row of a rest as the last child of `parent`, the row of which is `like`. */
static void add_rest_row(const struct summary_tree *tree, struct rows *out, const struct rest *rest,
	uint32_t parent, uint32_t depth)
{
	struct row like = tree_row(tree->process, tree->process->profile->tree, 0), row;

	if (!rest->nodes)
		return;
	like.parent = parent;
	like.depth = depth;
	/* CPU times of several threads do not add up to that of the row around them. */
	row = extra_row_rest(tree->process, &like, rest->nodes, rest->gpu_ns,
		tree->process->metric == METRIC_GPU ? 0 : rest->cpu_ns);
	rows_add(out, &row);
}

/* Adds the rests behind the rows around them. */
static void add_rest_rows(struct summary_tree *tree, const struct rest *rests, const bool *kept)
{
	/* by row: its position in `out` */
	uint32_t *positions = xcalloc((tree->rows.count + 1) * sizeof *positions);
	struct rows out = { .count = 0 };
	uint32_t open = NO_ROW;

	for (uint32_t i = 0; i <= tree->rows.count; i++) {
		const bool at_end = i == tree->rows.count;
		struct row row = { .parent = NO_ROW };

		if (!at_end && !kept[i])
			continue;
		if (!at_end)
			row = tree->rows.rows[i];
		for (; open != row.parent; open = tree->rows.rows[open].parent)
			add_rest_row(tree, &out, &rests[open + 1], positions[open],
				tree->rows.rows[open].depth + 1);
		if (at_end)
			break;
		if (row.parent != NO_ROW)
			row.parent = positions[row.parent];
		positions[i] = (uint32_t)out.count;
		rows_add(&out, &row);
		open = i;
	}
	add_rest_row(tree, &out, &rests[0], NO_ROW, 0);
	free(positions);
	free(tree->rows.rows);
	tree->rows = out;
}

/* Keeps the rows with the largest values, so that with the rests there are at most `most`. */
static void cut_rows(struct summary_tree *tree, size_t most)
{
	for (size_t want = most;; want--) {
		bool *kept = largest_rows(tree, want);
		struct rest *rests = find_rests(tree, kept);
		const size_t rest_count = keep_large_rests(tree, kept, rests);
		size_t kept_count = 0;

		for (size_t i = 0; i < tree->rows.count; i++)
			kept_count += kept[i];
		if (kept_count + rest_count <= most || want <= most / 2) {
			tree->cut = tree->rows.count - kept_count;
			add_rest_rows(tree, rests, kept);
			free(kept);
			free(rests);
			return;
		}
		free(kept);
		free(rests);
	}
}

static void put_left_out(const struct summary_tree *tree, const struct style *style)
{
	const struct rows *all = &tree->report->rows;
	struct paragraph line = { .style = style, .indent = sizeof "not shown: " - 1 };

	if (tree->cut)
		paragraph_add(&line, "%llu smaller rows", (unsigned long long)tree->cut);
	if (tree->equal)
		paragraph_add(&line, "%s%llu equal to the row above (%s /)",
			line.built.used ? ", " : "", (unsigned long long)tree->equal,
			style->ascii ? "..." : "\xe2\x80\xa6");
	if (all->hidden_by_percent)
		paragraph_add(&line, "%s%llu below %g %%%s", line.built.used ? ", " : "",
			(unsigned long long)all->hidden_by_percent,
			view_min_percent(tree->report->options),
			tree->cut || tree->equal ? "" : " (--min-percent 0)");
	if (tree->cut || tree->equal)
		paragraph_add(&line, ": pperf-report tree");
	if (all->hidden_by_depth)
		paragraph_add(&line, "%s%llu deeper (--depth)", line.built.used ? ", " : "",
			(unsigned long long)all->hidden_by_depth);
	if (all->hidden_by_top)
		paragraph_add(&line, "%s%llu more (--top 0)", line.built.used ? ", " : "",
			(unsigned long long)all->hidden_by_top);
	if (line.built.used)
		paragraph_print(&line, "not shown:");
}

static bool label_has(const struct row *row, const char *sign, bool ascii)
{
	const struct string_view label = row_label(row, ascii);

	return memmem(label.bytes, label.length, sign, strlen(sign)) != NULL;
}

/* Prints what the signs in the tree mean, of those that it has. */
static void put_tree_legend(const struct summary_tree *tree, const struct style *style)
{
	const char *times = style->ascii ? " x" : " \xc3\x97";
	struct paragraph paragraph = { .style = style };
	bool has_times = false, has_star = false, has_backward = false;

	for (size_t i = 0; i < tree->rows.count; i++) {
		const struct row *row = &tree->rows.rows[i];

		if (row->kind != ROW_NODE || !row->node)
			continue;
		has_times |= row_labels(&row->tree->nodes[row->node]) > 1;
		has_star |= label_has(row, ".*", style->ascii) ||
			    label_has(row, "#*", style->ascii);
		has_backward |= label_has(row, "(bwd)", style->ascii) ||
				label_has(row, "(recompute)", style->ascii);
	}
	paragraph_add(&paragraph, "%%: of %s",
		tree->process->metric == METRIC_USER ? tree->process->profile->options.counter
						     : metrics[tree->process->metric].key);
	if (has_star)
		paragraph_add(&paragraph, "; *: any number");
	if (has_times)
		paragraph_add(&paragraph, ";%sN: N labels that differ only in numbers", times);
	if (has_backward)
		paragraph_add(&paragraph, "; (time): no part of the row above");
	paragraph_print(&paragraph, "legend");
}

void summary_tree_put(const struct report *report, size_t most, const struct style *style)
{
	const struct rows *all = &report->rows;
	struct summary_tree tree = { .report = report, .process = &report->processes->all[0] };

	tree.sort = view_sort(report->options, tree.process);
	tree.values = xcalloc((all->count + 1) * sizeof *tree.values);
	for (size_t i = 0; i < all->count; i++) {
		rows_add(&tree.rows, &all->rows[i]);
		tree.values[i] = row_weight(&tree, &all->rows[i]);
	}
	if (!selects_rows(report->options)) {
		merge_equal_rows(&tree);
		if (tree.rows.count > most)
			cut_rows(&tree, most);
	}
	if (tree.rows.count) {
		print_table(report, &tree.rows, LAYOUT_TREE, style);
		put_tree_legend(&tree, style);
	}
	put_left_out(&tree, style);
	free(tree.values);
	free(tree.rows.rows);
}
