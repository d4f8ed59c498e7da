/* SPDX-License-Identifier: MIT */
#include "report/gpu/interval_queue.h"
#include "report/base/alloc.h"
#include <stdlib.h>

static void heap_up(struct intervals *intervals, struct interval interval)
{
	size_t i;

	grow(&intervals->heap, &intervals->room, intervals->count + 1, sizeof *intervals->heap);
	for (i = intervals->count++; i > 0 && intervals->heap[(i - 1) / 2].start > interval.start; i = (i - 1) / 2)
		intervals->heap[i] = intervals->heap[(i - 1) / 2];
	intervals->heap[i] = interval;
}

static struct interval heap_take(struct intervals *intervals)
{
	const struct interval first = intervals->heap[0], last = intervals->heap[--intervals->count];
	size_t i = 0, child;

	while ((child = i * 2 + 1) < intervals->count) {
		child += child + 1 < intervals->count &&
			 intervals->heap[child + 1].start < intervals->heap[child].start;
		if (intervals->heap[child].start >= last.start)
			break;
		intervals->heap[i] = intervals->heap[child];
		i = child;
	}
	intervals->heap[i] = last;
	return first;
}

static void widen_ring(struct intervals *intervals)
{
	const size_t room = intervals->ring_room ? intervals->ring_room * 2 : 1024;
	struct interval *ring = need(room * sizeof *ring);

	for (size_t i = 0; i < intervals->in_ring; i++)
		ring[i] = intervals->ring[(intervals->first + i) & (intervals->ring_room - 1)];
	free(intervals->ring);
	intervals->ring = ring;
	intervals->ring_room = room;
	intervals->first = 0;
}

void intervals_add(struct intervals *intervals, struct interval interval)
{
	const size_t last = intervals->first + intervals->in_ring - 1;

	if (intervals->in_ring && intervals->ring[last & (intervals->ring_room - 1)].start > interval.start) {
		heap_up(intervals, interval);
		return;
	}
	if (intervals->in_ring == intervals->ring_room)
		widen_ring(intervals);
	intervals->ring[(intervals->first + intervals->in_ring++) & (intervals->ring_room - 1)] = interval;
}

static bool ring_is_first(const struct intervals *intervals)
{
	return intervals->in_ring &&
	       (!intervals->count || intervals->ring[intervals->first].start <= intervals->heap[0].start);
}

uint64_t intervals_earliest(const struct intervals *intervals)
{
	return ring_is_first(intervals) ? intervals->ring[intervals->first].start : intervals->heap[0].start;
}

struct interval intervals_take(struct intervals *intervals)
{
	struct interval interval;

	if (!ring_is_first(intervals))
		return heap_take(intervals);
	interval = intervals->ring[intervals->first];
	intervals->first = (intervals->first + 1) & (intervals->ring_room - 1);
	intervals->in_ring--;
	return interval;
}

void intervals_clear(struct intervals *intervals)
{
	intervals->first = intervals->in_ring = intervals->count = 0;
}

void intervals_free(struct intervals *intervals)
{
	free(intervals->ring);
	free(intervals->heap);
	*intervals = (struct intervals){ .ring = NULL };
}
