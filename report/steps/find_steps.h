/* SPDX-License-Identifier: MIT
 * steps.h: the steps of a program that nobody marked: found before the fold, from what its trace has.
 *
 * Ranges that say so themselves win: those of the name that was asked for (--step-marker, PPERF_STEP_MARKER),
 * ProfilerStep#N, ranges named like `step 7` with the model's calls in them. Else a program that trains has a step for
 * each row of data, zero_grad, forward, backward and optimizer step (several of each: accumulated gradients; several
 * rows, told by the batches or by what repeats: several optimizers), and one that only calls models has a step for
 * each call of the outermost one.
 *
 * A step of a training goes from its first sign to the first sign of the next one. Where the pause after the optimizer
 * is much longer than it usually is (evaluation, a checkpoint), the step ends a usual pause after it, and the rest
 * lies between steps. Ranges of the program that begin and end with a step belong to it; those around several steps
 * stand above them.
 *
 * Steps are on one thread, the one with most of such work; what other threads do belongs to the step in which it
 * begins.
 *
 * Memory: 40 bytes a step, and the signs while they are looked for (step_signs.h).
 */
#ifndef PPERF_REPORT_STEPS_FIND_STEPS_H
#define PPERF_REPORT_STEPS_FIND_STEPS_H

#include "report/trace/trace_reader.h"

struct timeline;

struct step {
	uint64_t begin_ns, end_ns;
	uint64_t number;     /* in its own label, else its place in time, from 0 */
	uint32_t trace_node; /* of the range around it, 0 none. own_ranges: of its own range */
	uint8_t kind;        /* enum step_kind */
};

enum step_kind {
	STEP_USUAL,
	STEP_WARM_UP,    /* one of the first, and much slower than the others */
	STEP_UNFINISHED, /* the trace ends before it does */
	STEP_CAPTURE, /* work was made a CUDA graph of, and not done; where most steps do that, they are usual ones */
};

enum steps_confidence { STEPS_NONE, STEPS_LOW, STEPS_MEDIUM, STEPS_HIGH };

struct steps {
	struct step *steps; /* by time; they do not overlap */
	size_t count, room;
	size_t warm_up, unfinished, captures; /* of count */
	uint32_t stream;                      /* of the thread they are on */
	bool own_ranges;                      /* each is a range that the program has itself */
	enum steps_confidence confidence;
	char evidence[64]; /* what they were found by: `Optimizer.step`; "" none were found */
	char reason
		[256]; /* why no more can be said, or none were found: a sentence without a full stop; "" nothing */
	char warning[256]; /* a sentence for the user, "" none */
	/* of the usual ones; 0: there are none. p50: the value at rank ceil(n / 2) */
	uint64_t min_ns, p50_ns, max_ns, sum_ns;
};

/* NULL: nothing in this trace can be a step, and nobody asked. marker: as the user gave it, NULL or "" if not; then it
 * is the one that is noted in the trace. Reads the trace through unless that is so, and then shows it to `timeline`, too
 * (NULL: to nobody). */
struct steps *steps_find(
	struct trace_reader *reader, const char *marker, struct timeline *timeline);
void steps_free(struct steps *steps);

/* How many are usual ones. */
size_t steps_usual(const struct steps *steps);

/* The figures of the usual ones, anew. */
void steps_sum(struct steps *steps);

const char *steps_confidence_name(enum steps_confidence confidence);

#endif
