/* SPDX-License-Identifier: MIT
 * Extends CUPTI's 32-bit correlation ids to 64 bits.
 * CUPTI numbers the calls of a process with 32 bits. At half a million launches a second the number
 * wraps around after two hours. The upper half is found from the newest id seen so far: among the
 * numbers with the same lower half, the one nearest to it is meant. This holds as long as ids are
 * less than 2^31 calls apart, also for GPU records, which arrive later than their calls. Any thread
 * may call.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CORRELATION_H
#define PPERF_COLLECTOR_CUPTI_CORRELATION_H

#include <stdatomic.h>
#include <stdint.h>

/* Returns the number with the low 32 bits `id` that is nearest to `newest`, and positive. 0
 * ("none") stays 0. */
static inline uint64_t correlation_near(uint64_t newest, uint32_t id)
{
	int64_t step = (int32_t)(id - (uint32_t)newest);

	if (id == 0)
		return 0;
	return step < 0 && newest < (uint64_t)-step ? id : newest + (uint64_t)step;
}

/* The most by which correlation_newest may lag behind. It is written once per this many calls,
 * because all threads read it in each call. */
#define CORRELATION_STEP (UINT64_C(1) << 24)

extern _Atomic uint64_t correlation_newest; /* of the process; use the functions below */

/* Extends the id of a GPU record. */
static inline uint64_t correlation_extend(uint32_t id)
{
	return correlation_near(
		atomic_load_explicit(&correlation_newest, memory_order_relaxed), id);
}

/* Extends the id of a call that begins now. If two threads update correlation_newest concurrently,
 * either value remains: both are near enough. */
static inline uint64_t correlation_of_call(uint32_t id)
{
	uint64_t newest = atomic_load_explicit(&correlation_newest, memory_order_relaxed);
	uint64_t extended = correlation_near(newest, id);

	if (__builtin_expect(extended > newest + CORRELATION_STEP || newest == 0, 0) && extended)
		atomic_store_explicit(&correlation_newest, extended, memory_order_relaxed);
	return extended;
}

#endif
