/* SPDX-License-Identifier: MIT */
#include "report/gpu/unknown_time.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

struct unknown_gap {
	uint64_t from_ns, to_ns;
};

/* A graph launch of which operations have run. */
struct graph_progress {
	uint64_t covered_ns; /* end of its operations so far; 0: none */
	uint32_t launch;
};

static void add_span(struct unknown_time *unknown, uint64_t from_ns, uint64_t to_ns)
{
	struct unknown_span *span;

	array_grow_zeroed(
		&unknown->spans, &unknown->room, unknown->count + 1, sizeof *unknown->spans);
	span = &unknown->spans[unknown->count++];
	span->begin_ns[HANDOVER_REALTIME] = from_ns;
	span->end_ns[HANDOVER_REALTIME] = to_ns;
}

/* Adds the parts of a gap during which CUPTI was handed over. */
static void add_handovers(struct unknown_time *unknown, uint64_t from_ns, uint64_t to_ns,
	const struct handover_list *handovers)
{
	if (!handover_list_overlap_ns(handovers, HANDOVER_REALTIME, from_ns, to_ns))
		return;
	for (size_t i = 0; i < handovers->count; i++) {
		const struct handover_span *span = &handovers->spans[HANDOVER_REALTIME][i];
		const uint64_t from = max_u64(from_ns, span->begin_ns),
			       to = min_u64(to_ns, span->end_ns);

		if (to <= from)
			continue;
		add_span(unknown, from, to);
		unknown->handover_ns += to - from;
	}
}

/* Forgets the older half of the gaps. */
static void forget_old_gaps(struct unknown_time *unknown)
{
	const size_t kept = UNKNOWN_TIME_GAPS / 2;

	memmove(unknown->gaps, unknown->gaps + (unknown->gap_count - kept),
		kept * sizeof *unknown->gaps);
	unknown->gap_count = kept;
}

void unknown_time_add_gap(struct unknown_time *unknown, uint64_t from_ns, uint64_t to_ns,
	const struct handover_list *handovers, bool has_graphs)
{
	if (handovers)
		add_handovers(unknown, from_ns, to_ns, handovers);
	if (!has_graphs)
		return;
	if (unknown->gap_count == UNKNOWN_TIME_GAPS)
		forget_old_gaps(unknown);
	array_grow_zeroed(
		&unknown->gaps, &unknown->gap_room, unknown->gap_count + 1, sizeof *unknown->gaps);
	unknown->gaps[unknown->gap_count++] = (struct unknown_gap){ from_ns, to_ns };
}

/* Moves all gaps after `from_ns` to the spans. */
static void add_gaps_after(struct unknown_time *unknown, uint64_t from_ns)
{
	while (unknown->gap_count && unknown->gaps[unknown->gap_count - 1].to_ns > from_ns) {
		struct unknown_gap *last = &unknown->gaps[unknown->gap_count - 1];

		add_span(unknown, max_u64(last->from_ns, from_ns), last->to_ns);
		if (last->from_ns >= from_ns)
			unknown->gap_count--;
		else
			last->to_ns = from_ns;
	}
}

void unknown_time_add_node(
	struct unknown_time *unknown, uint32_t launch, uint64_t start_ns, uint64_t end_ns)
{
	struct graph_progress *graph;

	if (!unknown->graphs)
		unknown->graphs = xcalloc(UNKNOWN_TIME_GRAPHS * sizeof *unknown->graphs);
	graph = &unknown->graphs[launch & (UNKNOWN_TIME_GRAPHS - 1)];
	if (graph->launch != launch)
		*graph = (struct graph_progress){ .launch = launch };
	if (graph->covered_ns && start_ns > graph->covered_ns &&
		start_ns - graph->covered_ns > GRAPH_HOLE_NS)
		add_gaps_after(unknown, graph->covered_ns);
	graph->covered_ns = max_u64(graph->covered_ns, end_ns);
}

static int compare_spans(const void *left, const void *right)
{
	const struct unknown_span *a = left, *b = right;

	return COMPARE(a->begin_ns[HANDOVER_REALTIME], b->begin_ns[HANDOVER_REALTIME]);
}

/* Unites spans that overlap: a handover within a graph. */
static void unite_spans(struct unknown_time *unknown)
{
	size_t kept = 0;

	for (size_t i = 0; i < unknown->count; i++) {
		const struct unknown_span *span = &unknown->spans[i];
		uint64_t *end = kept ? &unknown->spans[kept - 1].end_ns[HANDOVER_REALTIME] : NULL;

		if (end && span->begin_ns[HANDOVER_REALTIME] <= *end)
			*end = max_u64(*end, span->end_ns[HANDOVER_REALTIME]);
		else
			unknown->spans[kept++] = *span;
	}
	unknown->count = kept;
}

void unknown_time_end(struct unknown_time *unknown, struct trace_reader *reader)
{
	uint64_t before_ns[HANDOVER_AXES] = { 0 };

	if (unknown->count)
		qsort(unknown->spans, unknown->count, sizeof *unknown->spans, compare_spans);
	unite_spans(unknown);
	for (size_t i = 0; i < unknown->count; i++) {
		struct unknown_span *span = &unknown->spans[i];

		reader_gpu_times(reader, span->begin_ns[HANDOVER_REALTIME],
			span->end_ns[HANDOVER_REALTIME], &span->begin_ns[HANDOVER_TRACE_TIME],
			&span->end_ns[HANDOVER_TRACE_TIME]);
		for (int axis = 0; axis < HANDOVER_AXES; axis++) {
			span->before_ns[axis] = before_ns[axis];
			before_ns[axis] += span->end_ns[axis] - span->begin_ns[axis];
		}
	}
	free(unknown->gaps);
	free(unknown->graphs);
	unknown->gaps = NULL;
	unknown->graphs = NULL;
	unknown->gap_count = unknown->gap_room = 0;
}

void unknown_time_free(struct unknown_time *unknown)
{
	free(unknown->spans);
	free(unknown->gaps);
	free(unknown->graphs);
	*unknown = (struct unknown_time){ .count = 0 };
}

/* Returns the unknown time before `at_ns`. */
static uint64_t unknown_ns_until(
	const struct unknown_time *unknown, enum handover_axis axis, uint64_t at_ns)
{
	size_t low = 0, high = unknown->count;
	const struct unknown_span *span;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (unknown->spans[middle].begin_ns[axis] < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	span = &unknown->spans[low - 1];
	return span->before_ns[axis] + min_u64(at_ns, span->end_ns[axis]) - span->begin_ns[axis];
}

uint64_t unknown_time_within(const struct unknown_time *unknown, enum handover_axis axis,
	uint64_t from_ns, uint64_t to_ns)
{
	return unknown->count && to_ns > from_ns ? unknown_ns_until(unknown, axis, to_ns) -
							   unknown_ns_until(unknown, axis, from_ns)
						 : 0;
}
