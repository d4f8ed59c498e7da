/* SPDX-License-Identifier: MIT
 * placement.h: where each place of the trace stands in the tree.
 *
 * Mostly where it was: below the place around it. But what runs backward for an operator stands beside that operator,
 * whatever thread ran it and whenever (X: the outermost operator that the module or range called; F is what in it
 * created the backward function):
 *
 *	Net                                      Net
 *	    fc                                       fc
 *	        aten::linear                             aten::linear
 *	            aten::addmm  <- F                        aten::addmm
 *	autograd::engine::evaluate_function: A           aten::linear (bwd)
 *	    AddmmBackward0   -> F                            AddmmBackward0
 *	        aten::mm                                         aten::mm
 *	    aten::sum        -> F                            aten::sum
 *	    aten::add_                               (backward)
 *	                                                 (gradient accumulation)
 *	                                                     aten::add_
 *
 * `(backward)` is what autograd's engine ran at that place, less what has gone to its module; in it are functions of
 * which no operator is known, communication, and, as `(gradient accumulation)`, sums and AccumulateGrad of which no
 * operator is known. A module that is called inside a backward function is computed once more: `layers.* (recompute)`.
 */
#ifndef PPERF_REPORT_PROFILE_NODE_PLACEMENT_H
#define PPERF_REPORT_PROFILE_NODE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct node_names;
struct trace_reader;

struct node_placement {
	uint32_t root;
	uint32_t *nodes; /* by place */
	uint32_t *
		modules; /* by place: the innermost folded module around it or itself (members.h), or 0 */
};

/* Its arrays are the caller's. */
struct node_placement node_placement_make(struct node_names *names, uint32_t root);

/* At that place autograd's engine works on one function: hooks and sums of gradients are in it, and the function. */
bool node_placement_is_engine(struct trace_reader *reader, uint32_t trace_node);
/* Of the row of operators that ends at that place, each called by the one before, the outermost. What is no operator is
 * so itself. */
uint32_t node_placement_operator(struct trace_reader *reader, uint32_t trace_node);

#endif
