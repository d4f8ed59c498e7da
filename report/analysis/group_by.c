/* SPDX-License-Identifier: MIT */
#include "report/analysis/group_by.h"
#include "report/analysis/activities.h"
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call tree that is being grouped. */
struct grouping {
	const struct profile *profile;
	const struct tree *tree;
	struct string_table *texts;
	struct tree *flat;
	uint32_t *key;    /* by node: its group's node in `flat` */
	uint64_t *cpu_ns; /* by node: self time of the node and its descendants */
	uint64_t *gpu_ns, *gpu_calls;
};

static struct tree *new_group_tree(void)
{
	struct tree *tree = tree_new();

	tree->is_grouped = true;
	return tree;
}

static struct grouping grouping_begin(const struct profile *profile, struct string_table *texts)
{
	const size_t count = profile->tree->count;

	return (struct grouping){ .profile = profile,
		.tree = profile->tree,
		.texts = texts,
		.flat = new_group_tree(),
		.key = xcalloc(count * sizeof(uint32_t)),
		.cpu_ns = xcalloc(count * sizeof(uint64_t)),
		.gpu_ns = xcalloc(count * sizeof(uint64_t)),
		.gpu_calls = xcalloc(count * sizeof(uint64_t)) };
}

static struct tree *grouping_end(struct grouping *grouping)
{
	free(grouping->key);
	free(grouping->cpu_ns);
	free(grouping->gpu_ns);
	free(grouping->gpu_calls);
	return grouping->flat;
}

/* Start/end ranges overlap, so they own nothing. */
static bool is_async_range(const struct grouping *grouping, uint32_t id)
{
	return grouping->profile->async_ranges &&
	       (id == grouping->profile->async_ranges ||
		       grouping->tree->nodes[id].parent == grouping->profile->async_ranges);
}

/* Whether the node is a GPU operation, and not a graph that consists of them. */
static bool is_gpu_leaf(const struct node *node)
{
	return node->kind == NODE_KERNEL || node->kind == NODE_MEMCPY || node->kind == NODE_MEMSET;
}

static uint64_t self_cpu_ns(const struct grouping *grouping, uint32_t id)
{
	const struct node *node = &grouping->tree->nodes[id];

	return node_kind_class(node->kind) == NODE_RANGES && !is_async_range(grouping, id)
		       ? node->self_ns
		       : 0;
}

void group_by_add_work(struct tree *tree, uint32_t node, const struct node_gpu *work)
{
	struct node_gpu *gpu = tree_gpu(tree, node);

	gpu->self_ns += work->self_ns;
	gpu->self_calls += work->self_calls;
	gpu->untimed += work->untimed;
	gpu->bytes += work->bytes;
}

/* Sums up each node with its descendants. Parents have lower numbers than children. */
static void sum_below(struct grouping *grouping)
{
	for (uint32_t id = grouping->tree->count - 1; id > 0; id--) {
		const struct node *node = &grouping->tree->nodes[id];

		grouping->cpu_ns[id] += self_cpu_ns(grouping, id);
		if (is_gpu_leaf(node) && node->gpu) {
			grouping->gpu_ns[id] += node->gpu->self_ns;
			grouping->gpu_calls[id] += node->gpu->self_calls;
		}
		grouping->cpu_ns[node->parent] += grouping->cpu_ns[id];
		grouping->gpu_ns[node->parent] += grouping->gpu_ns[id];
		grouping->gpu_calls[node->parent] += grouping->gpu_calls[id];
	}
}

/* Adds a node to its group. `inner`: an ancestor is in the same group. */
static void add_node_to_group(struct grouping *grouping, uint32_t id, bool inner)
{
	const struct node *node = &grouping->tree->nodes[id];
	const uint32_t key = grouping->key[id];
	struct node *flat = &grouping->flat->nodes[key];

	flat->self_ns += self_cpu_ns(grouping, id);
	flat->left_open |= node->left_open;
	flat->is_counted |= node->is_counted;
	if (is_gpu_leaf(node) && node->gpu)
		group_by_add_work(grouping->flat, key, node->gpu);
	if (inner)
		return;
	if (node_kind_class(node->kind) != NODE_CALLS && !node->is_group &&
		node->kind != NODE_UNATTRIBUTED)
		flat->calls += node->calls;
	flat->total_ns += grouping->cpu_ns[id];
	if (grouping->gpu_calls[id]) {
		tree_gpu(grouping->flat, key)->total_ns += grouping->gpu_ns[id];
		tree_gpu(grouping->flat, key)->total_calls += grouping->gpu_calls[id];
	}
}

/* Returns the node after `node` in depth-first order, or 0 after the last. Removes the nodes that
 * it leaves from open[]. */
static uint32_t enter_next_node(const struct grouping *grouping, uint32_t node, uint32_t *open)
{
	const struct tree *tree = grouping->tree;
	uint32_t next = tree->nodes[node].first_child;

	while (!next && node) {
		open[grouping->key[node]]--;
		next = tree->nodes[node].next;
		node = tree->nodes[node].parent;
	}
	return next;
}

/* Adds all nodes to their groups, in depth-first order. All nodes must have a key. open[] counts
 * the ancestors in each group. */
static void sum_groups(struct grouping *grouping)
{
	uint32_t *open = xcalloc(grouping->flat->count * sizeof *open), node = 0;

	sum_below(grouping);
	while ((node = enter_next_node(grouping, node, open))) {
		uint32_t *ancestors = &open[grouping->key[node]];

		if (!is_async_range(grouping, node))
			add_node_to_group(grouping, node, *ancestors > 0);
		++*ancestors;
	}
	free(open);
}

static uint32_t find_group_named(struct grouping *grouping, const char *name, enum node_kind kind)
{
	return tree_child(grouping->flat, 0,
		string_table_intern(grouping->texts, name, strlen(name)), 0, kind);
}

/* Makes the totals of the group without a key its self values. What encloses all groups would have
 * 100 % and contradict its name. */
static void limit_total_to_self(struct grouping *grouping, uint32_t key)
{
	struct node *flat = &grouping->flat->nodes[key];

	flat->total_ns = flat->self_ns;
	if (!flat->gpu)
		return;
	flat->gpu->total_ns = flat->gpu->self_ns;
	flat->gpu->total_calls = flat->gpu->self_calls;
}

/* Joins two names as in `Model.layers.0`, the form of named_modules(). */
static uint32_t join_dotted(struct string_table *texts, uint32_t outer, uint32_t name)
{
	const struct string_view before = string_table_get(texts, outer),
				 after = string_table_get(texts, name);
	char *both = xcalloc((size_t)before.length + after.length + 2);
	uint32_t id;

	memcpy(both, before.bytes, before.length);
	both[before.length] = '.';
	memcpy(both + before.length + 1, after.bytes, after.length);
	id = string_table_intern(texts, both, (size_t)before.length + after.length + 1);
	free(both);
	return id;
}

static struct tree *group_by_module(struct process *process, char reason[GROUP_BY_REASON_BYTES])
{
	struct grouping grouping = grouping_begin(process->profile, process->texts);
	const uint32_t none = find_group_named(&grouping, "(in no module)", NODE_RANGE);
	/* By node: the name of the innermost module around it. */
	uint32_t *names = xcalloc(grouping.tree->count * sizeof *names);

	for (uint32_t id = 1; id < grouping.tree->count; id++) {
		const struct node *node = &grouping.tree->nodes[id];

		names[id] = names[node->parent];
		grouping.key[id] = names[id] ? grouping.key[node->parent] : none;
		if (node->kind != NODE_MODULE)
			continue;
		names[id] = names[id] ? join_dotted(grouping.texts, names[id], node->name)
				      : node->name;
		grouping.key[id] = tree_module(
			grouping.flat, 0, names[id], node->domain, node->class);
	}
	free(names);
	if (grouping.flat->count == 2) {
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"this trace has no calls of modules; pperf records those of "
			"torch.nn.Module unless PPERF_MODULES=0, torch.profiler with "
			"with_stack=True or with_modules=True");
		tree_free(grouping_end(&grouping));
		return NULL;
	}
	sum_groups(&grouping);
	limit_total_to_self(&grouping, none);
	return grouping_end(&grouping);
}

static struct tree *group_by_category(struct process *process)
{
	const struct profile *profile = process_full_names_profile(process);
	const struct categories *categories = process->categories;
	struct grouping grouping = grouping_begin(profile, process->texts);
	uint8_t *of_node = categories_of_tree(categories, profile->tree, process->texts);

	for (uint32_t id = 1; id < profile->tree->count; id++)
		grouping.key[id] = find_group_named(
			&grouping, categories_name(categories, of_node[id]), NODE_CATEGORY);
	free(of_node);
	sum_groups(&grouping);
	limit_total_to_self(
		&grouping, find_group_named(&grouping, CATEGORY_OTHER_NAME, NODE_CATEGORY));
	return grouping_end(&grouping);
}

static struct tree *group_by_rank(struct process *process)
{
	struct grouping grouping = grouping_begin(process->profile, process->texts);
	char name[64];
	uint32_t key;

	if (process->rank >= 0)
		snprintf(name, sizeof name, "rank %lld", (long long)process->rank);
	else
		snprintf(name, sizeof name, "process %u, no rank", process->pid);
	key = find_group_named(&grouping, name, NODE_PROCESS);
	for (uint32_t id = 1; id < grouping.tree->count; id++)
		grouping.key[id] = key;
	sum_groups(&grouping);
	grouping.flat->nodes[key].calls = grouping.tree->count > 1;
	return grouping_end(&grouping);
}

static bool is_empty(const struct tree *tree)
{
	for (uint32_t id = 1; tree && id < tree->count; id++)
		if (tree->nodes[id].calls || tree->nodes[id].total_ns || tree->nodes[id].gpu)
			return false;
	return true;
}

struct tree *group_by_tree(
	struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES])
{
	struct tree *tree;

	snprintf(reason, GROUP_BY_REASON_BYTES, "this trace has no ranges and no GPU work");
	tree = by == BY_MODULE     ? group_by_module(process, reason)
	       : by == BY_CATEGORY ? group_by_category(process)
	       : by == BY_RANK     ? group_by_rank(process)
				   : group_by_events(process, by, reason);
	if (!tree || !is_empty(tree))
		return tree;
	tree_free(tree);
	return NULL;
}

static uint32_t short_kernel_name(
	struct string_table *texts, uint32_t name, enum demangle_form form)
{
	static char text[DEMANGLE_OUTPUT + 1];
	const struct string_view full = string_table_get(texts, name);
	const size_t length = demangle(form, full.bytes, full.length, text, sizeof text);

	return length ? string_table_intern(texts, text, length) : name;
}

static void add_work_count(struct tree *tree, uint32_t id, const struct node *from)
{
	struct node *node = &tree->nodes[id];

	node->calls += from->calls;
	if (from->min_ns < node->min_ns)
		node->min_ns = from->min_ns;
	if (from->max_ns > node->max_ns)
		node->max_ns = from->max_ns;
	percentiles_merge(&node->samples, &from->samples, &tree->budget);
	group_by_add_work(tree, id, from->gpu);
	tree->nodes[id].gpu->method = from->gpu->method;
}

static void add_leaf_to_category(struct process *process, struct tree *flat,
	const struct node *node, const char *category_name, enum demangle_form form)
{
	const uint32_t name = string_table_intern(
		process->texts, category_name, strlen(category_name));
	const uint32_t category = tree_child(flat, 0, name, 0, NODE_CATEGORY);
	const uint32_t kernel = tree_child(flat, category,
		short_kernel_name(process->texts, node->name, form), 0, (enum node_kind)node->kind);

	add_work_count(flat, category, node);
	add_work_count(flat, kernel, node);
}

/* Adds the sizes of collectives, as far as they are known, to their kernels and to the category.
 * The call tree does not have them: they are in the operators around the launches. */
static void add_message_bytes(struct process *process, struct tree *flat, enum demangle_form form)
{
	static const char name[] = CATEGORY_COMMUNICATION_NAME;
	const uint32_t category = tree_find(flat, 0,
		string_table_intern(process->texts, name, sizeof name - 1), 0, NODE_CATEGORY);
	struct activities *activities;
	const struct activity *one;

	if (!category)
		return;
	activities = activities_read(process);
	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities)) {
		const uint32_t kernel = one->kind == ACTIVITY_KERNEL && one->counts &&
							one->message_bytes
						? tree_find(flat, category,
							  short_kernel_name(
								  process->texts, one->name, form),
							  0, NODE_KERNEL)
						: 0;

		if (!kernel)
			continue;
		tree_gpu(flat, kernel)->bytes += one->message_bytes;
		tree_gpu(flat, category)->bytes += one->message_bytes;
	}
	activities_free(activities);
}

struct tree *group_by_categories(struct process *process, enum demangle_form form)
{
	const struct profile *profile = process_full_names_profile(process);
	const struct categories *categories = process->categories;
	struct tree *flat = new_group_tree();
	uint8_t *of_node = categories_of_tree(categories, profile->tree, process->texts);

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];

		if (is_gpu_leaf(node) && node->gpu)
			add_leaf_to_category(process, flat, node,
				categories_name(categories, of_node[id]), form);
	}
	free(of_node);
	add_message_bytes(process, flat, form);
	tree_sum(flat);
	return flat;
}
