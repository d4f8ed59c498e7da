/* SPDX-License-Identifier: MIT
 * window.h: whether events are recorded just now (PPERF_SCHEDULE). One switch for all threads; where nobody has asked for a schedule it stands open and
 * costs nothing: while it is shut, the quick ways of ranges find no room (stream_settle), and all others ask.
 *
 * While it is shut, ranges keep their places in the row of open ones, without a record: what is open when a window begins is the path of what is in it. Ranges
 * that were recorded get their end whenever it comes. Calls that take memory or give it back are recorded always.
 */
#ifndef PPERF_COLLECTOR_STREAM_RECORDING_SWITCH_H
#define PPERF_COLLECTOR_STREAM_RECORDING_SWITCH_H

#include "collector/trace_format.h"
#include <stdbool.h>

extern uint32_t recording_paused; /* atomic */
extern bool recording_scheduled;  /* there is a schedule; set by the constructor */

static inline bool recording_is_paused(void)
{
	return __builtin_expect(__atomic_load_n(&recording_paused, __ATOMIC_RELAXED) != 0, 0);
}

/* By the constructor: there will be windows. open: one has begun already. */
void recording_use_schedule(bool open);

/* Pauses (`shut`) or resumes recording, and marks the trace's header. The fast paths of other threads end with
 * stream_window_turned, which comes after it. */
void recording_set_paused(bool shut);

/* From here on calls are noted as those of a new window. */
void recording_new_window(void);

/* So many steps have ended. */
void recording_set_steps_ended(uint64_t steps);

/* A file has been made: what its header says of all this. */
void recording_fill_header(struct trace_header *header);

/* What a kind of record is counted as while it is shut: enum trace_skip_kind; -1: it is recorded all the same, or not worth counting. */
int recording_skip_kind(enum trace_kind kind);

/* So many events of a sort have been skipped; of these `measured` took `ticks`. Atomic; not for every event. */
void recording_add_skipped(
	enum trace_skip_kind kind, uint64_t events, uint64_t measured, uint64_t ticks);

/* ---- which calls, and which start/end ranges, were recorded; only where window_scheduled ---- */

/* A call was recorded; the GPU may tell of it later. */
void recording_note_call(uint64_t correlation);
/* Whether a record of the GPU is of such a call. correlation 0, of no call: whether a window is open. */
bool recording_has_call(uint64_t correlation);

/* A start/end range begins, or ends: whether that is to be recorded. An end is if its beginning was. */
bool recording_begin_async(uint64_t id);
bool recording_end_async(uint64_t id);

#endif
