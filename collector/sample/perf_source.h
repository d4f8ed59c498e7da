/* SPDX-License-Identifier: MIT
 * Samples threads that are on a core, with their native frames: by the kernel's rings of perf
 * events. A thread without a ring is sampled by its CPU clock only.
 *
 * A sample represents one period of CPU time. The kernel's timer gives none while the thread is in
 * the kernel. What the thread's CPU clock has beyond its samples is that time: a KERNEL sample.
 *
 * Only the sampler's thread calls, except where noted.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_PERF_SOURCE_H
#define PPERF_COLLECTOR_SAMPLE_PERF_SOURCE_H

#include "collector/sample/sampler.h"

#include <stdbool.h>
#include <stdint.h>

/* Begins, if the kernel permits it. Otherwise the other functions do nothing. Writes to META what
 * the samples have, and why not more. `read_python`: NULL if there is none. */
void perf_source_begin(uint64_t period_ns, sampler_python_reader *read_python);

/* Sets how much CPU time a sample of the rings that are opened from now on represents. */
void perf_source_set_period(uint64_t period_ns);

/* Whether threads get rings. */
bool perf_source_is_on(void);

/* Opens the ring of a thread. */
void perf_source_open(struct sampled_thread *thread);
/* Closes it. The samples that are left in it are dropped. */
void perf_source_close(struct sampled_thread *thread);

/* Whether the thread has a ring. */
static inline bool perf_source_has(const struct sampled_thread *thread)
{
	return thread->events != NULL;
}

/* Writes the samples that have arrived. */
void perf_source_read(struct sampled_thread *thread);

/* Writes the time that the thread has spent in the kernel, after perf_source_read() and a look at
 * its clock. */
void perf_source_write_kernel_time(struct sampled_thread *thread);

/* Adds the native frames of a thread that is blocked in the kernel. This needs no rings. Between
 * stream_enter and stream_leave. */
void perf_source_read_blocked(struct sample *sample);

/* Whether perf_source_wait() returns as soon as a sample arrives. */
bool perf_source_can_wait(void);

/* Waits for samples until `until_ns`, CLOCK_MONOTONIC, or a few milliseconds. Returns false if
 * there is nothing to wait for: the caller waits by itself. */
bool perf_source_wait(uint64_t until_ns);

#endif
