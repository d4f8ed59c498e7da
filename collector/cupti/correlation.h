/* SPDX-License-Identifier: MIT
 * correlation.h: CUPTI's correlation ids, 32 bits wide, made 64 bits wide.
 *
 * CUPTI counts calls; at half a million launches a second its ids begin again after two hours. Ids
 * are handed out in order, so an id that is seen is within 2^31 of the newest one seen before, and
 * that tells which round it belongs to. Records of the GPU come later than the call they belong to,
 * but never 2^31 calls later. Threads: any.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CORRELATION_H
#define PPERF_COLLECTOR_CUPTI_CORRELATION_H

#include <stdatomic.h>
#include <stdint.h>

/* The number with these low 32 bits that is nearest to `newest`, and positive. id 0, "none", stays
 * 0. */
static inline uint64_t correlation_near(uint64_t newest, uint32_t id)
{
	int64_t step = (int32_t)(id - (uint32_t)newest);

	if (id == 0)
		return 0;
	return step < 0 && newest < (uint64_t)-step ? id : newest + (uint64_t)step;
}

/* So far behind may correlation_newest be: it is written once in so many calls, as all threads read
 * it at each call. */
#define CORRELATION_STEP (UINT64_C(1) << 24)

extern _Atomic uint64_t correlation_newest; /* the process's; use the functions below */

/* The id of a GPU record. */
static inline uint64_t correlation_extend(uint32_t id)
{
	return correlation_near(
		atomic_load_explicit(&correlation_newest, memory_order_relaxed), id);
}

/* The id of a call that begins now. Two threads that both move `newest` leave either's value: both
 * are near enough. */
static inline uint64_t correlation_of_call(uint32_t id)
{
	uint64_t newest = atomic_load_explicit(&correlation_newest, memory_order_relaxed);
	uint64_t extended = correlation_near(newest, id);

	if (__builtin_expect(extended > newest + CORRELATION_STEP || newest == 0, 0) && extended)
		atomic_store_explicit(&correlation_newest, extended, memory_order_relaxed);
	return extended;
}

#endif
