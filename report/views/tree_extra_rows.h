/* SPDX-License-Identifier: MIT
 *
 * Makes extra rows, which only text has, beside those of the tree. They sum up rows that would hide
 * the rest, and single out an outlier. They are roots of a tree of their own (process.extra_rows).
 *
 *	layers.* (Block) ×12
 *	    layers.7: 2.4 times the median
 *	    aten::linear
 *	    (312 operators without GPU work)
 *	(backward)
 *	    (shown in modules, as (bwd))
 */
#ifndef PPERF_REPORT_VIEWS_TREE_EXTRA_ROWS_H
#define PPERF_REPORT_VIEWS_TREE_EXTRA_ROWS_H

#include "report/table/column.h"

/* Finds the operators, backward functions and modules in and below which nothing was launched,
 * copied or allocated. Tracing with fake tensors, levels of functorch and views are examples.
 * Returns an array by node, to be freed. Returns NULL if the program used no GPU: CPU time is its
 * work. */
bool *extra_rows_without_gpu_work(const struct process *process);

/* Returns a row that sums up `operators` operators with `cpu_ns` of CPU time. Here and below the
 * new row has the process, parent, depth and kind of `like`. */
struct row extra_row_without_gpu_work_sum(
	struct process *process, const struct row *like, uint64_t operators, uint64_t cpu_ns);
/* Returns a row that sums up `nodes` nodes which have no row. */
struct row extra_row_rest(struct process *process, const struct row *like, uint64_t nodes,
	uint64_t gpu_ns, uint64_t cpu_ns);
/* Stores in `outlier` a row of the outlier among the module instances of the node of `around`.
 * Returns false if there is none. */
bool extra_row_outlier(const struct row *around, const struct row *like, struct row *outlier);
/* Stores in `moved` a row for the CPU time of the node (backward) of `around` that the tree shows
 * in modules instead. Returns false if `around` is another node or there is no such time. */
bool extra_row_moved_backward(const struct row *around, const struct row *like, struct row *moved);

#endif
