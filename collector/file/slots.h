/* SPDX-License-Identifier: MIT
 * Manages the slots of the trace file. A slot is a block (TRACE_SLOT), mapped into memory, to which
 * one thread writes its current records. When it is full it is sealed: its records are written to
 * the end of the file as a chunk, and it is emptied. A thread begins with a small slot, and gets a
 * large one when that is sealed. A released slot goes to the next thread that needs one.
 *
 * Any thread may call, under the signal guard.
 */
#ifndef PPERF_COLLECTOR_FILE_SLOTS_H
#define PPERF_COLLECTOR_FILE_SLOTS_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Allocates the state. Called once, before any other function here. Returns false if there is no
 * memory. */
bool slots_setup(void);

/* Returns an empty slot, small or large, and its file offset in `offset`. Returns NULL if there is
 * no space, with the reason in `reason`. */
struct trace_block *slot_acquire(bool large, uint64_t *offset, enum trace_loss *reason);
bool slot_is_large(const struct trace_block *slot);

/* Releases an empty slot, which another thread may then acquire. */
void slot_release(struct trace_block *slot, uint64_t offset);

/* Empties the slot, once its records have been sealed. */
void slot_clear(struct trace_block *slot);

/* Counts the program's events in the slot's payload. Records of pperf itself are left out (CLOCK,
 * OPEN, SELF, LOST, and what a ring restates). */
uint64_t slot_events(const struct trace_block *slot);

#endif
