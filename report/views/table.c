/* SPDX-License-Identifier: MIT
 *
 * Flattens the tree: one node for each name, or for each value of the key that --by names.
 */
#include "report/views/views.h"
#include "report/gpu/work_categories.h"
#include "report/table/column.h"
#include "report/base/alloc.h"
#include "report/analysis/group_by.h"
#include "report/text/format_number.h"
#include <stdlib.h>
#include <string.h>

/* Adds a node's times to those of its flat node. `inner`: an ancestor has the same flat node, so
 * its total already includes this one. */
static void merge_times(struct node *flat, const struct node *node, bool inner)
{
	flat->calls += node->calls;
	flat->self_ns += node->self_ns;
	flat->call_ns += node->call_ns;
	if (node->labels > flat->labels)
		flat->labels = node->labels;
	flat->left_open |= node->left_open;
	if (node->min_ns < flat->min_ns)
		flat->min_ns = node->min_ns;
	if (node->max_ns > flat->max_ns)
		flat->max_ns = node->max_ns;
	if (!inner)
		flat->total_ns += node->total_ns;
}

/* Keeps the launch of the first kernel, and notes if another one was launched differently. */
static void merge_launch_shape(struct node_gpu *gpu, const struct node_gpu *from)
{
	gpu->several_shapes |= from->several_shapes;
	if (!from->shape)
		return;
	if (gpu->shape) {
		gpu->several_shapes |= !launch_config_equal(gpu->shape, from->shape);
		return;
	}
	gpu->shape = xcalloc(sizeof *gpu->shape);
	*gpu->shape = *from->shape;
}

/* Adds GPU times to node `id`. `inner`: as in merge_times. `is_duplicate`: `from` is of GPU work or
 * of a captured node, and the range around it has the same time as its self time. */
static void merge_gpu(
	struct tree *tree, uint32_t id, const struct node_gpu *from, bool inner, bool is_duplicate)
{
	struct node_gpu *gpu = tree_gpu(tree, id);

	gpu->self_ns += from->self_ns;
	gpu->duplicate_ns += is_duplicate ? from->self_ns : 0;
	gpu->self_calls += from->self_calls;
	gpu->untimed += from->untimed;
	gpu->bytes += from->bytes;
	gpu->method = from->method;
	merge_launch_shape(gpu, from);
	if (inner)
		return;
	gpu->total_ns += from->total_ns;
	gpu->total_calls += from->total_calls;
	gpu->idle_ns += from->idle_ns;
}

static void merge_memory(struct tree *tree, uint32_t id, const struct node_memory *from, bool inner)
{
	struct node_memory *memory = tree_memory(tree, id);

	memory->alloc_self += from->alloc_self;
	memory->free_self += from->free_self;
	memory->allocs += from->allocs;
	memory->frees += from->frees;
	memory->failed += from->failed;
	if (from->has_level && (!memory->has_level || memory->reserved_peak < from->reserved_peak))
		memory->reserved_peak = from->reserved_peak;
	memory->has_level |= from->has_level;
	if (inner)
		return;
	memory->alloc_bytes += from->alloc_bytes;
	memory->free_bytes += from->free_bytes;
	memory->reserved_delta = saturating_add(memory->reserved_delta, from->reserved_delta);
}

static void merge_tensors(
	struct tree *tree, uint32_t id, const struct node_tensors *from, bool inner)
{
	struct node_tensors *tensors = tree_tensors(tree, id);

	tensors->allocs += from->allocs;
	tensors->frees += from->frees;
	if (from->has_level &&
		(!tensors->has_level || tensors->allocated_peak < from->allocated_peak))
		tensors->allocated_peak = from->allocated_peak;
	tensors->has_level |= from->has_level;
	if (inner)
		return;
	tensors->total.alloc_bytes += from->total.alloc_bytes;
	tensors->total.free_bytes += from->total.free_bytes;
	tensors->total.at_peak += from->total.at_peak;
	tensors->total.at_oom += from->total.at_oom;
	tensors->allocated_delta = saturating_add(tensors->allocated_delta, from->allocated_delta);
}

static void merge_worst(struct tree *tree, uint32_t id, const struct node_worst *from)
{
	struct node_worst *worst = tree_worst(tree, id);

	if (!from->found || (worst->found && (from->value < worst->value ||
						     (from->value == worst->value &&
							     from->begin_ns < worst->begin_ns))))
		return;
	*worst = *from;
	worst->own = NULL;
}

static void merge_node(struct tree *flat, uint32_t id, const struct node *node, bool inner)
{
	merge_times(&flat->nodes[id], node, inner);
	percentiles_merge(&flat->nodes[id].samples, &node->samples, &flat->budget);
	if (node->gpu)
		merge_gpu(flat, id, node->gpu, inner,
			node->captured || node_kind_class(node->kind) == NODE_WORK);
	if (node->memory)
		merge_memory(flat, id, node->memory, inner);
	if (node->tensors)
		merge_tensors(flat, id, node->tensors, inner);
	if (node->worst)
		merge_worst(flat, id, node->worst);
}

static uint32_t flat_node(struct tree *flat, const struct profile *profile, uint32_t id)
{
	const struct node *node = &profile->tree->nodes[id];
	const bool span = profile->async_ranges && node->parent == profile->async_ranges;
	const uint32_t before = flat->count;
	uint32_t flat_id;

	flat_id = node->class ? tree_module(flat, 0, node->name, node->domain, node->class)
			      : tree_child(flat, 0, node->name, node->domain,
					span ? NODE_ASYNC : (enum node_kind)node->kind);
	flat->nodes[flat_id].captured = node->captured &&
					(flat_id >= before || flat->nodes[flat_id].captured);
	if (node->class || node->captured)
		return flat_id;
	flat->nodes[flat_id].is_group = node->is_group;
	flat->nodes[flat_id].ran_elsewhere = node->ran_elsewhere;
	flat->nodes[flat_id].is_counted |= node->is_counted;
	return flat_id;
}

static struct tree *flatten(const struct process *process)
{
	const struct profile *profile = process->profile;
	const struct tree *tree = profile->tree;
	struct tree *flat = tree_new();
	uint32_t *flat_of = xcalloc(tree->count * sizeof *flat_of), *open = NULL, node = 0;
	size_t room = 0;

	/* Traverse the tree without recursion: to the first child, else to the next sibling of the
	 * node or of an ancestor. open[] counts the ancestors by flat node. */
	for (;;) {
		uint32_t next = tree->nodes[node].first_child;

		while (!next && node) {
			open[flat_of[node]]--;
			next = tree->nodes[node].next;
			node = tree->nodes[node].parent;
		}
		if (!next)
			break;
		node = next;
		flat_of[node] = flat_node(flat, profile, node);
		ARRAY_GROW(open, room, flat->count);
		if (node != profile->async_ranges)
			merge_node(
				flat, flat_of[node], &tree->nodes[node], open[flat_of[node]] > 0);
		open[flat_of[node]]++;
	}
	free(open);
	free(flat_of);
	return flat;
}

/* Returns true if calls named `name` have nodes of their own. CUPTI times some calls that pperf
 * recorded, too. */
static bool has_call_node(const struct process *process, uint32_t name)
{
	static const enum node_kind kinds[] = { NODE_API, NODE_SYNC, NODE_ALLOC };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (tree_find(process->flat, 0, name, 0, kinds[i]))
			return true;
	return false;
}

static void add_flat_rows(struct process *process, struct rows *rows)
{
	for (uint32_t id = 1; id < process->flat->count; id++) {
		const struct node *node = &process->flat->nodes[id];

		if (node->calls || node->total_ns || node->gpu || node->memory || node->tensors)
			rows_add(rows, &(struct row){ .process = process,
					       .kind = ROW_NODE,
					       .parent = NO_ROW,
					       .node = id,
					       .tree = process->flat });
	}
}

/* Returns false, with a warning, if the trace lacks the data to group by. */
static bool make_flat_tree(
	const struct options *options, struct processes *processes, struct process *process)
{
	char reason[GROUP_BY_REASON_BYTES];

	if (!process->flat && options->by == BY_NAME)
		process->flat = flatten(process);
	else if (!process->flat)
		process->flat = group_by_tree(process, options->by, reason);
	if (!process->flat)
		processes_warn(processes, "%s: %s", process->path, reason);
	return process->flat != NULL;
}

/* Moves the category of unmatched work to the end. --sort overrides this. */
static void put_other_last(const struct process *process, struct row *rows, size_t count)
{
	const uint32_t other = string_table_find(
		process->texts, CATEGORY_OTHER_NAME, strlen(CATEGORY_OTHER_NAME));

	for (size_t i = 0; i + 1 < count; i++)
		if (rows[i].tree->nodes[rows[i].node].name == other) {
			const struct row last = rows[i];

			memmove(&rows[i], &rows[i + 1], (count - i - 1) * sizeof *rows);
			rows[count - 1] = last;
			return;
		}
}

/* Returns whether `kind` is one of the words, which are separated by commas. */
static bool is_listed_kind(const char *kinds, struct string_view kind)
{
	for (const char *word = kinds; *word; word += strspn(word, ",")) {
		const size_t length = strcspn(word, ",");

		if (length == kind.length && !memcmp(word, kind.bytes, length))
			return true;
		word += length;
	}
	return false;
}

/* Drops the rows from `first` on that --kind does not name. */
static void keep_kinds(const struct options *options, struct rows *rows, size_t first)
{
	const struct column *column = column_find("kind", strlen("kind"));
	size_t kept = first;

	for (size_t i = first; i < rows->count; i++) {
		const struct cell kind = column_value(column, &rows->rows[i], rows);

		if (kind.kind == CELL_TEXT && is_listed_kind(options->kinds, kind.text))
			rows->rows[kept++] = rows->rows[i];
	}
	rows->count = kept;
}

static void add_table_rows(
	const struct options *options, struct process *process, struct rows *rows)
{
	const size_t first = rows->count;
	const uint32_t top = view_top(options);

	add_flat_rows(process, rows);
	for (uint32_t i = 0; options->by == BY_NAME && i < process->profile->api_count; i++)
		if (!has_call_node(process, process->profile->apis[i].name))
			rows_add(rows, &(struct row){ .process = process,
					       .kind = ROW_API,
					       .parent = NO_ROW,
					       .of.api = &process->profile->apis[i] });
	if (options->kinds)
		keep_kinds(options, rows, first);
	rows_sort(rows->rows + first, rows->count - first, view_sort(options, process));
	if (options->by == BY_CATEGORY && !options->sort)
		put_other_last(process, rows->rows + first, rows->count - first);
	rows_prune(rows, first, view_sort(options, process), view_min_percent(options), top);
}

void arrange_table(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		if (make_flat_tree(options, processes, &processes->all[i]))
			add_table_rows(options, &processes->all[i], rows);
		else
			rows->empty_explained = true;
}

void arrange_kernels(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++) {
		struct process *process = &processes->all[i];
		const struct launch_configs *kernels = process->profile->kernels;
		const size_t first = rows->count;

		for (uint32_t kernel = 0; kernel < kernels->count; kernel++)
			rows_add(rows, &(struct row){ .process = process,
					       .kind = ROW_SHAPE,
					       .parent = NO_ROW,
					       .node = kernels->kernels[kernel].node,
					       .tree = process->profile->tree,
					       .of.shape = &kernels->kernels[kernel] });
		rows_sort(rows->rows + first, rows->count - first, view_sort(options, process));
		rows_prune(rows, first, view_sort(options, process), view_min_percent(options),
			view_top(options));
	}
}
