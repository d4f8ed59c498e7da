/* SPDX-License-Identifier: MIT */
#include "preload/torch/async_ranges.h"

#include "collector/stream/ranges.h"
#include "collector/file/trace_file.h"

#include <stddef.h>

#define OPEN_RANGES 4096u   /* slots for start/end ranges; a power of two */
#define PROBES 32u          /* slots that one range may use */
#define ELSEWHERE 32u       /* slots for ranges that their own threads have to close */
#define CLOSE_TRIES 100000u /* starts of ranges after which an entry is dropped */

static struct {
	const void *_Atomic range; /* NULL: free */
	_Atomic uint64_t id;
} open_ranges[OPEN_RANGES];

static struct {
	const void *_Atomic range; /* NULL: free */
	_Atomic uint32_t tries_left;
} elsewhere[ELSEWHERE];

_Atomic uint32_t torch_async_waiting;

static uint32_t open_range_slot(const void *range, uint32_t probe)
{
	return ((uint32_t)((uint64_t)(uintptr_t)range * UINT64_C(0x9E3779B97F4A7C15) >> 40) +
		       probe) %
	       OPEN_RANGES;
}

void torch_async_begin(const void *range, const char *text)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t slot = open_range_slot(range, i);
		const void *expected = NULL;

		if (!atomic_compare_exchange_strong(&open_ranges[slot].range, &expected, range))
			continue;
		atomic_store(&open_ranges[slot].id, range_start(0, text, NULL));
		return;
	}
	trace_lose(TRACE_LOST_NO_MEMORY, 1);
}

bool torch_async_end(const void *range)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t slot = open_range_slot(range, i);

		if (atomic_load(&open_ranges[slot].range) != range)
			continue;
		range_end(atomic_load(&open_ranges[slot].id));
		atomic_store(&open_ranges[slot].range, NULL);
		return true;
	}
	return false;
}

void torch_async_ended_elsewhere(const void *range)
{
	for (uint32_t i = 0; i < ELSEWHERE; i++) {
		const void *expected = NULL;

		if (!atomic_compare_exchange_strong(&elsewhere[i].range, &expected, range))
			continue;
		atomic_store(&elsewhere[i].tries_left, CLOSE_TRIES);
		atomic_fetch_add(&torch_async_waiting, 1);
		return;
	}
	trace_lose(TRACE_LOST_NO_MEMORY, 1);
}

/* Frees slot `i` if it still holds `range`. Two threads may try at once; only one decrements the
 * count. */
static void drop_elsewhere(uint32_t i, const void *range)
{
	if (atomic_compare_exchange_strong(&elsewhere[i].range, &range, NULL))
		atomic_fetch_sub(&torch_async_waiting, 1);
}

void torch_async_close_waiting(const void *starting)
{
	for (uint32_t i = 0; i < ELSEWHERE; i++) {
		const void *range = atomic_load(&elsewhere[i].range);

		if (!range)
			continue;
		if (range_close(range) || range == starting ||
			atomic_fetch_sub(&elsewhere[i].tries_left, 1) <= 1)
			drop_elsewhere(i, range);
	}
}
