/* SPDX-License-Identifier: MIT */
#include "report/analysis/sample_stacks.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

static void add_frame(struct sample_stack *stack, struct sample_frame frame)
{
	*ARRAY_ADD(stack->frames, stack->room, stack->count) = frame;
}

static void reverse(struct sample_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		const struct sample_frame outer = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = outer;
	}
}

/* Lists the frames outward, then turns them so that the outermost comes first. */
static void list_native(
	struct sample_stack *stack, struct sample_cells *cells, const struct sample_cell *cell)
{
	const struct known_frame *frame;

	stack->native_count = 0;
	if (cell->leaf)
		*ARRAY_ADD(stack->native, stack->native_room,
			stack->native_count) = (struct sample_frame){ .function = cell->leaf };
	for (uint32_t at = cell->native; (frame = sample_frame_of(&cells->functions, at));
		at = frame->parent)
		*ARRAY_ADD(stack->native, stack->native_room, stack->native_count) = frame->frame;
	reverse(stack->native, stack->native_count);
}

static void list_python(
	struct sample_stack *stack, struct sample_cells *cells, const struct sample_cell *cell)
{
	const struct known_frame *frame;

	stack->python_count = 0;
	for (uint32_t at = cell->python; (frame = sample_frame_of(&cells->functions, at));
		at = frame->parent)
		*ARRAY_ADD(stack->python, stack->python_room, stack->python_count) = frame->frame;
	reverse(stack->python, stack->python_count);
	if (stack->python_count) /* what is outermost was entered from C */
		stack->python[0].is_entry = true;
}

static const struct sample_function *function_of(
	const struct sample_cells *cells, const struct sample_frame *frame)
{
	return &cells->functions.all[frame->function];
}

static bool fits_together(const struct sample_stack *stack, const struct sample_cells *cells)
{
	size_t evals = 0, entries = 0;

	for (size_t i = 0; i < stack->native_count; i++)
		evals += function_of(cells, &stack->native[i])->is_eval;
	for (size_t i = 0; i < stack->python_count; i++)
		entries += stack->python[i].is_entry;
	return evals == entries;
}

/* Adds the native frames, each call of the interpreter as the Python frames that it ran. */
static void merge(struct sample_stack *stack, const struct sample_cells *cells, bool with_all)
{
	size_t next = 0;

	for (size_t i = 0; i < stack->native_count; i++) {
		const struct sample_function *function = function_of(cells, &stack->native[i]);

		if (!function->is_eval) {
			if (with_all || !function->is_interpreter)
				add_frame(stack, stack->native[i]);
			continue;
		}
		if (with_all)
			add_frame(stack, stack->native[i]);
		do
			add_frame(stack, stack->python[next++]);
		while (next < stack->python_count && !stack->python[next].is_entry);
	}
}

static void add_python(struct sample_stack *stack)
{
	for (size_t i = 0; i < stack->python_count; i++)
		add_frame(stack, stack->python[i]);
}

/* Adds the native frames of a stack without Python frames: the interpreter's own only if
 * `with_all`, or if the thread was in it. */
static void add_native(struct sample_stack *stack, const struct sample_cells *cells, bool with_all)
{
	for (size_t i = 0; i < stack->native_count; i++)
		if (with_all || i + 1 == stack->native_count ||
			!function_of(cells, &stack->native[i])->is_interpreter)
			add_frame(stack, stack->native[i]);
}

/* Adds the Python frames, then the native ones inside the last call of the interpreter. */
static void add_apart(struct sample_stack *stack, const struct sample_cells *cells, bool with_all)
{
	size_t from = 0;

	add_python(stack);
	for (size_t i = 0; i < stack->native_count; i++)
		if (function_of(cells, &stack->native[i])->is_eval)
			from = i + 1;
	for (size_t i = from; i < stack->native_count; i++)
		if (with_all || !function_of(cells, &stack->native[i])->is_interpreter)
			add_frame(stack, stack->native[i]);
}

static void add_state(
	struct sample_stack *stack, struct sample_cells *cells, const struct sample_cell *cell)
{
	const char *name = cell->state == TRACE_SAMPLE_KERNEL           ? "(kernel)"
			   : cell->state == TRACE_SAMPLE_WAITS_FOR_CORE ? "(waits for a core)"
			   : cell->state == TRACE_SAMPLE_BLOCKED        ? "(blocked)"
			   : stack->count                               ? NULL
									: "(no frames)";

	if (name)
		add_frame(stack, (struct sample_frame){ .function = sample_function_state(
								&cells->functions, name) });
}

/* Shows pperf's own Python code, with what it called, as one frame. */
static void cut_at_pperf(struct sample_stack *stack, const struct sample_cells *cells)
{
	for (size_t i = 0; i < stack->count; i++)
		if (sample_function_is_pperf(&cells->functions, stack->frames[i].function))
			stack->count = i + 1;
}

/* Keeps the outermost frames and the innermost one. */
static void limit_depth(struct sample_stack *stack, struct sample_cells *cells)
{
	if (stack->count <= SAMPLE_STACK_MAX)
		return;
	stack->frames[SAMPLE_STACK_MAX - 1] = stack->frames[stack->count - 1];
	stack->frames[SAMPLE_STACK_MAX - 2] = (struct sample_frame){
		.function = sample_function_state(&cells->functions, "(deeper)")
	};
	stack->count = SAMPLE_STACK_MAX;
}

void sample_stack_set(struct sample_stack *stack, struct sample_cells *cells,
	const struct sample_cell *cell, enum sample_frames which)
{
	const bool with_all = which == SAMPLE_FRAMES_ALL;

	list_native(stack, cells, cell);
	list_python(stack, cells, cell);
	stack->count = 0;
	stack->is_apart = false;
	if (which == SAMPLE_FRAMES_PYTHON)
		add_python(stack);
	else if (which == SAMPLE_FRAMES_NATIVE || !stack->python_count)
		add_native(stack, cells, which != SAMPLE_FRAMES_MERGED);
	else if (!stack->native_count)
		add_python(stack);
	else if (fits_together(stack, cells))
		merge(stack, cells, with_all);
	else {
		stack->is_apart = true;
		add_apart(stack, cells, with_all);
	}
	add_state(stack, cells, cell);
	cut_at_pperf(stack, cells);
	limit_depth(stack, cells);
}

void sample_stack_free(struct sample_stack *stack)
{
	free(stack->frames);
	free(stack->native);
	free(stack->python);
	*stack = (struct sample_stack){ .frames = NULL };
}
