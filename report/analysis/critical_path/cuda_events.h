/* SPDX-License-Identifier: MIT
 * path_events.h: what an event stands for: all work that was put into its stream before it was recorded. That work runs
 * later, so a record is open until work that came after it begins on the stream.
 *
 * Memory grows with streams, with events, and with records that are open; never with what is over. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H

#include "report/analysis/critical_path/critical_path_walk.h"

struct event_record;
struct cuda_events;

struct cuda_events *cuda_events_new(void);
void cuda_events_free(struct cuda_events *events);

/* The stream as it stands at that moment of the host's. Of the caller, who gives it back (NULL is fine). */
struct event_record *cuda_events_stream_now(
	struct cuda_events *events, uint32_t stream, uint64_t at_ns);
void event_record_release(struct event_record *record);

/* Recorded into a stream (PATH_NONE: nobody knows which). */
void cuda_events_record(
	struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns);
/* What it was last recorded as, of the caller; NULL: never. */
struct event_record *cuda_events_find(struct cuda_events *events, uint64_t event);
/* What is put into the stream from now on waits for it. */
void cuda_events_wait(struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns);

/* Work begins there that was asked for then. `held_up` is told the last work, over by now, of each event that it had to
 * wait for, each once; PATH_NONE: it is not known. */
void cuda_events_work_begin(struct cuda_events *events, uint32_t stream, uint64_t requested_ns,
	void (*held_up)(void *context, uint32_t node), void *context);
/* Work is over that ran there, or that ran elsewhere as a part of what was put there. */
void cuda_events_work_end(
	struct cuda_events *events, uint32_t stream, uint32_t node, bool ran_there);

/* The last of its work that is over by now; PATH_NONE: none is, or nobody knows. */
uint32_t cuda_events_done(const struct cuda_events *events, const struct event_record *record);
/* The same of all that was put into a stream; of what ran there. */
uint32_t cuda_events_last(const struct cuda_events *events, uint32_t stream);
uint32_t cuda_events_last_run(const struct cuda_events *events, uint32_t stream);

#endif
