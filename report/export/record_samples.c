/* SPDX-License-Identifier: MIT */
#include "report/export/record_samples.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/external_sort.h"
#include <stdlib.h>

#define SAMPLES_IN_MEMORY 32768u

struct sorted_sample {
	uint64_t at_ns, weight_ns;
	uint32_t cell, order; /* order: as they were read */
};

static int compare_samples(const void *left, const void *right)
{
	const struct sorted_sample *a = left, *b = right;

	return a->at_ns != b->at_ns ? COMPARE(a->at_ns, b->at_ns) : COMPARE(a->order, b->order);
}

static void add_sorted(void *context, uint32_t cell, uint64_t ns, uint64_t at_ns)
{
	struct record_samples *samples = context;
	struct sorted_sample *sample = external_sort_add(samples->sorted);

	sample->at_ns = at_ns;
	sample->weight_ns = ns;
	sample->cell = cell;
	sample->order = (uint32_t)external_sort_count(samples->sorted);
}

struct record_samples *record_samples_read(struct process *process)
{
	struct sample_cells *cells = sample_cells_of(process);
	struct record_samples *samples;

	if (!cells)
		return NULL;
	samples = xcalloc(sizeof *samples);
	samples->cells = cells;
	samples->stacks = sample_stacks_of(cells, SAMPLE_FRAMES_MERGED);
	samples->sorted = external_sort_new(sizeof(struct sorted_sample), SAMPLES_IN_MEMORY,
		compare_samples, "the CPU samples");
	sample_cells_visit(cells, add_sorted, samples);
	external_sort_rewind_last(samples->sorted);
	return samples;
}

void record_samples_free(struct record_samples *samples)
{
	if (!samples)
		return;
	external_sort_free(samples->sorted);
	free(samples);
}

bool record_samples_next(struct record_samples *samples, struct record_sample *sample)
{
	const struct sorted_sample *next = external_sort_peek(samples->sorted);
	const struct sample_cell *cell;

	if (!next)
		return false;
	cell = &samples->cells->cells[next->cell];
	*sample = (struct record_sample){ .at_ns = next->at_ns,
		.cell = cell,
		.weight_ns = next->weight_ns,
		.frame = samples->stacks->of_cell[next->cell],
		.tid = samples->cells->process->profile->sampled_threads[cell->thread].tid };
	external_sort_next(samples->sorted);
	return true;
}

static const struct sample_function *function_of_frame(
	const struct record_samples *samples, const struct stack_frame *frame)
{
	return &samples->cells->functions.all[frame->frame.function];
}

struct string_view record_frame_name(
	const struct record_samples *samples, const struct stack_frame *frame)
{
	return string_table_get(
		samples->cells->process->texts, function_of_frame(samples, frame)->name);
}

struct string_view record_frame_file(
	const struct record_samples *samples, const struct stack_frame *frame)
{
	const uint32_t file = function_of_frame(samples, frame)->library;

	return file ? string_table_get(samples->cells->process->texts, file)
		    : (struct string_view){ "", 0 };
}

const char *record_sample_state(const struct record_sample *sample)
{
	switch (sample->cell->state) {
	case TRACE_SAMPLE_KERNEL:
		return "kernel";
	case TRACE_SAMPLE_WAITS_FOR_CORE:
		return "waits for a core";
	case TRACE_SAMPLE_BLOCKED:
		return "blocked";
	default:
		return "cpu";
	}
}
