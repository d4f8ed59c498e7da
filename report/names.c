/* SPDX-License-Identifier: MIT */
#include "report/names.h"
#include "report/fatal.h"
#include "report/label.h"
#include <stdlib.h>
#include <string.h>

#define CACHED_NAMES (1u << 22) /* ids beyond are looked up each time: only a damaged trace has them */

/* The node of each place, below a root. */
struct placement {
	uint32_t root;
	uint32_t *nodes;
};

struct names {
	struct trace_reader *reader;
	struct texts *texts;
	struct tree *tree;
	bool fold;
	enum demangle_form form;
	struct placement *placements;    /* one for each root that was asked for */
	size_t placement_count, placement_room;
	uint32_t *texts_of, *kernels_of; /* by name, the text + 1; 0: not asked for yet */
	size_t text_room, kernel_room;
	uint32_t inline_nodes;
	uint64_t others;
};

uint32_t names_text(struct names *names, uint32_t name)
{
	const struct trace_text text = reader_name(names->reader, name);

	if (!name || name >= CACHED_NAMES)
		return text_id(names->texts, text.bytes, text.length);
	grow(&names->texts_of, &names->text_room, (size_t)name + 1, sizeof *names->texts_of);
	if (!names->texts_of[name])
		names->texts_of[name] = text_id(names->texts, text.bytes, text.length) + 1;
	return names->texts_of[name] - 1;
}

/* The text's id, folded if asked for. known: 0 rather than a new id. */
static uint32_t label_id(struct names *names, struct trace_text text, bool fold, bool known)
{
	char small[256], *folded = text.length > sizeof small ? need(text.length) : small;
	const char *bytes = fold ? folded : text.bytes;
	const size_t length = fold ? label_fold(text.bytes, text.length, folded) : text.length;
	const uint32_t id = known ? text_find(names->texts, bytes, length) : text_id(names->texts, bytes, length);

	if (folded != small)
		free(folded);
	return id;
}

static uint32_t demangled(struct names *names, struct trace_text text)
{
	static char out[DEMANGLE_OUTPUT];
	const size_t length = demangle(names->form, text.bytes, text.length, out, sizeof out);

	return length ? text_id(names->texts, out, length) : text_id(names->texts, text.bytes, text.length);
}

uint32_t names_kernel(struct names *names, uint32_t name)
{
	const struct trace_text text = reader_name(names->reader, name);

	if (!text.length)
		return text_id(names->texts, "(kernel without a name)", 23);
	if (name >= CACHED_NAMES)
		return demangled(names, text);
	grow(&names->kernels_of, &names->kernel_room, (size_t)name + 1, sizeof *names->kernels_of);
	if (!names->kernels_of[name])
		names->kernels_of[name] = demangled(names, text) + 1;
	return names->kernels_of[name] - 1;
}

static enum node_kind kind_of(const struct trace_place *place)
{
	static const uint8_t kinds[] = {
		[TRACE_NODE_RANGE] = NODE_RANGE,
		[TRACE_NODE_MODULE] = NODE_MODULE,
		[TRACE_NODE_OP] = NODE_OP,
		[TRACE_NODE_BACKWARD] = NODE_BACKWARD,
		[TRACE_NODE_OPTIMIZER] = NODE_OPTIMIZER,
		[TRACE_NODE_STEP] = NODE_STEP,
	};

	return place->kind && place->kind < sizeof kinds ? (enum node_kind)kinds[place->kind] : NODE_RANGE;
}

/* The names of operators and of what runs backward are never folded: conv2d is not conv3d. */
static bool folds(const struct names *names, enum node_kind kind)
{
	return names->fold && (kind == NODE_RANGE || kind == NODE_MODULE || kind == NODE_STEP || kind == NODE_MARK);
}

/* Ranges too deep to be told apart. */
static bool is_too_deep(const struct names *names, uint32_t parent, enum node_kind kind)
{
	return parent && names->tree->nodes[parent].depth >= TREE_DEEPEST && node_kind_class(kind) == NODE_RANGES;
}

static uint32_t deeper(struct names *names, uint32_t parent)
{
	if (names->tree->nodes[parent].depth > TREE_DEEPEST)
		return parent;
	return tree_child(names->tree, parent, text_id(names->texts, "(deeper)", 8), 0, NODE_RANGE);
}

/* A label that need not have an id in the trace: bounded, since such labels may never repeat. */
uint32_t names_child(
	struct names *names, uint32_t parent, struct trace_text text, uint32_t domain_name, enum node_kind kind)
{
	const uint32_t domain = names_text(names, domain_name);
	const bool full = names->inline_nodes >= NAMES_INLINE_MOST;
	uint32_t label, node;

	if (is_too_deep(names, parent, kind))
		return deeper(names, parent);
	label = label_id(names, text, folds(names, kind), full);
	node = label || !text.length ? tree_find(names->tree, parent, label, domain, kind) : 0;
	if (node)
		return node;
	if (full) {
		names->others++;
		label = text_id(names->texts, "(other labels)", 14);
	}
	names->inline_nodes++;
	return tree_child(names->tree, parent, label, domain, kind);
}

uint32_t names_open_node(struct names *names, uint32_t parent, uint32_t place_id, const struct trace_event *event)
{
	const struct trace_place *place = reader_place(names->reader, place_id);

	return names_child(names, parent,
		event ? reader_event_text(names->reader, event) : reader_name(names->reader, place->name),
		place->domain, kind_of(place));
}

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

static uint32_t node_of_place(struct names *names, const uint32_t *nodes, uint32_t id, struct pairs *pairs)
{
	const struct trace_place *place = reader_place(names->reader, id);
	const struct trace_text text = reader_name(names->reader, place->name);
	const uint32_t parent = nodes[place->parent];
	const enum node_kind kind = kind_of(place);
	uint32_t plain, label, node;

	if (!place->name || parent == NAMES_OPEN)
		return NAMES_OPEN;
	if (is_too_deep(names, parent, kind))
		return deeper(names, parent);
	plain = label = names_text(names, place->name);
	if (folds(names, kind))
		label = label_id(names, text, true, false);
	node = tree_child(names->tree, parent, label, names_text(names, place->domain), kind);
	if (label != plain && pair_is_new(pairs, (uint64_t)node << 32 | plain))
		names->tree->nodes[node].labels++;
	return node;
}

static uint32_t *place_all(struct names *names, uint32_t root)
{
	const uint32_t places = reader_nodes(names->reader);
	uint32_t *nodes = need((size_t)places * sizeof *nodes);
	struct pairs pairs = { .count = 0 };

	nodes[0] = root;
	for (uint32_t id = 1; id < places; id++)
		nodes[id] = node_of_place(names, nodes, id, &pairs);
	free(pairs.slots);
	return nodes;
}

const uint32_t *names_nodes_below(struct names *names, uint32_t root)
{
	struct placement *placement;

	for (size_t i = 0; i < names->placement_count; i++)
		if (names->placements[i].root == root)
			return names->placements[i].nodes;
	grow(&names->placements, &names->placement_room, names->placement_count + 1, sizeof *names->placements);
	placement = &names->placements[names->placement_count++];
	*placement = (struct placement){ .root = root, .nodes = place_all(names, root) };
	return placement->nodes;
}

struct names *names_new(
	struct trace_reader *reader, struct texts *texts, struct tree *tree, bool fold, enum demangle_form form)
{
	struct names *names = need(sizeof *names);

	names->reader = reader;
	names->texts = texts;
	names->tree = tree;
	names->fold = fold;
	names->form = form;
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->placement_count; i++)
		free(names->placements[i].nodes);
	free(names->placements);
	free(names->texts_of);
	free(names->kernels_of);
	free(names);
}

uint64_t names_others(const struct names *names)
{
	return names->others;
}
