/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/range_at.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/external_sort.h"
#include <stdlib.h>

#define RANGES_IN_MEMORY 65536u

struct thread_range {
	uint64_t begin_ns, end_ns;
	uint64_t end_order; /* position in the order in which ranges end */
	uint32_t node, tid;
};

struct open_thread_range {
	uint64_t end_ns;
	uint32_t node;
};

struct range_thread {
	struct open_thread_range *open; /* ranges that are open now, the innermost last */
	size_t count, room;
	uint32_t tid;
};

struct range_lookup {
	struct external_sort *ranges; /* of struct thread_range */
	struct range_thread *threads;
	size_t thread_count, thread_room;
	size_t last_thread; /* index of the thread that was found last */
};

/* Sorts by begin, and of ranges with the same begin the outer ones first. */
static int compare_thread_ranges(const void *left, const void *right)
{
	const struct thread_range *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return COMPARE(b->end_order, a->end_order);
}

static struct range_thread *range_thread_of(struct range_lookup *lookup, uint32_t tid)
{
	if (lookup->last_thread < lookup->thread_count &&
		lookup->threads[lookup->last_thread].tid == tid)
		return &lookup->threads[lookup->last_thread];
	for (lookup->last_thread = 0; lookup->last_thread < lookup->thread_count;
		lookup->last_thread++)
		if (lookup->threads[lookup->last_thread].tid == tid)
			return &lookup->threads[lookup->last_thread];
	return NULL;
}

static void restart_ranges(void *context)
{
	struct range_lookup *lookup = context;

	external_sort_clear(lookup->ranges);
	lookup->thread_count = lookup->last_thread = 0;
}

static void add_thread_range(void *context, const struct observed_segment *seen)
{
	struct range_lookup *lookup = context;
	const uint64_t end_order = external_sort_count(lookup->ranges);
	struct thread_range *range;

	if (!seen->total_ns)
		return;
	range = external_sort_add(lookup->ranges);
	*range = (struct thread_range){ .begin_ns = seen->begin_ns,
		.end_ns = seen->begin_ns + seen->total_ns,
		.end_order = end_order,
		.node = seen->node,
		.tid = seen->thread->tid };
	if (!range_thread_of(lookup, range->tid)) {
		*ARRAY_ADD(lookup->threads, lookup->thread_room,
			lookup->thread_count) = (struct range_thread){ .tid = range->tid };
	}
}

struct range_lookup *range_lookup_read(struct process *process)
{
	struct range_lookup *lookup = xcalloc(sizeof *lookup);
	const struct profile_observer observer = {
		.context = lookup, .restart = restart_ranges, .segment = add_thread_range
	};
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);

	lookup->ranges = external_sort_new(
		sizeof(struct thread_range), RANGES_IN_MEMORY, compare_thread_ranges, "ranges");
	external_sort_relate(lookup->ranges, offsetof(struct thread_range, end_ns),
		offsetof(struct thread_range, begin_ns));
	profile_free(profile_build(process->reader, process->texts, &options));
	external_sort_rewind_last(lookup->ranges);
	return lookup;
}

void range_lookup_free(struct range_lookup *lookup)
{
	for (size_t i = 0; i < lookup->thread_count; i++)
		free(lookup->threads[i].open);
	free(lookup->threads);
	external_sort_free(lookup->ranges);
	free(lookup);
}

static void close_ranges_until(struct range_thread *thread, uint64_t at_ns)
{
	while (thread->count && thread->open[thread->count - 1].end_ns <= at_ns)
		thread->count--;
}

/* Returns the innermost range of a thread that is open at `at_ns`. NULL: none. `thread` may be
 * NULL. */
static const struct open_thread_range *innermost_range(struct range_thread *thread, uint64_t at_ns)
{
	if (!thread)
		return NULL;
	close_ranges_until(thread, at_ns);
	return thread->count ? &thread->open[thread->count - 1] : NULL;
}

/* Opens all ranges that begin up to `at_ns`, on any thread. */
static void open_ranges_until(struct range_lookup *lookup, uint64_t at_ns)
{
	const struct thread_range *range;

	while ((range = external_sort_peek(lookup->ranges)) && range->begin_ns <= at_ns) {
		struct range_thread *thread = range_thread_of(lookup, range->tid);

		close_ranges_until(thread, range->begin_ns);
		*ARRAY_ADD(thread->open, thread->room, thread->count) = (struct open_thread_range){
			.end_ns = range->end_ns, .node = range->node
		};
		external_sort_next(lookup->ranges);
	}
}

void range_lookup_within(struct range_lookup *lookup, uint32_t tid, uint32_t other,
	uint64_t begin_ns, uint64_t end_ns,
	void (*visit)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns),
	void *context)
{
	uint64_t until;

	for (uint64_t now = begin_ns; now < end_ns; now = until) {
		const struct open_thread_range *innermost;
		const struct thread_range *next;

		open_ranges_until(lookup, now);
		innermost = innermost_range(range_thread_of(lookup, tid), now);
		if (!innermost && other != tid)
			innermost = innermost_range(range_thread_of(lookup, other), now);
		next = external_sort_peek(lookup->ranges);
		until = next ? min_u64(end_ns, next->begin_ns) : end_ns;
		if (innermost)
			until = min_u64(until, innermost->end_ns);
		visit(context, innermost ? innermost->node : 0, now, until);
	}
}
