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

#define SHARED_WARM_UP_MAX 3u
#define TRAINING_MIN 2u /* iterations: a single optimizer step is not a loop */

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

/* Makes steps of the ranges: of all threads that have their own, else of `thread` only. */
static void add_range_steps(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, struct steps *steps, struct step_spans *spans)
{
	if (!steps_from_thread_ranges(reader, evidence, thread, spans, steps))
		steps_from_ranges(reader, evidence, spans, steps);
	describe_ranges(reader, evidence, thread, steps, spans);
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
		if (evidence->items[i].kind == kind && !is_inside_kind(evidence, i, kind))
			step_spans_add(spans, i, i, evidence->items[i].is_open);
	add_range_steps(reader, evidence, thread, steps, spans);
	return true;
}

static bool find_named(struct trace_reader *reader, const struct evidence_list *evidence,
	struct steps *steps, struct step_spans *spans)
{
	uint16_t thread;

	if (!steps_from_named_ranges(evidence, &thread, spans))
		return false;
	add_range_steps(reader, evidence, thread, steps, spans);
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

static uint64_t step_duration_ns(const struct steps *steps, size_t step)
{
	return steps->steps[step].end_ns - steps->steps[step].begin_ns;
}

static uint64_t longest_duration_ns(const struct steps *steps, size_t first, size_t end)
{
	uint64_t longest = 0;

	for (; first < end; first++)
		if (step_duration_ns(steps, first) > longest)
			longest = step_duration_ns(steps, first);
	return longest;
}

/* Returns the usual duration of the steps from `first` on, and the usual deviation from it. */
static uint64_t usual_duration_ns(
	const struct steps *steps, size_t first, size_t end, uint64_t *spread)
{
	uint64_t *times = xcalloc((end - first + 1) * sizeof *times), usual;

	for (size_t i = first; i < end; i++)
		times[i - first] = step_duration_ns(steps, i);
	usual = steps_median(times, end - first);
	for (size_t i = 0; i < end - first; i++)
		times[i] = times[i] > usual ? times[i] - usual : usual - times[i];
	*spread = steps_median(times, end - first);
	free(times);
	return usual;
}

/* Marks the slow steps at the begin as warm-up. The usual duration and the usual deviation are
 * medians over the later half. Slow means above 1.5 times the usual duration, and above it by 6
 * times the usual deviation. Warm-up ends at the first two consecutive steps that are not slow.
 *
 * More than half may be slow on a busy machine. Then slow means longer than all steps of the later
 * half, and longer than 1.5 times the usual duration. So it does if threads slow each other down.
 * There at most the first SHARED_WARM_UP_MAX steps of a thread are warm-up, because later ones may
 * be slow for as long as many threads work. */
void steps_mark_warm_up(struct steps *steps, bool is_shared)
{
	const size_t count = steps->count - steps->unfinished, half = count / 2;
	const uint64_t longest = longest_duration_ns(steps, half, count);
	uint64_t spread, limit;
	const uint64_t usual = usual_duration_ns(steps, half, count, &spread);
	const size_t most = is_shared && half > SHARED_WARM_UP_MAX ? SHARED_WARM_UP_MAX : half;
	size_t slow = 0;

	limit = usual + (usual / 2 > 6 * spread ? usual / 2 : 6 * spread);
	while (slow < count &&
		(step_duration_ns(steps, slow) > limit ||
			(slow + 1 < count && step_duration_ns(steps, slow + 1) > limit)))
		slow++;
	if (slow > half || is_shared)
		for (slow = 0; slow < most && step_duration_ns(steps, slow) > longest &&
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
	size_t begun;

	if (!steps || steps_overlap(steps))
		return NULL;
	begun = steps_begun(steps->steps, steps->count, at_ns);
	return begun && at_ns < steps->steps[begun - 1].end_ns ? &steps->steps[begun - 1] : NULL;
}

size_t steps_usual(const struct steps *steps)
{
	return steps->count - steps->warm_up - steps->unfinished - steps->captures - steps->edges;
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

/* Stores the durations of the usual steps of `steps`, sorted. Returns their number. */
static size_t usual_durations(const struct step *const *steps, size_t count, uint64_t *times)
{
	size_t usual = 0;

	for (size_t i = 0; i < count; i++)
		if (steps[i]->kind == STEP_USUAL)
			times[usual++] = steps[i]->end_ns - steps[i]->begin_ns;
	qsort(times, usual, sizeof *times, compare_u64);
	return usual;
}

void steps_sum(struct steps *steps)
{
	const struct step **all = xcalloc((steps->count + 1) * sizeof *all);
	uint64_t *times = xcalloc((steps->count + 1) * sizeof *times);
	size_t count;

	for (size_t i = 0; i < steps->count; i++)
		all[i] = &steps->steps[i];
	for (size_t i = 0; i < steps->thread_count; i++) {
		struct steps_thread *thread = &steps->threads[i];

		thread->usual = count = usual_durations(
			&steps->by_thread[thread->first], thread->count, times);
		thread->p50_ns = count ? times[(count - 1) / 2] : 0;
		thread->p95_ns = count ? times[(count * 95 + 99) / 100 - 1] : 0;
		thread->max_ns = count ? times[count - 1] : 0;
	}
	count = usual_durations(all, steps->count, times);
	steps->min_ns = count ? times[0] : 0;
	steps->p50_ns = count ? times[(count - 1) / 2] : 0;
	steps->max_ns = count ? times[count - 1] : 0;
	steps->sum_ns = 0;
	for (size_t i = 0; i < count; i++)
		steps->sum_ns += times[i];
	free(times);
	free(all);
}

static void find_any_steps(struct trace_reader *reader, const struct evidence_list *evidence,
	const char *marker, struct steps *steps)
{
	struct step_spans spans = { .count = 0 };

	if (find_marked(reader, evidence, EVIDENCE_NAMED, steps, &spans) ||
		find_marked(reader, evidence, EVIDENCE_PROFILER, steps, &spans) ||
		find_named(reader, evidence, steps, &spans)) {
		/* ranges of the program, of one thread or of several */
	} else if (find_training(reader, evidence, steps, &spans)) {
		steps_from_spans(evidence, &spans, true, steps);
	} else if (steps_from_calls(reader, evidence, steps)) {
		/* several threads: each has a warm-up of its own */
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
	if (!steps_overlap(steps)) {
		steps_mark_warm_up(steps, false);
		mark_captures(evidence, steps);
		steps_mark_edges(evidence, steps);
	}
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
	if (!steps)
		return;
	free(steps->steps);
	free(steps->threads);
	free(steps->by_thread);
	free(steps);
}

const char *steps_confidence_name(enum steps_confidence confidence)
{
	static const char *const names[] = { "none", "low", "medium", "high" };

	return names[confidence];
}
