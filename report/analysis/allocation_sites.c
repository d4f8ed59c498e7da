/* SPDX-License-Identifier: MIT */
#include "report/analysis/allocation_sites.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include "report/base/text_builder.h"
#include "report/run/call_stack.h"
#include <stdlib.h>

/* Returns whether kind, name, class and domain are equal: the identity of a node. */
static bool has_same_identity(const struct node *a, const struct node *b)
{
	return a->kind == b->kind && a->name == b->name && a->class == b->class &&
	       a->domain == b->domain;
}

/* Returns the child of `parent` with the same identity as `node`; for a step, the kind of step with
 * the most calls. 0: there is none. */
static uint32_t same_node_below(const struct tree *tree, uint32_t parent, const struct node *node)
{
	uint32_t best = 0;

	for (uint32_t id = tree->nodes[parent].first_child; id; id = tree->nodes[id].next) {
		const struct node *other = &tree->nodes[id];

		if (node->kind != NODE_STEP && has_same_identity(node, other))
			return id;
		if (node->kind == NODE_STEP && other->kind == NODE_STEP &&
			(!best || other->calls > tree->nodes[best].calls))
			best = id;
	}
	return best;
}

uint32_t *nodes_in_any_step(const struct tree *tree)
{
	uint32_t *same = xcalloc((size_t)tree->count * sizeof *same);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		const uint32_t parent = same[node->parent];
		const uint32_t twin = node->kind == NODE_STEP || parent != node->parent
					      ? same_node_below(tree, parent, node)
					      : 0;

		same[id] = twin ? twin : id;
	}
	return same;
}

static bool is_part_of_run(const struct node *node)
{
	return node->kind == NODE_SECTION || node->kind == NODE_STEP;
}

/* Returns the node that represents the call path of `id`: the first with the same identity below
 * the same call path. A parent's number is lower than its child's, so its path is known. */
static uint32_t first_on_path(
	const struct tree *tree, struct hash_index *index, const uint32_t *path_nodes, uint32_t id)
{
	const struct node *node = &tree->nodes[id];
	const uint32_t parent = path_nodes[node->parent];
	const uint64_t hash = hash_u64(hash_u64((uint64_t)parent << 32 | node->name) ^
				       ((uint64_t)node->class << 8 | node->kind));
	struct hash_slot *slot;

	hash_index_reserve(index);
	slot = hash_index_first(index, hash);
	for (; slot->number; slot = hash_index_next(index, slot))
		if (path_nodes[tree->nodes[slot->number].parent] == parent &&
			has_same_identity(&tree->nodes[slot->number], node))
			return slot->number;
	hash_index_add(index, slot, hash, id);
	return id;
}

uint32_t *nodes_by_call_path(const struct tree *tree)
{
	uint32_t *path_nodes = xcalloc((size_t)tree->count * sizeof *path_nodes);
	struct hash_index index = { .count = 0 };

	for (uint32_t id = 1; id < tree->count; id++)
		path_nodes[id] = is_part_of_run(&tree->nodes[id])
					 ? path_nodes[tree->nodes[id].parent]
					 : first_on_path(tree, &index, path_nodes, id);
	hash_index_free(&index);
	return path_nodes;
}

static bool is_owner_known(const struct tree *tree, uint32_t node)
{
	const uint8_t kind = tree->nodes[node].kind;

	return node && kind != NODE_UNATTRIBUTED && kind != NODE_SECTION && kind != NODE_STEP;
}

COMPARE_BY_THREE(by_merged_site, struct memory_site, level, path, stack)

static void add_site(struct memory_site *to, const struct memory_site *from)
{
	to->flow.alloc_bytes += from->flow.alloc_bytes;
	to->flow.free_bytes += from->flow.free_bytes;
	to->flow.allocs += from->flow.allocs;
	to->flow.frees += from->flow.frees;
	to->flow.failed += from->flow.failed;
	to->flow.held += from->flow.held;
	to->flow.at_peak += from->flow.at_peak;
	to->flow.at_oom += from->flow.at_oom;
	/* what allocated in steps and outside of them has no step in its path */
	to->omits_steps |= to->node != from->node;
	/* the sites may have peaked at different times, so the peak of their sum is unknown */
	to->is_several = true;
}

/* Writes what the label of a site shows of its call stack. */
static void add_shown_frames(
	struct text_builder *text, struct process *process, const struct memory_site *site)
{
	uint32_t shown[CALL_STACK_SHOWN];
	const uint32_t count = call_stack_shown_frames(process, site->node, site->stack, shown);
	char frame[1024];

	for (uint32_t i = 0; i < count; i++) {
		const size_t length = call_stack_frame(
			process, site->stack, shown[i], true, frame, sizeof frame);

		text_add_bytes(text, " < ", 3);
		text_add_bytes(text, frame, length);
	}
}

/* Replaces the stacks of `sites` by the first one that is shown alike, because rows that read alike
 * are of no use. Only stacks of Python: looking up native functions of all sites costs too much. */
static void merge_stacks(struct process *process, struct memory_site *sites, uint32_t count)
{
	struct string_table *texts = string_table_new();
	struct text_builder text = { .text = NULL };
	uint32_t *stacks = NULL; /* by text */
	size_t room = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t id;

		if (!reader_python_stack(process->reader, sites[i].stack))
			continue;
		text.used = 0;
		add_shown_frames(&text, process, &sites[i]);
		if (!text.used)
			continue;
		id = string_table_intern(texts, text.text, text.used);
		ARRAY_GROW(stacks, room, (size_t)id + 1);
		if (!stacks[id])
			stacks[id] = sites[i].stack;
		sites[i].stack = stacks[id];
	}
	free(stacks);
	free(text.text);
	string_table_free(texts);
}

/* Copies the sites, with the nodes and call stacks by which they are merged. */
static void copy_sites(struct process *process, struct memory_owners *memory)
{
	const struct tree *tree = process->profile->tree;
	uint32_t *same = nodes_in_any_step(tree), *path_nodes = nodes_by_call_path(tree);

	memory->merged = xcalloc(memory->site_count * sizeof *memory->merged);
	for (uint32_t i = 0; i < memory->site_count; i++) {
		struct memory_site *site = &memory->merged[i];

		*site = memory->sites[i];
		site->node = same[site->node];
		/* what is owned by the step or section itself is not merged */
		site->path = path_nodes[site->node] && !is_part_of_run(&tree->nodes[site->node])
				     ? path_nodes[site->node]
				     : site->node;
		site->omits_sections = true;
		if (is_owner_known(tree, site->node))
			site->stack = reader_python_stack_id(process->reader, site->stack);
	}
	merge_stacks(process, memory->merged, memory->site_count);
	free(same);
	free(path_nodes);
}

void allocation_sites_merge(struct process *process)
{
	struct memory_owners *memory = process->profile->memory;

	if (memory->merged || !memory->site_count)
		return;
	copy_sites(process, memory);
	qsort(memory->merged, memory->site_count, sizeof *memory->merged, by_merged_site);
	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->merged[i];
		const uint32_t count = memory->merged_count;

		if (count && by_merged_site(&memory->merged[count - 1], site) == 0)
			add_site(&memory->merged[count - 1], site);
		else
			memory->merged[memory->merged_count++] = *site;
	}
}
