/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/range_at.h"
#include "report/base/alloc.h"
#include "report/base/external_sort.h"
#include <stdlib.h>

#define RANGES_HELD 65536u

struct range {
	uint64_t begin_ns, end_ns, arrival;
	uint32_t node, tid;
};

struct open_range {
	uint64_t end_ns;
	uint32_t node;
};

struct range_thread {
	struct open_range *open;
	size_t count, room;
	uint32_t tid;
};

struct path_places {
	struct sorter *ranges;
	struct range_thread *threads;
	size_t count, room, last;
};

/* What is around others comes before them. */
static int compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->arrival < b->arrival) - (a->arrival > b->arrival);
}

static struct range_thread *thread_of(struct path_places *places, uint32_t tid)
{
	if (places->last < places->count && places->threads[places->last].tid == tid)
		return &places->threads[places->last];
	for (places->last = 0; places->last < places->count; places->last++)
		if (places->threads[places->last].tid == tid)
			return &places->threads[places->last];
	return NULL;
}

static void begins(void *context)
{
	struct path_places *places = context;

	sorter_empty(places->ranges);
	places->count = places->last = 0;
}

static void part(void *context, const struct fold_part *seen)
{
	struct path_places *places = context;
	const uint64_t arrival = sorter_count(places->ranges);
	struct range *range;

	if (!seen->total_ns)
		return;
	range = sorter_add(places->ranges);
	*range = (struct range){ .begin_ns = seen->begin_ns,
		.end_ns = seen->begin_ns + seen->total_ns,
		.arrival = arrival,
		.node = seen->node,
		.tid = seen->thread->tid };
	if (!thread_of(places, range->tid)) {
		grow(&places->threads, &places->room, places->count + 1, sizeof *places->threads);
		places->threads[places->count++] = (struct range_thread){ .tid = range->tid };
	}
}

struct path_places *path_places_read(struct process *process)
{
	struct path_places *places = need(sizeof *places);
	const struct fold_observer observer = { .context = places, .begins = begins, .part = part };
	const struct fold_options options = fold_options_telling(process->fold, &observer);

	places->ranges = sorter_new(sizeof(struct range), RANGES_HELD, compare, "ranges");
	fold_free(fold_run(process->reader, process->texts, &options));
	sorter_rewind(places->ranges);
	return places;
}

void path_places_free(struct path_places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free(places->threads[i].open);
	free(places->threads);
	sorter_free(places->ranges);
	free(places);
}

static void close_until(struct range_thread *thread, uint64_t at_ns)
{
	while (thread->count && thread->open[thread->count - 1].end_ns <= at_ns)
		thread->count--;
}

/* All ranges that begin before or then are open, on whatever thread. */
static void open_until(struct path_places *places, uint64_t at_ns)
{
	const struct range *range;

	while ((range = sorter_first(places->ranges)) && range->begin_ns <= at_ns) {
		struct range_thread *thread = thread_of(places, range->tid);

		close_until(thread, range->begin_ns);
		grow(&thread->open, &thread->room, thread->count + 1, sizeof *thread->open);
		thread->open[thread->count++] = (struct open_range){ .end_ns = range->end_ns, .node = range->node };
		sorter_next(places->ranges);
	}
}

void path_places_within(struct path_places *places, uint32_t tid, uint64_t begin_ns, uint64_t end_ns,
	void (*tell)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns), void *context)
{
	struct range_thread *thread;

	for (uint64_t now = begin_ns; now < end_ns;) {
		const struct range *next;
		uint64_t until = end_ns;

		open_until(places, now);
		thread = thread_of(places, tid);
		if (thread)
			close_until(thread, now);
		next = sorter_first(places->ranges);
		if (next && next->begin_ns < until)
			until = next->begin_ns;
		if (thread && thread->count && thread->open[thread->count - 1].end_ns < until)
			until = thread->open[thread->count - 1].end_ns;
		tell(context, thread && thread->count ? thread->open[thread->count - 1].node : 0, now, until);
		now = until;
	}
}
