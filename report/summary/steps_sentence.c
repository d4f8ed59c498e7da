/* SPDX-License-Identifier: MIT */
#include "report/summary/steps_sentence.h"

static void add_excluded_steps(struct paragraph *paragraph, size_t count, const char *what)
{
	if (!count)
		return;
	paragraph_add(paragraph, ", ");
	paragraph_value(paragraph, UNIT_COUNT, count);
	paragraph_add(paragraph, " %s excluded", what);
}

#define THREADS_NAMED 4u

/* Appends `38 + 40 steps` for few threads, `1,234 steps` for one or many. */
static void add_step_counts(struct paragraph *paragraph, const struct steps *steps, size_t usual)
{
	const bool each = steps->thread_count > 1 && steps->thread_count <= THREADS_NAMED;

	for (size_t i = 0; each && i < steps->thread_count; i++) {
		paragraph_add(paragraph, i ? " + " : "");
		paragraph_value(paragraph, UNIT_COUNT, steps->threads[i].usual);
	}
	if (!each)
		paragraph_value(paragraph, UNIT_COUNT, usual);
	paragraph_add(paragraph, usual == 1 ? " step of " : " steps of ");
	paragraph_value(paragraph, UNIT_TIME, steps->p50_ns);
	if (usual > 1)
		paragraph_add(paragraph, " (p50)");
	if (steps->thread_count > 1) {
		paragraph_add(paragraph, " on ");
		paragraph_value(paragraph, UNIT_COUNT, steps->thread_count);
		paragraph_add(paragraph, " threads");
	}
}

void steps_sentence_add(struct paragraph *paragraph, const struct steps *steps)
{
	size_t usual;

	if (!steps->count) {
		paragraph_add(paragraph, "%s", steps->reason);
		return;
	}
	usual = steps_usual(steps);
	if (usual)
		add_step_counts(paragraph, steps, usual);
	else
		paragraph_add(paragraph, "0 steady-state steps");
	add_excluded_steps(paragraph, steps->warm_up, "warm-up");
	add_excluded_steps(paragraph, steps->captures,
		steps->captures == 1 ? "that captured a CUDA graph" : "that captured CUDA graphs");
	add_excluded_steps(paragraph, steps->unfinished, "unfinished");
	add_excluded_steps(paragraph, steps->edges, "at the edge of the recording");
	if (steps->on_gpu) {
		paragraph_add(paragraph, ", on the GPU ");
		paragraph_value(paragraph, UNIT_TIME, steps->window_p50_ns);
		paragraph_add(paragraph, ": the host is ");
		paragraph_value(paragraph, UNIT_TIME, steps->ahead_ns);
		paragraph_add(paragraph, " ahead of it");
	}
	paragraph_add(paragraph, "; found by %s (%s%s%s)", steps->evidence,
		steps_confidence_name(steps->confidence), *steps->reason ? ": " : "",
		steps->reason);
}
