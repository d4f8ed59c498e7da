/* SPDX-License-Identifier: MIT
 *
 * Collects the GPU work of a trace for the roofline, in one more pass. Its subjects are operators
 * by name and inputs, wherever they are in the tree; copies and memsets by name; and kernels of
 * unknown cost.
 *
 * FLOPs and bytes of an operator are modelled from the sizes of its inputs (op_cost.h). Its time is
 * that of the kernels that it, or an operator in it, launched. Work of CUDA graphs and of operators
 * without a formula is unknown. On each device every nanosecond of GPU time is counted once.
 */
#ifndef PPERF_REPORT_ANALYSIS_ROOFLINE_MODEL_H
#define PPERF_REPORT_ANALYSIS_ROOFLINE_MODEL_H

#include "report/analysis/op_cost.h"
#include "report/analysis/shared_pass.h"
#include "report/run/process.h"

/* An operator with its inputs, a copy or memset by name, or a kernel of unknown cost. */
struct roofline_subject {
	struct op_cost cost;
	uint64_t calls, launches, operations, untimed, ns;
	uint64_t bytes;  /* of copies and memsets: their sum */
	uint32_t name;   /* text */
	uint32_t shapes; /* text, for an operator */
	uint32_t kernel; /* text: the kernel that it launched, if only one */
	uint32_t node;   /* of the call tree: launched the first of it */
	/* several: more than one kernel; narrow: a kernel's name says that it multiplies in TF32 */
	bool several_kernels, uses_tf32;
	bool assumed; /* the element type of the inputs is assumed */
};

struct roofline_subjects {
	struct roofline_subject *all;
	size_t count, room;
	uint32_t *slots; /* by text: index + 1 */
	size_t slot_room;
};

struct roofline_device {
	struct roofline_subjects operators, copies,
		unknown; /* keyed by name and inputs; by name; by kernel */
	uint64_t ns, operations;
	uint32_t device;
};

struct roofline {
	struct roofline_device *devices; /* sorted by number */
	size_t device_count;
};

/* Returns the roofline of a process whose profile is built. Texts are those of process->texts.
 * options->assumed is the element type of inputs without a type, the same in each call. The
 * roofline is read at the first call and is freed with the process, or by process_detach_all. */
const struct roofline *roofline_of(const struct options *options, struct process *process);
/* Reads the roofline in a pass that other analyses share, for later calls of roofline_of. */
void roofline_read_in(const struct options *options, struct shared_pass *pass);

#endif
