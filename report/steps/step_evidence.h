/* SPDX-License-Identifier: MIT
 * step_signs.h: what in a trace may tell of steps: a batch is fetched, gradients are zeroed, the outermost module is
 * called, gradients are computed, an optimizer steps, or the program says it itself. Found in a pass of its own; all
 * else is forgotten.
 *
 * Memory: 32 bytes a sign and one a place. Gradients that are computed in a row are one sign, a module inside a module
 * is none, so a step has a handful of them.
 */
#ifndef PPERF_REPORT_STEPS_STEP_EVIDENCE_H
#define PPERF_REPORT_STEPS_STEP_EVIDENCE_H

#include "report/trace/trace_reader.h"

struct timeline;

enum evidence_kind {
	EVIDENCE_NONE,
	EVIDENCE_AROUND,    /* a range with signs in it */
	EVIDENCE_NAMED,     /* of the name that was asked for */
	EVIDENCE_PROFILER,  /* ProfilerStep#N */
	EVIDENCE_RANGE,     /* a range of kind step, or with a name such as `step 7` */
	EVIDENCE_DATA,      /* the next batch of a DataLoader */
	EVIDENCE_ZERO_GRAD, /* Optimizer.zero_grad */
	EVIDENCE_FORWARD,   /* a module that no module calls */
	EVIDENCE_BACKWARD,  /* autograd's engine runs; on whatever thread */
	EVIDENCE_OPTIMIZER, /* Optimizer.step */
	EVIDENCE_KINDS
};

#define EVIDENCE_NO_INDEX UINT32_MAX

struct evidence_range {
	uint64_t begin_ns, end_ns;
	uint32_t trace_node; /* of the trace */
	uint32_t
		around; /* the sign of the range around it, SIGN_ALONE if it is the outermost one */
	uint16_t thread; /* index of signs.threads */
	uint16_t depth;  /* of ranges around it; 65535 and more: 65535 */
	uint8_t kind;    /* enum sign_kind */
	bool is_open; /* it never ended: the program did, or its end was lost; end_ns is the last that was seen */
};

/* A thread that has signs. */
struct evidence_thread {
	uint32_t stream;
	uint64_t count[EVIDENCE_KINDS], ns[EVIDENCE_KINDS];
	uint64_t last_ns; /* when it was last seen */
};

/* Work is made a CUDA graph of, from the first to the last of the calls between two signs. */
struct evidence_capture {
	uint64_t begin_ns, end_ns;
};

struct evidence_list {
	struct evidence_range *items; /* by begin */
	size_t count, room;
	struct evidence_capture *captures; /* by begin */
	size_t capture_count, capture_room;
	struct evidence_thread *threads;
	size_t thread_count, thread_room;
	uint64_t count_of[EVIDENCE_KINDS];
	uint64_t last_ns; /* of the trace */
	bool has_torch;   /* the trace has operators, modules or optimizers */
};

/* NULL: no place of the trace can be a sign, which is known without reading it through. marker: the name of the
 * program's own steps, NULL if it did not say. Reads the trace from its beginning to its end. timeline: as in steps.h. */
struct evidence_list *step_evidence_read(
	struct trace_reader *reader, const char *marker, struct timeline *timeline);
void step_evidence_free(struct evidence_list *evidence);

/* `text` names the steps that `marker` means: it is the marker, or that and a number: `step` means `step 7`. */
bool step_is_marker(struct trace_text text, const char *marker);

#endif
