/* SPDX-License-Identifier: MIT */
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include <stdlib.h>

struct end {
	uint64_t at_ns;
	struct edge_mark mark;
};

/* The earliest end first. */
struct ends {
	struct end *heap;
	size_t count, room;
};

static void put(struct ends *ends, struct end end)
{
	size_t at;

	grow(&ends->heap, &ends->room, ends->count + 1, sizeof *ends->heap);
	for (at = ends->count++; at > 0 && ends->heap[(at - 1) / 2].at_ns > end.at_ns; at = (at - 1) / 2)
		ends->heap[at] = ends->heap[(at - 1) / 2];
	ends->heap[at] = end;
}

static struct end take(struct ends *ends)
{
	const struct end first = ends->heap[0], last = ends->heap[--ends->count];
	size_t at = 0, child;

	while ((child = at * 2 + 1) < ends->count) {
		child += child + 1 < ends->count && ends->heap[child + 1].at_ns < ends->heap[child].at_ns;
		if (ends->heap[child].at_ns >= last.at_ns)
			break;
		ends->heap[at] = ends->heap[child];
		at = child;
	}
	ends->heap[at] = last;
	return first;
}

/* What is over by then. Returns the last moment that was told, or `now_ns`. */
static uint64_t end_until(struct ends *ends, const struct edges_visitor *visitor, uint64_t until_ns, uint64_t now_ns)
{
	while (ends->count && ends->heap[0].at_ns <= until_ns) {
		const struct end end = take(ends);

		now_ns = end.at_ns;
		visitor->ends(visitor->context, &end.mark, now_ns);
	}
	return now_ns;
}

void edges_visit(struct activities *activities, const struct edges_visitor *visitor, bool uncounted)
{
	const struct activity *one;
	struct ends ends = { .count = 0 };
	uint64_t now_ns = 0;

	for (activities_rewind(activities); (one = activities_first(activities)); activities_next(activities)) {
		struct edge_mark mark = { .device = one->device };

		if (activity_is_work(one) && !one->counts && !uncounted)
			continue;
		if (!activity_is_work(one) || !one->timed) {
			if (visitor->other)
				visitor->other(visitor->context, one);
			continue;
		}
		now_ns = end_until(&ends, visitor, one->start_unix_ns, now_ns);
		if (one->start_unix_ns > now_ns)
			now_ns = one->start_unix_ns;
		visitor->begins(visitor->context, one, now_ns, &mark);
		put(&ends, (struct end){ now_ns + one->duration_ns, mark });
	}
	end_until(&ends, visitor, UINT64_MAX, now_ns);
	free(ends.heap);
}
