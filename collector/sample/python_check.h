/* SPDX-License-Identifier: MIT
 * Compares the Python frames of a sample with its native frames. The native frames are of the
 * moment at which the kernel took the sample. The Python frames are read some 0.1 ms later, when
 * the thread may have run on.
 *
 * In CPython each entry frame of Python is a call of the interpreter's function. Such a call is
 * over if its return address, or that of one of its callers, is no longer on the thread's stack.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_PYTHON_CHECK_H
#define PPERF_COLLECTOR_SAMPLE_PYTHON_CHECK_H

#include "collector/sample/function_parts.h"
#include "collector/sample/sampler.h"
#include "collector/sample/samples.h"

/* The memory of a thread's stack when the Python frames had been read. */
struct later_stack {
	uint64_t from; /* the address of the first byte */
	size_t bytes;
	uint8_t copy[SAMPLER_STACK_MAX];
};

/* Copies the part of the stack that `start` has a copy of. Call it right after the Python frames
 * were read. */
void later_stack_copy(struct later_stack *later, const struct unwind_start *start);

/* Changes `python` and `flags` of a sample whose Python frames are not those of its native frames.
 * If the thread has run on, the frames that it has left or entered meanwhile are dropped, and the
 * sample is MOVED. If it has not, all are dropped, and the sample is UNEQUAL. `stack`: the native
 * frames, which reach the thread's first one. */
void python_check(struct sample *sample, const struct function_parts *interpreter,
	const struct unwind_stack *stack, const struct later_stack *later);

#endif
