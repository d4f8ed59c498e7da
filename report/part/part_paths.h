/* SPDX-License-Identifier: MIT
 *
 * Identifies call paths by hashes, which are equal on all ranks.
 */
#ifndef PPERF_REPORT_PART_PART_PATHS_H
#define PPERF_REPORT_PART_PART_PATHS_H

#include "report/base/text_builder.h"
#include "report/run/process.h"

/* Returns a hash for each node: of the names and kinds from the root on, and `whole`, of domains
 * and classes, which distinguish nodes of a tree. The caller frees the array. */
uint64_t *part_path_hashes(const struct process *process, const struct tree *tree, bool whole);
/* Adds the names from the root to the node, as --focus reads them. */
void part_path_add(struct text_builder *path, const struct process *process,
	const struct tree *tree, uint32_t node);

#endif
