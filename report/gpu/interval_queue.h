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

/* For interval_queue_push and interval_queue_pop: with the heap, or a full ring buffer. */
void interval_queue_push_slow(struct interval_queue *queue, const struct interval *interval);
struct interval interval_queue_pop_slow(struct interval_queue *queue);

static inline void interval_queue_push(struct interval_queue *queue, struct interval interval)
{
	const size_t last = queue->first + queue->in_ring - 1, mask = queue->ring_room - 1;

	if (__builtin_expect(
		    queue->in_ring == queue->ring_room ||
			    (queue->in_ring && queue->ring[last & mask].start > interval.start),
		    0))
		interval_queue_push_slow(queue, &interval);
	else
		queue->ring[(queue->first + queue->in_ring++) & mask] = interval;
}

static inline bool interval_queue_next_is_in_ring(const struct interval_queue *queue)
{
	return queue->in_ring &&
	       (!queue->count || queue->ring[queue->first].start <= queue->heap[0].start);
}

/* Removes and returns the earliest interval. The queue must not be empty. */
static inline struct interval interval_queue_pop(struct interval_queue *queue)
{
	const size_t first = queue->first;

	if (__builtin_expect(!interval_queue_next_is_in_ring(queue), 0))
		return interval_queue_pop_slow(queue);
	queue->first = (first + 1) & (queue->ring_room - 1);
	queue->in_ring--;
	return queue->ring[first];
}

/* Returns the start of the earliest interval. The queue must not be empty. */
static inline uint64_t interval_queue_next_start(const struct interval_queue *queue)
{
	return interval_queue_next_is_in_ring(queue) ? queue->ring[queue->first].start
						     : queue->heap[0].start;
}

/* Removes all intervals. */
void interval_queue_clear(struct interval_queue *queue);
void interval_queue_free(struct interval_queue *queue);

static inline size_t interval_queue_length(const struct interval_queue *queue)
{
	return queue->in_ring + queue->count;
}

#endif
