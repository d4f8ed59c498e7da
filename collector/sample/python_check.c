/* SPDX-License-Identifier: MIT */
#include "collector/sample/python_check.h"

#include "collector/sample/frame_tree.h"
#include "collector/sample/process_memory.h"

#include <string.h>

void later_stack_copy(struct later_stack *later, const struct unwind_start *start)
{
	const size_t bytes = start->stack_bytes < sizeof later->copy ? start->stack_bytes
								     : sizeof later->copy;

	later->from = start->registers.value[UNWIND_RSP];
	later->bytes = process_memory_copy(later->copy, later->from, bytes);
}

/* Whether a return address of the stack is no longer where it was. What is above the copies was
 * read from the thread's memory only when the stack was unwound, and so it was there later. */
static bool has_changed(
	const struct unwind_stack *stack, uint32_t i, const struct later_stack *later)
{
	const uint64_t offset = stack->place[i] - later->from;
	uint64_t now;

	if (!stack->place[i] || later->bytes < sizeof now || offset > later->bytes - sizeof now)
		return false;
	memcpy(&now, later->copy + offset, sizeof now);
	return now != stack->address[i];
}

/* Returns how many of the innermost frames are over: the thread has returned from them. Below an
 * address that has changed others may be as they were, because nothing has overwritten them. */
static uint32_t count_over(const struct unwind_stack *stack, const struct later_stack *later)
{
	for (uint32_t i = stack->frames - 1; i > 0; i--)
		if (has_changed(stack, i, later))
			return i;
	return 0;
}

/* Returns the Python frames that the thread had when it was sampled and has not left since. It was
 * in `calls` calls of the interpreter's function then, which are not over. Each of them but the
 * innermost is where it was, since it waits for the next. */
static uint32_t frames_that_stayed(uint32_t python, uint32_t calls)
{
	const uint32_t entries = frame_python_entries(python),
		       common = calls < entries ? calls : entries;

	return common ? frame_python_outer(python, common - 1) : 0;
}

void python_check(struct sample *sample, const struct function_parts *interpreter,
	const struct unwind_stack *stack, const struct later_stack *later)
{
	const uint32_t over = count_over(stack, later),
		       calls = function_parts_count_frames(interpreter, stack, 0),
		       calls_over = calls - function_parts_count_frames(interpreter, stack, over);

	if (sample->flags & TRACE_SAMPLE_MOVED) {
		sample->python = frame_python_outer(sample->python, calls - calls_over);
		return;
	}
	if (frame_python_entries(sample->python) == calls && !calls_over)
		return;
	/* The interpreter calls and returns without a trace above the place where it was. */
	if (over || function_parts_has_frame(interpreter, stack, 0)) {
		sample->flags |= TRACE_SAMPLE_MOVED;
		sample->python = frames_that_stayed(sample->python, calls - calls_over);
	} else {
		sample->flags |= TRACE_SAMPLE_UNEQUAL;
		sample->python = 0;
	}
}
