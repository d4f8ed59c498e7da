/* SPDX-License-Identifier: MIT
 *
 * Divides the time from the launching call of a GPU operation to its start by what the operation
 * waited for. The first rule that applies to a moment counts, so the parts sum to the whole:
 *
 * | part    | the operation waited                                                        |
 * |---------|-----------------------------------------------------------------------------|
 * | stream  | for earlier work of its CUDA stream, which had not ended                    |
 * | start   | for its launch: until the call returned                                     |
 * | event   | behind a cudaStreamWaitEvent whose event is known, if it had room           |
 * | unknown | the same, of another cudaStreamWaitEvent (stream_waits.h)                   |
 * | others  | while the device ran work of other streams of the process                   |
 * | unknown | the rest: the trace does not show for what                                  |
 *
 * A rest of at most START_MAX_NS (gap_cause.h), without the time of other streams, is part of the
 * start.
 *
 * Work behind a cudaStreamWaitEvent had no room if no work of another stream ended at most
 * START_MAX_NS before its start, and a kernel of another stream that fills the device ran all
 * through the rest and still runs. Such a rest belongs to the part `others_ns`.
 *
 * Memory: 1 MB and that of stream_waits.h, 1.5 MB for each device, 32 bytes for each CUDA stream.
 * Of a device, the last 65,536 intervals of work are known. Time before them is unknown.
 */
#ifndef PPERF_REPORT_ANALYSIS_DELAY_PARTS_H
#define PPERF_REPORT_ANALYSIS_DELAY_PARTS_H

#include "report/analysis/activities.h"

struct delay_parts {
	uint64_t stream_ns, start_ns, event_ns, others_ns, unknown_ns;
};

struct delay_splitter;

struct delay_splitter *delay_splitter_new(const struct process *process);
void delay_splitter_free(struct delay_splitter *splitter);

/* Adds an activity that is no GPU operation. All activities must come in the order of
 * activities_next. */
void delay_splitter_add_call(struct delay_splitter *splitter, const struct activity *call);
/* Adds a timed GPU operation. Returns the parts of its delay, all 0 without a call. */
struct delay_parts delay_splitter_add_work(
	struct delay_splitter *splitter, const struct activity *work);

void delay_parts_sum(struct delay_parts *to, const struct delay_parts *parts);

#endif
