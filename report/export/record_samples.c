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

static bool is_same_frame(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->caller == b->caller && a->frame.function == b->frame.function &&
	       a->frame.line == b->frame.line;
}

static uint32_t stack_frame_number(
	struct record_samples *samples, uint32_t caller, struct sample_frame frame)
{
	const struct stack_frame wanted = { caller, frame };
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)caller << 32 | frame.function) ^ frame.line);
	struct hash_slot *slot;

	hash_index_reserve(&samples->index);
	for (slot = hash_index_first(&samples->index, hash); slot->number;
		slot = hash_index_next(&samples->index, slot))
		if (is_same_frame(&samples->frames[slot->number], &wanted))
			return slot->number;
	*ARRAY_ADD(samples->frames, samples->frame_room, samples->frame_count) = wanted;
	hash_index_add(&samples->index, slot, hash, (uint32_t)samples->frame_count - 1);
	return (uint32_t)samples->frame_count - 1;
}

static void add_stacks(struct record_samples *samples)
{
	struct sample_cells *cells = samples->cells;
	struct sample_stack stack = { .frames = NULL };

	samples->innermost = xcalloc(cells->count * sizeof *samples->innermost);
	ARRAY_ADD(samples->frames, samples->frame_room, samples->frame_count);
	for (size_t i = 0; i < cells->count; i++) {
		uint32_t number = 0;

		sample_stack_set(&stack, cells, &cells->cells[i], SAMPLE_FRAMES_MERGED);
		for (size_t k = 0; k < stack.count; k++)
			number = stack_frame_number(samples, number, stack.frames[k]);
		samples->innermost[i] = number;
	}
	sample_stack_free(&stack);
}

static void add_sorted(void *context, uint32_t cell, const struct sample_sums *sums, uint64_t at_ns)
{
	struct record_samples *samples = context;
	struct sorted_sample *sample = external_sort_add(samples->sorted);

	sample->at_ns = at_ns;
	sample->weight_ns = sums->cpu_ns + sums->waits_ns + sums->blocked_ns;
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
	add_stacks(samples);
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
	hash_index_free(&samples->index);
	free(samples->frames);
	free(samples->innermost);
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
		.frame = samples->innermost[next->cell],
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
