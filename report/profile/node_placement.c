/* SPDX-License-Identifier: MIT */
#include "report/profile/node_placement.h"
#include "report/base/alloc.h"
#include "report/profile/node_names_state.h"
#include <stdlib.h>
#include <string.h>

/* What a place lies in, as far as its own placement asks. */
enum within {
	NOTHING,
	IN_ENGINE, /* it is autograd's engine at work on one function */
	IN_BACKWARD,
	IN_MODULE,
};

/* Which labels a node was folded from: pairs of node and name, each once. */
struct pairs {
	uint64_t *slots;
	size_t count, slot_count;
};

static bool pair_is_new(struct pairs *pairs, uint64_t pair)
{
	size_t i;

	if (pairs->count * 2 >= pairs->slot_count) {
		struct pairs wider = { .slot_count = pairs->slot_count ? pairs->slot_count * 2 : 256 };

		wider.slots = need(wider.slot_count * sizeof *wider.slots);
		for (i = 0; i < pairs->slot_count; i++)
			if (pairs->slots[i])
				pair_is_new(&wider, pairs->slots[i]);
		free(pairs->slots);
		*pairs = wider;
	}
	for (i = (pair * 0x9e3779b97f4a7c15u >> 24) & (pairs->slot_count - 1); pairs->slots[i];
		i = (i + 1) & (pairs->slot_count - 1))
		if (pairs->slots[i] == pair)
			return false;
	pairs->slots[i] = pair;
	pairs->count++;
	return true;
}

struct placing {
	struct names *names;
	struct placement made;
	uint8_t *within;  /* by place: the innermost of these around it or itself */
	uint32_t *caller; /* by place: of the row of operators that it ends, the outermost; 0: it is no operator */
	struct pairs pairs;
};

static bool begins(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

/* autograd's engine at work on one function: hooks and sums of gradients are in it, and the function itself. */
static bool is_engine(enum node_kind kind, struct trace_text text)
{
	return (kind == NODE_OP || kind == NODE_BACKWARD) && begins(text, "autograd::engine::evaluate_function");
}

static void look_around(struct placing *placing, uint32_t id, enum node_kind kind, struct trace_text text)
{
	const uint32_t parent = reader_place(placing->names->reader, id)->parent;

	if (is_engine(kind, text)) {
		placing->within[id] = IN_ENGINE;
		return;
	}
	placing->within[id] = kind == NODE_MODULE                       ? IN_MODULE
			      : kind == NODE_BACKWARD                   ? IN_BACKWARD
			      : placing->within[parent] == IN_ENGINE ? NOTHING
								     : placing->within[parent];
	if (kind == NODE_OP)
		placing->caller[id] = placing->caller[parent] ? placing->caller[parent] : id;
}

static uint32_t built_text(struct names *names, uint32_t text, const char *suffix)
{
	const struct text name = text_of(names->texts, text);
	const size_t length = name.length + strlen(suffix);
	char *built = need(length + 1);
	uint32_t id;

	memcpy(built, name.bytes, name.length);
	memcpy(built + name.length, suffix, strlen(suffix) + 1);
	id = text_id(names->texts, built, length);
	free(built);
	return id;
}

static uint32_t group(struct names *names, uint32_t parent, const char *name)
{
	const uint32_t deeper = names_deeper(names, parent, NODE_BACKWARD);

	return deeper ? deeper
		      : tree_group(names->tree, parent, text_id(names->texts, name, strlen(name)), 0, NODE_BACKWARD);
}

/* The row `X (bwd)` beside X, the operator that `link` was part of; 0: that has no place of its own. */
static uint32_t beside(struct placing *placing, uint32_t link)
{
	const uint32_t caller = placing->caller[link] ? placing->caller[link] : link,
		       forward = placing->made.nodes[caller];
	struct names *names = placing->names;
	uint32_t parent, name, domain, row;

	if (!link || forward == NAMES_OPEN || forward == placing->made.root)
		return 0;
	parent = names->tree->nodes[forward].parent;
	name = names->tree->nodes[forward].name;
	domain = names->tree->nodes[forward].domain;
	row = names_deeper(names, parent, NODE_BACKWARD);
	if (row)
		return row;
	row = tree_group(names->tree, parent, built_text(names, name, " (bwd)"), domain, NODE_BACKWARD);
	names->tree->nodes[row].elsewhere = true;
	names->tree->nodes[row].beside = forward;
	return row;
}

/* The node that a place's children lie below: for one that stands above a part of the tree, that part's in it. */
static uint32_t inside(struct placing *placing, uint32_t place)
{
	const uint32_t node = placing->made.nodes[place];
	struct names *names = placing->names;
	const struct node *part = &names->tree->nodes[placing->made.root];

	if (!place || !placing->made.root || !names->above || names->above[place] != NAMES_ABOVE)
		return node;
	return tree_child(names->tree, node, part->name, part->domain, (enum node_kind)part->kind);
}

/* The node that the place's own lies below. */
static uint32_t parent_of(struct placing *placing, uint32_t id, enum node_kind kind, struct trace_text text)
{
	const struct trace_place *place = reader_place(placing->names->reader, id);
	const uint32_t parent = inside(placing, place->parent);
	const bool in_engine = placing->within[place->parent] == IN_ENGINE;

	const bool computes = in_engine && ((kind == NODE_OP && !begins(text, "c10d::")) ||
						   (kind == NODE_BACKWARD && begins(text, "torch::autograd::AccumulateGrad")));

	if ((kind == NODE_BACKWARD || computes) && parent != NAMES_OPEN) {
		const uint32_t row = beside(placing, place->link);

		if (row)
			return row;
	}
	if (computes && parent != NAMES_OPEN)
		return group(placing->names, parent, "(gradient accumulation)");
	return parent;
}

/* The place whose members the place's own time counts for, too. */
static uint32_t member_above(const struct placing *placing, uint32_t id, bool moved)
{
	const struct trace_place *place = reader_place(placing->names->reader, id);
	uint32_t above = place->parent;

	if (moved) {
		above = placing->caller[place->link] ? placing->caller[place->link] : place->link;
		above = reader_place(placing->names->reader, above)->parent;
	}
	return placing->made.members[above];
}

static uint32_t module_node(struct placing *placing, uint32_t id, uint32_t parent, uint32_t label)
{
	const struct trace_place *place = reader_place(placing->names->reader, id);
	struct names *names = placing->names;
	const bool again = placing->within[place->parent] == IN_BACKWARD;
	uint32_t node;

	if (again)
		label = built_text(names, label, " (recompute)");
	node = tree_module(names->tree, parent, label, names_text(names, place->domain),
		place->detail ? names_text(names, place->detail) : 0);
	names->tree->nodes[node].is_again |= again;
	return node;
}

static uint32_t own_node(struct placing *placing, uint32_t id, uint32_t parent, enum node_kind kind, uint32_t label)
{
	const struct trace_place *place = reader_place(placing->names->reader, id);
	struct names *names = placing->names;

	if (placing->within[id] == IN_ENGINE && names->fold)
		return tree_child(names->tree, parent, text_id(names->texts, "(backward)", 10), 0, NODE_BACKWARD);
	if (kind == NODE_MODULE)
		return module_node(placing, id, parent, label);
	return tree_child(names->tree, parent, label, names_text(names, place->domain), kind);
}

static void place_one(struct placing *placing, uint32_t id)
{
	struct names *names = placing->names;
	const struct trace_place *place = reader_place(names->reader, id);
	const struct trace_text text = reader_name(names->reader, place->name);
	const enum node_kind kind = names_kind(place);
	const uint32_t parent = parent_of(placing, id, kind, text), plain = names_text(names, place->name);
	uint32_t label, *node = &placing->made.nodes[id], *member = &placing->made.members[id];
	bool moved;

	look_around(placing, id, kind, text);
	moved = place->link && parent != NAMES_OPEN && names->tree->nodes[parent].is_group && names->tree->nodes[parent].elsewhere;
	*member = member_above(placing, id, moved);
	if (!place->name || parent == NAMES_OPEN) {
		*node = NAMES_OPEN;
		return;
	}
	*node = names_deeper(names, parent, kind);
	if (*node)
		return;
	label = names_label(names, text, kind, false);
	*node = own_node(placing, id, parent, kind, label);
	names->tree->nodes[*node].elsewhere |= moved;
	if (label == plain)
		return;
	if (pair_is_new(&placing->pairs, (uint64_t)*node << 32 | plain))
		names->tree->nodes[*node].labels++;
	if (kind == NODE_MODULE)
		*member = members_number(names->members, *node, plain, *member);
}

/* What stands above is where it is without the part that is made. */
static void place_or_leave(struct placing *placing, uint32_t id)
{
	const struct names *names = placing->names;

	if (!placing->made.root || !names->above || !names->above[id]) {
		place_one(placing, id);
		return;
	}
	placing->made.nodes[id] = names->placements[0].nodes[id];
	placing->made.members[id] = names->placements[0].members[id];
}

bool placement_is_engine(struct trace_reader *reader, uint32_t place)
{
	const struct trace_place *at = reader_place(reader, place);

	return is_engine(names_kind(at), reader_name(reader, at->name));
}

uint32_t placement_operator(struct trace_reader *reader, uint32_t place)
{
	uint32_t parent = reader_place(reader, place)->parent;

	if (names_kind(reader_place(reader, place)) != NODE_OP)
		return place;
	while (names_kind(reader_place(reader, parent)) == NODE_OP && !placement_is_engine(reader, parent)) {
		place = parent;
		parent = reader_place(reader, place)->parent;
	}
	return place;
}

struct placement placement_make(struct names *names, uint32_t root)
{
	const uint32_t places = reader_nodes(names->reader);
	struct placing placing = { .names = names, .made.root = root };

	placing.made.nodes = need((size_t)places * sizeof(uint32_t));
	placing.made.members = need((size_t)places * sizeof(uint32_t));
	placing.caller = need((size_t)places * sizeof(uint32_t));
	placing.within = need(places);
	placing.made.nodes[0] = root;
	for (uint32_t id = 1; id < places; id++)
		place_or_leave(&placing, id);
	free(placing.pairs.slots);
	free(placing.caller);
	free(placing.within);
	return placing.made;
}
