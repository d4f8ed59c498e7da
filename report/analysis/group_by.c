/* SPDX-License-Identifier: MIT */
#include "report/analysis/group_by.h"
#include "report/analysis/work_categories.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tree that is being turned flat. */
struct keying {
	const struct fold *fold;
	const struct tree *tree;
	struct texts *texts;
	struct tree *flat;
	uint32_t *key;      /* by node: a node of `flat` */
	uint64_t *cpu_ns;   /* by node: own time of all below and itself */
	uint64_t *gpu_ns, *gpu_calls;
};

static struct tree *new_flat(void)
{
	struct tree *tree = tree_new();

	tree->is_keyed = true;
	return tree;
}

static struct keying begin(const struct fold *fold, struct texts *texts)
{
	const size_t count = fold->tree->count;

	return (struct keying){ .fold = fold,
		.tree = fold->tree,
		.texts = texts,
		.flat = new_flat(),
		.key = need(count * sizeof(uint32_t)),
		.cpu_ns = need(count * sizeof(uint64_t)),
		.gpu_ns = need(count * sizeof(uint64_t)),
		.gpu_calls = need(count * sizeof(uint64_t)) };
}

static struct tree *end(struct keying *keying)
{
	free(keying->key);
	free(keying->cpu_ns);
	free(keying->gpu_ns);
	free(keying->gpu_calls);
	return keying->flat;
}

/* Start/end ranges overlap: they own nothing. */
static bool is_span(const struct keying *keying, uint32_t id)
{
	return keying->fold->spans && (id == keying->fold->spans || keying->tree->nodes[id].parent == keying->fold->spans);
}

/* Work itself, not a graph that is made of it. */
static bool is_piece(const struct node *node)
{
	return node->kind == NODE_KERNEL || node->kind == NODE_MEMCPY || node->kind == NODE_MEMSET;
}

static uint64_t own_ns(const struct keying *keying, uint32_t id)
{
	const struct node *node = &keying->tree->nodes[id];

	return node_kind_class(node->kind) == NODE_RANGES && !is_span(keying, id) ? node->self_ns : 0;
}

void keyed_add_work(struct tree *tree, uint32_t node, const struct node_gpu *work)
{
	struct node_gpu *gpu = tree_gpu(tree, node);

	gpu->self_ns += work->self_ns;
	gpu->self_calls += work->self_calls;
	gpu->untimed += work->untimed;
	gpu->bytes += work->bytes;
}

/* Parents have lower numbers. */
static void sum_up(struct keying *keying)
{
	for (uint32_t id = keying->tree->count - 1; id > 0; id--) {
		const struct node *node = &keying->tree->nodes[id];

		keying->cpu_ns[id] += own_ns(keying, id);
		if (is_piece(node) && node->gpu) {
			keying->gpu_ns[id] += node->gpu->self_ns;
			keying->gpu_calls[id] += node->gpu->self_calls;
		}
		keying->cpu_ns[node->parent] += keying->cpu_ns[id];
		keying->gpu_ns[node->parent] += keying->gpu_ns[id];
		keying->gpu_calls[node->parent] += keying->gpu_calls[id];
	}
}

/* inner: its key lies around it already. */
static void add_node(struct keying *keying, uint32_t id, bool inner)
{
	const struct node *node = &keying->tree->nodes[id];
	const uint32_t key = keying->key[id];
	struct node *flat = &keying->flat->nodes[key];

	flat->self_ns += own_ns(keying, id);
	flat->left_open |= node->left_open;
	flat->is_counted |= node->is_counted;
	if (is_piece(node) && node->gpu)
		keyed_add_work(keying->flat, key, node->gpu);
	if (inner)
		return;
	if (node_kind_class(node->kind) != NODE_CALLS && !node->is_group && node->kind != NODE_UNATTRIBUTED)
		flat->calls += node->calls;
	flat->total_ns += keying->cpu_ns[id];
	if (keying->gpu_calls[id]) {
		tree_gpu(keying->flat, key)->total_ns += keying->gpu_ns[id];
		tree_gpu(keying->flat, key)->total_calls += keying->gpu_calls[id];
	}
}

/* All nodes have keys: a walk down to the first child, on to the next one, up when there is none; open[] counts what
 * lies around. */
static void add_up(struct keying *keying)
{
	const struct tree *tree = keying->tree;
	uint32_t *open = need(keying->flat->count * sizeof *open), node = 0;

	sum_up(keying);
	for (;;) {
		uint32_t next = tree->nodes[node].first_child;

		while (!next && node) {
			open[keying->key[node]]--;
			next = tree->nodes[node].next;
			node = tree->nodes[node].parent;
		}
		if (!next)
			break;
		node = next;
		if (!is_span(keying, node))
			add_node(keying, node, open[keying->key[node]] > 0);
		open[keying->key[node]]++;
	}
	free(open);
}

static uint32_t key_named(struct keying *keying, const char *name, enum node_kind kind)
{
	return tree_child(keying->flat, 0, text_id(keying->texts, name, strlen(name)), 0, kind);
}

/* `Model.layers.0`, as named_modules() has it. */
static uint32_t dotted(struct texts *texts, uint32_t outer, uint32_t name)
{
	const struct text before = text_of(texts, outer), after = text_of(texts, name);
	char *both = need((size_t)before.length + after.length + 2);
	uint32_t id;

	memcpy(both, before.bytes, before.length);
	both[before.length] = '.';
	memcpy(both + before.length + 1, after.bytes, after.length);
	id = text_id(texts, both, (size_t)before.length + after.length + 1);
	free(both);
	return id;
}

static struct tree *by_module(struct process *process, char reason[KEYED_REASON])
{
	struct keying keying = begin(process->fold, process->texts);
	const uint32_t none = key_named(&keying, "(in no module)", NODE_RANGE);
	uint32_t *names = need(keying.tree->count * sizeof *names); /* of the module around */

	for (uint32_t id = 1; id < keying.tree->count; id++) {
		const struct node *node = &keying.tree->nodes[id];

		names[id] = names[node->parent];
		keying.key[id] = names[id] ? keying.key[node->parent] : none;
		if (node->kind != NODE_MODULE)
			continue;
		names[id] = names[id] ? dotted(keying.texts, names[id], node->name) : node->name;
		keying.key[id] = tree_module(keying.flat, 0, names[id], node->domain, node->class);
	}
	free(names);
	if (keying.flat->count == 2) {
		snprintf(reason, KEYED_REASON,
			"no call of a module is in this trace; pperf records those of torch.nn.Module unless PPERF_MODULES=0, "
			"torch.profiler with with_stack=True or with_modules=True");
		tree_free(end(&keying));
		return NULL;
	}
	add_up(&keying);
	return end(&keying);
}

static struct tree *by_category(struct process *process, const char *path)
{
	const struct fold *fold = process_named(process);
	struct categories *categories = categories_read(path);
	struct keying keying = begin(fold, process->texts);
	uint8_t *of_node = categories_of_tree(categories, fold->tree, process->texts);

	for (uint32_t id = 1; id < fold->tree->count; id++)
		keying.key[id] = key_named(&keying, categories_name(categories, of_node[id]), NODE_CATEGORY);
	free(of_node);
	categories_free(categories);
	add_up(&keying);
	return end(&keying);
}

static struct tree *by_rank(struct process *process)
{
	struct keying keying = begin(process->fold, process->texts);
	char name[64];
	uint32_t key;

	if (process->rank >= 0)
		snprintf(name, sizeof name, "rank %lld", (long long)process->rank);
	else
		snprintf(name, sizeof name, "process %u, no rank", process->pid);
	key = key_named(&keying, name, NODE_PROCESS);
	for (uint32_t id = 1; id < keying.tree->count; id++)
		keying.key[id] = key;
	add_up(&keying);
	keying.flat->nodes[key].calls = keying.tree->count > 1;
	return end(&keying);
}

static bool is_empty(const struct tree *tree)
{
	for (uint32_t id = 1; tree && id < tree->count; id++)
		if (tree->nodes[id].calls || tree->nodes[id].total_ns || tree->nodes[id].gpu)
			return false;
	return true;
}

struct tree *keyed_tree(struct process *process, enum rows_by by, const char *categories, char reason[KEYED_REASON])
{
	struct tree *tree;

	snprintf(reason, KEYED_REASON, "no range and no work of a GPU is in this trace");
	tree = by == BY_MODULE     ? by_module(process, reason)
	       : by == BY_CATEGORY ? by_category(process, categories)
	       : by == BY_RANK     ? by_rank(process)
				   : keyed_events(process, by, reason);
	if (!tree || !is_empty(tree))
		return tree;
	tree_free(tree);
	return NULL;
}

static uint32_t short_name(struct texts *texts, uint32_t name, enum demangle_form form)
{
	static char text[DEMANGLE_OUTPUT + 1];
	const struct text full = text_of(texts, name);
	const size_t length = demangle(form, full.bytes, full.length, text, sizeof text);

	return length ? text_id(texts, text, length) : name;
}

static void count_work(struct tree *tree, uint32_t id, const struct node *from)
{
	struct node *node = &tree->nodes[id];

	node->calls += from->calls;
	if (from->min_ns < node->min_ns)
		node->min_ns = from->min_ns;
	if (from->max_ns > node->max_ns)
		node->max_ns = from->max_ns;
	samples_merge(&node->samples, &from->samples, &tree->budget);
	keyed_add_work(tree, id, from->gpu);
	tree->nodes[id].gpu->method = from->gpu->method;
}

struct tree *keyed_categories(struct process *process, const char *path, enum demangle_form form)
{
	const struct fold *fold = process_named(process);
	struct categories *categories = categories_read(path);
	struct tree *flat = new_flat();
	uint8_t *of_node = categories_of_tree(categories, fold->tree, process->texts);

	for (uint32_t id = 1; id < fold->tree->count; id++) {
		const struct node *node = &fold->tree->nodes[id];
		const char *name = categories_name(categories, of_node[id]);
		uint32_t category, kernel;

		if (!is_piece(node) || !node->gpu)
			continue;
		category = tree_child(flat, 0, text_id(process->texts, name, strlen(name)), 0, NODE_CATEGORY);
		kernel = tree_child(flat, category, short_name(process->texts, node->name, form), 0, (enum node_kind)node->kind);
		count_work(flat, category, node);
		count_work(flat, kernel, node);
	}
	free(of_node);
	categories_free(categories);
	tree_sum(flat);
	return flat;
}
