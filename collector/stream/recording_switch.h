/* SPDX-License-Identifier: MIT
 * Pauses and resumes recording for all threads (PPERF_SCHEDULE). Without a schedule the switch
 * costs nothing. While recording is paused, the fast paths of ranges find a capacity of 0
 * (stream_update_limits), and only the slow paths test the switch.
 *
 * While recording is paused, ranges stay on the range stack without a record. The ranges that are
 * open when a recording window begins are the path of its events. A range that was recorded always
 * gets its end. Calls that allocate or free device memory are always recorded.
 */
#ifndef PPERF_COLLECTOR_STREAM_RECORDING_SWITCH_H
#define PPERF_COLLECTOR_STREAM_RECORDING_SWITCH_H

#include "collector/trace_format.h"
#include <stdbool.h>

extern uint32_t recording_paused; /* atomic: 1 while recording is paused */
extern bool recording_scheduled;  /* set by the constructor if there is a schedule */

static inline bool recording_is_paused(void)
{
	return __builtin_expect(__atomic_load_n(&recording_paused, __ATOMIC_RELAXED) != 0, 0);
}

/* Called by the constructor if there is a schedule. `open`: the first recording window begins with
 * the process. */
void recording_use_schedule(bool open);

/* Pauses or resumes recording, and marks the trace's header. The caller then stops the fast paths
 * of other threads (stream_recording_changed). */
void recording_set_paused(bool paused);

/* Begins a new recording window, to which recording_note_call assigns calls from here on. */
void recording_new_window(void);

/* Stores the number of steps that have ended, also in the trace's header. */
void recording_set_steps_ended(uint64_t steps);

/* Fills the members of a new file's header that describe the schedule's state. */
void recording_fill_header(struct trace_header *header);

/* Returns the enum trace_skip_kind under which a kind of record is counted while recording is
 * paused. Returns -1 if the kind is recorded all the same, or is not counted. */
int recording_skip_kind(enum trace_kind kind);

/* Adds `events` skipped events to the header's counters. `measured` of them took `ticks`. Atomic
 * additions, so it is not called for every event. */
void recording_add_skipped(
	enum trace_skip_kind kind, uint64_t events, uint64_t measured, uint64_t ticks);

/* Notes that a call was recorded. CUPTI may deliver its GPU records later. */
void recording_note_call(uint64_t correlation);
/* Returns true if the GPU records of the call with this correlation id are to be kept: the id is
 * between the first and the last one that a recording window noted. The window that is still open
 * has no last id yet. Only the latest windows are remembered. Requires recording_scheduled, because
 * without a schedule no call is noted. `correlation` 0, which belongs to no call: returns true if
 * recording is not paused. */
bool recording_has_call(uint64_t correlation);

/* Return true if the begin or end of this start/end range is to be recorded. An end is recorded if
 * its begin was. */
bool recording_begin_async(uint64_t id);
bool recording_end_async(uint64_t id);

#endif
