/* SPDX-License-Identifier: MIT
 * keyed.h: the tree turned flat by something else than names: modules, categories, ranks; and by what a tree does not
 * tell, in one more pass over the trace: shapes, call stacks, streams, threads, steps (keyed_events.c).
 *
 * A key's own time (self) is that of its parts: what threads spent in ranges with this key, and what a GPU did for it.
 * Over all keys it adds up to the whole. Its total has what lies inside of it as well, whatever its key, each moment
 * once however often a key comes again inside of itself; and what ran backward for it. Calls: how often it was entered
 * from outside.
 */
#ifndef PPERF_REPORT_ANALYSIS_GROUP_BY_H
#define PPERF_REPORT_ANALYSIS_GROUP_BY_H

#include "report/run/process.h"

#define GROUP_BY_REASON_BYTES 512 /* bytes for a sentence */

/* A tree of nodes below the root, to be freed by the caller. NULL: this trace does not have what is asked for; `reason`
 * is a sentence that says so, and what would record it. by: not BY_NAME. */
struct tree *group_by_tree(struct process *process, enum rows_by by, const char *categories,
	char reason[GROUP_BY_REASON_BYTES]);

/* A node for each category with work of a GPU, and in it the kernels and copies that it is made of. */
struct tree *group_by_categories(
	struct process *process, const char *categories, enum demangle_form form);

/* ---- between keyed.c and keyed_events.c ---- */

/* The same of a key that takes a pass over the trace. */
struct tree *group_by_events(
	struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES]);

/* A piece, or pieces, of GPU work are that node's own. */
void group_by_add_work(struct tree *tree, uint32_t node, const struct node_gpu *work);

#endif
