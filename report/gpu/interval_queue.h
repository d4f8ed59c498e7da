/* SPDX-License-Identifier: MIT
 * intervals.h: intervals that come roughly by their start, taken in that order; of equal starts those first that came
 * in order. Memory: those that wait.
 */
#ifndef PPERF_REPORT_GPU_INTERVAL_QUEUE_H
#define PPERF_REPORT_GPU_INTERVAL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
	uint64_t start, end;
	uint32_t tag; /* whatever the caller wants back */
};

struct intervals {
	/* most come in order: those lie in a ring, the others in a heap; the earliest start first in both */
	struct interval *ring, *heap;
	size_t first, in_ring, ring_room, count, room;
};

void intervals_add(struct intervals *intervals, struct interval interval);
/* The earliest, which is no longer there then; some must be waiting. */
struct interval intervals_take(struct intervals *intervals);
/* When it begins. */
uint64_t intervals_earliest(const struct intervals *intervals);
/* None waits any more. */
void intervals_clear(struct intervals *intervals);
void intervals_free(struct intervals *intervals);

static inline size_t intervals_waiting(const struct intervals *intervals)
{
	return intervals->in_ring + intervals->count;
}

#endif
