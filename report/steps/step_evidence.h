/* SPDX-License-Identifier: MIT
 * Collects evidence of steps in a pass of its own. Evidence: a batch is fetched, gradients are
 * zeroed, the outermost module is called, gradients are computed, an optimizer steps, or the
 * program marks a step. Everything else is ignored.
 *
 * Memory: 48 bytes per evidence item and one per trace node. Consecutive backward ranges are one
 * item and nested modules are none, so a step has only a few items.
 */
#ifndef PPERF_REPORT_STEPS_STEP_EVIDENCE_H
#define PPERF_REPORT_STEPS_STEP_EVIDENCE_H

#include "report/trace/trace_reader.h"

struct timeline;

enum evidence_kind {
	EVIDENCE_NONE,
	EVIDENCE_AROUND,    /* a range that contains evidence */
	EVIDENCE_NAMED,     /* a range named as `marker` */
	EVIDENCE_PROFILER,  /* ProfilerStep#N */
	EVIDENCE_RANGE,     /* a range of kind step, or with a name such as `step 7` */
	EVIDENCE_DATA,      /* the next batch of a DataLoader */
	EVIDENCE_ZERO_GRAD, /* Optimizer.zero_grad */
	EVIDENCE_FORWARD,   /* a module that no other module calls */
	EVIDENCE_BACKWARD,  /* autograd's engine runs, on any thread */
	EVIDENCE_OPTIMIZER, /* Optimizer.step */
	EVIDENCE_KINDS
};

#define EVIDENCE_NO_INDEX UINT32_MAX

/* The words that a range named like a step begins with. */
#define STEP_WORDS(X)                     \
	X(STEP, "step")                   \
	X(ITERATION, "iteration")         \
	X(ITER, "iter")                   \
	X(TRAIN_STEP, "train_step")       \
	X(TRAINING_STEP, "training_step") \
	X(BATCH, "batch")                 \
	X(EPOCH, "epoch")
enum step_word {
	STEP_WORD_NONE,
#define X(name, text) STEP_WORD_##name,
	STEP_WORDS(X)
#undef X
		STEP_WORD_COUNT
};

struct evidence_item {
	uint64_t begin_ns, end_ns;
	uint32_t trace_node;
	/* Index of the enclosing item. EVIDENCE_NO_INDEX: outermost. */
	uint32_t around;
	uint16_t thread; /* index in evidence_list.threads */
	uint16_t depth;  /* number of enclosing ranges; 65535 means 65535 or more */
	uint8_t kind;    /* enum evidence_kind */
	/* It never ended, because the program did or the end was lost. end_ns is then the last
	 * time seen. */
	bool is_open;
	uint8_t word;   /* EVIDENCE_RANGE: enum step_word */
	bool is_marked; /* EVIDENCE_RANGE: it has kind step */
	/* EVIDENCE_RANGE, _NAMED and _PROFILER: the number in its name, or EVIDENCE_NO_NUMBER;
	 * EVIDENCE_BACKWARD: how many ranges the item merges */
	uint32_t number;
	/* EVIDENCE_RANGE: launches of all threads before its begin and before its end */
	uint32_t launches_begin, launches_end;
	uint32_t own_launches; /* EVIDENCE_RANGE: launches of its own thread in it */
	/* EVIDENCE_RANGE, _NAMED and _PROFILER: evidence_list.activity_ns at its end */
	uint64_t activity_ns;
};

#define EVIDENCE_NO_NUMBER UINT32_MAX

/* A thread that has evidence items. */
struct evidence_thread {
	uint32_t stream, tid;
	uint64_t count[EVIDENCE_KINDS], ns[EVIDENCE_KINDS];
	uint64_t last_ns; /* end of the last item */
};

/* The first and the last captured call (CUDA graph) between two evidence items. */
struct evidence_capture {
	uint64_t begin_ns, end_ns;
};

struct evidence_list {
	/* In the order in which they were found. An item AROUND comes just before the first item
	 * in it. */
	struct evidence_item *items;
	size_t count, room;
	struct evidence_capture *captures; /* by begin */
	size_t capture_count, capture_room;
	struct evidence_thread *threads;
	size_t thread_count, thread_room;
	uint64_t count_of[EVIDENCE_KINDS];
	uint64_t last_ns; /* of the trace */
	/* Begin of the first GPU operation and end of the last one. last_gpu_ns 0: none. */
	uint64_t first_gpu_ns, last_gpu_ns;
	/* The last event of the host so far, without ends of ranges that have others in them or
	 * may be steps. */
	uint64_t activity_ns;
	uint32_t launches; /* calls that launch, copy or set, of all threads */
	/* The trace has ranges of PyTorch: operators, modules, backward functions, optimizers,
	 * batches of a DataLoader, or steps of its profiler. */
	bool has_torch;
};

/* Collects evidence in one pass over the trace. `marker`: name of the program's steps; NULL or "":
 * none. `timeline`: as in steps_find. Returns NULL without a pass if there can be no evidence:
 * there is no `marker`, no range is marked or named like a step, and the trace has no ranges of
 * PyTorch. step_evidence_free frees the result. */
struct evidence_list *step_evidence_read(
	struct trace_reader *reader, const char *marker, struct timeline *timeline);
void step_evidence_free(struct evidence_list *evidence); /* NULL is allowed */

/* Returns true if `text` is `marker` or `marker` with a number: `step` matches `step 7`. */
bool step_is_marker(struct trace_text text, const char *marker);

#endif
