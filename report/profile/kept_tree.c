/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/profile/kept_profile_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct node) == 192, "write and read a new member of a node");
static_assert(sizeof(struct node_gpu) == 144, "write and read a new member of its GPU part");
static_assert(sizeof(struct node_worst) == 96, "write and read a new member of its worst instance");
static_assert(sizeof(struct tree) == 104, "write and read a new member of the tree");

#define DEPTH_MAX (4 * TREE_DEPTH_MAX) /* ranges, calls, a graph, and what was captured in it */

/* The parts that a node has. */
enum {
	HAS_GPU = 1,
	HAS_SHAPE = 2,
	HAS_MEMORY = 4,
	HAS_TENSORS = 8,
	HAS_WORST = 16,
	HAS_SAMPLED = 32,
	HAS_ALL = 63
};

static uint64_t parts_of(const struct node *node)
{
	return (node->gpu ? HAS_GPU : 0u) | (node->gpu && node->gpu->shape ? HAS_SHAPE : 0u) |
	       (node->memory ? HAS_MEMORY : 0u) | (node->tensors ? HAS_TENSORS : 0u) |
	       (node->worst ? HAS_WORST : 0u) | (node->sampled ? HAS_SAMPLED : 0u);
}

static void write_gpu(struct node_gpu *gpu, struct value_writer *writer)
{
	struct node_gpu kept = *gpu;

	memset(&kept.delays, 0, sizeof kept.delays);
	kept.shape = NULL;
	value_write(writer, &kept, sizeof kept);
	if (gpu->shape)
		value_write(writer, gpu->shape, sizeof *gpu->shape);
	percentiles_write(&gpu->delays, writer);
}

static void write_worst(const struct node_worst *worst, struct value_writer *writer)
{
	struct node_worst kept = *worst;

	kept.own = NULL;
	value_write(writer, &kept, sizeof kept);
	value_write_array(writer, worst->own, worst->own ? worst->own_bytes : 0, 1);
}

/* Pointers of another process mean nothing. */
static void clear_parts(struct node *kept)
{
	memset(&kept->samples, 0, sizeof kept->samples);
	kept->gpu = NULL;
	kept->memory = NULL;
	kept->tensors = NULL;
	kept->worst = NULL;
	kept->sampled = NULL;
}

static void write_node(struct node *node, struct value_writer *writer)
{
	struct node kept = *node;

	clear_parts(&kept);
	value_write_u64(writer, parts_of(node));
	value_write(writer, &kept, sizeof kept);
	percentiles_write(&node->samples, writer);
	if (node->gpu)
		write_gpu(node->gpu, writer);
	if (node->memory)
		value_write(writer, node->memory, sizeof *node->memory);
	if (node->tensors)
		value_write(writer, node->tensors, sizeof *node->tensors);
	if (node->worst)
		write_worst(node->worst, writer);
	if (node->sampled)
		value_write(writer, node->sampled, sizeof *node->sampled);
}

void tree_write(const struct tree *tree, struct value_writer *writer)
{
	value_write_u64(writer, tree->count);
	value_write_u64(writer, tree->has_parts);
	value_write_u64(writer, tree->budget.spills);
	for (uint32_t id = 0; id < tree->count && !writer->failed; id++)
		write_node(&tree->nodes[id], writer);
}

static void read_gpu(struct tree *tree, uint32_t id, bool has_shape, struct value_reader *reader)
{
	struct node_gpu *gpu = tree_new_gpu(tree, id);

	value_read(reader, gpu, sizeof *gpu);
	memset(&gpu->delays, 0, sizeof gpu->delays);
	gpu->shape = has_shape ? xcalloc(sizeof *gpu->shape) : NULL;
	if (has_shape)
		value_read(reader, gpu->shape, sizeof *gpu->shape);
	percentiles_read(&gpu->delays, reader, &tree->delay_budget);
	value_check(reader, gpu->method < METHOD_COUNT && value_is_bool(&gpu->several_shapes));
}

/* Returns false for a value that is infinite or no number. */
static bool is_finite(long double value)
{
	return value - value == 0;
}

static void read_worst(struct node_worst *worst, uint32_t texts, struct value_reader *reader)
{
	uint64_t own_bytes;

	value_read(reader, worst, sizeof *worst);
	worst->own = value_read_array(reader, &own_bytes, UINT32_MAX, 1);
	if (!own_bytes) {
		free(worst->own);
		worst->own = NULL;
	}
	value_check(reader, value_is_bool(&worst->found) && worst->label < texts &&
				    (!worst->own || worst->own_bytes == own_bytes) &&
				    is_finite(worst->value) && is_finite(worst->before) &&
				    is_finite(worst->after));
}

static void read_parts(
	struct tree *tree, uint32_t id, uint64_t parts, uint32_t texts, struct value_reader *reader)
{
	percentiles_read(&tree->nodes[id].samples, reader, &tree->budget);
	if (parts & HAS_GPU)
		read_gpu(tree, id, parts & HAS_SHAPE, reader);
	if (parts & HAS_MEMORY)
		value_read(reader, tree_new_memory(tree, id), sizeof(struct node_memory));
	if (parts & HAS_TENSORS)
		value_read(reader, tree_new_tensors(tree, id), sizeof(struct node_tensors));
	if (parts & HAS_WORST)
		read_worst(tree_worst(tree, id), texts, reader);
	if (parts & HAS_SAMPLED)
		value_read(reader, tree_sampled(tree, id), sizeof(struct node_sampled));
	if (parts & HAS_MEMORY)
		value_check(reader, value_is_bool(&tree->nodes[id].memory->has_level));
	if (parts & HAS_TENSORS)
		value_check(reader, value_is_bool(&tree->nodes[id].tensors->has_level));
}

static bool are_good_flags(const struct node *node)
{
	return value_is_bool(&node->left_open) && value_is_bool(&node->is_counted) &&
	       value_is_bool(&node->is_recompute) && value_is_bool(&node->outside) &&
	       value_is_bool(&node->captured) && value_is_bool(&node->is_group) &&
	       value_is_bool(&node->ran_elsewhere);
}

/* Adds the node to the tree, which decides its number, its depth and its place among its parent's
 * children. Node 0 is there. */
static void read_node(
	struct tree *tree, uint32_t id, uint32_t count, uint32_t texts, struct value_reader *reader)
{
	const uint64_t parts = value_read_below(reader, HAS_ALL);
	struct node kept, *node;

	value_read(reader, &kept, sizeof kept);
	if (!value_check(reader, are_good_flags(&kept) && kept.kind < NODE_KIND_COUNT &&
					 kept.forward_node < count && kept.name < texts &&
					 kept.domain < texts && kept.class < texts &&
					 (id ? kept.parent < id : !kept.parent && !kept.class)) ||
		(id && !value_check(reader, tree_restore_child(tree, &kept) == id)))
		return;
	node = &tree->nodes[id];
	if (!value_check(reader, node->depth <= DEPTH_MAX))
		return;
	kept.first_child = node->first_child;
	kept.next = node->next;
	kept.depth = node->depth;
	clear_parts(&kept);
	*node = kept;
	read_parts(tree, id, parts, texts, reader);
}

struct tree *tree_read(uint32_t texts, struct value_reader *reader)
{
	struct tree *tree = tree_new();
	const uint32_t count = (uint32_t)value_read_below(reader, UINT32_MAX);

	tree->has_parts = value_read_below(reader, 1);
	tree->budget.spills = value_read_u64(reader);
	for (uint32_t id = 0; id < count && !reader->failed; id++)
		read_node(tree, id, count, texts, reader);
	value_check(reader, count > 0);
	return tree;
}
