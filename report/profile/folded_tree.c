/* SPDX-License-Identifier: MIT */
#include "report/profile/folded_tree.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* The labels of each folded node, each once. */
struct folded_label {
	uint32_t node, label;
};

struct folding {
	struct folded_tree *folded;
	const struct profile *profile;
	struct folded_label *labels;
	size_t label_count, label_room;
	struct hash_index index; /* of `labels` */
};

static bool is_text_end(struct string_view text, const char *end)
{
	const size_t length = strlen(end);

	return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

static uint32_t with_end(struct string_table *texts, uint32_t text, const char *end)
{
	const struct string_view name = string_table_get(texts, text);
	const size_t length = name.length + strlen(end);
	char *built = xcalloc(length + 1);
	uint32_t id;

	memcpy(built, name.bytes, name.length);
	memcpy(built + name.length, end, strlen(end));
	id = string_table_intern(texts, built, length);
	free(built);
	return id;
}

/* Returns the label pattern of a node: a text. Of what has its name from another node
 * (node_placement.h), that name is folded. */
static uint32_t pattern_of(const struct folding *folding, const struct node *node)
{
	struct string_table *texts = folding->profile->texts;
	const struct tree *tree = folding->folded->profile.tree;
	const struct string_view name = string_table_get(texts, node->name);
	const enum node_kind kind = (enum node_kind)node->kind;

	if (kind == NODE_BACKWARD && node->forward_node)
		return with_end(texts,
			tree->nodes[folding->folded->node_of[node->forward_node]].name,
			NODE_BACKWARD_END);
	if (kind == NODE_MODULE && node->is_recompute && is_text_end(name, NODE_RECOMPUTE_END))
		return with_end(texts,
			node_label_pattern(texts,
				string_table_intern(texts, name.bytes,
					name.length - strlen(NODE_RECOMPUTE_END)),
				kind),
			NODE_RECOMPUTE_END);
	return node_label_pattern(texts, node->name, kind);
}

/* Counts how many different labels a folded node has, as the pass would have counted them. */
static void count_label(struct folding *folding, uint32_t folded_node, uint32_t label)
{
	const uint64_t hash = hash_u64((uint64_t)folded_node << 32 | label);
	struct hash_slot *slot;

	hash_index_reserve(&folding->index);
	slot = hash_index_first(&folding->index, hash);
	for (; slot->number; slot = hash_index_next(&folding->index, slot)) {
		const struct folded_label *known = &folding->labels[slot->number - 1];

		if (known->node == folded_node && known->label == label)
			return;
	}
	*ARRAY_ADD(folding->labels, folding->label_room,
		folding->label_count) = (struct folded_label){ folded_node, label };
	hash_index_add(&folding->index, slot, hash, (uint32_t)folding->label_count);
	folding->folded->profile.tree->nodes[folded_node].labels++;
}

static uint32_t folded_node_of(struct folding *folding, const struct node *node)
{
	struct tree *tree = folding->folded->profile.tree;
	const uint32_t parent = folding->folded->node_of[node->parent];
	const uint32_t pattern = pattern_of(folding, node);
	uint32_t id;

	if (node_label_is_engine(string_table_get(folding->profile->texts, node->name), node->kind))
		return tree_child(tree, parent,
			string_table_intern(folding->profile->texts, NODE_ENGINE_PATTERN,
				strlen(NODE_ENGINE_PATTERN)),
			0, NODE_BACKWARD);
	id = node->kind == NODE_MODULE
		     ? tree_module(tree, parent, pattern, node->domain, node->class)
		     : tree_child(tree, parent, pattern, node->domain, (enum node_kind)node->kind);
	if (pattern != node->name)
		count_label(folding, id, node->name);
	return id;
}

static void merge_flags(struct node *to, const struct node *from)
{
	to->is_group |= from->is_group;
	to->captured |= from->captured;
	to->ran_elsewhere |= from->ran_elsewhere;
	to->is_recompute |= from->is_recompute;
	to->is_counted |= from->is_counted;
	to->left_open |= from->left_open;
	to->outside |= from->outside;
}

/* Adds the launch delays, and keeps the launch configuration as long as all are the same. */
static void merge_launches(struct tree *tree, struct node_gpu *to, const struct node_gpu *from)
{
	percentiles_merge(&to->delays, &from->delays, &tree->delay_budget);
	to->several_shapes |= from->several_shapes;
	if (!from->shape)
		return;
	if (to->shape) {
		to->several_shapes |= !launch_config_equal(to->shape, from->shape);
		return;
	}
	to->shape = xcalloc(sizeof *to->shape);
	*to->shape = *from->shape;
}

/* Adds the instances of a node to those of its folded node. */
static void merge_instances(struct tree *tree, uint32_t id, const struct node *from)
{
	struct node *to = &tree->nodes[id];

	merge_flags(to, from);
	to->calls += from->calls;
	to->total_ns += from->total_ns;
	to->self_ns += from->self_ns;
	to->min_ns = from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
	to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
	percentiles_merge(&to->samples, &from->samples, &tree->budget);
	if (from->gpu)
		merge_launches(tree, tree_gpu(tree, id), from->gpu);
}

struct folded_tree *folded_tree_new(const struct profile *profile)
{
	const struct tree *from = profile->tree;
	struct folded_tree *folded = xcalloc(sizeof *folded);
	struct folding folding = { .folded = folded, .profile = profile };
	struct tree *tree = tree_new();

	folded->profile = *profile;
	folded->profile.tree = tree;
	folded->node_of = xcalloc(from->count * sizeof *folded->node_of);
	for (uint32_t id = 1; id < from->count; id++) {
		const struct node *node = &from->nodes[id];

		folded->node_of[id] = folded_node_of(&folding, node);
		merge_instances(tree, folded->node_of[id], node);
		if (node->forward_node)
			tree->nodes[folded->node_of[id]].forward_node =
				folded->node_of[node->forward_node];
	}
	folded->profile.unattributed = folded->node_of[profile->unattributed];
	folded->profile.async_ranges = folded->node_of[profile->async_ranges];
	free(folding.labels);
	hash_index_free(&folding.index);
	return folded;
}

void folded_tree_free(struct folded_tree *folded)
{
	if (!folded)
		return;
	tree_free(folded->profile.tree);
	free(folded->node_of);
	free(folded);
}
