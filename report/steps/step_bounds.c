/* SPDX-License-Identifier: MIT
 * Finds when steps begin and end.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/text/label_pattern.h"
#include "report/steps/step_rules.h"
#include <stdlib.h>
#include <string.h>

uint64_t steps_median(const uint64_t *values, size_t count)
{
	uint64_t *sorted = xcalloc((count + 1) * sizeof *sorted), middle;

	memcpy(sorted, values, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, compare_u64);
	middle = count ? sorted[(count - 1) / 2] : 0;
	free(sorted);
	return middle;
}

/* Returns the number of ranges that enclose both items. */
static uint32_t common_depth(const struct evidence_list *evidence, uint32_t a, uint32_t b)
{
	while (a != EVIDENCE_NO_INDEX && b != EVIDENCE_NO_INDEX && a != b) {
		if (evidence->items[a].depth >= evidence->items[b].depth)
			a = evidence->items[a].around;
		else
			b = evidence->items[b].around;
	}
	return a != EVIDENCE_NO_INDEX && a == b ? evidence->items[a].depth + 1u : 0;
}

struct step_timing {
	const struct evidence_list *evidence;
	const struct step_spans *spans;
	uint16_t thread;
	uint32_t depth; /* number of ranges that enclose the steps */
	/* usual pause after a step's last item; longer ones than `limit` are not pauses */
	uint64_t pause_ns, limit;
	/* by span: end of its last item, with the ranges of the program around it */
	uint64_t *ends;
};

/* Returns the outermost range around an item that belongs to its step. */
static uint32_t outermost_around(const struct step_timing *timing, uint32_t item)
{
	while (timing->evidence->items[item].depth > timing->depth &&
		timing->evidence->items[item].around != EVIDENCE_NO_INDEX)
		item = timing->evidence->items[item].around;
	return item;
}

static uint64_t step_begin_ns(const struct step_timing *timing, size_t index)
{
	const struct evidence_item *item =
		&timing->evidence->items[timing->spans->spans[index].first];

	if (item->kind == EVIDENCE_BACKWARD || (item->kind == EVIDENCE_OPTIMIZER && index > 0))
		return index > 0 ? timing->ends[index - 1] : item->begin_ns;
	return timing->evidence->items[outermost_around(timing, timing->spans->spans[index].first)]
		.begin_ns;
}

static uint64_t step_end_ns(const struct step_timing *timing, size_t index)
{
	const uint32_t last = timing->spans->spans[index].last;
	const struct evidence_item *item = &timing->evidence->items[last];

	return item->thread == timing->thread
		       ? timing->evidence->items[outermost_around(timing, last)].end_ns
		       : item->end_ns;
}

static void measure_pauses(struct step_timing *timing)
{
	const size_t count = timing->spans->count;
	uint64_t *pauses = xcalloc((count + 1) * sizeof *pauses),
		 *durations = xcalloc((count + 1) * sizeof *durations);

	for (size_t i = 0; i < count; i++)
		timing->ends[i] = step_end_ns(timing, i);
	for (size_t i = 0; i + 1 < count; i++) {
		const uint64_t begin = step_begin_ns(timing, i),
			       next = step_begin_ns(timing, i + 1);

		pauses[i] = next > timing->ends[i] ? next - timing->ends[i] : 0;
		durations[i] = timing->ends[i] > begin ? timing->ends[i] - begin : 0;
	}
	timing->pause_ns = count > 1 ? steps_median(pauses, count - 1) : 0;
	timing->limit = 4 * timing->pause_ns +
			(count > 1 ? steps_median(durations, count - 1) / 10 : 0);
	free(pauses);
	free(durations);
}

/* Returns the latest time at which a step may end: the end of the range around it, the next
 * evaluation, or the next step. */
static uint64_t latest_end(const struct step_timing *timing, size_t index)
{
	const struct evidence_list *evidence = timing->evidence;
	const struct evidence_item *first =
		&evidence->items[outermost_around(timing, timing->spans->spans[index].first)];
	const bool is_last = index + 1 == timing->spans->count;
	const size_t end = is_last ? evidence->count : timing->spans->spans[index + 1].first;
	uint64_t latest = is_last ? evidence->last_ns : step_begin_ns(timing, index + 1);

	if (first->around != EVIDENCE_NO_INDEX && latest > evidence->items[first->around].end_ns)
		latest = evidence->items[first->around].end_ns;
	for (size_t i = timing->spans->spans[index].last + 1; i < end; i++) {
		const struct evidence_item *item = &evidence->items[i];

		if (item->thread != timing->thread || item->begin_ns < timing->ends[index] ||
			(item->kind != EVIDENCE_DATA && item->kind != EVIDENCE_FORWARD))
			continue;
		item = &evidence->items[outermost_around(timing, (uint32_t)i)];
		if (item->begin_ns >= timing->ends[index] && item->begin_ns < latest)
			latest = item->begin_ns;
		break;
	}
	return latest > timing->ends[index] ? latest : timing->ends[index];
}

static void append_timed_step(struct steps *steps, const struct step *step)
{
	ARRAY_GROW(steps->steps, steps->room, steps->count + 1);
	steps->steps[steps->count] = *step;
	steps->steps[steps->count].number = steps->count;
	if (steps->count && steps->steps[steps->count - 1].end_ns > step->begin_ns)
		steps->steps[steps->count - 1].end_ns = step->begin_ns;
	steps->unfinished += step->kind == STEP_UNFINISHED;
	steps->count++;
}

void steps_from_spans(const struct evidence_list *evidence, const struct step_spans *spans,
	bool pauses, struct steps *steps)
{
	struct step_timing timing = { .evidence = evidence,
		.spans = spans,
		.thread = evidence->items[spans->spans[0].first].thread };

	for (size_t i = 0; evidence->threads[timing.thread].stream != steps->stream &&
			   i < evidence->thread_count;
		i++)
		if (evidence->threads[i].stream == steps->stream)
			timing.thread = (uint16_t)i;
	for (size_t i = 0; i + 1 < spans->count; i++) {
		const uint32_t inside = common_depth(
				       evidence, spans->spans[i].first, spans->spans[i + 1].first),
			       between = common_depth(
				       evidence, spans->spans[i].last, spans->spans[i + 1].first);

		timing.depth = inside > timing.depth ? inside : timing.depth;
		timing.depth = between > timing.depth ? between : timing.depth;
	}
	timing.ends = xcalloc(spans->count * sizeof *timing.ends);
	measure_pauses(&timing);
	for (size_t i = 0; i < spans->count; i++) {
		const struct evidence_item *first =
			&evidence->items[outermost_around(&timing, spans->spans[i].first)];
		struct step step = { .begin_ns = step_begin_ns(&timing, i),
			.end_ns = timing.ends[i],
			.trace_node = first->around == EVIDENCE_NO_INDEX
					      ? 0
					      : evidence->items[first->around].trace_node,
			.kind = spans->spans[i].unfinished ? STEP_UNFINISHED : STEP_USUAL };
		const uint64_t latest = pauses ? latest_end(&timing, i) : 0;

		if (pauses && step.kind == STEP_UNFINISHED && i + 1 == spans->count)
			step.end_ns = evidence->last_ns;
		else if (pauses && (latest - step.end_ns <= timing.limit && i + 1 < spans->count))
			step.end_ns = latest;
		else if (pauses)
			step.end_ns += latest - step.end_ns < timing.pause_ns ? latest - step.end_ns
									      : timing.pause_ns;
		if (step.end_ns < step.begin_ns)
			step.end_ns = step.begin_ns;
		append_timed_step(steps, &step);
	}
	free(timing.ends);
}

/* Finds the number in the name of a step's range. Returns false if there is none. */
static bool number_in_name(
	struct trace_reader *reader, const struct evidence_item *item, uint64_t *number)
{
	const uint32_t name = reader_node(reader, item->trace_node)->name;
	const struct trace_text text = reader_name(reader, name);

	if (name)
		return label_number(text.bytes, text.length, number);
	*number = item->number;
	return item->number != EVIDENCE_NO_NUMBER;
}

/* Gives the steps the numbers in their ranges' names, if all names have one. */
static void number_by_names(struct trace_reader *reader, const struct evidence_list *evidence,
	const struct step_spans *spans, struct steps *steps)
{
	bool numbered = steps->count == spans->count;

	for (int pass = 0; pass < 2 && numbered; pass++)
		for (size_t i = 0; i < steps->count && numbered; i++) {
			uint64_t number = 0;

			numbered = number_in_name(
				reader, &evidence->items[spans->spans[i].first], &number);
			if (pass && numbered)
				steps->steps[i].number = number;
		}
}

void steps_from_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	const struct step_spans *spans, struct steps *steps)
{
	for (size_t i = 0; i < spans->count; i++) {
		const struct evidence_item *item = &evidence->items[spans->spans[i].first];
		const struct step step = { .begin_ns = item->begin_ns,
			.end_ns = item->end_ns,
			.trace_node = item->trace_node,
			.kind = item->is_open ? STEP_UNFINISHED : STEP_USUAL };

		append_timed_step(steps, &step);
	}
	number_by_names(reader, evidence, spans, steps);
}
