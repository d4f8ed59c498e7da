/* SPDX-License-Identifier: MIT
 * Computes a DWARF expression of an unwind rule: those of procedure linkage tables, of signal
 * frames and of functions that align their stack.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_UNWIND_EXPRESSION_H
#define PPERF_COLLECTOR_SAMPLE_UNWIND_EXPRESSION_H

#include "collector/sample/unwind.h"

/* Reads the word at `address` of the thread's memory. Returns false if it cannot be read. */
typedef bool unwind_read_word(void *memory, uint64_t address, uint64_t *word);

/* `first`: what is on the expression's stack at the start; NULL: nothing. Returns false if the
 * expression is damaged, needs a register that is not known, or memory that cannot be read. */
bool unwind_expression_compute(const struct unwind_expression *expression,
	const struct unwind_registers *registers, const uint64_t *first, unwind_read_word *read,
	void *memory, uint64_t *result);

#endif
