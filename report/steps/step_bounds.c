/* SPDX-License-Identifier: MIT
 * step_times.c: when steps begin and end.
 */
#include "report/base/alloc.h"
#include "report/text/label_pattern.h"
#include "report/steps/step_rules.h"
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t steps_median(const uint64_t *values, size_t count)
{
	uint64_t *sorted = need((count + 1) * sizeof *sorted), middle;

	memcpy(sorted, values, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, by_time);
	middle = count ? sorted[(count - 1) / 2] : 0;
	free(sorted);
	return middle;
}

/* How many ranges are around both. */
static uint32_t common_depth(const struct signs *signs, uint32_t a, uint32_t b)
{
	while (a != SIGN_ALONE && b != SIGN_ALONE && a != b) {
		if (signs->signs[a].depth >= signs->signs[b].depth)
			a = signs->signs[a].around;
		else
			b = signs->signs[b].around;
	}
	return a != SIGN_ALONE && a == b ? signs->signs[a].depth + 1u : 0;
}

struct timing {
	const struct signs *signs;
	const struct step_spans *spans;
	uint16_t thread;
	uint32_t depth;           /* ranges that stand above steps */
	uint64_t pause_ns, limit; /* the usual one behind a step's last sign; more is none */
	uint64_t *ends;           /* by span: the end of its last sign, with the program's ranges around it */
};

/* The outermost range around a sign that belongs to its step. */
static uint32_t outermost(const struct timing *timing, uint32_t sign)
{
	while (timing->signs->signs[sign].depth > timing->depth && timing->signs->signs[sign].around != SIGN_ALONE)
		sign = timing->signs->signs[sign].around;
	return sign;
}

static uint64_t begin_of(const struct timing *timing, size_t index)
{
	const struct sign *sign = &timing->signs->signs[timing->spans->spans[index].first];

	if (sign->kind == SIGN_BACKWARD || (sign->kind == SIGN_OPTIMIZER && index > 0))
		return index > 0 ? timing->ends[index - 1] : sign->begin_ns;
	return timing->signs->signs[outermost(timing, timing->spans->spans[index].first)].begin_ns;
}

static uint64_t end_of(const struct timing *timing, size_t index)
{
	const uint32_t last = timing->spans->spans[index].last;
	const struct sign *sign = &timing->signs->signs[last];

	return sign->thread == timing->thread ? timing->signs->signs[outermost(timing, last)].end_ns : sign->end_ns;
}

static void measure_pauses(struct timing *timing)
{
	const size_t count = timing->spans->count;
	uint64_t *pauses = need((count + 1) * sizeof *pauses), *works = need((count + 1) * sizeof *works);

	for (size_t i = 0; i < count; i++)
		timing->ends[i] = end_of(timing, i);
	for (size_t i = 0; i + 1 < count; i++) {
		const uint64_t begin = begin_of(timing, i), next = begin_of(timing, i + 1);

		pauses[i] = next > timing->ends[i] ? next - timing->ends[i] : 0;
		works[i] = timing->ends[i] > begin ? timing->ends[i] - begin : 0;
	}
	timing->pause_ns = count > 1 ? steps_median(pauses, count - 1) : 0;
	timing->limit = 4 * timing->pause_ns + (count > 1 ? steps_median(works, count - 1) / 10 : 0);
	free(pauses);
	free(works);
}

/* Up to where a step may reach: the end of the range around it, the next evaluation, the next step. */
static uint64_t latest_end(const struct timing *timing, size_t index)
{
	const struct signs *signs = timing->signs;
	const struct sign *first = &signs->signs[outermost(timing, timing->spans->spans[index].first)];
	const bool is_last = index + 1 == timing->spans->count;
	const size_t end = is_last ? signs->count : timing->spans->spans[index + 1].first;
	uint64_t latest = is_last ? signs->last_ns : begin_of(timing, index + 1);

	if (first->around != SIGN_ALONE && latest > signs->signs[first->around].end_ns)
		latest = signs->signs[first->around].end_ns;
	for (size_t i = timing->spans->spans[index].last + 1; i < end; i++) {
		const struct sign *sign = &signs->signs[i];

		if (sign->thread != timing->thread || sign->begin_ns < timing->ends[index] ||
			(sign->kind != SIGN_DATA && sign->kind != SIGN_FORWARD))
			continue;
		sign = &signs->signs[outermost(timing, (uint32_t)i)];
		if (sign->begin_ns >= timing->ends[index] && sign->begin_ns < latest)
			latest = sign->begin_ns;
		break;
	}
	return latest > timing->ends[index] ? latest : timing->ends[index];
}

static void add_step(struct steps *steps, const struct step *step)
{
	grow(&steps->steps, &steps->room, steps->count + 1, sizeof *steps->steps);
	steps->steps[steps->count] = *step;
	steps->steps[steps->count].number = steps->count;
	if (steps->count && steps->steps[steps->count - 1].end_ns > step->begin_ns)
		steps->steps[steps->count - 1].end_ns = step->begin_ns;
	steps->unfinished += step->kind == STEP_UNFINISHED;
	steps->count++;
}

/* pauses: what comes behind a step's last sign still belongs to it, up to the usual pause. */
void steps_time_spans(const struct signs *signs, const struct step_spans *spans, bool pauses, struct steps *steps)
{
	struct timing timing = { .signs = signs, .spans = spans, .thread = signs->signs[spans->spans[0].first].thread };

	for (size_t i = 0; i < signs->thread_count; i++)
		if (signs->threads[i].stream == steps->stream)
			timing.thread = (uint16_t)i;
	for (size_t i = 0; i + 1 < spans->count; i++) {
		const uint32_t inside = common_depth(signs, spans->spans[i].first, spans->spans[i + 1].first),
			       between = common_depth(signs, spans->spans[i].last, spans->spans[i + 1].first);

		timing.depth = inside > timing.depth ? inside : timing.depth;
		timing.depth = between > timing.depth ? between : timing.depth;
	}
	timing.ends = need(spans->count * sizeof *timing.ends);
	measure_pauses(&timing);
	for (size_t i = 0; i < spans->count; i++) {
		const struct sign *first = &signs->signs[outermost(&timing, spans->spans[i].first)];
		struct step step = { .begin_ns = begin_of(&timing, i),
			.end_ns = timing.ends[i],
			.place = first->around == SIGN_ALONE ? 0 : signs->signs[first->around].place,
			.kind = spans->spans[i].unfinished ? STEP_UNFINISHED : STEP_USUAL };
		const uint64_t latest = latest_end(&timing, i);

		if (pauses && step.kind == STEP_UNFINISHED && i + 1 == spans->count)
			step.end_ns = signs->last_ns;
		else if (pauses && (latest - step.end_ns <= timing.limit && i + 1 < spans->count))
			step.end_ns = latest;
		else if (pauses)
			step.end_ns += latest - step.end_ns < timing.pause_ns ? latest - step.end_ns : timing.pause_ns;
		if (step.end_ns < step.begin_ns)
			step.end_ns = step.begin_ns;
		add_step(steps, &step);
	}
	free(timing.ends);
}

/* Each has its number from its own label, if all have one. */
void steps_time_ranges(
	struct trace_reader *reader, const struct signs *signs, const struct step_spans *spans, struct steps *steps)
{
	bool numbered = true;

	for (size_t i = 0; i < spans->count; i++) {
		const struct sign *sign = &signs->signs[spans->spans[i].first];
		const struct step step = { .begin_ns = sign->begin_ns,
			.end_ns = sign->end_ns,
			.place = sign->place,
			.kind = sign->is_open ? STEP_UNFINISHED : STEP_USUAL };

		add_step(steps, &step);
	}
	for (int pass = 0; pass < 2 && numbered; pass++)
		for (size_t i = 0; i < steps->count && numbered; i++) {
			const struct trace_text text = reader_name(
				reader, reader_place(reader, steps->steps[i].place)->name);
			uint64_t number = 0;

			numbered = label_number(text.bytes, text.length, &number);
			if (pass && numbered)
				steps->steps[i].number = number;
		}
}
