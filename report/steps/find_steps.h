/* SPDX-License-Identifier: MIT
 * Finds the steps of a program in a pass before the profile pass. The program need not mark them.
 *
 * Ranges that mark steps take precedence. These are ranges of the requested name (--step-marker,
 * PPERF_STEP_MARKER), ProfilerStep#N, or ranges named like `step 7` that contain the model's calls.
 * Otherwise a training program has one step per iteration: data, zero_grad, forward, backward and
 * optimizer step. An iteration may have several forward and backward passes (accumulated gradients)
 * and several optimizer steps, which are distinguished by the batches of data, or by the sequence
 * that repeats. A program that only calls models has one step per call of the outermost module.
 *
 * An evidence item is a range or call that can belong to a step, such as Optimizer.step
 * (step_evidence.h). A training step extends from its first item to the first item of the next
 * step.
 * The pause after the optimizer may be much longer than usual (evaluation, a checkpoint). Then the
 * step ends after a usual pause, and the rest is between steps. Ranges of the program that begin
 * and end with a step belong to it. Ranges around several steps enclose them.
 *
 * Steps are on one thread, the one with most of this work. What other threads do belongs to the
 * step in which it begins. The exception is a program whose threads all call the same model or
 * mark steps, such as a server. There each thread has steps of its own, which overlap those of the
 * others in time. What a thread does belongs to its own steps only.
 *
 * The host may launch work long before the GPU runs it. steps_finish_gpu sets the window of each
 * step: the interval of the GPU's time line that belongs to it. It is the step's own time, unless
 * the host is more than half a step ahead of the GPU. Then it extends from the first GPU operation
 * that was launched in the step to that of the next step. So do torch.profiler's
 * annotations on the GPU, which are not needed for it.
 *
 * Memory: 56 bytes per step (64 if several threads have steps), and the evidence during the search
 * (step_evidence.h).
 */
#ifndef PPERF_REPORT_STEPS_FIND_STEPS_H
#define PPERF_REPORT_STEPS_FIND_STEPS_H

#include "report/trace/trace_reader.h"

struct timeline;

struct step {
	uint64_t begin_ns, end_ns;
	/* Valid after steps_finish_gpu. Windows do not overlap, and are empty without GPU work. */
	uint64_t window_begin_ns, window_end_ns;
	uint64_t number; /* from the labels if all have one, else its position from 0 */
	/* Node of the trace: the range that is the step if steps.own_ranges, else the range around
	 * the step, or 0. */
	uint32_t trace_node;
	uint32_t tid; /* the thread, if several threads have steps; else 0 */
	uint8_t kind; /* enum step_kind */
};

enum step_kind {
	STEP_USUAL,      /* a steady-state step */
	STEP_WARM_UP,    /* one of the first, and much slower than the others */
	STEP_UNFINISHED, /* the trace ends before the step does */
	/* A CUDA graph was captured instead of doing the work. If most steps capture, they are
	 * STEP_USUAL. */
	STEP_CAPTURE,
	/* The first or the last one, if it is longer than others because the recording begins or
	 * ends in it: the GPU has no work yet, or neither the host nor the GPU has any more. */
	STEP_AT_EDGE,
};

enum steps_confidence { STEPS_NONE, STEPS_LOW, STEPS_MEDIUM, STEPS_HIGH };

/* A thread with steps of its own. */
struct steps_thread {
	uint32_t tid;
	size_t first, count; /* its steps in steps.by_thread */
	/* Statistics of its usual steps. 0: there are none. */
	size_t usual;
	uint64_t p50_ns, p95_ns, max_ns;
};

struct steps {
	struct step *steps; /* by begin; without overlaps if one thread has all */
	size_t count, room;
	/* numbers of steps of these kinds, included in count */
	size_t warm_up, unfinished, captures, edges;
	uint32_t stream; /* stream of the thread they are on; of several the one with most time */
	/* The threads by id, if several have steps, and the steps by thread and time. Else both
	 * are NULL and thread_count is 0. */
	struct steps_thread *threads;
	const struct step **by_thread;
	size_t thread_count;
	bool own_ranges; /* every step is a range of the program */
	enum steps_confidence confidence;
	/* what the steps were found by, such as `Optimizer.step`; "": none found */
	char evidence[64];
	/* Why confidence is limited, or why none were found: a sentence without a full stop. "":
	 * nothing to add. */
	char reason[256];
	char warning[256]; /* a sentence for the user; "": none */
	/* Durations of the steady-state steps. 0: there are none. p50: the value at rank ceil(n /
	 * 2). */
	uint64_t min_ns, p50_ns, max_ns, sum_ns;
	/* Set by steps_finish_gpu. on_gpu: the windows are where the GPU ran the steps. The sum and
	 * the median of the windows are those of the steady-state steps. ahead_ns: by how much the
	 * host is ahead of the GPU, the median of the steady-state steps. */
	bool is_finished, on_gpu;
	size_t last_found; /* index of the step in which the last GPU operation was launched */
	uint64_t window_p50_ns, window_sum_ns, ahead_ns;
};

/* Finds the steps of a trace. Returns NULL, without reading the events, if nothing in the trace
 * can be a step and no marker is given. `marker`: the user's choice; if NULL or "", the one
 * stored in the trace is used. Otherwise makes one pass over the trace and adds its events to
 * `timeline`, unless that is NULL. */
struct steps *steps_find(
	struct trace_reader *reader, const char *marker, struct timeline *timeline);
void steps_free(struct steps *steps);

/* Returns true if several threads have steps, which overlap in time. `steps` may be NULL. */
static inline bool steps_overlap(const struct steps *steps)
{
	return steps && steps->thread_count > 0;
}

/* Returns the step of the program that was running at `at_ns`, or NULL. NULL also if steps
 * overlap: then only a thread has a step at a time. `steps` may be NULL. */
const struct step *steps_step_at(const struct steps *steps, uint64_t at_ns);
/* Returns the step that owns what thread `tid` began at `at_ns`, or NULL. */
const struct step *steps_step_of_thread(const struct steps *steps, uint32_t tid, uint64_t at_ns);
/* Returns the thread `tid` if it has steps of its own, else NULL. */
const struct steps_thread *steps_find_steps_thread(const struct steps *steps, uint32_t tid);
/* Returns the number of steady-state steps. */
size_t steps_usual(const struct steps *steps);

/* Adds a GPU operation that was launched at `launch_ns` and ran from `begin_ns` to `end_ns`. Does
 * nothing if steps overlap, after steps_finish_gpu, and for NULL. */
void steps_add_gpu_work(
	struct steps *steps, uint64_t launch_ns, uint64_t begin_ns, uint64_t end_ns);
/* All GPU work was added: sets the windows. `steps` may be NULL. */
void steps_finish_gpu(struct steps *steps);

/* Computes the durations of the steady-state steps (min_ns to sum_ns) again. */
void steps_sum(struct steps *steps);

const char *steps_confidence_name(enum steps_confidence confidence);

#endif
