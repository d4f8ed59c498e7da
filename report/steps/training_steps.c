/* SPDX-License-Identifier: MIT
 * Finds the steps of a training program. The evidence is split into iterations after each optimizer
 * step. What precedes the training in an iteration is removed (an evaluation: batches and forwards
 * without gradients). Each iteration is then compared with its neighbours. It is a step, a part of
 * one (several optimizers), or several (a skipped optimizer step).
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/steps/step_rules.h"
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_MAX 8u /* iterations that repeat together */

/* Items up to the one that ends an iteration. The members are indexes in training_loop.tokens. */
struct training_iteration {
	uint32_t first, end; /* end: after the last one */
	uint32_t start;      /* first one that belongs to the step */
	uint32_t ender;
	uint32_t runs;      /* runs of consecutive BACKWARD items */
	uint64_t signature; /* hash of the modules called, and of when gradients are computed */
	bool has_data, has_work;
};

struct training_loop {
	struct trace_reader *reader;
	const struct evidence_list *evidence;
	uint32_t *tokens; /* evidence items that are relevant here */
	size_t token_count, token_room;
	struct training_iteration *iterations;
	size_t iteration_count, iteration_room;
	uint32_t tail;                  /* first token after the last iteration */
	enum evidence_kind ender, unit; /* unit: kind of item that begins a step */
	/* Usual numbers per iteration: units at the begin, runs of BACKWARD, and gradients_in of
	 * those with the usual number of units. */
	uint32_t units, runs, gradients;
	bool ended; /* the program ended by itself */
	struct step_spans *spans;
};

static const struct evidence_item *token_at(const struct training_loop *training, size_t index)
{
	return &training->evidence->items[training->tokens[index]];
}

static void collect_tokens(struct training_loop *training, uint16_t thread)
{
	const struct evidence_list *evidence = training->evidence;
	uint64_t in_forward = 0;

	for (size_t i = 0; i < evidence->count; i++) {
		const struct evidence_item *item = &evidence->items[i];
		const bool backward = item->kind == EVIDENCE_BACKWARD;

		if (item->kind < EVIDENCE_DATA || (!backward && item->thread != thread) ||
			(backward && item->begin_ns < in_forward))
			continue;
		if (item->kind == EVIDENCE_FORWARD)
			in_forward = item->end_ns;
		*ARRAY_ADD(training->tokens, training->token_room,
			training->token_count) = (uint32_t)i;
	}
}

/* Whether the optimizer step computes gradients itself, in a closure. */
static bool has_closure(const struct training_loop *training, uint32_t index)
{
	const uint64_t end_ns = token_at(training, index)->end_ns;

	for (uint32_t i = index + 1;
		i < training->token_count && token_at(training, i)->begin_ns < end_ns; i++)
		if (token_at(training, i)->kind == EVIDENCE_FORWARD ||
			token_at(training, i)->kind == EVIDENCE_BACKWARD)
			return true;
	return false;
}

/* Adds an iteration. An optimizer step directly after another one, with at most zero_grad
 * between them, extends the iteration before it. This does not apply if the only evidence is
 * optimizer steps. */
static void add_iteration(struct training_loop *training,
	const struct training_iteration *iteration, bool work_is_known)
{
	struct training_iteration *before =
		training->iteration_count ? &training->iterations[training->iteration_count - 1]
					  : NULL;

	if (before && work_is_known && !iteration->has_work) {
		before->end = iteration->end;
		before->ender = iteration->ender;
		return;
	}
	*ARRAY_ADD(training->iterations, training->iteration_room,
		training->iteration_count) = *iteration;
}

static void split_iterations(struct training_loop *training)
{
	const struct evidence_list *evidence = training->evidence;
	const bool work_is_known = evidence->count_of[EVIDENCE_FORWARD] ||
				   evidence->count_of[EVIDENCE_BACKWARD];
	struct training_iteration iteration = { .first = 0 };
	enum evidence_kind last = EVIDENCE_NONE;
	uint64_t until = 0; /* items inside an optimizer step belong to it */
	/* inside: the forward pass runs in the optimizer step, as a closure */
	bool ended = false, inside = false;

	for (uint32_t i = 0; i < training->token_count; i++) {
		const struct evidence_item *item = token_at(training, i);

		if (ended && item->begin_ns >= until &&
			(item->kind != training->ender || !work_is_known || inside ||
				has_closure(training, i))) {
			iteration.end = i;
			add_iteration(training, &iteration, work_is_known);
			iteration = (struct training_iteration){ .first = i };
			ended = inside = false;
		}
		inside |= ended && item->kind == EVIDENCE_FORWARD;
		if (item->kind == training->ender) {
			ended = true;
			iteration.ender = i;
			until = item->end_ns;
		}
		iteration.runs += item->kind == EVIDENCE_BACKWARD && last != EVIDENCE_BACKWARD;
		iteration.has_data |= item->kind == EVIDENCE_DATA;
		iteration.has_work |= item->kind == EVIDENCE_DATA ||
				      item->kind == EVIDENCE_FORWARD ||
				      item->kind == EVIDENCE_BACKWARD;
		last = (enum evidence_kind)item->kind;
	}
	training->tail = iteration.first;
	if (!ended)
		return;
	iteration.end = training->tail = (uint32_t)training->token_count;
	add_iteration(training, &iteration, work_is_known);
}

/* Returns the index of the first BACKWARD or OPTIMIZER item, or `end`. */
static uint32_t lead_end(const struct training_loop *training, uint32_t first, uint32_t end)
{
	while (first < end && token_at(training, first)->kind != EVIDENCE_BACKWARD &&
		token_at(training, first)->kind != EVIDENCE_OPTIMIZER)
		first++;
	return first;
}

static uint32_t units_in(
	const struct training_loop *training, uint32_t first, uint32_t end, enum evidence_kind unit)
{
	uint32_t count = 0;

	for (end = lead_end(training, first, end); first < end; first++)
		count += token_at(training, first)->kind == unit;
	return count;
}

/* Returns the median number of `unit` in the iterations that have any. Sets `iterations` to their
 * number. */
static uint32_t usual_units(
	const struct training_loop *training, enum evidence_kind unit, size_t *iterations)
{
	uint32_t *counts = xcalloc((training->iteration_count + 1) * sizeof *counts), usual;

	*iterations = 0;
	for (size_t i = 0; i < training->iteration_count; i++) {
		counts[*iterations] = units_in(
			training, training->iterations[i].first, training->iterations[i].end, unit);
		*iterations += counts[*iterations] > 0;
	}
	qsort(counts, *iterations, sizeof *counts, compare_u32);
	usual = *iterations ? counts[*iterations / 2] : 0;
	free(counts);
	return usual;
}

/* Returns the number of ranges of autograd in an iteration. */
static uint32_t gradients_in(
	const struct training_loop *training, const struct training_iteration *iteration)
{
	uint32_t count = 0;

	for (uint32_t i = iteration->first; i < iteration->end; i++)
		if (token_at(training, i)->kind == EVIDENCE_BACKWARD)
			count += token_at(training, i)->number;
	return count;
}

/* Returns the median of gradients_in over the iterations with the usual number of units. */
static uint32_t usual_gradients(const struct training_loop *training)
{
	uint32_t *counts = xcalloc((training->iteration_count + 1) * sizeof *counts), usual;
	size_t count = 0;

	for (size_t i = 0; i < training->iteration_count; i++) {
		const struct training_iteration *iteration = &training->iterations[i];

		if (units_in(training, iteration->first, iteration->end, training->unit) ==
			training->units)
			counts[count++] = gradients_in(training, iteration);
	}
	qsort(counts, count, sizeof *counts, compare_u32);
	usual = count ? counts[count / 2] : 0;
	free(counts);
	return usual;
}

/* Returns how many units before the gradients belong to the step. An iteration with more than the
 * usual number has an evaluation in front of the step, unless it also computes more gradients: at
 * least half as many more, as its number of units is larger. Then the step is a longer one. */
static uint32_t units_of_step(
	const struct training_loop *training, const struct training_iteration *iteration)
{
	const uint64_t usual = training->units, gradients = training->gradients,
		       count = units_in(training, iteration->first, iteration->end, training->unit),
		       found = gradients_in(training, iteration);

	return count > usual && found > gradients &&
			       2 * (found - gradients) * usual >= (count - usual) * gradients
		       ? (uint32_t)count
		       : (uint32_t)usual;
}

static uint32_t usual_runs(const struct training_loop *training)
{
	uint32_t *counts = xcalloc((training->iteration_count + 1) * sizeof *counts), usual;

	for (size_t i = 0; i < training->iteration_count; i++)
		counts[i] = training->iterations[i].runs;
	qsort(counts, training->iteration_count, sizeof *counts, compare_u32);
	usual = training->iteration_count ? counts[training->iteration_count / 2] : 0;
	free(counts);
	return usual;
}

/* Returns true if zero_grad comes before the backward pass in 9 of 10 iterations, so that it can
 * begin a step. */
static bool zero_comes_first(const struct training_loop *training)
{
	size_t first = 0;

	for (size_t i = 0; i < training->iteration_count; i++) {
		const struct training_iteration *iteration = &training->iterations[i];
		const uint32_t end = lead_end(training, iteration->first, iteration->end);
		enum evidence_kind last = EVIDENCE_NONE;

		for (uint32_t at = iteration->first; at < end; at++)
			if (token_at(training, at)->kind != EVIDENCE_DATA)
				last = (enum evidence_kind)token_at(training, at)->kind;
		/* `... forward, zero, backward` has zero_grad last */
		first += units_in(training, iteration->first, iteration->end, EVIDENCE_ZERO_GRAD) >
				 0 &&
			 (last != EVIDENCE_ZERO_GRAD || !units_in(training, iteration->first,
								iteration->end, EVIDENCE_FORWARD));
	}
	return first * 10 >= training->iteration_count * 9;
}

/* Returns true for the order `forward, backward, step, zero_grad`. There the first iteration has
 * no zero_grad before its gradients. All others begin with one, and so does what follows the
 * last. */
static bool zero_comes_last(const struct training_loop *training)
{
	const struct training_iteration *iterations = training->iterations;
	size_t begin = 0;

	if (training->iteration_count < 3 ||
		units_in(training, iterations[0].first, iterations[0].end, EVIDENCE_ZERO_GRAD) > 0)
		return false;
	if (training->tail < training->token_count
			? token_at(training, training->tail)->kind != EVIDENCE_ZERO_GRAD
			: training->ended)
		return false;
	for (size_t i = 1; i < training->iteration_count; i++)
		begin += token_at(training, iterations[i].first)->kind == EVIDENCE_ZERO_GRAD;
	return begin == training->iteration_count - 1;
}

/* Moves leading zero_grad items to the iteration before. */
static void return_leading_zero_grads(struct training_loop *training)
{
	for (size_t i = 0; i < training->iteration_count; i++) {
		uint32_t *const next = i + 1 < training->iteration_count
					       ? &training->iterations[i + 1].first
					       : &training->tail;
		const uint32_t end = i + 1 < training->iteration_count
					     ? training->iterations[i + 1].end
					     : (uint32_t)training->token_count;

		for (; *next < end && token_at(training, *next)->kind == EVIDENCE_ZERO_GRAD;
			++*next)
			training->iterations[i].ender = *next;
		training->iterations[i].end = *next;
	}
}

static void choose_unit(struct training_loop *training)
{
	size_t iterations;

	training->unit = EVIDENCE_DATA;
	training->units = usual_units(training, EVIDENCE_DATA, &iterations);
	if (iterations * 10 >= training->iteration_count * 9)
		return;
	if (zero_comes_last(training))
		return_leading_zero_grads(training);
	training->unit = zero_comes_first(training) ? EVIDENCE_ZERO_GRAD : EVIDENCE_FORWARD;
	training->units = usual_units(training, training->unit, &iterations);
}

/* Returns the index at which the step begins in an iteration: the usual number of units before
 * the first gradients. */
static uint32_t iteration_start(const struct training_loop *training, uint32_t first, uint32_t end,
	enum evidence_kind unit, uint32_t usual)
{
	uint32_t count = units_in(training, first, end, unit), at = first;

	if (!count)
		return first;
	for (; count > 0 && at < end; at++) {
		if (token_at(training, at)->kind != unit)
			continue;
		if (count <= (usual ? usual : 1))
			return at;
		count--;
	}
	return at;
}

static uint64_t iteration_signature(
	const struct training_loop *training, const struct training_iteration *iteration)
{
	uint64_t signature = 1;
	enum evidence_kind last = EVIDENCE_NONE;

	for (uint32_t i = iteration->start; i < iteration->end; i++) {
		const struct evidence_item *item = token_at(training, i);
		const enum evidence_kind kind = (enum evidence_kind)item->kind;
		uint32_t value = kind;

		if (kind == EVIDENCE_FORWARD)
			value += reader_node(training->reader, item->trace_node)->name << 4;
		if (kind == EVIDENCE_FORWARD ||
			(kind == EVIDENCE_BACKWARD && last != EVIDENCE_BACKWARD))
			signature = (signature ^ value) * 0x9e3779b97f4a7c15u;
		last = kind;
	}
	return signature;
}

/* Returns the percentage of iterations that equal the one `period` before. */
static unsigned iterations_alike(const struct training_loop *training, size_t period)
{
	size_t count = 0;

	if (training->iteration_count <= period)
		return 0;
	for (size_t i = period; i < training->iteration_count; i++)
		count += training->iterations[i].signature ==
			 training->iterations[i - period].signature;
	return (unsigned)(count * 100 / (training->iteration_count - period));
}

/* Returns the signature of most iterations with (or without) data. It is correct if there is a
 * majority (Boyer-Moore vote). */
static uint64_t most_common_signature(const struct training_loop *training, bool with_data)
{
	uint64_t common = 0;
	size_t weight = 0;

	for (size_t i = 0; i < training->iteration_count; i++) {
		const struct training_iteration *iteration = &training->iterations[i];

		if (iteration->has_data != with_data)
			continue;
		if (!weight)
			common = iteration->signature;
		if (iteration->signature == common)
			weight++;
		else
			weight--;
	}
	return common;
}

/* Returns true if some iterations fetch a batch and the others differ and continue with it, as
 * with several optimizers. */
static bool data_leads(const struct training_loop *training)
{
	const uint64_t leader = most_common_signature(training, true);
	size_t with = 0, followers = 0;

	for (size_t i = 0; i < training->iteration_count; i++) {
		with += training->iterations[i].has_data;
		followers += !training->iterations[i].has_data &&
			     training->iterations[i].signature != leader;
	}
	return with * 6 >= training->iteration_count && with < training->iteration_count &&
	       followers * 10 >= (training->iteration_count - with) * 9;
}

/* Returns the number of iterations per step. 1 is also the result if no period is found. */
static size_t iteration_period(const struct training_loop *training)
{
	if (iterations_alike(training, 1) >= 50)
		return 1;
	for (size_t period = 2; period <= PERIOD_MAX; period++)
		if (training->iteration_count >= 2 * period &&
			iterations_alike(training, period) >= 90)
			return period;
	return 1;
}

/* Adds the steps of an iteration. A multiple of the usual number of gradient runs means that the
 * optimizer was skipped (a scaler found infinities). The iteration is then several steps. */
static void add_partial_steps(
	struct training_loop *training, const struct training_iteration *iteration)
{
	const uint32_t usual = training->runs ? training->runs : 1;
	const bool has_several = iteration->runs > usual && iteration->runs % usual == 0;
	uint32_t first = iteration->start, runs = 0;
	enum evidence_kind last = EVIDENCE_NONE;
	const uint32_t *tokens = training->tokens;

	for (uint32_t i = iteration->start; has_several && i < iteration->ender; i++) {
		const enum evidence_kind kind = (enum evidence_kind)token_at(training, i)->kind;

		runs += kind == EVIDENCE_BACKWARD && last != EVIDENCE_BACKWARD;
		last = kind;
		if (runs < usual || kind != training->unit)
			continue;
		step_spans_add(training->spans, tokens[first], tokens[i - 1], false);
		first = i;
		runs = 0;
	}
	step_spans_add(training->spans, tokens[first], tokens[iteration->ender],
		token_at(training, iteration->ender)->is_open);
}

static bool begins_group(
	const struct training_loop *training, size_t index, size_t period, bool by_data)
{
	const struct training_iteration *iterations = training->iterations;

	if (index == 0 || by_data)
		return index == 0 || iterations[index].has_data;
	for (size_t i = 1; i < period; i++)
		if (iterations[i].signature == iterations[0].signature)
			/* The first kind of iteration occurs twice in a period. */
			return index % period == 0;
	return iterations[index].signature == iterations[0].signature;
}

static uint32_t forwards_before_start(
	const struct training_loop *training, const struct training_iteration *iteration)
{
	uint32_t count = 0;

	for (uint32_t i = iteration->first; i < iteration->start; i++)
		count += token_at(training, i)->kind == EVIDENCE_FORWARD;
	return count;
}

/* Moves the start of an iteration back to the last `count` forwards before it. */
static void begin_with_forwards(
	const struct training_loop *training, struct training_iteration *iteration, uint32_t count)
{
	for (uint32_t i = iteration->start; i > iteration->first && count; i--)
		if (token_at(training, i - 1)->kind == EVIDENCE_FORWARD) {
			iteration->start = i - 1;
			count--;
		}
}

/* Forwards before zero_grad are not an evaluation if nearly every iteration in this position of
 * the period has them. Example: a GAN's generator creates images, then the gradients of the
 * discriminator are zeroed. */
static void move_forwards_before_zero_grad(struct training_loop *training, size_t period)
{
	uint32_t *counts = xcalloc((training->iteration_count + 1) * sizeof *counts), usual;

	for (size_t phase = 0; phase < period; phase++) {
		size_t iterations = 0;

		for (size_t i = period + phase; i < training->iteration_count; i += period)
			counts[iterations++] = forwards_before_start(
				training, &training->iterations[i]);
		if (iterations < 3)
			continue;
		qsort(counts, iterations, sizeof *counts, compare_u32);
		usual = counts[iterations / 10]; /* as many as nine of ten have */
		for (size_t i = phase; usual && i < training->iteration_count; i += period)
			begin_with_forwards(training, &training->iterations[i], usual);
	}
	free(counts);
}

/* Adds one step per group of iterations. The last group may be incomplete. */
static void add_groups(struct training_loop *training, size_t period, bool by_data)
{
	for (size_t from = 0, to; from < training->iteration_count; from = to) {
		const struct training_iteration *last;

		for (to = from + 1; to < training->iteration_count &&
				    !begins_group(training, to, period, by_data);)
			to++;
		last = &training->iterations[to - 1];
		step_spans_add(training->spans, training->tokens[training->iterations[from].start],
			training->tokens[last->ender],
			token_at(training, last->ender)->is_open ||
				(to == training->iteration_count && !by_data &&
					to - from < period));
	}
}

/* Adds what follows the last iteration if it is an unfinished step and not an evaluation. */
static void add_tail(struct training_loop *training, bool ended)
{
	const uint32_t end = (uint32_t)training->token_count;
	const uint32_t start = iteration_start(
		training, training->tail, end, training->unit, training->units);
	bool gradients = false, forward = false;

	for (uint32_t i = training->tail; i < end; i++) {
		gradients |= token_at(training, i)->kind == EVIDENCE_BACKWARD;
		forward |= token_at(training, i)->kind == EVIDENCE_FORWARD;
	}
	if (start >= end || !training->iteration_count)
		return;
	if (gradients ||
		(!ended && forward &&
			units_in(training, training->tail, end, training->unit) <= training->units))
		step_spans_add(
			training->spans, training->tokens[start], training->tokens[end - 1], true);
}

static void rate_confidence(
	const struct training_loop *training, size_t period, bool by_data, struct steps *steps)
{
	const bool can_begin = training->units > 0;

	steps->confidence = STEPS_HIGH;
	if (!can_begin && training->evidence->count_of[EVIDENCE_FORWARD])
		snprintf(steps->reason, sizeof steps->reason,
			"nothing before the gradients or the optimizer shows where a step starts "
			"(the model may be called in a closure), so it is assumed to start where "
			"the previous one ends");
	else if (!can_begin)
		snprintf(steps->reason, sizeof steps->reason,
			"the trace has no batches, zero_grad or calls of modules, so each step is "
			"assumed to start where the previous one ends");
	else if (!by_data && training->iteration_count > 2 &&
		 iterations_alike(training, period) < 75)
		snprintf(steps->reason, sizeof steps->reason, "the calls differ from step to step");
	if (*steps->reason || training->ender != EVIDENCE_OPTIMIZER)
		steps->confidence = STEPS_MEDIUM;
}

void steps_from_training(struct trace_reader *reader, const struct evidence_list *evidence,
	uint16_t thread, enum evidence_kind ender, bool ended, struct steps *steps,
	struct step_spans *spans)
{
	struct training_loop training = { .reader = reader,
		.evidence = evidence,
		.ender = ender,
		.ended = ended,
		.spans = spans };
	size_t period, iterations;
	bool by_data;

	collect_tokens(&training, thread);
	split_iterations(&training);
	choose_unit(&training);
	training.runs = usual_runs(&training);
	training.gradients = usual_gradients(&training);
	for (size_t i = 0; i < training.iteration_count; i++) {
		struct training_iteration *iteration = &training.iterations[i];

		iteration->start = iteration_start(&training, iteration->first, iteration->end,
			training.unit, units_of_step(&training, iteration));
		iteration->signature = iteration_signature(&training, iteration);
	}
	by_data = training.unit != EVIDENCE_DATA && data_leads(&training);
	period = by_data ? 1 : iteration_period(&training);
	if (by_data) {
		training.units = usual_units(&training, training.unit = EVIDENCE_DATA, &iterations);
		for (size_t i = 0; i < training.iteration_count; i++)
			training.iterations[i].start = iteration_start(&training,
				training.iterations[i].first, training.iterations[i].end,
				EVIDENCE_DATA, training.units);
	}
	if (training.unit == EVIDENCE_ZERO_GRAD)
		move_forwards_before_zero_grad(&training, period);
	rate_confidence(&training, period, by_data, steps);
	for (size_t i = 0; i < training.iteration_count && period == 1 && !by_data; i++)
		add_partial_steps(&training, &training.iterations[i]);
	if (period > 1 || by_data)
		add_groups(&training, period, by_data);
	add_tail(&training, ended);
	free(training.tokens);
	free(training.iterations);
}
