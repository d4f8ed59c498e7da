/* SPDX-License-Identifier: MIT
 * What the sampler does at each tick: it looks at the threads and writes samples. Only the
 * sampler's thread calls.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_TICK_H
#define PPERF_COLLECTOR_SAMPLE_TICK_H

#include <stdbool.h>
#include <stdint.h>

/* Begins or resumes sampling. Returns false if it cannot; the other functions return true. */
bool tick_begin(void);

/* Returns when the next tick is due, CLOCK_MONOTONIC in ns. */
uint64_t tick_next_ns(void);

bool tick(void);

/* Takes the last samples, and writes what is left to write. No file is created for them. */
bool tick_finish(void);

#endif
