/* SPDX-License-Identifier: MIT
 * Records PyTorch ranges that may end on another thread than the one they began on.
 *
 * - Known at the start (a collective of a communication library): recorded as a start/end
 *   range, which is found at its end by the address of its RecordFunction.
 * - Not known at the start (a record_function that a future ends): the thread that has the
 *   range open closes it at its next operator, so that later operators are not nested in it.
 *
 * Threads: any. No function takes a lock. torch_async_begin and torch_async_ended_elsewhere count
 * a range without a free slot as TRACE_LOST_NO_MEMORY. The report shows the count in `info`
 * (lost events) and on the first screen.
 */
#ifndef PPERF_PRELOAD_TORCH_ASYNC_RANGES_H
#define PPERF_PRELOAD_TORCH_ASYNC_RANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

void torch_async_begin(const void *range, const char *text);

/* Ends the start/end range of `range`. Returns false if torch_async_begin has not recorded it. */
bool torch_async_end(const void *range);

/* Notes that `range` has ended on a thread where range_close did not find it. */
void torch_async_ended_elsewhere(const void *range);

extern _Atomic uint32_t torch_async_waiting; /* ranges that their own threads still have to close */
void torch_async_close_waiting(const void *starting);

/* Closes the calling thread's ranges that have ended elsewhere. Called before each range opens;
 * an entry with the address `starting` belongs to a freed object and is dropped. */
static inline void torch_async_close_ended(const void *starting)
{
	if (__builtin_expect(
		    atomic_load_explicit(&torch_async_waiting, memory_order_relaxed) != 0, 0))
		torch_async_close_waiting(starting);
}

#endif
