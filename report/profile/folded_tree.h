/* SPDX-License-Identifier: MIT
 * Makes the call tree with folded labels from a profile without them.
 *
 * So one pass over the trace gives both: each layer for itself, and all layers as `layers.*`. The
 * folded tree has the nodes that a pass with folded labels would have, and of each node what sums
 * its instances: calls, times, percentiles, launch delays. It has no GPU time, memory and tensors.
 * These are added up by node of the original tree, and `node_of` maps those to the folded tree.
 */
#ifndef PPERF_REPORT_PROFILE_FOLDED_TREE_H
#define PPERF_REPORT_PROFILE_FOLDED_TREE_H

#include "report/profile/profile.h"

struct folded_tree {
	/* A copy of the original profile with the folded tree. Its members `memory` and `names`
	 * have nodes of the original tree. */
	struct profile profile;
	uint32_t *node_of; /* by node of the original tree: its node in the folded one */
};

/* `profile` was made with options.no_fold, and must outlive the result. */
struct folded_tree *folded_tree_new(const struct profile *profile);
void folded_tree_free(struct folded_tree *folded);

#endif
