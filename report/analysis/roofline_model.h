/* SPDX-License-Identifier: MIT
 * roofline.h: what GPUs worked on, from one more fold: operators with their inputs, wherever they stand; copies and sets by
 * name; kernels without a figure. FLOPs and bytes of an operator are modelled by the sizes of its inputs (op_cost.h); its time
 * is that of the kernels that it launched, itself and in what it called. What a graph replayed, and whatever has no formula, is
 * among what is not known: a device has each nanosecond of its work once.
 */
#ifndef PPERF_REPORT_ANALYSIS_ROOFLINE_MODEL_H
#define PPERF_REPORT_ANALYSIS_ROOFLINE_MODEL_H

#include "report/analysis/op_cost.h"
#include "report/run/process.h"

/* An operator with its inputs, wherever it stands; or copies or sets of one name; or a kernel without a figure. */
struct roofline_subject {
	struct op_cost cost;
	uint64_t calls, launches, works, untimed, ns;
	uint64_t bytes;       /* of copies and sets: all of them */
	uint32_t name;        /* text */
	uint32_t shapes;      /* text; of an operator */
	uint32_t kernel;      /* text: what it launched, if that is one */
	uint32_t node;        /* of the tree: who asked for the first */
	bool several, narrow; /* kernels; one says that it makes TF32 of what it multiplies */
	bool assumed;         /* the type of its inputs is */
};

struct roofline_subjects {
	struct roofline_subject *all;
	size_t count, room;
	uint32_t *slots; /* by text: index + 1 */
	size_t slot_room;
};

struct roofline_device {
	struct roofline_subjects operators, moves,
		unknown; /* by name and inputs; by name; by kernel */
	uint64_t ns, works;
	uint32_t device;
};

struct roofline {
	struct roofline_device *devices; /* by number */
	size_t device_count;
};

/* Of a process that was folded; texts are process->texts'. Types of inputs that the trace lacks are options->assumed. */
struct roofline roofline_read(const struct options *options, struct process *process);
void roofline_free(struct roofline *roofline);

#endif
