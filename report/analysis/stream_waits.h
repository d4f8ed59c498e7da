/* SPDX-License-Identifier: MIT
 * Finds the GPU work that was launched behind a wait of its CUDA stream for an event
 * (cudaStreamWaitEvent): the first launch on the stream after the wait.
 *
 * Calls whose stream the trace does not name, as in files of torch.profiler, are taken to be of
 * one stream per thread. So for these a wait is an inference: the last thing that the thread did
 * before it launched was to make a stream wait.
 *
 * Memory: 1 MB, and 8 bytes per stream handle and thread. Not thread-safe.
 */
#ifndef PPERF_REPORT_ANALYSIS_STREAM_WAITS_H
#define PPERF_REPORT_ANALYSIS_STREAM_WAITS_H

#include "report/analysis/activities.h"

struct stream_waits;

struct stream_waits *stream_waits_new(void);
void stream_waits_free(struct stream_waits *waits);

/* Adds a call. Calls must come in the order in which they begin. */
void stream_waits_add(struct stream_waits *waits, const struct activity *call);
/* Returns true if the launch of `work` was behind a wait. Stores the wait's function, a text, in
 * `*name`. */
bool stream_waits_before(
	const struct stream_waits *waits, const struct activity *work, uint32_t *name);

#endif
