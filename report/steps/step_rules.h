/* SPDX-License-Identifier: MIT
 * step_rules.h: from signs to steps: one function for each sort of evidence. steps.c decides, step_training.c and
 * step_times.c do it; nobody else includes this.
 */
#ifndef PPERF_REPORT_STEPS_STEP_RULES_H
#define PPERF_REPORT_STEPS_STEP_RULES_H

#include "report/steps/step_evidence.h"
#include "report/steps/find_steps.h"

/* A step before its times are known: from a sign to a sign, both on the thread of the steps. */
struct step_span {
	uint32_t first, last; /* signs */
	bool unfinished;
};

struct step_spans {
	struct step_span *spans;
	size_t count, room;
};

void step_spans_add(struct step_spans *spans, uint32_t first, uint32_t last, bool unfinished);

/* The thread with most time in signs of these kinds (a bit each), of those with at least one of kind `must`;
 * SIGN_ALONE: there is none. */
uint32_t steps_find_thread(
	const struct evidence_list *evidence, unsigned kinds, enum evidence_kind must);

/* The rows of signs that end in an optimizer's step (or, if `ender` is SIGN_BACKWARD, in the computing of gradients),
 * each a step or several of them one. Sets confidence and reason. ended: the program ended by itself. */
void steps_from_training(struct trace_reader *reader, const struct evidence_list *evidence,
	uint16_t thread, enum evidence_kind ender, bool ended, struct steps *steps,
	struct step_spans *spans);

/* Adds the steps of spans, on the thread of steps->stream. pauses: what comes behind a step's last sign still belongs
 * to it, up to the usual pause. */
void steps_from_spans(const struct evidence_list *evidence, const struct step_spans *spans,
	bool pauses, struct steps *steps);
/* Adds those that are ranges of the program's own. */
void steps_from_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	const struct step_spans *spans, struct steps *steps);

/* The value at rank ceil(count / 2), 0 of none. */
uint64_t steps_median(const uint64_t *values, size_t count);

#endif
