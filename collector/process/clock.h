/* SPDX-License-Identifier: MIT
 * clock.h: the one clock of the trace. The time stamp counter where the kernel itself trusts it (its clock source is tsc and
 * this process may read it), else CLOCK_MONOTONIC. A stamp is most of what an event costs: about 10 ns against 22.
 */
#ifndef PPERF_COLLECTOR_PROCESS_CLOCK_H
#define PPERF_COLLECTOR_PROCESS_CLOCK_H

#include "collector/trace_format.h"
#include <time.h>

extern int clock_is_tsc; /* set once by clock_init, before any stream exists */

void clock_init(void);

/* All three clocks at one moment. */
struct trace_clock clock_sample(void);

static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Where the counter is the clock there is a stamp without a question: ask clock_is_quick once, long before. */
static inline int clock_has_fast_read(void)
{
#if defined(__x86_64__)
	return clock_is_tsc;
#else
	return 1;
#endif
}

static inline uint64_t clock_now_fast(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return clock_monotonic_ns();
#endif
}

/* Raw ticks, now. */
static inline uint64_t clock_now(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock_is_tsc, 1))
		return __builtin_ia32_rdtsc();
#endif
	return clock_monotonic_ns();
}

#endif
