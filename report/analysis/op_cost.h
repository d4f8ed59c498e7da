/* SPDX-License-Identifier: MIT
 *
 * Models the FLOPs and bytes of a call of a PyTorch operator, from the sizes of its inputs, by one
 * table of formulas.
 *
 * The cost is modelled, not measured. FLOPs are those of the definition, whatever the kernel
 * does: a product of M x K and K x N is 2 M N K. A bias counts for nothing. Each input is read once
 * and each output written once: the minimum without a cache that outlives the call.
 *
 * A figure is unknown where the trace lacks what its formula needs, such as a type, a stride, or
 * whether attention is causal.
 */
#ifndef PPERF_REPORT_ANALYSIS_OP_COST_H
#define PPERF_REPORT_ANALYSIS_OP_COST_H

#include "report/trace/op_inputs.h"

struct op_cost {
	uint64_t flops, bytes; /* of one call */
	bool has_flops, has_bytes;
	bool recorded;             /* FLOPs are those that the recorder computed */
	bool matrix;               /* a matrix product, for which GPUs have separate units */
	enum element_type element; /* of the numbers that it computes with */
};

/* Computes the cost of the operator `name`, such as `aten::mm`. `assumed` is the type of all
 * tensors if the trace has none; ELEMENT_UNKNOWN assumes nothing. Returns false if both figures are
 * unknown. */
bool op_cost(struct op_cost *cost, const char *name, size_t length, const struct op_inputs *inputs,
	enum element_type assumed);

#endif
