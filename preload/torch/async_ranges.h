/* SPDX-License-Identifier: MIT
 * torch_async.h: ranges of PyTorch that end on another thread than the one they began on. Known beforehand (the work of a communication library): a
 * start/end range, found again by its object. Not known (a record_function that a future ends): the thread where it is open closes it at its next
 * operator, so that nothing goes on below it.
 *
 * Threads: any; no lock. What finds no room is counted as lost.
 */
#ifndef PPERF_PRELOAD_TORCH_ASYNC_RANGES_H
#define PPERF_PRELOAD_TORCH_ASYNC_RANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

void torch_async_begin(const void *range, const char *text);

/* false: torch_async_begin was not told of it. */
bool torch_async_end(const void *range);

/* A range that range_close did not find on this thread. */
void torch_async_ended_elsewhere(const void *range);

extern _Atomic uint32_t torch_async_waiting; /* ranges to be closed by their own threads */
void torch_async_close_waiting(const void *starting);

/* At each beginning of a range, before it opens: closes what has ended elsewhere. An object at the same address has gone. */
static inline void torch_async_close_ended(const void *starting)
{
	if (__builtin_expect(
		    atomic_load_explicit(&torch_async_waiting, memory_order_relaxed) != 0, 0))
		torch_async_close_waiting(starting);
}

#endif
