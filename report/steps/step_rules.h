/* SPDX-License-Identifier: MIT
 * Turns evidence into steps, with one function per type of evidence. For find_steps.c,
 * training_steps.c, model_calls.c, thread_ranges.c, gpu_windows.c and step_bounds.c only.
 */
#ifndef PPERF_REPORT_STEPS_STEP_RULES_H
#define PPERF_REPORT_STEPS_STEP_RULES_H

#include "report/steps/step_evidence.h"
#include "report/steps/find_steps.h"

/* A step before its times are known. Both ends are on the thread of the steps. */
struct step_span {
	uint32_t first, last; /* indexes of evidence items */
	bool unfinished;
};

struct step_spans {
	struct step_span *spans;
	size_t count, room;
};

void step_spans_add(struct step_spans *spans, uint32_t first, uint32_t last, bool unfinished);

/* Returns the thread with most time in items of `kinds` (bits 1 << kind). Considers only threads
 * with an item of kind `must`. Returns EVIDENCE_NO_INDEX if there is none. */
uint32_t steps_find_thread(
	const struct evidence_list *evidence, unsigned kinds, enum evidence_kind must);

/* Adds the ranges that are named like steps and are steps, of all threads, and stores the thread
 * with most of their time. Returns false if there are none. named_ranges.c has the rule. */
bool steps_from_named_ranges(
	const struct evidence_list *evidence, uint16_t *thread, struct step_spans *spans);

/* Splits the evidence of `thread` into training iterations that end with an optimizer step, and
 * adds their steps to `spans`. If `ender` is EVIDENCE_BACKWARD, iterations end with the backward
 * pass instead. Sets confidence and reason. `ended`: the program ended by itself. */
void steps_from_training(struct trace_reader *reader, const struct evidence_list *evidence,
	uint16_t thread, enum evidence_kind ender, bool ended, struct steps *steps,
	struct step_spans *spans);

/* Makes a step of each call of the outermost module, on one thread or on several. Returns false if
 * there are too few calls. model_calls.c has the rule. */
bool steps_from_calls(
	struct trace_reader *reader, const struct evidence_list *evidence, struct steps *steps);

/* Adds the steps of `spans`, on the thread of steps->stream. `pauses`: the time after a step's
 * last item still belongs to the step, up to the usual pause. */
void steps_from_spans(const struct evidence_list *evidence, const struct step_spans *spans,
	bool pauses, struct steps *steps);
/* Adds steps that are ranges of the program. They get the numbers in their labels if all have
 * one. */
void steps_from_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	const struct step_spans *spans, struct steps *steps);

/* Threads have steps of their own only if other threads than the first have this many. */
#define STEPS_OF_THREADS_MIN 3u
/* Adds the steps of one thread to those of all. */
void steps_append_thread(struct steps *all, const struct steps *of_thread, uint32_t tid);
/* Sorts and numbers the steps of all threads by begin, and groups them by thread. Threads with the
 * same id did not live at the same time, and are one. */
void steps_group_by_thread(struct steps *steps);
/* Makes steps of ranges of several threads, if they mark steps of their own: thread_ranges.c has
 * the rule. Else removes the ranges of other threads than `thread`, and returns false. */
bool steps_from_thread_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, struct step_spans *spans, struct steps *steps);

/* Marks the slow steps at the begin as warm-up. `is_shared`: other threads' steps slow them down
 * too, so only steps that are longer than all of the later half are warm-up. */
void steps_mark_warm_up(struct steps *steps, bool is_shared);

/* Marks the first and the last step if they are longer than others because the recording begins or
 * ends in them. */
void steps_mark_edges(const struct evidence_list *evidence, struct steps *steps);

/* Returns the value at rank ceil(count / 2), or 0 if there are no values. */
uint64_t steps_median(const uint64_t *values, size_t count);

#endif
