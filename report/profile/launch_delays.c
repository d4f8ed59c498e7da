/* SPDX-License-Identifier: MIT
 * Launch latencies of all nodes, from the leaves up. Beyond PERCENTILES_EXACT_MAX values a
 * histogram is handed up, so that few latencies are merged more than once or twice.
 */
#include "report/base/alloc.h"
#include "report/profile/call_tree.h"

#include <stdlib.h>

#define NO_DELAY UINT64_MAX

static const unsigned kept_per_mille[] = { 500, 950 };
#define KEPT (sizeof kept_per_mille / sizeof *kept_per_mille)

struct launch_delays {
	uint64_t (
		*of_node)[KEPT]; /* the percentiles of the node and the nodes below; or NO_DELAY */
	uint32_t count;          /* 0: not computed yet */
};

struct launch_delays *launch_delays_new(void)
{
	return xcalloc(sizeof(struct launch_delays));
}

void launch_delays_free(struct launch_delays *delays)
{
	free(delays->of_node);
	free(delays);
}

/* The latencies of the nodes on the path to the current one. */
struct delays_path {
	const struct tree *tree;
	struct percentiles_budget budget;
	struct percentiles *below; /* by level: of what is finished there */
	size_t level, room;
};

static void descend(struct delays_path *path)
{
	path->level++;
	ARRAY_GROW(path->below, path->room, path->level + 1);
	path->below[path->level] = (struct percentiles){ .used = 0 };
}

static bool has_delays(const struct percentiles *delays)
{
	return delays->used || delays->form != PERCENTILES_VALUES;
}

/* Computes the percentiles of a node whose children are finished, and adds its latencies to its
 * parent's. */
static void finish_node(struct delays_path *path, struct launch_delays *delays, uint32_t id)
{
	struct node_gpu *const gpu = path->tree->nodes[id].gpu;
	struct percentiles *below = &path->below[path->level], *all = below;

	if (gpu && has_delays(&gpu->delays)) {
		if (has_delays(below))
			percentiles_merge(below, &gpu->delays, &path->budget);
		else
			all = &gpu->delays;
	}
	for (size_t i = 0; i < KEPT; i++)
		delays->of_node[id][i] = has_delays(all) ? percentiles_get(all, kept_per_mille[i])
							 : NO_DELAY;
	if (id)
		percentiles_merge(below - 1, all, &path->budget);
	percentiles_free(below);
}

static void compute_delays(const struct tree *tree, struct launch_delays *delays)
{
	const struct node *nodes = tree->nodes;
	struct delays_path path = { .tree = tree };
	uint32_t id = 0;

	free(delays->of_node);
	delays->of_node = xcalloc(tree->count * sizeof *delays->of_node);
	delays->count = tree->count;
	ARRAY_GROW(path.below, path.room, 1);
	for (;;) {
		for (; nodes[id].first_child; id = nodes[id].first_child)
			descend(&path);
		for (; finish_node(&path, delays, id), id && !nodes[id].next; path.level--)
			id = nodes[id].parent;
		if (!id)
			break;
		id = nodes[id].next;
		path.below[path.level] = (struct percentiles){ .used = 0 };
	}
	free(path.below);
}

bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value)
{
	struct launch_delays *delays = tree->delays;
	size_t i = 0;

	if (!tree->nodes[node].gpu)
		return false;
	if (node >= delays->count)
		compute_delays(tree, delays);
	while (i + 1 < KEPT && kept_per_mille[i] != per_mille)
		i++;
	*value = delays->of_node[node][i];
	return *value != NO_DELAY;
}
