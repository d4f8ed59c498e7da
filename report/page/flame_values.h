/* SPDX-License-Identifier: MIT
 * Computes the own values of the nodes of a profile, for flame graphs (flame_build.h).
 */
#ifndef PPERF_REPORT_PAGE_FLAME_VALUES_H
#define PPERF_REPORT_PAGE_FLAME_VALUES_H

#include "report/page/flame_tree.h"

/* The metrics that each trace may have, in the order of their values. */
enum flame_base_metric {
	FLAME_GPU,
	FLAME_CPU,
	FLAME_IDLE,
	FLAME_SAMPLED,
	FLAME_SAMPLED_WALL,
	FLAME_ALLOCATED,
	FLAME_RESERVED,
	FLAME_TENSORS,
	FLAME_ALLOC,
	FLAME_BASE_METRICS
};

/* Adds the own values of the nodes of `profile`, except counters, to the frames `frame_of_node`,
 * and below `root` what was allocated in no record. `side`: 0, or 1 for the second trace of two. */
void flame_add_nodes(struct flame *flame, struct flame_tree *tree, const struct profile *profile,
	const uint32_t *frame_of_node, uint32_t root, uint32_t side);
/* Adds GPU time by the call stacks of launches below `root`, in a pass of its own. Returns false if
 * no launch has a call stack. */
bool flame_add_launch_stacks(struct flame *flame, struct flame_tree *tree, struct process *process,
	uint32_t root, uint32_t side);
/* Adds the memory metrics by call stack below `root`. Returns false if there are no stacks. */
bool flame_add_stacks(struct flame *flame, struct flame_tree *tree, struct process *process,
	uint32_t root, uint32_t side);

/* Returns the index of the value of a metric in a frame. */
static inline size_t flame_value_index(const struct flame *flame, size_t metric, uint32_t side)
{
	return metric * flame->sides + side;
}

#endif
