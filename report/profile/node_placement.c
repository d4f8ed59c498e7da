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
	/* By trace node of a backward function: the innermost node around all modules that it
	 * calls again, where they were called first. 0: unknown. */
	uint32_t *checkpoint;
	struct label_pairs pairs;
	/* The first tree node that this pass makes. The labels of earlier ones were counted by the
	 * pass that made them, because each pass sees all trace nodes. */
	uint32_t first_new;
};

/* Where a trace node goes. */
struct node_position {
	uint32_t parent; /* tree node; NODE_UNRESOLVED */
	uint32_t around; /* trace node whose module instance includes it */
	uint32_t name;   /* name id in the trace */
	bool moved;      /* beside an operator or a module, and not below its parent */
	bool recomputed; /* by activation checkpointing, in a backward function */
};

static bool text_begins_with(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

/* autograd's engine works on one function: the function, its hooks and sums of gradients are
 * inside. */
static bool is_engine_text(enum node_kind kind, struct trace_text text)
{
	return node_label_is_engine(
		(struct string_view){ text.bytes, (uint32_t)text.length }, kind);
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
	row = tree_group(names->tree, parent, suffixed_text(names, name, NODE_BACKWARD_END), domain,
		NODE_BACKWARD);
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

static bool is_placed(const struct placement_pass *placing, uint32_t trace_node)
{
	const uint32_t node = placing->made.nodes[trace_node];

	return trace_node && node && node != NODE_UNRESOLVED && node != placing->made.root;
}

/* The trace node around what the backward function `function` computes again in no module. */
static uint32_t checkpoint_around(const struct placement_pass *placing, uint32_t function)
{
	const uint32_t link = reader_node(placing->names->reader, function)->link;

	if (placing->checkpoint[function])
		return placing->checkpoint[function];
	return reader_node(
		placing->names->reader, placing->caller[link] ? placing->caller[link] : link)
		->parent;
}

static uint32_t recompute_group(struct placement_pass *placing, uint32_t parent)
{
	struct node_names *names = placing->names;
	const uint32_t deeper = node_names_deeper(names, parent, NODE_BACKWARD);
	uint32_t group;

	if (deeper)
		return deeper;
	group = tree_group(names->tree, parent,
		string_table_intern(names->texts, "(recompute)", 11), 0, NODE_BACKWARD);
	names->tree->nodes[group].ran_elsewhere = true;
	names->tree->nodes[group].is_recompute = true;
	return group;
}

/* Places what a backward function computes again beside its forward pass. Returns false if it is
 * none of that or its forward pass is unknown. */
static bool position_recomputed(struct placement_pass *placing, uint32_t id, enum node_kind kind,
	struct node_position *position)
{
	struct trace_reader *reader = placing->names->reader;
	const struct trace_node_info *trace_node = reader_node(reader, id);

	if (placing->within[trace_node->parent] != IN_BACKWARD)
		return false;
	if (kind == NODE_OP && trace_node->link &&
		reader_node(reader, trace_node->parent)->kind == TRACE_NODE_BACKWARD) {
		position->around = checkpoint_around(placing, trace_node->parent);
		position->parent = node_inside(placing, position->around);
		if (position->parent == NODE_UNRESOLVED)
			return false;
		position->parent = recompute_group(placing, position->parent);
	} else if (kind == NODE_MODULE) {
		const uint32_t forward = node_placement_forward_call(reader, id);

		position->recomputed = true;
		if (!is_placed(placing, forward))
			return false;
		position->around = reader_node(reader, forward)->parent;
		position->parent = placing->names->tree->nodes[placing->made.nodes[forward]].parent;
		position->name = reader_node(reader, forward)->name;
	} else
		return false;
	return position->moved = position->recomputed = true;
}

/* Places what ran backward for an operator beside it. Returns false if it is none of that or the
 * operator is unknown. */
static bool position_backward(
	struct placement_pass *placing, uint32_t id, struct node_position *position)
{
	const uint32_t link = reader_node(placing->names->reader, id)->link,
		       row = backward_row(placing, link),
		       caller = placing->caller[link] ? placing->caller[link] : link;

	if (!row)
		return false;
	position->parent = row;
	position->moved = placing->names->tree->nodes[row].forward_node;
	if (position->moved)
		position->around = reader_node(placing->names->reader, caller)->parent;
	return true;
}

static struct node_position find_position(
	struct placement_pass *placing, uint32_t id, enum node_kind kind, struct trace_text text)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	const uint32_t parent = node_inside(placing, trace_node->parent);
	const bool in_engine = placing->within[trace_node->parent] == IN_ENGINE,
		   computes = in_engine && computes_gradient(kind, text);
	struct node_position position = {
		.parent = parent, .around = trace_node->parent, .name = trace_node->name
	};

	if (parent == NODE_UNRESOLVED || position_recomputed(placing, id, kind, &position))
		return position;
	if ((kind == NODE_BACKWARD || computes) && position_backward(placing, id, &position))
		return position;
	if (computes)
		position.parent = backward_group(placing->names, parent, "(gradient accumulation)");
	return position;
}

static uint32_t make_node(struct placement_pass *placing, uint32_t id,
	const struct node_position *position, enum node_kind kind, uint32_t label)
{
	const struct trace_node_info *trace_node = reader_node(placing->names->reader, id);
	struct node_names *names = placing->names;
	const uint32_t domain = node_names_text(names, trace_node->domain);

	if (placing->within[id] == IN_ENGINE && names->fold_labels)
		return tree_child(names->tree, position->parent,
			string_table_intern(
				names->texts, NODE_ENGINE_PATTERN, strlen(NODE_ENGINE_PATTERN)),
			0, NODE_BACKWARD);
	if (kind != NODE_MODULE)
		return tree_child(names->tree, position->parent, label, domain, kind);
	if (position->recomputed)
		label = suffixed_text(names, label, NODE_RECOMPUTE_END);
	return tree_module(names->tree, position->parent, label, domain,
		trace_node->detail ? node_names_text(names, trace_node->detail) : 0);
}

/* Stores the tree node of trace node `id`, and the module around it. Requires those of all lower
 * ids. */
static void place_node(struct placement_pass *placing, uint32_t id)
{
	struct node_names *names = placing->names;
	const struct trace_node_info *trace_node = reader_node(names->reader, id);
	const struct trace_text own_name = reader_name(names->reader, trace_node->name);
	const enum node_kind kind = node_names_kind(trace_node);
	const struct node_position position = find_position(placing, id, kind, own_name);
	const struct trace_text name_there = reader_name(names->reader, position.name);
	const uint32_t text_id_there = node_names_text(names, position.name);
	uint32_t label, *node = &placing->made.nodes[id], *module = &placing->made.modules[id];

	note_surroundings(placing, id, kind, own_name);
	*module = placing->made.modules[position.around];
	if (!trace_node->name || position.parent == NODE_UNRESOLVED) {
		*node = NODE_UNRESOLVED;
		return;
	}
	*node = node_names_deeper(names, position.parent, kind);
	if (*node)
		return;
	label = node_names_label(names, name_there, kind, false);
	*node = make_node(placing, id, &position, kind, label);
	names->tree->nodes[*node].ran_elsewhere |= position.moved;
	names->tree->nodes[*node].is_recompute |= position.recomputed;
	/* Not folded: no other label shares the node, and a module needs no number of its own. */
	if (label == text_id_there)
		return;
	if (*node >= placing->first_new &&
		pair_is_new(&placing->pairs, (uint64_t)*node << 32 | text_id_there))
		names->tree->nodes[*node].labels++;
	if (kind == NODE_MODULE)
		*module = module_group_number(names->module_group, *node, text_id_there, *module);
}

/* Places a trace node. Those around the step sections (node_names_keep_above) keep the tree node
 * that they have for root 0. */
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

uint32_t node_placement_forward_call(struct trace_reader *reader, uint32_t trace_node)
{
	const struct trace_node_info *again = reader_node(reader, trace_node);
	uint32_t at = again->link;

	if (again->kind != TRACE_NODE_MODULE || reader_node(reader, at)->kind == TRACE_NODE_MODULE)
		return again->kind == TRACE_NODE_MODULE ? at : 0;
	at = again->parent;
	while (at && reader_node(reader, at)->kind != TRACE_NODE_BACKWARD)
		at = reader_node(reader, at)->parent;
	at = again->detail ? reader_node(reader, at)->link : 0;
	while (at && (reader_node(reader, at)->kind != TRACE_NODE_MODULE ||
			     reader_node(reader, at)->detail != again->detail))
		at = reader_node(reader, at)->parent;
	return at;
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

/* The innermost trace node that is around both, or one of them. A parent's id is lower than its
 * children's. */
static uint32_t node_around_both(const struct trace_reader *reader, uint32_t a, uint32_t b)
{
	while (a != b)
		if (a > b)
			a = reader_node(reader, a)->parent;
		else
			b = reader_node(reader, b)->parent;
	return a;
}

static void find_checkpoints(struct placement_pass *placing)
{
	const struct trace_reader *reader = placing->names->reader;

	for (uint32_t id = 1; id < reader_node_count(reader); id++) {
		const struct trace_node_info *again = reader_node(reader, id);
		const uint32_t around = reader_node(reader, again->link)->parent;
		uint32_t *checkpoint = &placing->checkpoint[again->parent];

		if (again->kind != TRACE_NODE_MODULE || !again->link ||
			reader_node(reader, again->parent)->kind != TRACE_NODE_BACKWARD)
			continue;
		*checkpoint = *checkpoint ? node_around_both(reader, *checkpoint, around) : around;
	}
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
	placing.checkpoint = xcalloc((size_t)node_count * sizeof(uint32_t));
	placing.within = xcalloc(node_count);
	find_checkpoints(&placing);
	placing.made.nodes[0] = root;
	for (uint32_t id = 1; id < node_count; id++)
		place_unless_above(&placing, id);
	free(placing.pairs.slots);
	free(placing.caller);
	free(placing.checkpoint);
	free(placing.within);
	return placing.made;
}
