/* SPDX-License-Identifier: MIT
 * Reads the trace's clock and pairs it with the system's clocks.
 *
 * The clock is the time stamp counter (TSC) if the kernel's clock source is tsc and this process
 * may read the counter. Otherwise it is CLOCK_MONOTONIC. The time stamp is most of the cost of an
 * event: about 10 ns with the TSC, 22 ns without.
 */
#ifndef PPERF_COLLECTOR_PROCESS_CLOCK_H
#define PPERF_COLLECTOR_PROCESS_CLOCK_H

#include "collector/trace_format.h"
#include <time.h>

extern int clock_is_tsc; /* set once by clock_init, before any stream exists */

void clock_init(void);

/* Reads the trace's clock, CLOCK_MONOTONIC and CLOCK_REALTIME as close together as possible: the
 * best of three tries. */
struct trace_clock clock_sample(void);

static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whether clock_now_fast() is valid in this process: always, except where x86-64 does not use the
 * TSC. It does not change after clock_init(), so call it once, outside the hot path. */
static inline int clock_has_fast_read(void)
{
#if defined(__x86_64__)
	return clock_is_tsc;
#else
	return 1;
#endif
}

/* clock_now() without its test. Valid only if clock_has_fast_read() is true. */
static inline uint64_t clock_now_fast(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return clock_monotonic_ns();
#endif
}

/* Returns the current time in ticks of the trace's clock. */
static inline uint64_t clock_now(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock_is_tsc, 1))
		return __builtin_ia32_rdtsc();
#endif
	return clock_monotonic_ns();
}

#endif
