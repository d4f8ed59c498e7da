/* SPDX-License-Identifier: MIT
 * path_events.h: what an event stands for: all work that was put into its stream before it was recorded. That work runs
 * later, so a record is open until work that came after it begins on the stream.
 *
 * Memory grows with streams, with events, and with records that are open; never with what is over. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H

#include "report/analysis/critical_path/critical_path_walk.h"

struct path_record;
struct path_events;

struct path_events *path_events_new(void);
void path_events_free(struct path_events *events);

/* The stream as it stands at that moment of the host's. Of the caller, who gives it back (NULL is fine). */
struct path_record *path_events_here(struct path_events *events, uint32_t lane, uint64_t at_ns);
void path_record_release(struct path_record *record);

/* Recorded into a stream (PATH_NONE: nobody knows which). */
void path_events_record(struct path_events *events, uint64_t event, uint32_t lane, uint64_t at_ns);
/* What it was last recorded as, of the caller; NULL: never. */
struct path_record *path_events_of(struct path_events *events, uint64_t event);
/* What is put into the stream from now on waits for it. */
void path_events_wait(struct path_events *events, uint64_t event, uint32_t lane, uint64_t at_ns);

/* Work begins there that was asked for then. `held_up` is told the last work, over by now, of each event that it had to
 * wait for, each once; PATH_NONE: it is not known. */
void path_events_begin(struct path_events *events, uint32_t lane, uint64_t asked_ns,
	void (*held_up)(void *context, uint32_t node), void *context);
/* Work is over that ran there, or that ran elsewhere as a part of what was put there. */
void path_events_end(struct path_events *events, uint32_t lane, uint32_t node, bool ran_there);

/* The last of its work that is over by now; PATH_NONE: none is, or nobody knows. */
uint32_t path_events_done(const struct path_events *events, const struct path_record *record);
/* The same of all that was put into a stream; of what ran there. */
uint32_t path_events_last(const struct path_events *events, uint32_t lane);
uint32_t path_events_last_there(const struct path_events *events, uint32_t lane);

#endif
