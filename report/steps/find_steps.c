/* SPDX-License-Identifier: MIT */
#include "report/steps/find_steps.h"
#include "report/base/alloc.h"
#include "report/steps/step_rules.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAINING_LEAST 2u /* rows: one optimizer's step alone is no loop */
#define CALLS_LEAST 3u    /* calls of the same model */

void step_spans_add(struct step_spans *spans, uint32_t first, uint32_t last, bool unfinished)
{
	grow(&spans->spans, &spans->room, spans->count + 1, sizeof *spans->spans);
	spans->spans[spans->count++] = (struct step_span){ .first = first, .last = last, .unfinished = unfinished };
}

uint32_t steps_thread(const struct signs *signs, unsigned kinds, enum sign_kind must)
{
	uint32_t best = SIGN_ALONE;
	uint64_t most = 0;

	for (uint32_t i = 0; i < signs->thread_count; i++) {
		uint64_t ns = 0;

		for (int kind = 0; kind < SIGN_KINDS; kind++)
			ns += kinds >> kind & 1 ? signs->threads[i].ns[kind] : 0;
		if (signs->threads[i].count[must] && (best == SIGN_ALONE || ns > most)) {
			best = i;
			most = ns;
		}
	}
	return best;
}

/* ---- ranges that are steps by themselves ---- */

/* In a range of the same kind. */
static bool lies_in(const struct signs *signs, uint32_t sign, enum sign_kind kind)
{
	for (sign = signs->signs[sign].around; sign != SIGN_ALONE; sign = signs->signs[sign].around)
		if (signs->signs[sign].kind == kind)
			return true;
	return false;
}

/* Whether at least half of the thread's signs of `what` lie in ranges of that kind. Else those are a part of steps: a
 * range `step` around the optimizer's. */
static bool holds_most(const struct signs *signs, uint32_t thread, enum sign_kind kind, enum sign_kind what)
{
	size_t inside = 0, all = 0;

	for (uint32_t i = 0; i < signs->count; i++) {
		if (signs->signs[i].thread != thread || signs->signs[i].kind != what)
			continue;
		all++;
		inside += lies_in(signs, i, kind);
	}
	return inside * 2 >= all;
}

static void say_ranges(struct steps *steps, struct trace_reader *reader, const struct sign *sign, enum sign_kind kind)
{
	const struct trace_text text = reader_name(reader, reader_place(reader, sign->place)->name);
	char shown[40];

	visible(shown, sizeof shown, text.bytes, text.length, true);
	if (kind == SIGN_PROFILER)
		snprintf(steps->evidence, sizeof steps->evidence, "ProfilerStep");
	else if (text.length)
		snprintf(steps->evidence, sizeof steps->evidence, "ranges like `%s`", shown);
	else
		snprintf(steps->evidence, sizeof steps->evidence, "ranges");
}

static bool find_ranges(struct trace_reader *reader, const struct signs *signs, enum sign_kind kind,
	struct steps *steps, struct step_spans *spans)
{
	const uint32_t thread = steps_thread(signs, 1u << kind, kind);

	if (thread == SIGN_ALONE)
		return false;
	if (kind != SIGN_NAMED && (signs->threads[thread].count[kind] < 2 || !signs->has_torch ||
					  !holds_most(signs, thread, kind, SIGN_FORWARD) ||
					  !holds_most(signs, thread, kind, SIGN_OPTIMIZER)))
		return false;
	for (uint32_t i = 0; i < signs->count; i++)
		if (signs->signs[i].thread == thread && signs->signs[i].kind == kind && !lies_in(signs, i, kind))
			step_spans_add(spans, i, i, signs->signs[i].is_open);
	if (!spans->count)
		return false;
	steps->stream = signs->threads[thread].stream;
	steps->own_ranges = true;
	steps->confidence = STEPS_HIGH;
	say_ranges(steps, reader, &signs->signs[spans->spans[0].first], kind);
	return true;
}

/* ---- rows of a training, calls of a model ---- */

static bool find_training(
	struct trace_reader *reader, const struct signs *signs, struct steps *steps, struct step_spans *spans)
{
	const unsigned work = 1u << SIGN_DATA | 1u << SIGN_FORWARD | 1u << SIGN_OPTIMIZER;
	const bool ended = (reader_header(reader)->flags & TRACE_ENDED) != 0;
	enum sign_kind ender = SIGN_OPTIMIZER;
	uint32_t thread = steps_thread(signs, work, ender);

	if (thread == SIGN_ALONE && signs->count_of[SIGN_BACKWARD] >= TRAINING_LEAST) {
		ender = SIGN_BACKWARD;
		thread = steps_thread(signs, work, SIGN_FORWARD);
	}
	if (thread == SIGN_ALONE)
		return false;
	steps_of_training(reader, signs, (uint16_t)thread, ender, ended, steps, spans);
	if (spans->count < TRAINING_LEAST) {
		*spans = (struct step_spans){ .spans = spans->spans, .room = spans->room };
		*steps = (struct steps){ .confidence = STEPS_NONE };
		return false;
	}
	steps->stream = signs->threads[thread].stream;
	snprintf(steps->evidence, sizeof steps->evidence, "%s",
		ender == SIGN_OPTIMIZER ? "optimizer.step" : "the computing of gradients");
	return true;
}

/* Outermost modules of one name, and what they took. */
struct model {
	uint32_t name;
	uint64_t ns;
};

static int by_name(const void *a, const void *b)
{
	const struct model *left = a, *right = b;

	return (left->name > right->name) - (left->name < right->name);
}

/* The name of the outermost modules with most time on a thread, and its share of all of theirs in hundredths. */
static uint32_t main_model(struct trace_reader *reader, const struct signs *signs, uint32_t thread, unsigned *share)
{
	struct model *models = need((size_t)(signs->count_of[SIGN_FORWARD] + 1) * sizeof *models), best = { .name = 0 };
	uint64_t all = 0;
	size_t count = 0;

	for (size_t i = 0; i < signs->count; i++) {
		const struct sign *sign = &signs->signs[i];

		if (sign->thread == thread && sign->kind == SIGN_FORWARD)
			models[count++] = (struct model){ .name = reader_place(reader, sign->place)->name,
				.ns = sign->end_ns - sign->begin_ns };
	}
	qsort(models, count, sizeof *models, by_name);
	for (size_t i = 0; i < count; i++) {
		all += models[i].ns;
		if (i > 0 && models[i].name == models[i - 1].name)
			models[i].ns += models[i - 1].ns;
		if (!best.name || models[i].ns > best.ns)
			best = models[i];
	}
	free(models);
	*share = all ? (unsigned)((long double)best.ns * 100 / (long double)all) : 0;
	return best.name;
}

static bool find_calls(
	struct trace_reader *reader, const struct signs *signs, struct steps *steps, struct step_spans *spans)
{
	const uint32_t thread = steps_thread(signs, 1u << SIGN_FORWARD, SIGN_FORWARD);
	unsigned share;
	uint32_t name;

	if (thread == SIGN_ALONE)
		return false;
	name = main_model(reader, signs, thread, &share);
	for (uint32_t i = 0; i < signs->count; i++)
		if (signs->signs[i].thread == thread && signs->signs[i].kind == SIGN_FORWARD &&
			reader_place(reader, signs->signs[i].place)->name == name)
			step_spans_add(spans, i, i, signs->signs[i].is_open);
	if (spans->count < CALLS_LEAST) {
		spans->count = 0;
		return false;
	}
	steps->stream = signs->threads[thread].stream;
	steps->confidence = share >= 80 ? STEPS_MEDIUM : STEPS_LOW;
	if (share < 80)
		snprintf(steps->reason, sizeof steps->reason,
			"it makes %u %% of the calls of outermost modules, in time", share);
	snprintf(steps->evidence, sizeof steps->evidence, "calls of the outermost module");
	return true;
}

/* ---- what they come to ---- */

static uint64_t took(const struct steps *steps, size_t step)
{
	return steps->steps[step].end_ns - steps->steps[step].begin_ns;
}

/* The first steps that took more than 1.5 times what the later ones take, and clearly more than those differ among
 * themselves: up to the first two in a row that did not. Where steps differ too much for that (a busy machine), the first that took
 * longer than any of the later half. */
static void mark_warm_up(struct steps *steps)
{
	const size_t count = steps->count - steps->unfinished, half = count / 2;
	uint64_t *times = need((count + 1) * sizeof *times), usual, spread, limit, longest = 0;
	size_t slow = 0;

	for (size_t i = half; i < count; i++) {
		times[i - half] = took(steps, i);
		longest = took(steps, i) > longest ? took(steps, i) : longest;
	}
	usual = steps_median(times, count - half);
	for (size_t i = 0; i < count - half; i++)
		times[i] = times[i] > usual ? times[i] - usual : usual - times[i];
	spread = steps_median(times, count - half);
	limit = usual + (usual / 2 > 6 * spread ? usual / 2 : 6 * spread);
	while (slow < count && (took(steps, slow) > limit || (slow + 1 < count && took(steps, slow + 1) > limit)))
		slow++;
	free(times);
	if (slow > half)
		for (slow = 0; slow < half && took(steps, slow) > longest && took(steps, slow) > usual + usual / 2; slow++)
			continue;
	if (count < 3 || count - slow < 2)
		return;
	for (size_t i = 0; i < slow; i++)
		steps->steps[i].kind = STEP_WARM_UP;
	steps->warm_up = slow;
}

size_t steps_usual(const struct steps *steps)
{
	return steps->count - steps->warm_up - steps->unfinished - steps->captures;
}

static bool captures_in(const struct signs *signs, const struct step *step, size_t *at)
{
	while (*at < signs->capture_count && signs->captures[*at].end_ns < step->begin_ns)
		++*at;
	return *at < signs->capture_count && signs->captures[*at].begin_ns < step->end_ns;
}

/* Steps in which a CUDA graph was made: others launch it, and take a fraction of the time or many times as long. */
static void mark_captures(const struct signs *signs, struct steps *steps)
{
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0, at = 0; i < steps->count; i++) {
			if (steps->steps[i].kind != STEP_USUAL || !captures_in(signs, &steps->steps[i], &at))
				continue;
			if (pass == 0) {
				count++;
			} else if (count * 2 < steps_usual(steps) + steps->captures) {
				steps->steps[i].kind = STEP_CAPTURE;
				steps->captures++;
			}
		}
}

void steps_sum(struct steps *steps)
{
	uint64_t *times = need((steps->count + 1) * sizeof *times);
	size_t count = 0;

	steps->min_ns = steps->max_ns = steps->sum_ns = 0;
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].kind != STEP_USUAL)
			continue;
		times[count] = steps->steps[i].end_ns - steps->steps[i].begin_ns;
		if (!count || times[count] < steps->min_ns)
			steps->min_ns = times[count];
		if (times[count] > steps->max_ns)
			steps->max_ns = times[count];
		steps->sum_ns += times[count++];
	}
	steps->p50_ns = steps_median(times, count);
	free(times);
}

static void find(struct trace_reader *reader, const struct signs *signs, const char *marker, struct steps *steps)
{
	struct step_spans spans = { .count = 0 };

	if (find_ranges(reader, signs, SIGN_NAMED, steps, &spans) ||
		find_ranges(reader, signs, SIGN_PROFILER, steps, &spans) ||
		find_ranges(reader, signs, SIGN_RANGE, steps, &spans)) {
		steps_time_ranges(reader, signs, &spans, steps);
	} else if (find_training(reader, signs, steps, &spans)) {
		steps_time_spans(signs, &spans, true, steps);
	} else if (find_calls(reader, signs, steps, &spans)) {
		steps_time_spans(signs, &spans, false, steps);
	} else {
		snprintf(steps->reason, sizeof steps->reason,
			"no optimizer steps twice, and no outermost module is called three times");
	}
	if (marker && !signs->count_of[SIGN_NAMED])
		snprintf(steps->warning, sizeof steps->warning,
			"no range is named `%.100s`, as the step marker wants it", marker);
	free(spans.spans);
	if (!steps->count)
		return;
	mark_warm_up(steps);
	mark_captures(signs, steps);
	steps_sum(steps);
}

/* What the program's environment said. Lives as long as the caller keeps it. */
static char *noted_marker(struct trace_reader *reader)
{
	const struct trace_text text = reader_meta(reader, "env.PPERF_STEP_MARKER");
	char *marker = need(text.length + 1);

	memcpy(marker, text.bytes, text.length);
	return marker;
}

struct steps *steps_find(struct trace_reader *reader, const char *marker, struct timeline *timeline)
{
	char *noted = noted_marker(reader);
	const char *wanted = marker && *marker ? marker : *noted ? noted : NULL;
	struct signs *signs = signs_read(reader, wanted, timeline);
	struct steps *steps = NULL;

	if (signs) {
		steps = need(sizeof *steps);
		find(reader, signs, wanted, steps);
	}
	signs_free(signs);
	free(noted);
	return steps;
}

void steps_free(struct steps *steps)
{
	if (steps)
		free(steps->steps);
	free(steps);
}

const char *steps_confidence_name(enum steps_confidence confidence)
{
	static const char *const names[] = { "none", "low", "medium", "high" };

	return names[confidence];
}
