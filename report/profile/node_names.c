/* SPDX-License-Identifier: MIT */
#include "report/profile/node_names.h"
#include "report/base/alloc.h"
#include "report/text/label_pattern.h"
#include "report/profile/node_names_state.h"
#include <stdlib.h>
#include <string.h>

#define CACHED_NAMES (1u << 22) /* ids beyond are looked up each time: only a damaged trace has them */

uint32_t names_text(struct names *names, uint32_t name)
{
	struct trace_text text;

	if (name < names->text_room && names->texts_of[name])
		return names->texts_of[name] - 1;
	text = reader_name(names->reader, name);
	if (!text.known || name >= CACHED_NAMES)
		return text_id(names->texts, text.bytes, text.length);
	grow(&names->texts_of, &names->text_room, (size_t)name + 1, sizeof *names->texts_of);
	names->texts_of[name] = text_id(names->texts, text.bytes, text.length) + 1;
	return names->texts_of[name] - 1;
}

/* Writes what the label folds to, at most as long, and returns its length. The names of kernels, calls and what runs
 * backward are never folded, and of operators only one: conv2d is not conv3d. */
static size_t fold_label(struct trace_text text, enum node_kind kind, char *out)
{
	switch (kind) {
	case NODE_RANGE:
	case NODE_STEP:
	case NODE_MARK:
		return label_fold(text.bytes, text.length, out);
	case NODE_MODULE:
		return label_fold_module(text.bytes, text.length, out);
	case NODE_OP:
		return label_fold_operator(text.bytes, text.length, out);
	default:
		memcpy(out, text.bytes, text.length);
		return text.length;
	}
}

uint32_t names_label(struct names *names, struct trace_text text, enum node_kind kind, bool known)
{
	char small[256], *folded = text.length > sizeof small ? need(text.length) : small;
	const char *bytes = names->fold ? folded : text.bytes;
	const size_t length = names->fold ? fold_label(text, kind, folded) : text.length;
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
	struct trace_text text;

	if (name < names->kernel_room && names->kernels_of[name])
		return names->kernels_of[name] - 1;
	text = reader_name(names->reader, name);
	if (!text.length)
		return text_id(names->texts, "(kernel without a name)", 23);
	if (name >= CACHED_NAMES)
		return demangled(names, text);
	grow(&names->kernels_of, &names->kernel_room, (size_t)name + 1, sizeof *names->kernels_of);
	names->kernels_of[name] = demangled(names, text) + 1;
	return names->kernels_of[name] - 1;
}

enum node_kind names_kind(const struct trace_place *place)
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

uint32_t names_deeper(struct names *names, uint32_t parent, enum node_kind kind)
{
	const struct node *node = &names->tree->nodes[parent];

	if (!parent || node->depth < TREE_DEEPEST || node_kind_class(kind) != NODE_RANGES)
		return 0;
	if (node->depth > TREE_DEEPEST)
		return parent;
	return tree_child(names->tree, parent, text_id(names->texts, "(deeper)", 8), 0, NODE_RANGE);
}

/* A label that need not have an id in the trace: bounded, since such labels may never repeat. */
uint32_t names_child(
	struct names *names, uint32_t parent, struct trace_text text, uint32_t domain_name, enum node_kind kind)
{
	const uint32_t domain = names_text(names, domain_name);
	const bool full = names->inline_nodes >= NAMES_INLINE_MOST;
	uint32_t label, node = names_deeper(names, parent, kind);

	if (node)
		return node;
	label = names_label(names, text, kind, full);
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
		place->domain, names_kind(place));
}

static const struct placement *placement_below(struct names *names, uint32_t root)
{
	for (size_t i = 0; i < names->placement_count; i++)
		if (names->placements[i].root == root)
			return &names->placements[i];
	grow(&names->placements, &names->placement_room, names->placement_count + 1, sizeof *names->placements);
	names->placements[names->placement_count] = placement_make(names, root);
	return &names->placements[names->placement_count++];
}

void names_keep_above(struct names *names, const uint8_t *above)
{
	names->above = above;
}

const uint32_t *names_nodes_below(struct names *names, uint32_t root)
{
	return placement_below(names, root)->nodes;
}

const uint32_t *names_members_below(struct names *names, uint32_t root)
{
	return placement_below(names, root)->members;
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
	names->members = members_new();
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->placement_count; i++) {
		free(names->placements[i].nodes);
		free(names->placements[i].members);
	}
	free(names->placements);
	members_free(names->members);
	free(names->texts_of);
	free(names->kernels_of);
	free(names);
}

struct members *names_members(struct names *names)
{
	return names->members;
}

uint64_t names_others(const struct names *names)
{
	return names->others;
}
