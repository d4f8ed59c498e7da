/* SPDX-License-Identifier: MIT
 * op_cost.h: what a call of one of PyTorch's operators has to compute and to move, by the sizes of its inputs: one table
 * of formulas. Modelled, not measured: FLOPs are those of the definition (a product of M x K and K x N is 2 M N K,
 * whatever the kernel does, and a bias counts for nothing), bytes are each input read once and each output written
 * once, the least that it takes without a cache that outlives the call.
 *
 * What a formula needs and the trace has not (a type, a stride, whether attention is causal) leaves its figure unknown.
 */
#ifndef PPERF_REPORT_ANALYSIS_OP_COST_H
#define PPERF_REPORT_ANALYSIS_OP_COST_H

#include "report/trace/op_inputs.h"

struct op_cost {
	uint64_t flops, bytes; /* of one call */
	bool has_flops, has_bytes;
	bool recorded; /* flops: as the recorder reckoned them */
	bool matrix; /* the arithmetic is a product of matrices, for which GPUs have units of their own */
	enum element_type element; /* of the numbers that it computes with */
};

/* name: `aten::mm`. assumed: the type of all tensors where the trace has none; ELEMENT_UNKNOWN: nothing is assumed.
 * False: neither figure is known. */
bool op_cost(struct op_cost *cost, const char *name, size_t length, const struct op_inputs *inputs,
	enum element_type assumed);

#endif
