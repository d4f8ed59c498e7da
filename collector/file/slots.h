/* SPDX-License-Identifier: MIT
 * slots.h: the slots of the trace file that threads write to. One that is given back goes to the next thread that needs one. Threads: any, with
 * signals held back (quiet.h).
 */
#ifndef PPERF_COLLECTOR_FILE_SLOTS_H
#define PPERF_COLLECTOR_FILE_SLOTS_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Once, before anything else. false: no memory. */
bool slots_setup(void);

/* A slot, empty: of the first size, or of the later one. NULL: no room, *reason says why. */
struct trace_block *slot_acquire(bool large, uint64_t *offset, enum trace_loss *reason);
bool slot_is_large(const struct trace_block *slot);

/* An empty one may go to another thread. */
void slot_release(struct trace_block *slot, uint64_t offset);

/* Its records have been sealed. */
void slot_clear(struct trace_block *slot);

/* What its payload holds that the program did. */
uint64_t slot_events(const struct trace_block *slot);

#endif
