/* SPDX-License-Identifier: MIT
 * asides.h: rows that only text has, beside those of the tree: what would drown the rest, summed up in one, and what
 * deserves a row of its own. They are nodes of a tree of their own (process.asides), roots all of them.
 *
 *	layers.* (Block) ×12
 *	    layers.7 alone: 2.4 × the median
 *	    aten::linear
 *	    (312 operators without work)
 *	(backward)
 *	    (shown in modules, as (bwd))
 */
#ifndef PPERF_REPORT_VIEWS_TREE_EXTRA_ROWS_H
#define PPERF_REPORT_VIEWS_TREE_EXTRA_ROWS_H

#include "report/table/column.h"

/* What of the tree did nothing: operators, backward functions and modules in and below which nothing was launched,
 * copied or allocated, in a program that did something on a GPU. Tracing with fake tensors, functorch's levels and
 * views are such. By node; NULL: without a GPU, time on the CPU is the work. To be freed. */
bool *extra_rows_workless(const struct process *process);

/* Rows that stand where `like` does. A sum of so many operators that took that CPU time; the member of `of`'s place
 * that is out of line (false: none is). */
struct row extra_row_workless_sum(
	struct process *process, const struct row *like, uint64_t operators, uint64_t cpu_ns);
bool extra_row_outlier(const struct row *of, const struct row *like, struct row *odd);
/* What autograd's engine ran at `of`'s place and is shown elsewhere, beside its operators (false: there is none). */
bool extra_row_moved_backward(const struct row *of, const struct row *like, struct row *moved);

#endif
