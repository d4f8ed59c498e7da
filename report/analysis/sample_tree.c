/* SPDX-License-Identifier: MIT */
#include "report/analysis/sample_tree.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include <stdlib.h>
#include <string.h>

/* The functions that all stacks at a node begin with. */
struct outer_frames {
	uint32_t *functions;
	uint32_t count;
	bool known;
};

/* ---- names ---- */

enum node_kind sample_node_kind(const struct sample_cells *cells, const struct sample_frame *frame)
{
	switch (cells->functions.all[frame->function].kind) {
	case SAMPLE_PYTHON:
		return NODE_PYTHON;
	case SAMPLE_STATE:
		return NODE_STATE;
	default:
		return NODE_FUNCTION;
	}
}

/* Returns the text `file:line` of a Python frame. */
static uint32_t line_text(const struct sample_cells *cells, const struct sample_frame *frame)
{
	const struct sample_function *function = &cells->functions.all[frame->function];
	struct string_table *texts = cells->process->texts;
	const struct string_view file = string_table_get(texts, function->library);
	struct text_builder text = { .text = NULL };
	uint32_t id;

	text_add(&text, "%.*s:%u", (int)file.length, file.bytes, frame->line);
	id = string_table_intern(texts, text.text, text.used);
	free(text.text);
	return id;
}

/* ---- frames outside of a node's ranges ---- */

static bool is_range_place(const struct sample_cells *cells, uint32_t node)
{
	const struct node *one = &cells->process->profile->tree->nodes[node];

	return node && one->kind != NODE_UNATTRIBUTED && one->kind != NODE_SECTION;
}

static void narrow_outer(
	struct outer_frames *outer, const struct sample_frame *frames, size_t count)
{
	uint32_t same = 0;

	if (!outer->known) {
		outer->known = true;
		outer->functions = xcalloc((count + 1) * sizeof *outer->functions);
		outer->count = (uint32_t)count;
		for (size_t i = 0; i < count; i++)
			outer->functions[i] = frames[i].function;
	}
	while (same < outer->count && same < count &&
		outer->functions[same] == frames[same].function)
		same++;
	outer->count = same;
}

void sample_walk_begin(struct sample_walk *walk, struct sample_cells *cells)
{
	const struct tree *tree = cells->process->profile->tree;

	*walk = (struct sample_walk){ .cells = cells };
	walk->outer_count = tree->count;
	walk->outer = xcalloc(tree->count * sizeof *walk->outer);
	for (size_t i = 0; i < cells->count; i++) {
		sample_stack_set(&walk->stack, cells, &cells->cells[i], SAMPLE_FRAMES_MERGED);
		for (uint32_t node = cells->cells[i].node; is_range_place(cells, node);
			node = tree->nodes[node].parent)
			narrow_outer(&walk->outer[node], walk->stack.frames, walk->stack.count);
	}
}

void sample_walk_end(struct sample_walk *walk)
{
	for (uint32_t id = 0; id < walk->outer_count; id++)
		free(walk->outer[id].functions);
	free(walk->outer);
	sample_stack_free(&walk->stack);
}

void sample_walk_inside(struct sample_walk *walk, const struct sample_cell *cell)
{
	struct sample_stack *stack = &walk->stack;
	const struct outer_frames *outer = &walk->outer[cell->node];
	size_t skipped = outer->known && outer->count ? outer->count - 1 : 0;

	sample_stack_set(stack, walk->cells, cell, SAMPLE_FRAMES_MERGED);
	if (skipped >= stack->count)
		skipped = stack->count - 1;
	stack->count -= skipped;
	memmove(stack->frames, stack->frames + skipped, stack->count * sizeof *stack->frames);
}

/* ---- trees ---- */

static void add_sums(struct tree *tree, uint32_t node, const struct sample_cell *cell)
{
	struct node_sampled *sampled = tree_sampled(tree, node);

	sample_sums_add(&sampled->self, &cell->sums);
	sampled->guessed += cell->flags & TRACE_SAMPLE_GUESSED ? cell->sums.samples : 0;
	sampled->cut += cell->flags & TRACE_SAMPLE_CUT ? cell->sums.samples : 0;
	sampled->moved += cell->flags & TRACE_SAMPLE_MOVED ? cell->sums.samples : 0;
}

static struct tree *new_sample_tree(void)
{
	struct tree *tree = tree_new();

	tree->is_grouped = true;
	return tree;
}

static uint32_t frame_child(struct tree *tree, uint32_t parent, struct sample_walk *walk,
	const struct sample_frame *frame)
{
	const struct sample_function *function = &walk->cells->functions.all[frame->function];

	return tree_child(tree, parent, function->name, function->library,
		sample_node_kind(walk->cells, frame));
}

/* Returns the node for samples in no range: the root, if the trace has no ranges. */
static uint32_t add_no_range(struct sample_cells *cells, struct tree *tree)
{
	static const char name[] = "(no range)";

	if (cells->process->profile->only_samples)
		return 0;
	return tree_child(tree, 0,
		string_table_intern(cells->process->texts, name, sizeof name - 1), 0,
		NODE_UNATTRIBUTED);
}

/* Copies the node with the nodes around it. */
static uint32_t copy_place(
	struct sample_cells *cells, struct tree *tree, uint32_t node, uint32_t *node_of)
{
	const struct tree *from = cells->process->profile->tree;
	const struct node *one = &from->nodes[node];
	uint32_t parent, copy;

	if (!node || node_of[node])
		return node_of[node];
	if (one->kind == NODE_UNATTRIBUTED && !one->parent)
		return node_of[node] = add_no_range(cells, tree);
	parent = copy_place(cells, tree, one->parent, node_of);
	copy = one->kind == NODE_MODULE && one->class ? tree_module(tree, parent, one->name,
								one->domain, one->class)
						      : tree_child(tree, parent, one->name,
								one->domain,
								(enum node_kind)one->kind);
	tree->nodes[copy].labels = one->labels;
	tree->nodes[copy].outside = one->outside;
	return node_of[node] = copy;
}

struct tree *sample_tree_by_path(struct sample_cells *cells, uint32_t **out)
{
	const struct tree *from = cells->process->profile->tree;
	uint32_t *node_of = xcalloc(from->count * sizeof *node_of);
	struct tree *tree = new_sample_tree();
	struct sample_walk walk;

	sample_walk_begin(&walk, cells);
	for (size_t i = 0; i < cells->count; i++) {
		uint32_t at = copy_place(cells, tree, cells->cells[i].node, node_of);

		sample_walk_inside(&walk, &cells->cells[i]);
		for (size_t frame = 0; frame < walk.stack.count; frame++)
			at = frame_child(tree, at, &walk, &walk.stack.frames[frame]);
		add_sums(tree, at, &cells->cells[i]);
	}
	sample_walk_end(&walk);
	tree_sum(tree);
	if (out)
		*out = node_of;
	else
		free(node_of);
	return tree;
}

struct tree *sample_tree_of_functions(struct sample_cells *cells, enum sample_frames which)
{
	struct tree *tree = new_sample_tree();
	struct sample_walk walk = { .cells = cells };

	for (size_t i = 0; i < cells->count; i++) {
		uint32_t at = 0;

		sample_stack_set(&walk.stack, cells, &cells->cells[i], which);
		for (size_t frame = 0; frame < walk.stack.count; frame++)
			at = frame_child(tree, at, &walk, &walk.stack.frames[frame]);
		add_sums(tree, at, &cells->cells[i]);
	}
	sample_stack_free(&walk.stack);
	tree_sum(tree);
	return tree;
}

/* Returns the node of the last frame, below `at`. */
static uint32_t graft_stack(struct tree *tree, uint32_t at, struct sample_walk *walk)
{
	for (size_t frame = 0; frame < walk->stack.count; frame++)
		if (!at || tree->nodes[at].depth + 1u < TREE_DEPTH_MAX)
			at = frame_child(tree, at, walk, &walk->stack.frames[frame]);
	return at;
}

void sample_tree_graft(struct sample_cells *cells, enum rows_by by)
{
	struct tree *tree = cells->process->profile->tree;
	const enum sample_frames which = by == BY_PYTHON   ? SAMPLE_FRAMES_PYTHON
					 : by == BY_NATIVE ? SAMPLE_FRAMES_NATIVE
							   : SAMPLE_FRAMES_ALL;
	const bool by_path = by != BY_PYTHON && by != BY_NATIVE && by != BY_ALL;
	struct sample_walk walk;

	sample_walk_begin(&walk, cells);
	for (uint32_t id = 0; id < tree->count; id++)
		if (tree->nodes[id].sampled)
			tree->nodes[id].sampled->self = (struct sample_sums){ .samples = 0 };
	for (size_t i = 0; i < cells->count; i++) {
		if (by_path)
			sample_walk_inside(&walk, &cells->cells[i]);
		else
			sample_stack_set(&walk.stack, cells, &cells->cells[i], which);
		add_sums(tree, graft_stack(tree, by_path ? cells->cells[i].node : 0, &walk),
			&cells->cells[i]);
	}
	sample_walk_end(&walk);
}

/* The sums of a node are those of its own function, so they are not those of the nodes below. */
static void add_caller_sums(struct tree *tree, uint32_t node, const struct sample_cell *cell)
{
	add_sums(tree, node, cell);
	sample_sums_add(&tree_sampled(tree, node)->total, &cell->sums);
}

struct tree *sample_tree_of_callers(struct sample_cells *cells, enum sample_frames which)
{
	struct tree *tree = new_sample_tree();
	struct sample_walk walk = { .cells = cells };

	for (size_t i = 0; i < cells->count; i++) {
		uint32_t at = 0;

		sample_stack_set(&walk.stack, cells, &cells->cells[i], which);
		for (size_t frame = walk.stack.count; frame-- > 0;) {
			at = frame_child(tree, at, &walk, &walk.stack.frames[frame]);
			add_caller_sums(tree, at, &cells->cells[i]);
		}
	}
	sample_stack_free(&walk.stack);
	return tree;
}

/* Returns the node of a frame's function, line or library. */
static uint32_t flat_child(struct tree *tree, struct sample_walk *walk,
	const struct sample_frame *frame, enum rows_by by)
{
	const struct sample_function *function = &walk->cells->functions.all[frame->function];
	const uint32_t library = by == BY_LIBRARY ? sample_function_library(&walk->cells->functions,
							    frame->function)
						  : 0;

	if (library)
		return tree_child(tree, 0, library, 0, NODE_LIBRARY);
	if (by == BY_LINE && frame->line)
		return tree_child(
			tree, 0, function->name, line_text(walk->cells, frame), NODE_PYTHON);
	return frame_child(tree, 0, walk, frame);
}

/* Leaves out what the innermost source line of the stack called: native functions, the kernel.
 * A stack without any line stays whole. */
static void end_at_line(struct sample_stack *stack)
{
	for (size_t count = stack->count; count > 0; count--)
		if (stack->frames[count - 1].line) {
			stack->count = count;
			return;
		}
}

struct tree *sample_tree_flat(struct sample_cells *cells, enum rows_by by, enum sample_frames which)
{
	struct tree *tree = new_sample_tree();
	struct sample_walk walk = { .cells = cells };
	uint32_t *last = NULL, node = 0; /* by node: the last cell that counted for it, + 1 */
	size_t room = 0;

	for (size_t i = 0; i < cells->count; i++) {
		sample_stack_set(&walk.stack, cells, &cells->cells[i], which);
		if (by == BY_LINE && which == SAMPLE_FRAMES_MERGED)
			end_at_line(&walk.stack);
		for (size_t frame = 0; frame < walk.stack.count; frame++) {
			node = flat_child(tree, &walk, &walk.stack.frames[frame], by);
			ARRAY_GROW(last, room, tree->count);
			if (last[node] == (uint32_t)i + 1)
				continue;
			last[node] = (uint32_t)i + 1;
			sample_sums_add(&tree_sampled(tree, node)->total, &cells->cells[i].sums);
		}
		add_sums(tree, node, &cells->cells[i]);
	}
	free(last);
	sample_stack_free(&walk.stack);
	return tree;
}
