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

struct event_sweep {
	struct event_sweep_visitor visitor;
	bool uncounted;
	uint64_t now_ns;
	struct sweep_end *heap; /* the earliest end on top */
	size_t count, room;
};

static bool is_earlier(const struct sweep_end *a, const struct sweep_end *b)
{
	return a->at_ns < b->at_ns;
}

DEFINE_HEAP(ends, struct sweep_end, is_earlier)

/* Emits the ends up to `until_ns`. */
static void emit_ends_until(struct event_sweep *sweep, uint64_t until_ns)
{
	while (sweep->count && sweep->heap[0].at_ns <= until_ns) {
		const struct sweep_end end = sweep->heap[0];

		sweep->count--;
		ends_down(sweep->heap, sweep->count, sweep->heap[sweep->count]);
		sweep->now_ns = end.at_ns;
		sweep->visitor.ends(sweep->visitor.context, &end.mark, sweep->now_ns);
	}
}

static void begin_swept_work(struct event_sweep *sweep, const struct activity *work)
{
	struct sweep_end *end;

	emit_ends_until(sweep, work->start_unix_ns);
	sweep->now_ns = max_u64(sweep->now_ns, work->start_unix_ns);
	ARRAY_GROW(sweep->heap, sweep->room, sweep->count + 1);
	end = &sweep->heap[sweep->count]; /* its place, if nothing else runs */
	end->at_ns = sweep->now_ns + work->duration_ns;
	end->mark = (struct sweep_mark){ .device = work->device };
	sweep->visitor.begins(sweep->visitor.context, work, sweep->now_ns, &end->mark);
	if (sweep->count++)
		ends_up(sweep->heap, sweep->count - 1, *end);
}

static void sweep_activity(void *context, const struct activity *one)
{
	struct event_sweep *sweep = context;

	if (activity_is_work(one) && !one->counts && !sweep->uncounted)
		return;
	if (activity_is_work(one) && one->timed)
		begin_swept_work(sweep, one);
	else if (sweep->visitor.other)
		sweep->visitor.other(sweep->visitor.context, one);
}

static void end_sweep(void *context)
{
	struct event_sweep *sweep = context;

	emit_ends_until(sweep, UINT64_MAX);
	free(sweep->heap);
	free(sweep);
}

struct activity_visitor event_sweep_begin(const struct event_sweep_visitor *visitor, bool uncounted)
{
	struct event_sweep *sweep = xcalloc(sizeof *sweep);

	sweep->visitor = *visitor;
	sweep->uncounted = uncounted;
	return (struct activity_visitor){
		.context = sweep, .add = sweep_activity, .end = end_sweep
	};
}

void event_sweep_run(
	struct activities *activities, const struct event_sweep_visitor *visitor, bool uncounted)
{
	const struct activity_visitor sweep = event_sweep_begin(visitor, uncounted);

	activities_visit(activities, &sweep, 1);
}
