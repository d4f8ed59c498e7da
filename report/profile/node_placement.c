/* SPDX-License-Identifier: MIT */
#include "report/profile/node_placement.h"
#include "report/base/alloc.h"
#include "report/profile/node_names_state.h"
#include <stdlib.h>
#include <string.h>

/* What a trace node is in or is, as far as its placement depends on it. */
enum placed_within {
	IN_NOTHING,
	IN_ENGINE, /* autograd's engine works on one function */
	IN_BACKWARD,
	IN_MODULE,
};

/* The labels that were merged into nodes: pairs of node and name, each once. */
struct label_pairs {
	uint64_t *slots;
	size_t count, slot_count;
};

/* Returns the index of the slot that has the pair, or of an empty one where it belongs. */
static size_t label_pair_slot(const struct label_pairs *pairs, uint64_t pair)
{
	const size_t last = pairs->slot_count - 1;
	size_t i = (pair * 0x9e3779b97f4a7c15u >> 24) & last;

	while (pairs->slots[i] && pairs->slots[i] != pair)
		i = (i + 1) & last;
	return i;
}

static void grow_label_pairs(struct label_pairs *pairs)
{
	const size_t slot_count = pairs->slot_count ? pairs->slot_count * 2 : 256;
	struct label_pairs wider = { .slot_count = slot_count, .count = pairs->count };

	wider.slots = xcalloc(slot_count * sizeof *wider.slots);
	for (size_t i = 0; i < pairs->slot_count; i++)
		if (pairs->slots[i])
			wider.slots[label_pair_slot(&wider, pairs->slots[i])] = pairs->slots[i];
	free(pairs->slots);
	*pairs = wider;
}

static bool pair_is_new(struct label_pairs *pairs, uint64_t pair)
{
	size_t i;

	if (pairs->count * 2 >= pairs->slot_count)
		grow_label_pairs(pairs);
	i = label_pair_slot(pairs, pair);
	if (pairs->slots[i])
		return false;
	pairs->slots[i] = pair;
	pairs->count++;
	return true;
}

struct placement_pass {
	struct node_names *names;
	struct node_placement made;
	uint8_t *within; /* by trace node: the innermost of these around it or itself */
	/* By trace node: the outermost of the operators that call each other down to it. 0: it
	 * is no operator. */
	uint32_t *caller;
	struct label_pairs pairs;
	/* The first tree node that this pass makes. Those before have their labels: a pass sees all
	 * trace nodes, so the first one that reaches a tree node has counted all its labels. */
	uint32_t first_new;
};

static bool text_begins_with(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

/* autograd's engine works on one function: the function, its hooks and sums of gradients are
 * inside. */
static bool is_engine_text(enum node_kind kind, struct trace_text text)
{
	return (kind == NODE_OP || kind == NODE_BACKWARD) &&
	       text_begins_with(text, "autograd::engine::evaluate_function");
}

static void note_surroundings(
	struct placement_pass *placing, uint32_t id, enum node_kind kind, struct trace_text text)
{
	const uint32_t parent = reader_node(placing->names->reader, id)->parent;

	if (is_engine_text(kind, text)) {
		placing->within[id] = IN_ENGINE;
		return;
	}
	placing->within[id] = kind == NODE_MODULE                    ? IN_MODULE
			      : kind == NODE_BACKWARD                ? IN_BACKWARD
			      : placing->within[parent] == IN_ENGINE ? IN_NOTHING
								     : placing->within[parent];
	if (kind == NODE_OP)
		placing->caller[id] = placing->caller[parent] ? placing->caller[parent] : id;
}

static uint32_t suffixed_text(struct node_names *names, uint32_t text, const char *suffix)
{
	const struct string_view name = string_table_get(names->texts, text);
	const size_t length = name.length + strlen(suffix);
	char *built = xcalloc(length + 1);
	uint32_t id;

	memcpy(built, name.bytes, name.length);
	memcpy(built + name.length, suffix, strlen(suffix) + 1);
	id = string_table_intern(names->texts, built, length);
	free(built);
	return id;
}

static uint32_t backward_group(struct node_names *names, uint32_t parent, const char *name)
{
	const uint32_t deeper = node_names_deeper(names, parent, NODE_BACKWARD);

	return deeper ? deeper
		      : tree_group(names->tree, parent,
				string_table_intern(names->texts, name, strlen(name)), 0,
				NODE_BACKWARD);
}

/* The node `X (bwd)` beside X, the outermost operator around `link`. 0: X has no tree node. */
static uint32_t backward_row(struct placement_pass *placing, uint32_t link)
{
	const uint32_t caller = placing->caller[link] ? placing->caller[link] : link,
		       forward = placing->made.nodes[caller];
	struct node_names *names = placing->names;
	uint32_t parent, name, domain, row;

	if (!link || forward == NODE_UNRESOLVED || forward == placing->made.root)
		return 0;
	parent = names->tree->nodes[forward].parent;
	name = names->tree->nodes[forward].name;
	domain = names->tree->nodes[forward].domain;
	row = node_names_deeper(names, parent, NODE_BACKWARD);
	if (row)
		return row;
	row = tree_group(
		names->tree, parent, suffixed_text(names, name, " (bwd)"), domain, NODE_BACKWARD);
	names->tree->nodes[row].ran_elsewhere = true;
	names->tree->nodes[row].forward_node = forward;
	return row;
}

/* The tree node below which a trace node's children are. For one above the sections, it is the
 * section's node in it. */
static uint32_t node_inside(struct placement_pass *placing, uint32_t trace_node)
{
	const uint32_t node = placing->made.nodes[trace_node];
	struct node_names *names = placing->names;
	const struct node *part = &names->tree->nodes[placing->made.root];

	if (!trace_node || !placing->made.root || !names->above ||
		names->above[trace_node] != NODE_ABOVE_ROOT)
		return node;
	return tree_child(names->tree, node, part->name, part->domain, (enum node_kind)part->kind);
}

static bool computes_gradient(enum node_kind kind, struct trace_text text)
{
	return (kind == NODE_OP && !text_begins_with(text, "c10d::")) ||
	       (kind == NODE_BACKWARD && text_begins_with(text, "torch::autograd::AccumulateGrad"));
}

/* The tree node below which the trace node's own is. */
static uint32_t placement_parent(
	struct placement_pass *placing, uint32_t id, enum node_kind kind, struct trace_text text)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	const uint32_t parent = node_inside(placing, trace_node->parent);
	const bool in_engine = placing->within[trace_node->parent] == IN_ENGINE,
		   computes = in_engine && computes_gradient(kind, text);

	if ((kind == NODE_BACKWARD || computes) && parent != NODE_UNRESOLVED) {
		const uint32_t row = backward_row(placing, trace_node->link);

		if (row)
			return row;
	}
	if (computes && parent != NODE_UNRESOLVED)
		return backward_group(placing->names, parent, "(gradient accumulation)");
	return parent;
}

/* The number of the module instance for which the trace node's time counts, too. `moved`: the
 * node was put beside its operator. */
static uint32_t module_above(const struct placement_pass *placing, uint32_t id, bool moved)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	uint32_t above = trace_node->parent;

	if (moved) {
		above = placing->caller[trace_node->link] ? placing->caller[trace_node->link]
							  : trace_node->link;
		above = reader_node(placing->names->reader, above)->parent;
	}
	return placing->made.modules[above];
}

static uint32_t module_node(
	struct placement_pass *placing, uint32_t id, uint32_t parent, uint32_t label)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	struct node_names *names = placing->names;
	const bool again = placing->within[trace_node->parent] == IN_BACKWARD;
	uint32_t node;

	if (again)
		label = suffixed_text(names, label, " (recompute)");
	node = tree_module(names->tree, parent, label, node_names_text(names, trace_node->domain),
		trace_node->detail ? node_names_text(names, trace_node->detail) : 0);
	names->tree->nodes[node].is_recompute |= again;
	return node;
}

static uint32_t make_node(struct placement_pass *placing, uint32_t id, uint32_t parent,
	enum node_kind kind, uint32_t label)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	struct node_names *names = placing->names;

	if (placing->within[id] == IN_ENGINE && names->fold_labels)
		return tree_child(names->tree, parent,
			string_table_intern(names->texts, "(backward)", 10), 0, NODE_BACKWARD);
	if (kind == NODE_MODULE)
		return module_node(placing, id, parent, label);
	return tree_child(
		names->tree, parent, label, node_names_text(names, trace_node->domain), kind);
}

static void place_node(struct placement_pass *placing, uint32_t id)
{
	struct node_names *names = placing->names;
	const struct trace_node_info *trace_node = reader_node(names->reader, id);
	const struct trace_text text = reader_name(names->reader, trace_node->name);
	const enum node_kind kind = node_names_kind(trace_node);
	const uint32_t parent = placement_parent(placing, id, kind, text),
		       plain = node_names_text(names, trace_node->name);
	uint32_t label, *node = &placing->made.nodes[id], *module = &placing->made.modules[id];
	bool moved;

	note_surroundings(placing, id, kind, text);
	moved = trace_node->link && parent != NODE_UNRESOLVED &&
		names->tree->nodes[parent].is_group && names->tree->nodes[parent].ran_elsewhere;
	*module = module_above(placing, id, moved);
	if (!trace_node->name || parent == NODE_UNRESOLVED) {
		*node = NODE_UNRESOLVED;
		return;
	}
	*node = node_names_deeper(names, parent, kind);
	if (*node)
		return;
	label = node_names_label(names, text, kind, false);
	*node = make_node(placing, id, parent, kind, label);
	names->tree->nodes[*node].ran_elsewhere |= moved;
	if (label == plain)
		return;
	if (*node >= placing->first_new &&
		pair_is_new(&placing->pairs, (uint64_t)*node << 32 | plain))
		names->tree->nodes[*node].labels++;
	if (kind == NODE_MODULE)
		*module = module_group_number(names->module_group, *node, plain, *module);
}

/* Nodes above the sections are where they are without sections. */
static void place_unless_above(struct placement_pass *placing, uint32_t id)
{
	const struct node_names *names = placing->names;

	if (!placing->made.root || !names->above || !names->above[id]) {
		place_node(placing, id);
		return;
	}
	placing->made.nodes[id] = names->placements[0].nodes[id];
	placing->made.modules[id] = names->placements[0].modules[id];
}

bool node_placement_is_engine(struct trace_reader *reader, uint32_t trace_node)
{
	const struct trace_node_info *at = reader_node(reader, trace_node);

	return is_engine_text(node_names_kind(at), reader_name(reader, at->name));
}

uint32_t node_placement_operator(struct trace_reader *reader, uint32_t trace_node)
{
	uint32_t parent = reader_node(reader, trace_node)->parent;

	if (node_names_kind(reader_node(reader, trace_node)) != NODE_OP)
		return trace_node;
	while (node_names_kind(reader_node(reader, parent)) == NODE_OP &&
		!node_placement_is_engine(reader, parent)) {
		trace_node = parent;
		parent = reader_node(reader, trace_node)->parent;
	}
	return trace_node;
}

struct node_placement node_placement_make(struct node_names *names, uint32_t root)
{
	const uint32_t node_count = reader_node_count(names->reader);
	struct placement_pass placing = {
		.names = names, .made.root = root, .first_new = names->tree->count
	};

	placing.made.nodes = xcalloc((size_t)node_count * sizeof(uint32_t));
	placing.made.modules = xcalloc((size_t)node_count * sizeof(uint32_t));
	placing.caller = xcalloc((size_t)node_count * sizeof(uint32_t));
	placing.within = xcalloc(node_count);
	placing.made.nodes[0] = root;
	for (uint32_t id = 1; id < node_count; id++)
		place_unless_above(&placing, id);
	free(placing.pairs.slots);
	free(placing.caller);
	free(placing.within);
	return placing.made;
}
