/* SPDX-License-Identifier: MIT
 * Decides where each node of the trace goes in the tree.
 *
 * Most nodes stay below the node around them. What runs backward for an operator is shown beside
 * that operator, whatever thread ran it and whenever. In the example, X (aten::linear) is the
 * outermost operator that the module or range called. F is the operator in it that created the
 * backward function:
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
 * `(backward)` is what autograd's engine ran at that node, less what was moved to its module. It
 * keeps functions whose operator is unknown, and communication. `(gradient accumulation)` in it
 * holds sums and AccumulateGrad whose operator is unknown.
 *
 * A module that is called inside a backward function is computed again (activation
 * checkpointing). It is a sibling of its call in the forward pass: `layers.* (recompute)`.
 * Operators that are computed again outside of modules are in `(recompute)`, in the module around
 * them.
 */
#ifndef PPERF_REPORT_PROFILE_NODE_PLACEMENT_H
#define PPERF_REPORT_PROFILE_NODE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct node_names;
struct trace_reader;

struct node_placement {
	/* Tree node below which the outermost trace nodes are: 0, or that of a step section such as
	 * `(between steps)`. */
	uint32_t root;
	uint32_t *nodes; /* by trace node */
	/* By trace node: the number of the innermost module instance around it or itself
	 * (module_group.h). 0: none. */
	uint32_t *modules;
};

/* The caller owns the arrays of the result. */
struct node_placement node_placement_make(struct node_names *names, uint32_t root);

/* Whether autograd's engine works on one function at `trace_node`: the function, its hooks and
 * sums of gradients are inside. */
bool node_placement_is_engine(struct trace_reader *reader, uint32_t trace_node);
/* The outermost of the operators that call each other down to `trace_node`. If that is not an
 * operator, returns `trace_node`. */
uint32_t node_placement_operator(struct trace_reader *reader, uint32_t trace_node);
/* The trace node of the call in the forward pass, for a module that was called in a backward
 * function. Where the trace does not say it, that is the innermost module of the same class around
 * the operator of that function. 0: unknown, or no such module. */
uint32_t node_placement_forward_call(struct trace_reader *reader, uint32_t trace_node);

#endif
