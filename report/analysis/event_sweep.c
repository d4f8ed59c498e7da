/* SPDX-License-Identifier: MIT */
#include "report/analysis/event_sweep.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/heap.h"
#include <stdlib.h>

struct sweep_end {
	uint64_t at_ns;
	struct sweep_mark mark;
};

/* A heap with the earliest end on top. */
struct sweep_ends {
	struct sweep_end *heap;
	size_t count, room;
};

static bool is_earlier(const struct sweep_end *a, const struct sweep_end *b)
{
	return a->at_ns < b->at_ns;
}

DEFINE_HEAP(ends, struct sweep_end, is_earlier)

/* Emits the ends up to `until_ns`. Returns the time of the last one, or `now_ns` if there is
 * none. */
static uint64_t emit_ends_until(struct sweep_ends *ends, const struct event_sweep_visitor *visitor,
	uint64_t until_ns, uint64_t now_ns)
{
	while (ends->count && ends->heap[0].at_ns <= until_ns) {
		const struct sweep_end end = ends->heap[0];

		ends->count--;
		ends_down(ends->heap, ends->count, ends->heap[ends->count]);
		now_ns = end.at_ns;
		visitor->ends(visitor->context, &end.mark, now_ns);
	}
	return now_ns;
}

static void begin_swept_work(struct sweep_ends *ends, const struct event_sweep_visitor *visitor,
	const struct activity *work, uint64_t now_ns)
{
	struct sweep_mark mark = { .device = work->device };

	visitor->begins(visitor->context, work, now_ns, &mark);
	ARRAY_GROW(ends->heap, ends->room, ends->count + 1);
	ends_up(ends->heap, ends->count++, (struct sweep_end){ now_ns + work->duration_ns, mark });
}

void event_sweep_run(
	struct activities *activities, const struct event_sweep_visitor *visitor, bool uncounted)
{
	const struct activity *one;
	struct sweep_ends ends = { .count = 0 };
	uint64_t now_ns = 0;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities)) {
		if (activity_is_work(one) && !one->counts && !uncounted)
			continue;
		if (activity_is_work(one) && one->timed) {
			now_ns = emit_ends_until(&ends, visitor, one->start_unix_ns, now_ns);
			now_ns = max_u64(now_ns, one->start_unix_ns);
			begin_swept_work(&ends, visitor, one, now_ns);
		} else if (visitor->other) {
			visitor->other(visitor->context, one);
		}
	}
	emit_ends_until(&ends, visitor, UINT64_MAX, now_ns);
	free(ends.heap);
}
