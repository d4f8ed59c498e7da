/* SPDX-License-Identifier: MIT */
#include "report/steps/find_steps.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/steps/step_rules.h"
#include "report/base/escape.h"
#include "report/base/search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAINING_MIN 2u /* iterations: a single optimizer step is not a loop */
#define CALLS_MIN 3u    /* calls of the same model */

void step_spans_add(struct step_spans *spans, uint32_t first, uint32_t last, bool unfinished)
{
	*ARRAY_ADD(spans->spans, spans->room, spans->count) = (struct step_span){
		.first = first, .last = last, .unfinished = unfinished
	};
}

uint32_t steps_find_thread(
	const struct evidence_list *evidence, unsigned kinds, enum evidence_kind must)
{
	uint32_t best = EVIDENCE_NO_INDEX;
	uint64_t most = 0;

	for (uint32_t i = 0; i < evidence->thread_count; i++) {
		uint64_t ns = 0;

		for (int kind = 0; kind < EVIDENCE_KINDS; kind++)
			ns += kinds >> kind & 1 ? evidence->threads[i].ns[kind] : 0;
		if (evidence->threads[i].count[must] && (best == EVIDENCE_NO_INDEX || ns > most)) {
			best = i;
			most = ns;
		}
	}
	return best;
}

/* Returns true if the item is inside another one of the same kind. */
static bool is_inside_kind(
	const struct evidence_list *evidence, uint32_t item, enum evidence_kind kind)
{
	for (item = evidence->items[item].around; item != EVIDENCE_NO_INDEX;
		item = evidence->items[item].around)
		if (evidence->items[item].kind == kind)
			return true;
	return false;
}

/* Returns true if at least half of the thread's items of kind `what` are inside ranges of kind
 * `kind`. If not, those ranges are a part of steps, such as a range `step` around the optimizer
 * only. */
static bool contains_most(const struct evidence_list *evidence, uint32_t thread,
	enum evidence_kind kind, enum evidence_kind what)
{
	size_t inside = 0, all = 0;

	for (uint32_t i = 0; i < evidence->count; i++) {
		if (evidence->items[i].thread != thread || evidence->items[i].kind != what)
			continue;
		all++;
		inside += is_inside_kind(evidence, i, kind);
	}
	return inside * 2 >= all;
}

static void describe_range_evidence(struct steps *steps, struct trace_reader *reader,
	const struct evidence_item *item, enum evidence_kind kind)
{
	const struct trace_text text = reader_name(
		reader, reader_node(reader, item->trace_node)->name);
	char shown[40];

	escape_text(shown, sizeof shown, text.bytes, text.length, true);
	if (kind == EVIDENCE_PROFILER)
		snprintf(steps->evidence, sizeof steps->evidence, "ProfilerStep");
	else if (text.length)
		snprintf(steps->evidence, sizeof steps->evidence, "ranges like `%s`", shown);
	else
		snprintf(steps->evidence, sizeof steps->evidence, "ranges");
}

/* Sets what is common to steps that are ranges of the program. */
static void describe_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, struct steps *steps, const struct step_spans *spans)
{
	const struct evidence_item *first = &evidence->items[spans->spans[0].first];

	steps->stream = evidence->threads[thread].stream;
	steps->own_ranges = true;
	steps->confidence = STEPS_HIGH;
	describe_range_evidence(steps, reader, first, (enum evidence_kind)first->kind);
}

/* Finds steps that are marked by `kind`: one is enough. */
static bool find_marked(struct trace_reader *reader, const struct evidence_list *evidence,
	enum evidence_kind kind, struct steps *steps, struct step_spans *spans)
{
	const uint32_t thread = steps_find_thread(evidence, 1u << kind, kind);

	if (thread == EVIDENCE_NO_INDEX)
		return false;
	if (kind != EVIDENCE_NAMED &&
		(!contains_most(evidence, thread, kind, EVIDENCE_FORWARD) ||
			!contains_most(evidence, thread, kind, EVIDENCE_OPTIMIZER)))
		return false;
	for (uint32_t i = 0; i < evidence->count; i++)
		if (evidence->items[i].thread == thread && evidence->items[i].kind == kind &&
			!is_inside_kind(evidence, i, kind))
			step_spans_add(spans, i, i, evidence->items[i].is_open);
	if (!spans->count)
		return false;
	describe_ranges(reader, evidence, thread, steps, spans);
	return true;
}

static bool find_named(struct trace_reader *reader, const struct evidence_list *evidence,
	struct steps *steps, struct step_spans *spans)
{
	uint16_t thread;

	if (!steps_from_named_ranges(evidence, &thread, spans))
		return false;
	describe_ranges(reader, evidence, thread, steps, spans);
	return true;
}

static bool find_training(struct trace_reader *reader, const struct evidence_list *evidence,
	struct steps *steps, struct step_spans *spans)
{
	const unsigned work = 1u << EVIDENCE_DATA | 1u << EVIDENCE_FORWARD |
			      1u << EVIDENCE_OPTIMIZER;
	const bool ended = (reader_header(reader)->flags & TRACE_ENDED) != 0;
	enum evidence_kind ender = EVIDENCE_OPTIMIZER;
	uint32_t thread = steps_find_thread(evidence, work, ender);

	if (thread == EVIDENCE_NO_INDEX && evidence->count_of[EVIDENCE_BACKWARD] >= TRAINING_MIN) {
		ender = EVIDENCE_BACKWARD;
		thread = steps_find_thread(evidence, work, EVIDENCE_FORWARD);
	}
	if (thread == EVIDENCE_NO_INDEX)
		return false;
	steps_from_training(reader, evidence, (uint16_t)thread, ender, ended, steps, spans);
	if (spans->count < TRAINING_MIN) {
		*spans = (struct step_spans){ .spans = spans->spans, .room = spans->room };
		*steps = (struct steps){ .confidence = STEPS_NONE };
		return false;
	}
	steps->stream = evidence->threads[thread].stream;
	snprintf(steps->evidence, sizeof steps->evidence, "%s",
		ender == EVIDENCE_OPTIMIZER ? "optimizer.step" : "gradient computations");
	return true;
}

/* Outermost modules of one name, and their total time. */
struct model_time {
	uint32_t name;
	uint64_t ns;
};

COMPARE_BY(by_model_name, struct model_time, name)

/* Returns the name of the outermost modules with most time on a thread. `share`: its percentage
 * of the time of all outermost modules. */
static uint32_t main_model(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, unsigned *share)
{
	struct model_time *models = xcalloc((size_t)(evidence->count_of[EVIDENCE_FORWARD] + 1) *
					    sizeof *models),
			  best = { .name = 0 };
	uint64_t all = 0;
	size_t count = 0;

	for (size_t i = 0; i < evidence->count; i++) {
		const struct evidence_item *item = &evidence->items[i];

		if (item->thread == thread && item->kind == EVIDENCE_FORWARD)
			models[count++] = (struct model_time){
				.name = reader_node(reader, item->trace_node)->name,
				.ns = item->end_ns - item->begin_ns
			};
	}
	qsort(models, count, sizeof *models, by_model_name);
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

static bool is_call_of(struct trace_reader *reader, const struct evidence_item *item, uint32_t name)
{
	return item->kind == EVIDENCE_FORWARD &&
	       reader_node(reader, item->trace_node)->name == name;
}

/* The calls of one model. */
struct model_calls {
	size_t own, others; /* on the thread with most time, and on others */
	size_t threads;
};

static struct model_calls count_calls(struct trace_reader *reader,
	const struct evidence_list *evidence, uint32_t thread, uint32_t name)
{
	struct model_calls calls = { .threads = 0 };
	uint8_t *seen = xcalloc(evidence->thread_count + 1);

	for (uint32_t i = 0; i < evidence->count; i++) {
		const struct evidence_item *item = &evidence->items[i];

		if (!is_call_of(reader, item, name))
			continue;
		calls.threads += !seen[item->thread];
		seen[item->thread] = 1;
		*(item->thread == thread ? &calls.own : &calls.others) += 1;
	}
	free(seen);
	return calls;
}

static bool find_calls(struct trace_reader *reader, const struct evidence_list *evidence,
	struct steps *steps, struct step_spans *spans)
{
	const uint32_t thread = steps_find_thread(
		evidence, 1u << EVIDENCE_FORWARD, EVIDENCE_FORWARD);
	struct model_calls calls;
	unsigned share;
	uint32_t name;

	if (thread == EVIDENCE_NO_INDEX)
		return false;
	name = main_model(reader, evidence, thread, &share);
	calls = count_calls(reader, evidence, thread, name);
	if (calls.others >= CALLS_MIN && calls.others * 5 >= calls.own) {
		/* Steps are on one thread. Calls of the others would be in whatever step they
		 * begin. */
		snprintf(steps->reason, sizeof steps->reason,
			"%zu threads call the outermost module (%zu calls), so no call is a step "
			"of the whole program; see --step-marker",
			calls.threads, calls.own + calls.others);
		return false;
	}
	for (uint32_t i = 0; i < evidence->count; i++)
		if (evidence->items[i].thread == thread &&
			is_call_of(reader, &evidence->items[i], name))
			step_spans_add(spans, i, i, evidence->items[i].is_open);
	if (spans->count < CALLS_MIN) {
		spans->count = 0;
		return false;
	}
	steps->stream = evidence->threads[thread].stream;
	steps->confidence = share >= 80 ? STEPS_MEDIUM : STEPS_LOW;
	if (share < 80)
		snprintf(steps->reason, sizeof steps->reason,
			"it makes %u %% of the calls of outermost modules, by time", share);
	snprintf(steps->evidence, sizeof steps->evidence, "calls of the outermost module");
	return true;
}

static uint64_t step_duration_ns(const struct steps *steps, size_t step)
{
	return steps->steps[step].end_ns - steps->steps[step].begin_ns;
}

/* Marks the slow steps at the begin as warm-up. The usual duration and the usual deviation are
 * medians over the later half. Slow means above 1.5 times the usual duration, and above it by 6
 * times the usual deviation. Warm-up ends at the first two consecutive steps that are not slow.
 *
 * More than half may be slow on a busy machine. Then slow means longer than all steps of the later
 * half, and longer than 1.5 times the usual duration. */
static void mark_warm_up(struct steps *steps)
{
	const size_t count = steps->count - steps->unfinished, half = count / 2;
	uint64_t *times = xcalloc((count + 1) * sizeof *times), usual, spread, limit, longest = 0;
	size_t slow = 0;

	for (size_t i = half; i < count; i++) {
		times[i - half] = step_duration_ns(steps, i);
		longest = step_duration_ns(steps, i) > longest ? step_duration_ns(steps, i)
							       : longest;
	}
	usual = steps_median(times, count - half);
	for (size_t i = 0; i < count - half; i++)
		times[i] = times[i] > usual ? times[i] - usual : usual - times[i];
	spread = steps_median(times, count - half);
	limit = usual + (usual / 2 > 6 * spread ? usual / 2 : 6 * spread);
	while (slow < count &&
		(step_duration_ns(steps, slow) > limit ||
			(slow + 1 < count && step_duration_ns(steps, slow + 1) > limit)))
		slow++;
	free(times);
	if (slow > half)
		for (slow = 0; slow < half && step_duration_ns(steps, slow) > longest &&
			       step_duration_ns(steps, slow) > usual + usual / 2;
			slow++)
			continue;
	if (count < 3 || count - slow < 2)
		return;
	for (size_t i = 0; i < slow; i++)
		steps->steps[i].kind = STEP_WARM_UP;
	steps->warm_up = slow;
}

DEFINE_COUNT_WHILE(steps_begun, struct step, item->begin_ns <= limit)

const struct step *steps_step_at(const struct steps *steps, uint64_t at_ns)
{
	const size_t begun = steps ? steps_begun(steps->steps, steps->count, at_ns) : 0;

	return begun && at_ns < steps->steps[begun - 1].end_ns ? &steps->steps[begun - 1] : NULL;
}

size_t steps_usual(const struct steps *steps)
{
	return steps->count - steps->warm_up - steps->unfinished - steps->captures;
}

static bool captures_in(const struct evidence_list *evidence, const struct step *step, size_t *at)
{
	while (*at < evidence->capture_count && evidence->captures[*at].end_ns < step->begin_ns)
		++*at;
	return *at < evidence->capture_count && evidence->captures[*at].begin_ns < step->end_ns;
}

/* Marks steps in which a CUDA graph was captured, unless most steps do that. Other steps launch
 * the graph, and take a fraction of the time or many times as long. */
static void mark_captures(const struct evidence_list *evidence, struct steps *steps)
{
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0, at = 0; i < steps->count; i++) {
			if (steps->steps[i].kind != STEP_USUAL ||
				!captures_in(evidence, &steps->steps[i], &at))
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
	uint64_t *times = xcalloc((steps->count + 1) * sizeof *times);
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

static void find_any_steps(struct trace_reader *reader, const struct evidence_list *evidence,
	const char *marker, struct steps *steps)
{
	struct step_spans spans = { .count = 0 };

	if (find_marked(reader, evidence, EVIDENCE_NAMED, steps, &spans) ||
		find_marked(reader, evidence, EVIDENCE_PROFILER, steps, &spans) ||
		find_named(reader, evidence, steps, &spans)) {
		steps_from_ranges(reader, evidence, &spans, steps);
	} else if (find_training(reader, evidence, steps, &spans)) {
		steps_from_spans(evidence, &spans, true, steps);
	} else if (find_calls(reader, evidence, steps, &spans)) {
		steps_from_spans(evidence, &spans, false, steps);
	} else if (!*steps->reason) {
		snprintf(steps->reason, sizeof steps->reason,
			"no repeating step detected (needs 2 optimizer steps or 3 calls of a root "
			"module); see --step-marker");
	}
	if (marker && !evidence->count_of[EVIDENCE_NAMED])
		snprintf(steps->warning, sizeof steps->warning,
			"no range is named `%.100s` (--step-marker)", marker);
	free(spans.spans);
	if (!steps->count)
		return;
	mark_warm_up(steps);
	mark_captures(evidence, steps);
	steps_sum(steps);
}

/* Returns the step marker from the program's environment, "" if there is none. The caller frees
 * it. */
static char *noted_marker(struct trace_reader *reader)
{
	const struct trace_text text = reader_meta(reader, "env.PPERF_STEP_MARKER");
	char *marker = xcalloc(text.length + 1);

	memcpy(marker, text.bytes, text.length);
	return marker;
}

struct steps *steps_find(struct trace_reader *reader, const char *marker, struct timeline *timeline)
{
	char *noted = noted_marker(reader);
	const char *wanted = marker && *marker ? marker : *noted ? noted : NULL;
	struct evidence_list *evidence = step_evidence_read(reader, wanted, timeline);
	struct steps *steps = NULL;

	if (evidence) {
		steps = xcalloc(sizeof *steps);
		find_any_steps(reader, evidence, wanted, steps);
	}
	step_evidence_free(evidence);
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
