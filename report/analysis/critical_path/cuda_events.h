/* SPDX-License-Identifier: MIT
 * Tracks what CUDA events represent: all work that was put into a stream before the event was
 * recorded.
 *
 * That work runs later, so a record stays open until work that was requested after it begins on
 * the stream. Memory grows with streams, events and open records. Not thread-safe.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CUDA_EVENTS_H

#include "report/analysis/critical_path/critical_path_walk.h"

struct event_record;
struct cuda_events;

struct cuda_events *cuda_events_new(void);
void cuda_events_free(struct cuda_events *events);

/* The work put into `stream` before `at_ns`, a time of the host. `stream` may be PATH_NONE
 * (unknown). The caller releases the result. */
struct event_record *cuda_events_stream_now(
	struct cuda_events *events, uint32_t stream, uint64_t at_ns);
/* Drops a reference. NULL is allowed. */
void event_record_release(struct event_record *record);

/* `event` is recorded into `stream` (PATH_NONE: unknown). */
void cuda_events_record(
	struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns);
/* The last record of `event`, with a reference for the caller. NULL: it was never recorded. */
struct event_record *cuda_events_find(struct cuda_events *events, uint64_t event);
/* Work that is put into `stream` from now on waits for `event`. */
void cuda_events_wait(struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns);

/* Work that was requested at `requested_ns` begins on `stream`. Calls `held_up` once for each
 * event that the stream had to wait for, with the last node of the event's work. That work is
 * over by now. PATH_NONE: it is not known. */
void cuda_events_work_begin(struct cuda_events *events, uint32_t stream, uint64_t requested_ns,
	void (*held_up)(void *context, uint32_t node), void *context);
/* The work `node` of `stream` is over. `ran_there`: it ran on `stream`; otherwise it is part of
 * a graph that was launched in `stream`, and ran elsewhere. */
void cuda_events_work_end(
	struct cuda_events *events, uint32_t stream, uint32_t node, bool ran_there);

/* The last work of `record` that is over by now. PATH_NONE: none is, or it is not known. */
uint32_t cuda_events_done(const struct cuda_events *events, const struct event_record *record);
/* The last work that is over of all that was put into `stream`. PATH_NONE: none. */
uint32_t cuda_events_last(const struct cuda_events *events, uint32_t stream);
/* The last work that is over of all that ran on `stream`. PATH_NONE: none. */
uint32_t cuda_events_last_run(const struct cuda_events *events, uint32_t stream);

#endif
