/* SPDX-License-Identifier: MIT */
#include "report/profile/node_names.h"
#include "report/base/alloc.h"
#include "report/text/label_pattern.h"
#include "report/profile/node_names_state.h"
#include <stdlib.h>
#include <string.h>

/* Larger ids are looked up each time, because only a damaged trace has them. */
#define CACHED_NAMES (1u << 22)

uint32_t node_names_text(struct node_names *names, uint32_t name)
{
	struct trace_text text;

	if (name < names->text_room && names->texts_of[name])
		return names->texts_of[name] - 1;
	text = reader_name(names->reader, name);
	if (!text.known || name >= CACHED_NAMES)
		return string_table_intern(names->texts, text.bytes, text.length);
	ARRAY_GROW(names->texts_of, names->text_room, (size_t)name + 1);
	names->texts_of[name] = string_table_intern(names->texts, text.bytes, text.length) + 1;
	return names->texts_of[name] - 1;
}

/* Writes the label pattern of `text`, which is not longer, and returns its length. Names of
 * kernels, calls and what runs backward keep their numbers. Operators lose only some, because
 * conv2d is not conv3d. */
static size_t normalize_label(const char *text, size_t length, enum node_kind kind, char *out)
{
	switch (kind) {
	case NODE_RANGE:
	case NODE_STEP:
	case NODE_MARK:
		return label_fold(text, length, out);
	case NODE_MODULE:
		return label_fold_module(text, length, out);
	case NODE_OP:
		return label_fold_operator(text, length, out);
	default:
		memcpy(out, text, length);
		return length;
	}
}

uint32_t node_label_pattern(struct string_table *texts, uint32_t label, enum node_kind kind)
{
	const struct string_view text = string_table_get(texts, label);
	char *pattern = xcalloc((size_t)text.length + 1);
	const size_t length = normalize_label(text.bytes, text.length, kind, pattern);

	label = string_table_intern(texts, pattern, length);
	free(pattern);
	return label;
}

bool node_label_is_engine(struct string_view label, enum node_kind kind)
{
	static const char begin[] = "autograd::engine::evaluate_function";

	return (kind == NODE_OP || kind == NODE_BACKWARD) && label.length >= sizeof begin - 1 &&
	       memcmp(label.bytes, begin, sizeof begin - 1) == 0;
}

uint32_t node_names_label(
	struct node_names *names, struct trace_text text, enum node_kind kind, bool known_only)
{
	char small[256], *folded = text.length > sizeof small ? xcalloc(text.length) : small;
	const char *bytes = names->fold_labels ? folded : text.bytes;
	const size_t length = names->fold_labels
				      ? normalize_label(text.bytes, text.length, kind, folded)
				      : text.length;
	const uint32_t id = known_only ? string_table_find(names->texts, bytes, length)
				       : string_table_intern(names->texts, bytes, length);

	if (folded != small)
		free(folded);
	return id;
}

static uint32_t demangle_text(struct node_names *names, struct trace_text text)
{
	static char out[DEMANGLE_OUTPUT];
	const size_t length = demangle(names->form, text.bytes, text.length, out, sizeof out);

	return length ? string_table_intern(names->texts, out, length)
		      : string_table_intern(names->texts, text.bytes, text.length);
}

static uint32_t kernel_text(struct node_names *names, struct trace_text name)
{
	const uint32_t text = name.length
				      ? demangle_text(names, name)
				      : string_table_intern(names->texts, CATEGORY_NO_KERNEL_NAME,
						strlen(CATEGORY_NO_KERNEL_NAME));

	if (categories_is_communication(names->categories, name)) {
		ARRAY_GROW(names->communication, names->communication_room, (size_t)text + 1);
		names->communication[text] = 1;
	}
	return text;
}

uint32_t node_names_kernel(struct node_names *names, uint32_t name)
{
	if (name < names->kernel_room && names->kernels_of[name])
		return names->kernels_of[name] - 1;
	if (name >= CACHED_NAMES)
		return kernel_text(names, reader_name(names->reader, name));
	ARRAY_GROW(names->kernels_of, names->kernel_room, (size_t)name + 1);
	names->kernels_of[name] = kernel_text(names, reader_name(names->reader, name)) + 1;
	return names->kernels_of[name] - 1;
}

bool node_names_is_communication(const struct node_names *names, uint32_t text)
{
	return text < names->communication_room && names->communication[text];
}

enum node_kind node_names_kind(const struct trace_node_info *trace_node)
{
	static const uint8_t kinds[] = {
		[TRACE_NODE_RANGE] = NODE_RANGE,
		[TRACE_NODE_MODULE] = NODE_MODULE,
		[TRACE_NODE_OP] = NODE_OP,
		[TRACE_NODE_BACKWARD] = NODE_BACKWARD,
		[TRACE_NODE_OPTIMIZER] = NODE_OPTIMIZER,
		[TRACE_NODE_STEP] = NODE_STEP,
	};

	return trace_node->kind && trace_node->kind < sizeof kinds
		       ? (enum node_kind)kinds[trace_node->kind]
		       : NODE_RANGE;
}

uint32_t node_names_deeper(struct node_names *names, uint32_t parent, enum node_kind kind)
{
	const struct node *node = &names->tree->nodes[parent];

	if (!parent || node->depth < TREE_DEPTH_MAX || node_kind_class(kind) != NODE_RANGES)
		return 0;
	if (node->depth > TREE_DEPTH_MAX)
		return parent;
	return tree_child(names->tree, parent, string_table_intern(names->texts, "(deeper)", 8), 0,
		NODE_RANGE);
}

/* Labels without an id in the trace may never repeat, so their nodes are limited. */
uint32_t node_names_child(struct node_names *names, uint32_t parent, struct trace_text text,
	uint32_t domain_name, enum node_kind kind)
{
	const uint32_t domain = node_names_text(names, domain_name);
	const bool full = names->inline_nodes >= NODE_NAMES_INLINE_MAX;
	uint32_t label, node = node_names_deeper(names, parent, kind);

	if (node)
		return node;
	label = node_names_label(names, text, kind, full);
	node = label || !text.length ? tree_find(names->tree, parent, label, domain, kind) : 0;
	if (node)
		return node;
	if (full) {
		names->others++;
		label = string_table_intern(names->texts, "(other labels)", 14);
	}
	names->inline_nodes++;
	return tree_child(names->tree, parent, label, domain, kind);
}

uint32_t node_names_resolve(struct node_names *names, uint32_t parent, uint32_t trace_node_id,
	const struct trace_event *event)
{
	const struct trace_node_info *trace_node = reader_node(names->reader, trace_node_id);

	return node_names_child(names, parent,
		event ? reader_event_text(names->reader, event)
		      : reader_name(names->reader, trace_node->name),
		trace_node->domain, node_names_kind(trace_node));
}

static const struct node_placement *placement_of_root(struct node_names *names, uint32_t root)
{
	for (size_t i = 0; i < names->placement_count; i++)
		if (names->placements[i].root == root)
			return &names->placements[i];
	ARRAY_GROW(names->placements, names->placement_room, names->placement_count + 1);
	names->placements[names->placement_count] = node_placement_make(names, root);
	return &names->placements[names->placement_count++];
}

void node_names_keep_above(struct node_names *names, const uint8_t *above)
{
	names->above = above;
}

const uint32_t *node_names_nodes(struct node_names *names, uint32_t root)
{
	return placement_of_root(names, root)->nodes;
}

const uint32_t *node_names_modules(struct node_names *names, uint32_t root)
{
	return placement_of_root(names, root)->modules;
}

struct node_names *node_names_new(struct trace_reader *reader, struct string_table *texts,
	struct tree *tree, bool fold_labels, enum demangle_form form,
	const struct categories *categories)
{
	struct node_names *names = xcalloc(sizeof *names);

	names->reader = reader;
	names->texts = texts;
	names->tree = tree;
	names->fold_labels = fold_labels;
	names->form = form;
	names->categories = categories;
	names->module_group = module_group_new();
	return names;
}

void node_names_free(struct node_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->placement_count; i++) {
		free(names->placements[i].nodes);
		free(names->placements[i].modules);
	}
	free(names->placements);
	module_group_free(names->module_group);
	free(names->texts_of);
	free(names->kernels_of);
	free(names->communication);
	free(names);
}

struct module_group *node_names_module_group(struct node_names *names)
{
	return names->module_group;
}

uint64_t node_names_other_count(const struct node_names *names)
{
	return names->others;
}
