/* SPDX-License-Identifier: MIT
 * step_training.c: steps of a program that trains. Its signs are cut into rows behind each optimizer's step. A row is
 * rid of what precedes the training in it (an evaluation: batches and forwards without gradients), compared with its
 * neighbours, and then is a step, part of one (several optimizers), or several (an optimizer that was skipped).
 */
#include "report/base/alloc.h"
#include "report/steps/step_rules.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MOST 8u /* rows that repeat together */

/* Signs up to and with the one that ends them. Indices are of training.tokens. */
struct row {
	uint32_t first, end; /* end: behind the last one */
	uint32_t start;      /* the first one that belongs to the step */
	uint32_t ender;
	uint32_t runs;      /* of BACKWARD */
	uint64_t signature; /* of what is called in it, and when gradients are computed */
	bool has_data, has_work;
};

struct training {
	struct trace_reader *reader;
	const struct signs *signs;
	uint32_t *tokens; /* signs that count here */
	size_t token_count, token_room;
	struct row *rows;
	size_t row_count, row_room;
	uint32_t tail;              /* the first token behind the last row */
	enum sign_kind ender, unit; /* unit: what a step begins with */
	uint32_t units, runs;       /* as many of them as usual, at a row's begin; and of BACKWARD in a row */
	bool ended;                 /* the program, by itself */
	struct step_spans *spans;
};

static const struct sign *token(const struct training *training, size_t index)
{
	return &training->signs->signs[training->tokens[index]];
}

static void gather(struct training *training, uint16_t thread)
{
	const struct signs *signs = training->signs;
	uint64_t in_forward = 0;

	for (size_t i = 0; i < signs->count; i++) {
		const struct sign *sign = &signs->signs[i];
		const bool backward = sign->kind == SIGN_BACKWARD;

		if (sign->kind < SIGN_DATA || (!backward && sign->thread != thread) ||
			(backward && sign->begin_ns < in_forward))
			continue;
		if (sign->kind == SIGN_FORWARD)
			in_forward = sign->end_ns;
		grow(&training->tokens, &training->token_room, training->token_count + 1, sizeof *training->tokens);
		training->tokens[training->token_count++] = (uint32_t)i;
	}
}

/* Two optimizers that step one behind the other, whatever is zeroed between them, end the same row; unless nothing is
 * known but optimizers. */
static void add_row(struct training *training, const struct row *row, bool work_is_known)
{
	struct row *before = training->row_count ? &training->rows[training->row_count - 1] : NULL;

	if (before && work_is_known && !row->has_work) {
		before->end = row->end;
		before->ender = row->ender;
		return;
	}
	grow(&training->rows, &training->row_room, training->row_count + 1, sizeof *training->rows);
	training->rows[training->row_count++] = *row;
}

static void cut(struct training *training)
{
	const struct signs *signs = training->signs;
	const bool work_is_known = signs->count_of[SIGN_FORWARD] || signs->count_of[SIGN_BACKWARD];
	struct row row = { .first = 0 };
	enum sign_kind last = SIGN_NONE;
	uint64_t until = 0;                 /* what lies in an optimizer's step belongs to it */
	bool ended = false, inside = false; /* inside: the work was done in the optimizer's step, by a closure */

	for (uint32_t i = 0; i < training->token_count; i++) {
		const struct sign *sign = token(training, i);

		if (ended && (sign->kind != training->ender || !work_is_known || inside) && sign->begin_ns >= until) {
			row.end = i;
			add_row(training, &row, work_is_known);
			row = (struct row){ .first = i };
			ended = inside = false;
		}
		inside |= ended && sign->kind == SIGN_FORWARD;
		if (sign->kind == training->ender) {
			ended = true;
			row.ender = i;
			until = sign->end_ns;
		}
		row.runs += sign->kind == SIGN_BACKWARD && last != SIGN_BACKWARD;
		row.has_data |= sign->kind == SIGN_DATA;
		row.has_work |= sign->kind == SIGN_DATA || sign->kind == SIGN_FORWARD || sign->kind == SIGN_BACKWARD;
		last = (enum sign_kind)sign->kind;
	}
	training->tail = row.first;
	if (!ended)
		return;
	row.end = training->tail = (uint32_t)training->token_count;
	add_row(training, &row, work_is_known);
}

/* Where the first run of BACKWARD begins, or what ends the row. */
static uint32_t lead_end(const struct training *training, uint32_t first, uint32_t end)
{
	while (first < end && token(training, first)->kind != SIGN_BACKWARD &&
		token(training, first)->kind != SIGN_OPTIMIZER)
		first++;
	return first;
}

static uint32_t units_in(const struct training *training, uint32_t first, uint32_t end, enum sign_kind unit)
{
	uint32_t count = 0;

	for (end = lead_end(training, first, end); first < end; first++)
		count += token(training, first)->kind == unit;
	return count;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* The median of rows that have any. */
static uint32_t usual_units(const struct training *training, enum sign_kind unit, size_t *rows)
{
	uint32_t *counts = need((training->row_count + 1) * sizeof *counts), usual;

	*rows = 0;
	for (size_t i = 0; i < training->row_count; i++) {
		counts[*rows] = units_in(training, training->rows[i].first, training->rows[i].end, unit);
		*rows += counts[*rows] > 0;
	}
	qsort(counts, *rows, sizeof *counts, by_size);
	usual = *rows ? counts[*rows / 2] : 0;
	free(counts);
	return usual;
}

static uint32_t usual_runs(const struct training *training)
{
	uint32_t *counts = need((training->row_count + 1) * sizeof *counts), usual;

	for (size_t i = 0; i < training->row_count; i++)
		counts[i] = training->rows[i].runs;
	qsort(counts, training->row_count, sizeof *counts, by_size);
	usual = training->row_count ? counts[training->row_count / 2] : 0;
	free(counts);
	return usual;
}

/* zero_grad begins a step only where it stands before the first forward. */
static bool zero_comes_first(const struct training *training)
{
	size_t first = 0;

	for (size_t i = 0; i < training->row_count; i++) {
		const struct row *row = &training->rows[i];
		const uint32_t end = lead_end(training, row->first, row->end);
		enum sign_kind last = SIGN_NONE;

		for (uint32_t at = row->first; at < end; at++)
			if (token(training, at)->kind != SIGN_DATA)
				last = (enum sign_kind)token(training, at)->kind;
		/* `... forward, zero, backward` ends in zero_grad */
		first += units_in(training, row->first, row->end, SIGN_ZERO) > 0 &&
			 (last != SIGN_ZERO || !units_in(training, row->first, row->end, SIGN_FORWARD));
	}
	return first * 10 >= training->row_count * 9;
}

/* `forward, backward, step, zero_grad`: the first row has none before its gradients, each other one begins with it, and so does what comes
 * behind the last. */
static bool zero_comes_last(const struct training *training)
{
	const struct row *rows = training->rows;
	size_t begin = 0;

	if (training->row_count < 3 || units_in(training, rows[0].first, rows[0].end, SIGN_ZERO) > 0)
		return false;
	if (training->tail < training->token_count ? token(training, training->tail)->kind != SIGN_ZERO : training->ended)
		return false;
	for (size_t i = 1; i < training->row_count; i++)
		begin += token(training, rows[i].first)->kind == SIGN_ZERO;
	return begin == training->row_count - 1;
}

/* Then it is the row's before it. */
static void give_zeros_back(struct training *training)
{
	for (size_t i = 0; i < training->row_count; i++) {
		uint32_t *const next = i + 1 < training->row_count ? &training->rows[i + 1].first : &training->tail;
		const uint32_t end = i + 1 < training->row_count ? training->rows[i + 1].end : (uint32_t)training->token_count;

		for (; *next < end && token(training, *next)->kind == SIGN_ZERO; ++*next)
			training->rows[i].ender = *next;
		training->rows[i].end = *next;
	}
}

static void choose_unit(struct training *training)
{
	size_t rows;

	training->unit = SIGN_DATA;
	training->units = usual_units(training, SIGN_DATA, &rows);
	if (rows * 10 >= training->row_count * 9)
		return;
	if (zero_comes_last(training))
		give_zeros_back(training);
	training->unit = zero_comes_first(training) ? SIGN_ZERO : SIGN_FORWARD;
	training->units = usual_units(training, training->unit, &rows);
}

/* Where the step begins in a row: as many units before its first gradients as usual. */
static uint32_t start_of(
	const struct training *training, uint32_t first, uint32_t end, enum sign_kind unit, uint32_t usual)
{
	uint32_t count = units_in(training, first, end, unit), at = first;

	if (!count)
		return first;
	for (; count > 0 && at < end; at++) {
		if (token(training, at)->kind != unit)
			continue;
		if (count <= (usual ? usual : 1))
			return at;
		count--;
	}
	return at;
}

static uint64_t signature_of(const struct training *training, const struct row *row)
{
	uint64_t signature = 1;
	enum sign_kind last = SIGN_NONE;

	for (uint32_t i = row->start; i < row->end; i++) {
		const struct sign *sign = token(training, i);
		const enum sign_kind kind = (enum sign_kind)sign->kind;
		uint32_t value = kind;

		if (kind == SIGN_FORWARD)
			value += reader_place(training->reader, sign->place)->name << 4;
		if (kind == SIGN_FORWARD || (kind == SIGN_BACKWARD && last != SIGN_BACKWARD))
			signature = (signature ^ value) * 0x9e3779b97f4a7c15u;
		last = kind;
	}
	return signature;
}

/* How many of 100 rows are like the one `period` before. */
static unsigned alike(const struct training *training, size_t period)
{
	size_t count = 0;

	if (training->row_count <= period)
		return 0;
	for (size_t i = period; i < training->row_count; i++)
		count += training->rows[i].signature == training->rows[i - period].signature;
	return (unsigned)(count * 100 / (training->row_count - period));
}

/* What most rows with (or without) data are like: right if there is a majority. */
static uint64_t most_common(const struct training *training, bool with_data)
{
	uint64_t common = 0;
	size_t weight = 0;

	for (size_t i = 0; i < training->row_count; i++) {
		const struct row *row = &training->rows[i];

		if (row->has_data != with_data)
			continue;
		if (!weight)
			common = row->signature;
		if (row->signature == common)
			weight++;
		else
			weight--;
	}
	return common;
}

/* Some rows fetch a batch, the others are different and go on with it: several optimizers. */
static bool data_leads(const struct training *training)
{
	const uint64_t leader = most_common(training, true);
	size_t with = 0, followers = 0;

	for (size_t i = 0; i < training->row_count; i++) {
		with += training->rows[i].has_data;
		followers += !training->rows[i].has_data && training->rows[i].signature != leader;
	}
	return with * 6 >= training->row_count && with < training->row_count &&
	       followers * 10 >= (training->row_count - with) * 9;
}

/* 1: each row is a step, as far as rows can tell. */
static size_t period_of(const struct training *training)
{
	if (alike(training, 1) >= 50)
		return 1;
	for (size_t period = 2; period <= PERIOD_MOST; period++)
		if (training->row_count >= 2 * period && alike(training, period) >= 90)
			return period;
	return 1;
}

/* A row with several times as many gradients as usual: the optimizer was skipped (a scaler found infinities). */
static void add_parts(struct training *training, const struct row *row)
{
	const uint32_t usual = training->runs ? training->runs : 1;
	uint32_t first = row->start, runs = 0;
	enum sign_kind last = SIGN_NONE;

	for (uint32_t i = row->start; row->runs > usual && row->runs % usual == 0 && i < row->ender; i++) {
		const enum sign_kind kind = (enum sign_kind)token(training, i)->kind;

		runs += kind == SIGN_BACKWARD && last != SIGN_BACKWARD;
		last = kind;
		if (runs < usual || kind != training->unit)
			continue;
		step_spans_add(training->spans, training->tokens[first], training->tokens[i - 1], false);
		first = i;
		runs = 0;
	}
	step_spans_add(training->spans, training->tokens[first], training->tokens[row->ender],
		token(training, row->ender)->is_open);
}

static bool begins_group(const struct training *training, size_t index, size_t period, bool by_data)
{
	const struct row *rows = training->rows;

	if (index == 0 || by_data)
		return index == 0 || rows[index].has_data;
	for (size_t i = 1; i < period; i++)
		if (rows[i].signature == rows[0].signature)
			return index % period == 0; /* the first kind of row is in it twice */
	return rows[index].signature == rows[0].signature;
}

static uint32_t forwards_before_start(const struct training *training, const struct row *row)
{
	uint32_t count = 0;

	for (uint32_t i = row->first; i < row->start; i++)
		count += token(training, i)->kind == SIGN_FORWARD;
	return count;
}

/* Moves a row's begin back to the last `count` forwards before it. */
static void begin_with_forwards(const struct training *training, struct row *row, uint32_t count)
{
	for (uint32_t i = row->start; i > row->first && count; i--)
		if (token(training, i - 1)->kind == SIGN_FORWARD) {
			row->start = i - 1;
			count--;
		}
}

/* What is called before zero_grad is no evaluation where nearly every row of that place in the period has it: a GAN's generator makes its pictures,
 * then the discriminator's gradients are emptied. */
static void take_forwards_before_zero(struct training *training, size_t period)
{
	uint32_t *counts = need((training->row_count + 1) * sizeof *counts), usual;

	for (size_t phase = 0; phase < period; phase++) {
		size_t rows = 0;

		for (size_t i = period + phase; i < training->row_count; i += period)
			counts[rows++] = forwards_before_start(training, &training->rows[i]);
		if (rows < 3)
			continue;
		qsort(counts, rows, sizeof *counts, by_size);
		usual = counts[rows / 10]; /* as many as nine of ten have */
		for (size_t i = phase; usual && i < training->row_count; i += period)
			begin_with_forwards(training, &training->rows[i], usual);
	}
	free(counts);
}

/* Rows between one that begins a step and the next that does. The last step may lack some. */
static void add_groups(struct training *training, size_t period, bool by_data)
{
	for (size_t from = 0, to; from < training->row_count; from = to) {
		const struct row *last;

		for (to = from + 1; to < training->row_count && !begins_group(training, to, period, by_data);)
			to++;
		last = &training->rows[to - 1];
		step_spans_add(training->spans, training->tokens[training->rows[from].start],
			training->tokens[last->ender],
			token(training, last->ender)->is_open ||
				(to == training->row_count && !by_data && to - from < period));
	}
}

/* What comes behind the last row: the begin of a step that never ended, or an evaluation. */
static void add_tail(struct training *training, bool ended)
{
	const uint32_t end = (uint32_t)training->token_count;
	const uint32_t start = start_of(training, training->tail, end, training->unit, training->units);
	bool gradients = false, forward = false;

	for (uint32_t i = training->tail; i < end; i++) {
		gradients |= token(training, i)->kind == SIGN_BACKWARD;
		forward |= token(training, i)->kind == SIGN_FORWARD;
	}
	if (start >= end || !training->row_count)
		return;
	if (gradients ||
		(!ended && forward && units_in(training, training->tail, end, training->unit) <= training->units))
		step_spans_add(training->spans, training->tokens[start], training->tokens[end - 1], true);
}

static void judge(const struct training *training, size_t period, bool by_data, struct steps *steps)
{
	const bool can_begin = training->units > 0;

	steps->confidence = STEPS_HIGH;
	if (!can_begin)
		snprintf(steps->reason, sizeof steps->reason,
			"no batches, zero_grad or calls of modules are in the trace, so a step is taken to begin where "
			"the one "
			"before it ends");
	else if (!by_data && training->row_count > 2 && alike(training, period) < 75)
		snprintf(steps->reason, sizeof steps->reason, "what is called differs from step to step");
	if (*steps->reason || training->ender != SIGN_OPTIMIZER)
		steps->confidence = STEPS_MEDIUM;
}

void steps_of_training(struct trace_reader *reader, const struct signs *signs, uint16_t thread, enum sign_kind ender,
	bool ended, struct steps *steps, struct step_spans *spans)
{
	struct training training = { .reader = reader, .signs = signs, .ender = ender, .ended = ended, .spans = spans };
	size_t period, rows;
	bool by_data;

	gather(&training, thread);
	cut(&training);
	choose_unit(&training);
	training.runs = usual_runs(&training);
	for (size_t i = 0; i < training.row_count; i++) {
		struct row *row = &training.rows[i];

		row->start = start_of(&training, row->first, row->end, training.unit, training.units);
		row->signature = signature_of(&training, row);
	}
	by_data = training.unit != SIGN_DATA && data_leads(&training);
	period = by_data ? 1 : period_of(&training);
	if (by_data) {
		training.units = usual_units(&training, training.unit = SIGN_DATA, &rows);
		for (size_t i = 0; i < training.row_count; i++)
			training.rows[i].start = start_of(
				&training, training.rows[i].first, training.rows[i].end, SIGN_DATA, training.units);
	}
	if (training.unit == SIGN_ZERO)
		take_forwards_before_zero(&training, period);
	judge(&training, period, by_data, steps);
	for (size_t i = 0; i < training.row_count && period == 1 && !by_data; i++)
		add_parts(&training, &training.rows[i]);
	if (period > 1 || by_data)
		add_groups(&training, period, by_data);
	add_tail(&training, ended);
	free(training.tokens);
	free(training.rows);
}
