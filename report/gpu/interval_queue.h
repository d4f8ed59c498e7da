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

struct interval_queue {
	/* most come in order: those lie in a ring, the others in a heap; the earliest start first in both */
	struct interval *ring, *heap;
	size_t first, in_ring, ring_room, count, room;
};

void interval_queue_push(struct interval_queue *queue, struct interval interval);
/* The earliest, which is no longer there then; some must be waiting. */
struct interval interval_queue_pop(struct interval_queue *queue);
/* When it begins. */
uint64_t interval_queue_next_start(const struct interval_queue *queue);
/* None waits any more. */
void interval_queue_clear(struct interval_queue *queue);
void interval_queue_free(struct interval_queue *queue);

static inline size_t interval_queue_length(const struct interval_queue *queue)
{
	return queue->in_ring + queue->count;
}

#endif
