/* SPDX-License-Identifier: MIT */
#include "report/gpu/interval_queue.h"
#include "report/base/alloc.h"
#include "report/base/heap.h"
#include <stdlib.h>

static bool starts_before(const struct interval *a, const struct interval *b)
{
	return a->start < b->start;
}

DEFINE_HEAP(heap, struct interval, starts_before)

static void grow_ring(struct interval_queue *queue)
{
	const size_t room = queue->ring_room ? queue->ring_room * 2 : 1024;
	struct interval *ring = xcalloc(room * sizeof *ring);

	for (size_t i = 0; i < queue->in_ring; i++)
		ring[i] = queue->ring[(queue->first + i) & (queue->ring_room - 1)];
	free(queue->ring);
	queue->ring = ring;
	queue->ring_room = room;
	queue->first = 0;
}

void interval_queue_push(struct interval_queue *queue, struct interval interval)
{
	const size_t last = queue->first + queue->in_ring - 1;

	if (queue->in_ring && queue->ring[last & (queue->ring_room - 1)].start > interval.start) {
		ARRAY_GROW(queue->heap, queue->room, queue->count + 1);
		heap_up(queue->heap, queue->count++, interval);
		return;
	}
	if (queue->in_ring == queue->ring_room)
		grow_ring(queue);
	queue->ring[(queue->first + queue->in_ring++) & (queue->ring_room - 1)] = interval;
}

static bool next_is_in_ring(const struct interval_queue *queue)
{
	return queue->in_ring &&
	       (!queue->count || queue->ring[queue->first].start <= queue->heap[0].start);
}

uint64_t interval_queue_next_start(const struct interval_queue *queue)
{
	return next_is_in_ring(queue) ? queue->ring[queue->first].start : queue->heap[0].start;
}

struct interval interval_queue_pop(struct interval_queue *queue)
{
	struct interval interval;

	if (!next_is_in_ring(queue)) {
		interval = queue->heap[0];
		queue->count--;
		heap_down(queue->heap, queue->count, queue->heap[queue->count]);
		return interval;
	}
	interval = queue->ring[queue->first];
	queue->first = (queue->first + 1) & (queue->ring_room - 1);
	queue->in_ring--;
	return interval;
}

void interval_queue_clear(struct interval_queue *queue)
{
	queue->first = queue->in_ring = queue->count = 0;
}

void interval_queue_free(struct interval_queue *queue)
{
	free(queue->ring);
	free(queue->heap);
	*queue = (struct interval_queue){ .ring = NULL };
}
