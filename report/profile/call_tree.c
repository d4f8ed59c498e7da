/* SPDX-License-Identifier: MIT */
#include "report/profile/call_tree.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <stdlib.h>
#include <string.h>

#define SAMPLED_PARTS 64u

/* Memory for parts of nodes. A tree of functions has one of each node. */
struct sampled_parts {
	struct sampled_parts *next;
	unsigned used;
	struct node_sampled parts[SAMPLED_PARTS];
};

/* What distinguishes the children of a node. */
struct child_key {
	uint32_t parent, name, domain, class;
	enum node_kind kind;
};

static uint64_t hash_child_key(const struct child_key *key)
{
	const uint64_t hash = hash_u64((uint64_t)key->parent << 32 | key->name);

	return hash_u64(
		hash ^ ((uint64_t)key->domain << 8 | key->kind) ^ (uint64_t)key->class << 40);
}

static bool is_child_key(const struct node *node, const struct child_key *key)
{
	return node->parent == key->parent && node->name == key->name &&
	       node->domain == key->domain && node->kind == key->kind && node->class == key->class;
}

/* The slot where the child is or belongs. */
static struct hash_slot *child_slot(
	const struct tree *tree, const struct child_key *key, uint64_t hash)
{
	struct hash_slot *slot = hash_index_first(&tree->index, hash);

	while (slot->number && !is_child_key(&tree->nodes[slot->number], key))
		slot = hash_index_next(&tree->index, slot);
	return slot;
}

static void grow_tree_arrays(struct tree *tree)
{
	const uint32_t room = tree->room + tree->room / 2 + 64;

	if (tree->count < tree->room)
		return;
	if (room < tree->room)
		fatal(STATUS_UNREADABLE, "more than %u nodes in the tree; try without --no-fold",
			tree->room);
	tree->nodes = mapped_grow(
		tree->nodes, tree->room * sizeof *tree->nodes, room * sizeof *tree->nodes);
	tree->recent = mapped_grow(
		tree->recent, tree->room * sizeof *tree->recent, room * sizeof *tree->recent);
	tree->room = room;
}

struct tree *tree_new(void)
{
	struct tree *tree = xcalloc(sizeof *tree);

	grow_tree_arrays(tree);
	tree->count = 1;
	tree->delays = launch_delays_new();
	hash_index_reserve(&tree->index);
	return tree;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	for (uint32_t id = 0; id < tree->count; id++) {
		percentiles_free(&tree->nodes[id].samples);
		if (tree->nodes[id].gpu) {
			free(tree->nodes[id].gpu->shape);
			percentiles_free(&tree->nodes[id].gpu->delays);
		}
		free(tree->nodes[id].gpu);
		free(tree->nodes[id].memory);
		free(tree->nodes[id].tensors);
		if (tree->nodes[id].worst)
			free(tree->nodes[id].worst->own);
		free(tree->nodes[id].worst);
	}
	while (tree->sampled) {
		struct sampled_parts *parts = tree->sampled;

		tree->sampled = parts->next;
		free(parts);
	}
	mapped_free(tree->nodes, tree->room * sizeof *tree->nodes);
	mapped_free(tree->recent, tree->room * sizeof *tree->recent);
	hash_index_free(&tree->index);
	launch_delays_free(tree->delays);
	free(tree);
}

uint32_t tree_find(const struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain,
	enum node_kind kind)
{
	const struct child_key key = { parent, name, domain, 0, kind };

	return child_slot(tree, &key, hash_child_key(&key))->number;
}

static uint32_t find_like(const struct tree *tree, uint32_t parent, const struct node *wanted)
{
	uint32_t id = tree->nodes[parent].first_child;

	while (id) {
		const struct node *node = &tree->nodes[id];

		if (node->name == wanted->name && node->domain == wanted->domain &&
			node->kind == wanted->kind && node->class == wanted->class)
			break;
		id = node->next;
	}
	return id;
}

uint32_t tree_find_path(const struct tree *tree, const struct tree *of, uint32_t node)
{
	const struct node *wanted = &of->nodes[node];
	uint32_t *path = xcalloc((wanted->depth + 1) * sizeof *path), at = 0;

	for (uint32_t id = node, left = wanted->depth + 1u; left > 0; id = of->nodes[id].parent)
		path[--left] = id;
	for (uint32_t i = 0; i <= wanted->depth && (i == 0 || at); i++)
		at = find_like(tree, at, &of->nodes[path[i]]);
	free(path);
	return at;
}

static uint32_t new_tree_node(struct tree *tree, const struct child_key *key)
{
	struct node *node;

	grow_tree_arrays(tree);
	node = &tree->nodes[tree->count];
	node->parent = key->parent;
	node->name = key->name;
	node->domain = key->domain;
	node->class = key->class;
	node->kind = (uint8_t)key->kind;
	node->depth = (uint16_t)(key->parent ? tree->nodes[key->parent].depth + 1 : 0);
	node->min_ns = UINT64_MAX;
	node->next = tree->nodes[key->parent].first_child;
	tree->nodes[key->parent].first_child = tree->count;
	return tree->count++;
}

static uint32_t find_or_add_child(struct tree *tree, const struct child_key *key)
{
	const uint64_t hash = hash_child_key(key);
	struct hash_slot *slot;

	hash_index_reserve(&tree->index);
	slot = child_slot(tree, key, hash);
	if (slot->number)
		return tree->recent[key->parent][key->kind != NODE_KERNEL] = slot->number;
	if (tree->count == UINT32_MAX)
		fatal(STATUS_UNREADABLE, "more than %u nodes in the tree; try without --no-fold",
			UINT32_MAX);
	hash_index_add(&tree->index, slot, hash, tree->count);
	return new_tree_node(tree, key);
}

uint32_t tree_child_lookup(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind)
{
	return find_or_add_child(tree, &(struct child_key){ parent, name, domain, 0, kind });
}

uint32_t tree_module(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, uint32_t class)
{
	return find_or_add_child(
		tree, &(struct child_key){ parent, name, domain, class, NODE_MODULE });
}

uint32_t tree_restore_child(struct tree *tree, const struct node *like)
{
	return find_or_add_child(tree, &(struct child_key){ like->parent, like->name, like->domain,
					       like->class, like->kind });
}

uint32_t tree_add(struct tree *tree, uint32_t name, enum node_kind kind)
{
	return new_tree_node(tree, &(struct child_key){ .name = name, .kind = kind });
}

uint32_t tree_group(
	struct tree *tree, uint32_t parent, uint32_t name, uint32_t domain, enum node_kind kind)
{
	const uint32_t node = tree_child(tree, parent, name, domain, kind);

	tree->nodes[node].is_group = true;
	return node;
}

uint32_t tree_captured_child(struct tree *tree, uint32_t parent, uint32_t like)
{
	const struct node *of = &tree->nodes[like];
	const uint32_t node = find_or_add_child(
		tree, &(struct child_key){ parent, of->name, of->domain, of->class, of->kind });

	tree->nodes[node].captured = true;
	tree->nodes[node].is_recompute = tree->nodes[like].is_recompute;
	return node;
}

struct node_gpu *tree_new_gpu(struct tree *tree, uint32_t node)
{
	return tree->nodes[node].gpu = xcalloc(sizeof(struct node_gpu));
}

struct node_memory *tree_new_memory(struct tree *tree, uint32_t node)
{
	return tree->nodes[node].memory = xcalloc(sizeof(struct node_memory));
}

struct node_tensors *tree_new_tensors(struct tree *tree, uint32_t node)
{
	return tree->nodes[node].tensors = xcalloc(sizeof(struct node_tensors));
}

struct node_worst *tree_worst(struct tree *tree, uint32_t node)
{
	struct node_worst **worst = &tree->nodes[node].worst;

	if (!*worst)
		*worst = xcalloc(sizeof **worst);
	return *worst;
}

struct node_sampled *tree_new_sampled(struct tree *tree, uint32_t node)
{
	struct sampled_parts *parts = tree->sampled;

	if (!parts || parts->used == SAMPLED_PARTS) {
		parts = xcalloc(sizeof *parts);
		parts->next = tree->sampled;
		tree->sampled = parts;
	}
	return tree->nodes[node].sampled = &parts->parts[parts->used++];
}

void tree_count(struct tree *tree, uint32_t id, uint64_t duration_ns)
{
	struct node *node = &tree->nodes[id];

	node->calls++;
	node->total_ns += duration_ns;
	node->self_ns += duration_ns;
	if (duration_ns < node->min_ns)
		node->min_ns = duration_ns;
	if (duration_ns > node->max_ns)
		node->max_ns = duration_ns;
	percentiles_add(&node->samples, duration_ns, &tree->budget);
}

/* Adds the GPU figures of `node` to its parent. */
static void add_gpu(struct tree *tree, const struct node *node)
{
	struct node_gpu *parent;

	if (node->gpu->idle_before_ns)
		tree_gpu(tree, node->parent)->idle_before_ns += node->gpu->idle_before_ns;
	/* GPU work of a range is in the range's self_ns already, and that of a graph in the
	 * graph's. The nodes below only show what the work was. */
	if (node_kind_class(node->kind) == NODE_WORK ||
		(node->captured && !tree->nodes[node->parent].captured) || !node->gpu->total_calls)
		return;
	parent = tree_gpu(tree, node->parent);
	parent->total_ns += node->gpu->total_ns;
	parent->total_calls += node->gpu->total_calls;
	for (int part = 0; part < NODE_PARTS; part++)
		parent->part_ns[part] += node->gpu->part_ns[part];
}

static void add_tensor_total(struct node_tensors *parent, const struct tensor_sums *child)
{
	parent->total.alloc_bytes += child->alloc_bytes;
	parent->total.free_bytes += child->free_bytes;
	parent->total.at_peak += child->at_peak;
	parent->total.at_oom += child->at_oom;
}

static void add_node_to_parent(struct tree *tree, uint32_t id)
{
	const struct node *node = &tree->nodes[id];

	if (tree->nodes[node->parent].is_group && node_kind_class(node->kind) == NODE_RANGES)
		tree->nodes[node->parent].total_ns += node->total_ns;
	if (node->gpu)
		add_gpu(tree, node);
	if (node->memory && node_kind_class(node->kind) == NODE_RANGES &&
		(node->memory->alloc_bytes || node->memory->free_bytes)) {
		struct node_memory *parent = tree_memory(tree, node->parent);

		parent->alloc_bytes += node->memory->alloc_bytes;
		parent->free_bytes += node->memory->free_bytes;
	}
	if (node->sampled)
		sample_sums_add(&tree_sampled(tree, node->parent)->total, &node->sampled->total);
	if (node->tensors)
		add_tensor_total(tree_tensors(tree, node->parent), &node->tensors->total);
}

/* The part of `node`'s GPU work: its own if it is one of these kinds, else that of its parent
 * (`around`). An optimizer may call the model in a closure (LBFGS, Lightning): modules in it, and
 * operators with a backward pass, are forward. */
static enum node_part gpu_part_of(const struct node *node, bool has_backward, enum node_part around)
{
	if (node->is_recompute)
		return PART_RECOMPUTE;
	if (node->kind == NODE_BACKWARD || node->ran_elsewhere)
		return PART_BACKWARD;
	if (node->kind == NODE_OPTIMIZER)
		return PART_OPTIMIZER;
	return around == PART_OPTIMIZER && (node->kind == NODE_MODULE || has_backward)
		       ? PART_FORWARD
		       : around;
}

/* By node: 1 for an operator with a backward pass beside it. The caller frees it. */
static uint8_t *find_backward_passes(const struct tree *tree)
{
	uint8_t *has_backward = xcalloc(tree->count);

	for (uint32_t id = 1; id < tree->count; id++)
		has_backward[tree->nodes[id].forward_node] = 1;
	return has_backward;
}

/* Moves captured work to the part in which it was captured, in its graph and in the node that
 * launched the graph. */
static void split_graph_parts(struct tree *tree, const uint8_t *parts, uint32_t captured)
{
	const uint64_t own = tree->nodes[captured].gpu->self_ns;
	uint32_t graph = captured;

	while (tree->nodes[graph].captured)
		graph = tree->nodes[graph].parent;
	for (uint32_t id = graph;; id = tree->nodes[id].parent) {
		uint64_t *part_ns = tree_gpu(tree, id)->part_ns;

		part_ns[parts[id]] -= own;
		part_ns[parts[captured]] += own;
		if (id != graph)
			return;
	}
}

/* All work of a node is of one part, except that of graphs. */
static void split_gpu_parts(struct tree *tree)
{
	uint8_t *parts = xcalloc(tree->count), *has_backward = find_backward_passes(tree);

	tree->has_parts = false;
	for (uint32_t id = 0; id < tree->count; id++) {
		struct node *node = &tree->nodes[id];

		if (id)
			parts[id] = (uint8_t)gpu_part_of(
				node, has_backward[id], (enum node_part)parts[node->parent]);
		if (!node->gpu)
			continue;
		memset(node->gpu->part_ns, 0, sizeof node->gpu->part_ns);
		node->gpu->part_ns[parts[id]] = node->gpu->self_ns;
		tree->has_parts |= parts[id] != PART_FORWARD && node->gpu->self_calls;
		if (node->captured)
			split_graph_parts(tree, parts, id);
	}
	free(parts);
	free(has_backward);
}

/* Sets a node's totals to its own share. */
static void start_totals(struct node *node)
{
	struct node_gpu *gpu = node->gpu;
	struct node_memory *memory = node->memory;

	if (node->is_group)
		node->total_ns = 0;
	/* Ranges of `(deeper)` are inside each other, and nothing else is inside them. */
	if (node->depth > TREE_DEPTH_MAX && node_kind_class(node->kind) == NODE_RANGES &&
		!node->is_counted)
		node->total_ns = node->self_ns;
	if (gpu) {
		gpu->total_ns = gpu->self_ns;
		gpu->total_calls = gpu->self_calls;
		if (node_kind_class(node->kind) != NODE_WORK || node->kind == NODE_GRAPH)
			gpu->idle_before_ns = 0;
	}
	if (memory) {
		memory->alloc_bytes = memory->alloc_self;
		memory->free_bytes = memory->free_self;
	}
	if (node->tensors)
		node->tensors->total = node->tensors->self;
	if (node->sampled)
		node->sampled->total = node->sampled->self;
}

void tree_sum(struct tree *tree)
{
	split_gpu_parts(tree);
	for (uint32_t id = 0; id < tree->count; id++)
		start_totals(&tree->nodes[id]);
	for (uint32_t id = tree->count - 1; id > 0; id--)
		add_node_to_parent(tree, id);
}

static const struct {
	const char *name;
	enum node_class class;
} kinds[] = {
#define X(kind, text, group) [NODE_##kind] = { .name = text, .class = NODE_##group },
	NODE_KINDS(X)
#undef X
};

const char *node_kind_name(enum node_kind kind)
{
	return kinds[kind].name;
}

enum node_class node_kind_class(enum node_kind kind)
{
	return kinds[kind].class;
}

static const char *const methods[METHOD_COUNT][2] = {
#define X(method, name, confidence) [METHOD_##method] = { name, confidence },
	METHODS(X)
#undef X
};

const char *method_name(enum method method)
{
	return methods[method][0];
}

const char *method_confidence(enum method method)
{
	return methods[method][1];
}
