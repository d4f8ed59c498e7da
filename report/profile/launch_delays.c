/* SPDX-License-Identifier: MIT */
#include "report/profile/launch_delays.h"

/* The node after `id` in the tree below `top`, parents first. 0: there is none. */
static uint32_t next_node_below(const struct tree *tree, uint32_t top, uint32_t id)
{
	if (tree->nodes[id].first_child)
		return tree->nodes[id].first_child;
	while (id != top && !tree->nodes[id].next)
		id = tree->nodes[id].parent;
	return id == top ? 0 : tree->nodes[id].next;
}

static bool has_delays(const struct percentiles *delays)
{
	return delays->used || delays->histogram;
}

/* Leaves keep their delays. Those of other nodes are merged at each call, because keeping them
 * would take a multiple of the tree's memory. */
bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value)
{
	struct percentiles all = { .used = 0 };
	struct percentiles_budget budget = { .bytes = 0 };

	if (!tree->nodes[node].gpu)
		return false;
	for (uint32_t id = node; id; id = next_node_below(tree, node, id))
		if (tree->nodes[id].gpu && has_delays(&tree->nodes[id].gpu->delays))
			percentiles_merge(&all, &tree->nodes[id].gpu->delays, &budget);
	if (!has_delays(&all))
		return false;
	*value = percentiles_get(&all, per_mille);
	percentiles_free(&all);
	return true;
}
