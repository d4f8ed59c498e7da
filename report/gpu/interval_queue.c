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

void interval_queue_push_slow(struct interval_queue *queue, const struct interval *interval)
{
	const size_t last = queue->first + queue->in_ring - 1;

	if (queue->in_ring && queue->ring[last & (queue->ring_room - 1)].start > interval->start) {
		ARRAY_GROW(queue->heap, queue->room, queue->count + 1);
		heap_up(queue->heap, queue->count++, *interval);
		return;
	}
	if (queue->in_ring == queue->ring_room)
		grow_ring(queue);
	queue->ring[(queue->first + queue->in_ring++) & (queue->ring_room - 1)] = *interval;
}

struct interval interval_queue_pop_slow(struct interval_queue *queue)
{
	const struct interval interval = queue->heap[0];

	queue->count--;
	heap_down(queue->heap, queue->count, queue->heap[queue->count]);
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
