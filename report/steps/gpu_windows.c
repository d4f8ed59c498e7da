/* SPDX-License-Identifier: MIT
 * Finds when the GPU ran each step. Until steps_finish_gpu, a window is the time from the first GPU
 * operation of the step to the end of its last one. The end is 0 if there is none yet.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/steps/find_steps.h"
#include "report/steps/step_rules.h"
#include <stdlib.h>

/* Steps whose host time is at most this part of a step apart follow each other without a pause. */
#define PAUSE_PART 10u

static struct step *step_of_launch(struct steps *steps, uint64_t launch_ns)
{
	struct step *step = &steps->steps[steps->last_found];

	if (launch_ns < step->begin_ns || launch_ns >= step->end_ns) {
		const struct step *found = steps_step_at(steps, launch_ns);

		if (!found)
			return NULL;
		steps->last_found = (size_t)(found - steps->steps);
		step = &steps->steps[steps->last_found];
	}
	return step;
}

void steps_add_gpu_work(struct steps *steps, uint64_t launch_ns, uint64_t begin_ns, uint64_t end_ns)
{
	struct step *step;

	if (!steps || !steps->count || steps->is_finished || steps_overlap(steps))
		return;
	step = step_of_launch(steps, launch_ns);
	if (!step || end_ns <= begin_ns)
		return;
	if (!step->window_end_ns || begin_ns < step->window_begin_ns)
		step->window_begin_ns = begin_ns;
	if (end_ns > step->window_end_ns)
		step->window_end_ns = end_ns;
}

/* Returns by how much all GPU work of the step is later than the step. */
static uint64_t lag_of(const struct step *step)
{
	const uint64_t begin = step->window_begin_ns > step->begin_ns
				       ? step->window_begin_ns - step->begin_ns
				       : 0,
		       end = step->window_end_ns > step->end_ns ? step->window_end_ns - step->end_ns
								: 0;

	return min_u64(begin, end);
}

/* Returns the median lag of the steady-state steps. 0 if less than half of them have GPU work. */
static uint64_t usual_lag(const struct steps *steps)
{
	uint64_t *lags = xcalloc((steps->count + 1) * sizeof *lags), lag;
	size_t count = 0;

	for (size_t i = 0; i < steps->count; i++)
		if (steps->steps[i].kind == STEP_USUAL && steps->steps[i].window_end_ns)
			lags[count++] = lag_of(&steps->steps[i]);
	lag = count * 2 >= steps_usual(steps) ? steps_median(lags, count) : 0;
	free(lags);
	return lag;
}

/* Ends each window where the next one begins, unless there is a pause between the steps. */
static void join_windows(struct steps *steps)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < steps->count; i++) {
		struct step *step = &steps->steps[i];
		const struct step *next = i + 1 < steps->count ? step + 1 : NULL;

		step->window_begin_ns = max_u64(step->window_begin_ns, latest);
		step->window_end_ns = max_u64(step->window_end_ns, step->window_begin_ns);
		if (next && next->window_end_ns && step->window_end_ns > step->window_begin_ns &&
			(next->window_begin_ns < step->window_end_ns ||
				(next->begin_ns - step->end_ns) * PAUSE_PART <= steps->p50_ns))
			step->window_end_ns = max_u64(step->window_begin_ns, next->window_begin_ns);
		latest = step->window_end_ns;
	}
}

static void use_own_times(struct steps *steps)
{
	for (size_t i = 0; i < steps->count; i++) {
		steps->steps[i].window_begin_ns = steps->steps[i].begin_ns;
		steps->steps[i].window_end_ns = steps->steps[i].end_ns;
	}
}

static void sum_windows(struct steps *steps)
{
	uint64_t *lengths = xcalloc((steps->count + 1) * sizeof *lengths);
	size_t count = 0;

	for (size_t i = 0; i < steps->count; i++) {
		const struct step *step = &steps->steps[i];
		const uint64_t length = step->window_end_ns - step->window_begin_ns;

		if (step->kind != STEP_USUAL || !length)
			continue;
		lengths[count++] = length;
		steps->window_sum_ns += length;
	}
	steps->window_p50_ns = steps_median(lengths, count);
	free(lengths);
}

void steps_finish_gpu(struct steps *steps)
{
	if (!steps || steps->is_finished)
		return;
	steps->is_finished = true;
	if (!steps_overlap(steps))
		steps->ahead_ns = usual_lag(steps);
	steps->on_gpu = steps->ahead_ns > steps->p50_ns / 2;
	if (steps->on_gpu)
		join_windows(steps);
	else
		use_own_times(steps);
	sum_windows(steps);
}
