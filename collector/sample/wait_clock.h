/* SPDX-License-Identifier: MIT
 * Reads how long threads have waited for a core: they could run, but none was free. The kernel says
 * so in /proc/self/task/TID/schedstat, which is kept open. There are few such files at a time. Only
 * the sampler's thread calls, and only one that has descriptors of its own (private_files.h).
 */
#ifndef PPERF_COLLECTOR_SAMPLE_WAIT_CLOCK_H
#define PPERF_COLLECTOR_SAMPLE_WAIT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define WAIT_CLOCKS_MAX 64u

/* No file is open: the thread has begun, or the process was forked. */
void wait_clocks_begin(void);

/* Opens the file of a thread. Returns its number, from 1; 0: there are too many, or the kernel does
 * not have it. */
uint32_t wait_clock_open(uint32_t tid);

/* Reads how long the thread has waited so far. Returns false if that is not known any more. */
bool wait_clock_read(uint32_t number, uint64_t *waited_ns);

/* Closes the file. 0 is allowed. */
void wait_clock_close(uint32_t number);

#endif
