/* SPDX-License-Identifier: MIT
 * Knows which threads of the process are pperf's own, so that the sampler leaves them out.
 */
#ifndef PPERF_COLLECTOR_PROCESS_OWN_THREADS_H
#define PPERF_COLLECTOR_PROCESS_OWN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* More threads than pperf ever has at the same time. */
#define OWN_THREADS_MAX 8u

/* Notes that the calling thread is one of pperf's. A forked child has none. */
void own_thread_begin(void);
/* Called by such a thread before it ends. */
void own_thread_end(void);

/* Whether the thread with this kernel id is one of pperf's. Any thread may call it. */
bool own_thread_is(uint32_t tid);

/* Returns the CPU time, in nanoseconds, that the threads of pperf have used, those that ended
 * included. */
uint64_t own_threads_cpu_ns(void);

#endif
