/* SPDX-License-Identifier: MIT */
#include "report/analysis/dataloader_wait.h"
#include <string.h>

static bool begins_with(const struct fold *fold, const struct node *node, const char *word)
{
	const struct text name = text_of(fold->texts, node->name);

	return name.length >= strlen(word) && memcmp(name.bytes, word, strlen(word)) == 0;
}

static bool is_usual_step(const struct fold *fold, const struct node *node)
{
	return !node->outside && (node->kind == NODE_STEP || begins_with(fold, node, "ProfilerStep#"));
}

static bool is_in_step(const struct fold *fold, uint32_t id)
{
	while (id && !is_usual_step(fold, &fold->tree->nodes[id]))
		id = fold->tree->nodes[id].parent;
	return id != 0;
}

struct batches batches_of(const struct fold *fold)
{
	const struct tree *tree = fold->tree;
	struct batches batches = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (is_usual_step(fold, node))
			batches.steps_ns += node->total_ns;
		if (!begins_with(fold, node, "enumerate(DataLoader)#") || !is_in_step(fold, id))
			continue;
		batches.ns += node->total_ns;
		batches.count += node->calls;
		batches.longest_ns = node->max_ns > batches.longest_ns ? node->max_ns : batches.longest_ns;
		if (!batches.node || node->total_ns > tree->nodes[batches.node].total_ns)
			batches.node = id;
	}
	return batches;
}
