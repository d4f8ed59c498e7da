/* SPDX-License-Identifier: MIT
 * Finds the steps in which the recording begins or ends. A profiler takes time to start and to
 * stop, and the program waits for it in a step.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/steps/step_rules.h"
#include <stdlib.h>

#define OTHERS_MIN 3u /* steady-state steps besides, to tell what is usual */
/* A step is longer than others from this part of their median on. */
#define LONGER_PART 5u
/* Time without work at the edge counts from this part of the median on. */
#define EDGE_PART 10u

static uint64_t duration_ns(const struct step *step)
{
	return step->end_ns - step->begin_ns;
}

/* Returns the median duration of the steady-state steps between the first step and the last, or 0
 * if they are too few. */
static uint64_t median_between(const struct steps *steps)
{
	uint64_t *times = xcalloc((steps->count + 1) * sizeof *times), median;
	size_t count = 0;

	for (size_t i = 1; i + 1 < steps->count; i++)
		if (steps->steps[i].kind == STEP_USUAL)
			times[count++] = duration_ns(&steps->steps[i]);
	median = count < OTHERS_MIN ? 0 : steps_median(times, count);
	free(times);
	return median;
}

static void mark_edge(struct steps *steps, struct step *step, uint64_t median, uint64_t without)
{
	if (step->kind != STEP_USUAL || duration_ns(step) <= median + median / LONGER_PART ||
		without <= median / EDGE_PART)
		return;
	step->kind = STEP_AT_EDGE;
	steps->edges++;
}

/* Returns when the host or the GPU was at work last, or the end of the step if that is not known:
 * only of a step that is a range. */
static uint64_t last_activity_ns(const struct evidence_list *evidence, const struct step *step)
{
	for (size_t i = evidence->count; i > 0; i--) {
		const struct evidence_item *item = &evidence->items[i - 1];

		if (item->activity_ns && item->begin_ns == step->begin_ns &&
			item->end_ns == step->end_ns)
			return max_u64(item->activity_ns, evidence->last_gpu_ns);
	}
	return step->end_ns;
}

void steps_mark_edges(const struct evidence_list *evidence, struct steps *steps)
{
	const uint64_t median = median_between(steps), begin_ns = evidence->first_gpu_ns;
	struct step *first = steps->steps, *last = steps->steps + steps->count - 1;
	uint64_t end_ns;

	if (!median || !evidence->last_gpu_ns)
		return;
	if (begin_ns > first->begin_ns && begin_ns < first->end_ns)
		mark_edge(steps, first, median, begin_ns - first->begin_ns);
	end_ns = last_activity_ns(evidence, last);
	if (end_ns > last->begin_ns && end_ns < last->end_ns)
		mark_edge(steps, last, median, last->end_ns - end_ns);
}
