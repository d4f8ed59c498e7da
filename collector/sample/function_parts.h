/* SPDX-License-Identifier: MIT
 * Finds all code of a function. GCC may move what it expects to run rarely into a second part, far
 * from the function's entry and with unwind rules of its own (`function.cold`). Debian's CPython
 * has most of its interpreter's function there from 3.13 on.
 *
 * The symbol table of a stripped program does not say so. But only parts of one function jump to
 * the middle of each other: other functions are called, or jumped to, at their first instruction.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_FUNCTION_PARTS_H
#define PPERF_COLLECTOR_SAMPLE_FUNCTION_PARTS_H

#include "collector/sample/unwind.h"

/* Addresses [begin, end) of code. */
struct code_range {
	uint64_t begin, end;
};

/* all[0] begins at the function's entry. all[1].end is 0 if there is no second part. */
struct function_parts {
	struct code_range all[2];
};

/* Finds the parts of the function that begins at `entry`. Returns false if there are no unwind
 * rules that say where it ends. */
bool function_parts_find(struct unwinder *u, uint64_t entry, struct function_parts *parts);

/* Whether frame `i` of `stack` is of the function. */
bool function_parts_has_frame(
	const struct function_parts *parts, const struct unwind_stack *stack, uint32_t i);

/* Returns how many frames of `stack` are of the function. Leaves out the `inner` innermost frames
 * of the stack. */
uint32_t function_parts_count_frames(
	const struct function_parts *parts, const struct unwind_stack *stack, uint32_t inner);

#endif
