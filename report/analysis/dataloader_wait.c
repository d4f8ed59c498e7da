/* SPDX-License-Identifier: MIT */
#include "report/analysis/dataloader_wait.h"
#include <string.h>

static bool node_name_begins_with(
	const struct profile *profile, const struct node *node, const char *word)
{
	const struct string_view name = string_table_get(profile->texts, node->name);

	return name.length >= strlen(word) && memcmp(name.bytes, word, strlen(word)) == 0;
}

static bool is_steady_step(const struct profile *profile, const struct node *node)
{
	return !node->outside &&
	       (node->kind == NODE_STEP || node_name_begins_with(profile, node, "ProfilerStep#"));
}

static bool is_in_step(const struct profile *profile, uint32_t id)
{
	while (id && !is_steady_step(profile, &profile->tree->nodes[id]))
		id = profile->tree->nodes[id].parent;
	return id != 0;
}

struct dataloader_wait dataloader_wait_of(const struct profile *profile)
{
	const struct tree *tree = profile->tree;
	struct dataloader_wait wait = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (is_steady_step(profile, node))
			wait.steps_ns += node->total_ns;
		if (!node_name_begins_with(profile, node, "enumerate(DataLoader)#") ||
			!is_in_step(profile, id))
			continue;
		wait.ns += node->total_ns;
		wait.count += node->calls;
		wait.longest_ns = node->max_ns > wait.longest_ns ? node->max_ns : wait.longest_ns;
		if (!wait.node || node->total_ns > tree->nodes[wait.node].total_ns)
			wait.node = id;
	}
	return wait;
}
