/* SPDX-License-Identifier: MIT
 *
 * Groups the rows of a process by a key instead of by name (--by).
 *
 * Modules, categories and ranks are found in the call tree. Shapes, call stacks, streams, threads
 * and steps need one more pass over the trace (group_by_event.c).
 *
 * | value      | meaning                                                                    |
 * |------------|----------------------------------------------------------------------------|
 * | self time  | CPU time of ranges with this key, and its GPU work; adds up to the whole   |
 * | total time | what is nested inside, whatever its key, and its backward pass;            |
 * |            | nested occurrences of one key count once. Of "(in no module)" and "other": |
 * |            | the self time                                                              |
 * | calls      | how often the key was entered from outside of it                           |
 */
#ifndef PPERF_REPORT_ANALYSIS_GROUP_BY_H
#define PPERF_REPORT_ANALYSIS_GROUP_BY_H

#include "report/run/process.h"

#define GROUP_BY_REASON_BYTES 512 /* for one sentence */

/* Returns a tree of nodes below the root, which the caller frees. NULL: the trace does not have the
 * key; `reason` is a sentence with the setting that records it. `by` must not be BY_NAME. */
struct tree *group_by_tree(
	struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES]);

/* Returns a node for each category with GPU work, and in it its kernels, copies and memsets. */
struct tree *group_by_categories(struct process *process, enum demangle_form form);

/* ---- internal: shared by group_by.c and group_by_event.c ---- */

/* group_by_tree for the keys that need a pass over the trace. */
struct tree *group_by_events(
	struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES]);

/* Adds GPU work to the self values of `node`. */
void group_by_add_work(struct tree *tree, uint32_t node, const struct node_gpu *work);

#endif
