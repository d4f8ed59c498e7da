/* SPDX-License-Identifier: MIT
 * Finds the callers of a thread of this process, from its registers and a copy of the top of its
 * stack. What is above the copy is read from the thread's memory: the outer frames usually do not
 * change while an inner one runs.
 *
 * Code without unwind rules (hand-written kernels, code made at run time) is passed by a search of
 * the stack for the first word that may be a return address. Such a stack is marked.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_UNWIND_H
#define PPERF_COLLECTOR_SAMPLE_UNWIND_H

#include "collector/sample/unwind_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX 512u
#define UNWIND_GUESSES_MAX 2u /* searches in one stack */

/* The state of a thread. */
struct unwind_registers {
	uint64_t value[UNWIND_REGISTERS]; /* by enum unwind_register; RETURN: the instruction */
	uint32_t known;                   /* a bit for each register whose value is known */
};
#define UNWIND_ALL_KNOWN ((1u << UNWIND_REGISTERS) - 1)

struct unwind_start {
	struct unwind_registers registers; /* RSP and RETURN must be known */
	const void *stack;                 /* a copy of the memory from RSP on */
	size_t stack_bytes;
};

struct unwind_stack {
	uint32_t frames;
	bool guessed; /* a search found some of the frames */
	bool cut;     /* the thread's first frame was not reached */
	/* Innermost first: the instruction, then return addresses. */
	uint64_t address[UNWIND_FRAMES_MAX];
	/* Where in the thread's memory each return address is; 0: not known. */
	uint64_t place[UNWIND_FRAMES_MAX];
};

/* Rules that were read, the list of objects and memory for one walk: about 4 MiB of which only
 * what is used takes memory. One thread uses it. */
struct unwinder;

/* Returns NULL if there is no memory. A forked child inherits it. */
struct unwinder *unwinder_open(void);
void unwinder_close(struct unwinder *u);

/* Learns which objects were loaded and unloaded. Call it before a group of walks. Returns whether
 * there were any. */
bool unwinder_update(struct unwinder *u);

/* Sets [*begin, *end) to the code around `pc` that has the same entry of .eh_frame: a function or a
 * part of one. Returns false if there is none. */
bool unwinder_find_function(struct unwinder *u, uint64_t pc, uint64_t *begin, uint64_t *end);

/* Begins a walk. Copies a part of the stack beyond the given one if the walk will need it: above
 * the room that code without rules has made for its data. The sooner after the thread was sampled,
 * the better: it may return meanwhile. Returns whether more was needed. */
bool unwinder_begin(struct unwinder *u, const struct unwind_start *start);

/* Finds the callers. The stack that was given to unwinder_begin() must still be there. */
void unwinder_walk(struct unwinder *u, struct unwind_stack *stack);

#endif
