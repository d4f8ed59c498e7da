/* SPDX-License-Identifier: MIT
 * Stops the ring when a step takes much longer than the steps before (PPERF_RING_KEEP=slow:N). A
 * step lasts until the next one begins.
 */
#ifndef PPERF_COLLECTOR_STREAM_SLOW_STEP_H
#define PPERF_COLLECTOR_STREAM_SLOW_STEP_H

#include <stdint.h>

/* Steps of which the median is taken, and the fewest of them that have one. */
#define SLOW_STEP_HISTORY 64u
#define SLOW_STEP_HISTORY_MIN 8u

/* Looks for steps that take more than `tenths` tenths of the median. */
void slow_step_configure(uint32_t tenths);

/* Called at the begin of each step, by one thread at a time, at the time `now` in ticks. Returns
 * the median if the step that ends is too slow and the ring was stopped for it, else 0. */
uint64_t slow_step_begins(uint64_t now);

#endif
