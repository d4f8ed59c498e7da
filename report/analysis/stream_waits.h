/* SPDX-License-Identifier: MIT
 * Finds the GPU work that was launched behind a wait of its CUDA stream for an event
 * (cudaStreamWaitEvent): the first launch on the stream after the wait.
 *
 * Calls whose stream the trace does not name, as in files of torch.profiler, are taken to be of
 * one stream per thread. So for these a wait is an inference: the last thing that the thread did
 * before it launched was to make a stream wait.
 *
 * That work waits behind the call is no proof that it waits for the event: that may have been over
 * by then, and earlier work of the stream may not be in the trace. Only where the trace has the
 * event's record, as pperf's own traces do, is the event known.
 *
 * Memory: 2.5 MB, and 32 bytes per stream handle and thread. Not thread-safe.
 */
#ifndef PPERF_REPORT_ANALYSIS_STREAM_WAITS_H
#define PPERF_REPORT_ANALYSIS_STREAM_WAITS_H

#include "report/analysis/activities.h"

struct stream_waits;

/* A call that made a stream wait for an event. */
struct stream_wait {
	uint64_t at_ns; /* its begin */
	uint32_t name;  /* text: its function */
	bool recorded;  /* the call that recorded the event before is in the trace */
};

struct stream_waits *stream_waits_new(void);
void stream_waits_free(struct stream_waits *waits);

/* Adds a call, or a record of CUPTI (ACTIVITY_SYNC) that names the event of a call. They must come
 * in the order in which they begin. */
void stream_waits_add(struct stream_waits *waits, const struct activity *call);
/* Returns true if the launch of `work` was behind a wait, and stores that in `*wait`. */
bool stream_waits_before(
	const struct stream_waits *waits, const struct activity *work, struct stream_wait *wait);

#endif
