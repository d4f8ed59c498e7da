/* SPDX-License-Identifier: MIT
 * Sorts intervals by start that arrive in nearly that order. Of intervals with equal starts, those
 * that arrived in order come first. Memory: the intervals that wait.
 */
#ifndef PPERF_REPORT_GPU_INTERVAL_QUEUE_H
#define PPERF_REPORT_GPU_INTERVAL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
	uint64_t start, end;
	uint32_t tag, launch; /* for the caller */
};

struct interval_queue {
	/* Most intervals arrive in order and go to the ring buffer, the others to a min-heap.
	 * Both begin with the earliest start. `in_ring`, `count`: lengths of ring and heap. */
	struct interval *ring, *heap;
	size_t first, in_ring, ring_room, count, room;
};

void interval_queue_push(struct interval_queue *queue, struct interval interval);
/* Removes and returns the earliest interval. The queue must not be empty. */
struct interval interval_queue_pop(struct interval_queue *queue);
/* Returns the start of the earliest interval. The queue must not be empty. */
uint64_t interval_queue_next_start(const struct interval_queue *queue);
/* Removes all intervals. */
void interval_queue_clear(struct interval_queue *queue);
void interval_queue_free(struct interval_queue *queue);

static inline size_t interval_queue_length(const struct interval_queue *queue)
{
	return queue->in_ring + queue->count;
}

#endif
