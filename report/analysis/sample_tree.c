/* SPDX-License-Identifier: MIT */
#include "report/analysis/sample_tree.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include <stdlib.h>
#include <string.h>

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

/* The frames that all stacks at a node begin with: the innermost of them in one of the stacks. The
 * lines of the others may be different. */
struct outer_frames {
	uint32_t innermost; /* 0: there are none */
	bool known;
};

/* Leaves what the stack of `other` begins with, too. */
static void narrow_outer(
	struct outer_frames *outer, const struct sample_stacks *stacks, uint32_t other)
{
	const struct stack_frame *all = stacks->all;
	const uint32_t depth = all[outer->innermost].depth < all[other].depth
				       ? all[outer->innermost].depth
				       : all[other].depth;
	uint32_t at = stack_frame_at(stacks, outer->innermost, depth), same = depth;

	if (!outer->known) {
		*outer = (struct outer_frames){ other, true };
		return;
	}
	outer->innermost = at;
	for (other = stack_frame_at(stacks, other, depth); at != other;
		at = all[at].caller, other = all[other].caller)
		if (all[at].frame.function != all[other].frame.function)
			same = all[at].depth - 1;
	outer->innermost = stack_frame_at(stacks, outer->innermost, same);
}

/* Returns the outer frames by node of the call tree. The caller frees them. */
static struct outer_frames *find_outer(
	const struct sample_cells *cells, const struct sample_stacks *stacks)
{
	const struct tree *tree = cells->process->profile->tree;
	struct outer_frames *outer = xcalloc(tree->count * sizeof *outer);

	for (size_t i = 0; i < cells->count; i++)
		if (is_range_place(cells, cells->cells[i].node))
			narrow_outer(&outer[cells->cells[i].node], stacks, stacks->of_cell[i]);
	for (uint32_t id = tree->count - 1; id > 0; id--)
		if (outer[id].known && is_range_place(cells, tree->nodes[id].parent))
			narrow_outer(&outer[tree->nodes[id].parent], stacks, outer[id].innermost);
	return outer;
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

static uint32_t frame_child(const struct sample_cells *cells, struct tree *tree, uint32_t parent,
	const struct sample_frame *frame)
{
	const struct sample_function *function = &cells->functions.all[frame->function];

	return tree_child(
		tree, parent, function->name, function->library, sample_node_kind(cells, frame));
}

#define KEPT_OF 8u

/* Adds stacks to a tree. The nodes of one in KEPT_OF frames are kept, so that a stack that begins
 * as others did is not looked up from its outermost frame on. */
struct stack_adder {
	const struct sample_cells *cells;
	const struct sample_stacks *stacks;
	struct tree *tree;
	/* By node of the call tree, NULL: all frames are added. */
	struct outer_frames *outer;
	bool limits_depth; /* frames deeper than TREE_DEPTH_MAX count for the one there */
	struct added_frame {
		uint32_t place, frame, node; /* place: node of the call tree */
	} * added;
	size_t count, room;
	struct hash_index index;
	uint32_t *path;
	size_t path_room;
};

static void adder_free(struct stack_adder *adder)
{
	free(adder->added);
	free(adder->path);
	free(adder->outer);
	hash_index_free(&adder->index);
}

static uint64_t hash_of_added(uint32_t place, uint32_t frame)
{
	return hash_u64((uint64_t)place << 32 | frame);
}

/* Returns the node of a frame in the node `place` of the call tree; 0: it is not kept. */
static uint32_t find_added(struct stack_adder *adder, uint32_t place, uint32_t frame)
{
	struct hash_slot *slot;

	if (frame % KEPT_OF)
		return 0;
	hash_index_reserve(&adder->index);
	for (slot = hash_index_first(&adder->index, hash_of_added(place, frame)); slot->number;
		slot = hash_index_next(&adder->index, slot)) {
		const struct added_frame *one = &adder->added[slot->number - 1];

		if (one->place == place && one->frame == frame)
			return one->node;
	}
	return 0;
}

/* Keeps the node of a frame, which is not kept so far. */
static void keep_added(struct stack_adder *adder, uint32_t place, uint32_t frame, uint32_t node)
{
	const uint64_t hash = hash_of_added(place, frame);
	struct hash_slot *slot;

	if (frame % KEPT_OF)
		return;
	hash_index_reserve(&adder->index);
	slot = hash_index_first(&adder->index, hash);
	while (slot->number)
		slot = hash_index_next(&adder->index, slot);
	*ARRAY_ADD(adder->added, adder->room, adder->count) = (struct added_frame){ place, frame,
		node };
	hash_index_add(&adder->index, slot, hash, (uint32_t)adder->count);
}

/* Returns how many of the outermost frames are left out. */
static uint32_t skipped_frames(const struct stack_adder *adder, uint32_t place, uint32_t innermost)
{
	const struct stack_frame *all = adder->stacks->all;
	const uint32_t outer = adder->outer ? all[adder->outer[place].innermost].depth : 0;

	if (!outer)
		return 0;
	return (outer < all[innermost].depth ? outer : all[innermost].depth) - 1;
}

static bool is_too_deep(const struct stack_adder *adder, uint32_t node)
{
	return adder->limits_depth && node && adder->tree->nodes[node].depth + 1u >= TREE_DEPTH_MAX;
}

/* Adds the stack of a cell below the node `above`, and its samples to the last node. */
static void add_stack(struct stack_adder *adder, size_t cell, uint32_t above)
{
	const struct stack_frame *all = adder->stacks->all;
	const uint32_t place = adder->outer ? adder->cells->cells[cell].node : 0,
		       innermost = adder->stacks->of_cell[cell],
		       skipped = skipped_frames(adder, place, innermost);
	uint32_t node = above;
	size_t count = 0;

	for (uint32_t at = innermost; all[at].depth > skipped; at = all[at].caller) {
		const uint32_t kept = find_added(adder, place, at);

		if (kept) {
			node = kept;
			break;
		}
		*ARRAY_ADD(adder->path, adder->path_room, count) = at;
	}
	while (count) {
		const uint32_t at = adder->path[--count];

		if (!is_too_deep(adder, node))
			node = frame_child(adder->cells, adder->tree, node, &all[at].frame);
		keep_added(adder, place, at, node);
	}
	add_sums(adder->tree, node, &adder->cells->cells[cell]);
}

/* As tree_sum, for a tree that has samples alone. */
static void sum_samples(struct tree *tree)
{
	for (uint32_t id = 0; id < tree->count; id++)
		if (tree->nodes[id].sampled)
			tree->nodes[id].sampled->total = tree->nodes[id].sampled->self;
	for (uint32_t id = tree->count - 1; id > 0; id--)
		if (tree->nodes[id].sampled)
			sample_sums_add(&tree_sampled(tree, tree->nodes[id].parent)->total,
				&tree->nodes[id].sampled->total);
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
	const struct sample_stacks *stacks = sample_stacks_of(cells, SAMPLE_FRAMES_MERGED);
	uint32_t *node_of = xcalloc(cells->process->profile->tree->count * sizeof *node_of);
	struct stack_adder adder = { .cells = cells,
		.stacks = stacks,
		.tree = new_sample_tree(),
		.outer = find_outer(cells, stacks) };

	for (size_t i = 0; i < cells->count; i++)
		add_stack(&adder, i, copy_place(cells, adder.tree, cells->cells[i].node, node_of));
	adder_free(&adder);
	sum_samples(adder.tree);
	if (out)
		*out = node_of;
	else
		free(node_of);
	return adder.tree;
}

struct tree *sample_tree_of_functions(struct sample_cells *cells, enum sample_frames which)
{
	struct stack_adder adder = {
		.cells = cells, .stacks = sample_stacks_of(cells, which), .tree = new_sample_tree()
	};

	for (size_t i = 0; i < cells->count; i++)
		add_stack(&adder, i, 0);
	adder_free(&adder);
	sum_samples(adder.tree);
	return adder.tree;
}

void sample_tree_graft(struct sample_cells *cells, enum rows_by by)
{
	struct tree *tree = cells->process->profile->tree;
	const bool by_path = by != BY_PYTHON && by != BY_NATIVE && by != BY_ALL;
	const struct sample_stacks *stacks = sample_stacks_of(
		cells, by_path           ? SAMPLE_FRAMES_MERGED
		       : by == BY_PYTHON ? SAMPLE_FRAMES_PYTHON
		       : by == BY_NATIVE ? SAMPLE_FRAMES_NATIVE
					 : SAMPLE_FRAMES_ALL);
	struct stack_adder adder = { .cells = cells,
		.stacks = stacks,
		.tree = tree,
		.outer = by_path ? find_outer(cells, stacks) : NULL,
		.limits_depth = true };

	for (uint32_t id = 0; id < tree->count; id++)
		if (tree->nodes[id].sampled)
			tree->nodes[id].sampled->self = (struct sample_sums){ .samples = 0 };
	for (size_t i = 0; i < cells->count; i++)
		add_stack(&adder, i, by_path ? cells->cells[i].node : 0);
	adder_free(&adder);
}

/* The sums of a node are those of its own function, so they are not those of the nodes below. */
static void add_caller_sums(struct tree *tree, uint32_t node, const struct sample_cell *cell)
{
	add_sums(tree, node, cell);
	sample_sums_add(&tree_sampled(tree, node)->total, &cell->sums);
}

struct tree *sample_tree_of_callers(struct sample_cells *cells, enum sample_frames which)
{
	const struct sample_stacks *stacks = sample_stacks_of(cells, which);
	struct tree *tree = new_sample_tree();

	for (size_t i = 0; i < cells->count; i++) {
		uint32_t node = 0;

		for (uint32_t at = stacks->of_cell[i]; at; at = stacks->all[at].caller) {
			node = frame_child(cells, tree, node, &stacks->all[at].frame);
			add_caller_sums(tree, node, &cells->cells[i]);
		}
	}
	return tree;
}

/* ---- flat trees ---- */

/* Of each frame of the stacks. */
struct flat_frame {
	uint32_t node;           /* its function, line or library; 0: none so far */
	bool is_again;           /* an outer frame has the same node */
	struct sample_sums sums; /* of the stacks that end in it; then of all those with it */
};

/* Returns the node of a frame's function, line or library. */
static uint32_t flat_child(const struct sample_cells *cells, struct tree *tree,
	const struct sample_frame *frame, enum rows_by by)
{
	const struct sample_function *function = &cells->functions.all[frame->function];
	const uint32_t library = by == BY_LIBRARY ? sample_function_library(
							    &cells->functions, frame->function)
						  : 0;

	if (library)
		return tree_child(tree, 0, library, 0, NODE_LIBRARY);
	if (by == BY_LINE && frame->line)
		return tree_child(tree, 0, function->name, line_text(cells, frame), NODE_PYTHON);
	return frame_child(cells, tree, 0, frame);
}

/* Leaves out what the innermost source line of the stack called: native functions, the kernel.
 * A stack without any line stays whole. */
static uint32_t innermost_line(const struct sample_stacks *stacks, uint32_t innermost)
{
	for (uint32_t at = innermost; at; at = stacks->all[at].caller)
		if (stacks->all[at].frame.line)
			return at;
	return innermost;
}

static bool has_outer(
	const struct sample_stacks *stacks, const struct flat_frame *flat, uint32_t at)
{
	const uint32_t node = flat[at].node;

	do
		at = stacks->all[at].caller;
	while (at && flat[at].node != node);
	return at != 0;
}

/* Adds the frames of a stack that have no node so far, the outermost first. */
static void add_flat_stack(const struct sample_cells *cells, const struct sample_stacks *stacks,
	struct tree *tree, struct flat_frame *flat, uint32_t innermost, enum rows_by by)
{
	uint32_t path[SAMPLE_STACK_MAX], count = 0;

	for (uint32_t at = innermost; at && !flat[at].node; at = stacks->all[at].caller)
		path[count++] = at;
	while (count) {
		const uint32_t at = path[--count];

		flat[at].node = flat_child(cells, tree, &stacks->all[at].frame, by);
		flat[at].is_again = has_outer(stacks, flat, at);
		tree_sampled(tree, flat[at].node);
	}
}

/* Adds the samples of each frame to its node, except where an outer frame has it, too. */
static void add_flat_totals(
	const struct sample_stacks *stacks, struct tree *tree, struct flat_frame *flat)
{
	for (size_t at = stacks->count - 1; at > 0; at--) {
		if (!flat[at].node)
			continue;
		sample_sums_add(&flat[stacks->all[at].caller].sums, &flat[at].sums);
		if (!flat[at].is_again)
			sample_sums_add(&tree->nodes[flat[at].node].sampled->total, &flat[at].sums);
	}
}

struct tree *sample_tree_flat(struct sample_cells *cells, enum rows_by by, enum sample_frames which)
{
	const struct sample_stacks *stacks = sample_stacks_of(cells, which);
	struct tree *tree = new_sample_tree();
	struct flat_frame *flat = xcalloc(stacks->count * sizeof *flat);

	for (size_t i = 0; i < cells->count; i++) {
		uint32_t innermost = stacks->of_cell[i];

		if (by == BY_LINE && which == SAMPLE_FRAMES_MERGED)
			innermost = innermost_line(stacks, innermost);
		add_flat_stack(cells, stacks, tree, flat, innermost, by);
		sample_sums_add(&flat[innermost].sums, &cells->cells[i].sums);
		add_sums(tree, flat[innermost].node, &cells->cells[i]);
	}
	add_flat_totals(stacks, tree, flat);
	free(flat);
	return tree;
}
