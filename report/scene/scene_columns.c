/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/scene/scene_internal.h"
#include <stdlib.h>
#include <string.h>

size_t scene_column_at(const struct scene_span *span, uint64_t at_ns)
{
	const uint64_t column = at_ns > span->origin_ns ? (at_ns - span->origin_ns) >> span->shift
							: 0;

	return (size_t)min_u64(column, span->columns - 1);
}

void scene_span_begin(struct scene_span *span, uint64_t begin_ns, uint64_t end_ns)
{
	span->origin_ns = begin_ns;
	span->end_ns = max_u64(end_ns, begin_ns + 1);
	span->shift = 0;
	while ((span->end_ns - begin_ns - 1) >> span->shift >= SCENE_COLUMNS)
		span->shift++;
	span->columns = (size_t)((span->end_ns - begin_ns - 1) >> span->shift) + 1;
}

static struct scene_series *series_of(struct lane_builder *builder, uint32_t kind)
{
	struct scene_lane *lane = builder->lane;
	struct scene_series *added;

	for (size_t i = 0; i < lane->series_count; i++)
		if (lane->series[i].kind == kind)
			return &lane->series[i];
	added = ARRAY_ADD(lane->series, builder->series_room, lane->series_count);
	*added = (struct scene_series){ .kind = kind,
		.ns = xcalloc(SCENE_COLUMNS * sizeof *added->ns),
		.counts = xcalloc(SCENE_COLUMNS * sizeof *added->counts) };
	return added;
}

/* Takes `ns` off all candidates. */
static void weaken_candidates(struct scene_candidates *all, uint64_t ns)
{
	for (unsigned i = 0; i < SCENE_CANDIDATES; i++)
		all->ns[i] -= ns;
}

static void add_candidate(struct scene_candidates *all, uint32_t node, uint64_t ns)
{
	unsigned least = 0;

	for (unsigned i = 0; i < SCENE_CANDIDATES; i++) {
		if (all->ns[i] && all->node[i] == node) {
			all->ns[i] += ns;
			return;
		}
		least = all->ns[i] < all->ns[least] ? i : least;
	}
	if (all->ns[least] >= ns) {
		weaken_candidates(all, ns);
		return;
	}
	ns -= all->ns[least];
	weaken_candidates(all, all->ns[least]);
	all->ns[least] = ns;
	all->node[least] = node;
}

static struct scene_candidates *candidates_of(struct lane_builder *builder, uint32_t level)
{
	if (builder->lane->kind != SCENE_THREAD)
		return NULL;
	if (!builder->candidates[level])
		builder->candidates[level] = xcalloc(
			SCENE_COLUMNS * sizeof *builder->candidates[level]);
	return builder->candidates[level];
}

/* Returns how much of the length is before `at_ns`, a time of the interval. Differences add up to
 * the length exactly, wherever the interval is cut. */
static uint64_t length_before(const struct scene_occurrence *what, uint64_t at_ns)
{
	const uint64_t interval_ns = what->end_ns - what->begin_ns;

	if (at_ns >= what->end_ns)
		return what->length_ns;
	if (interval_ns == what->length_ns)
		return at_ns - what->begin_ns;
	return (uint64_t)((wide_uint)what->length_ns * (at_ns - what->begin_ns) / interval_ns);
}

/* Adds the time of `what` from `from_ns` to `to_ns` to the columns of the span. */
static void spread_time(const struct scene_span *span, struct scene_series *series,
	struct scene_candidates *candidates, const struct scene_occurrence *what, uint64_t from_ns,
	uint64_t to_ns)
{
	const size_t last = scene_column_at(span, to_ns > from_ns ? to_ns - 1 : to_ns);
	uint64_t before = from_ns > what->begin_ns ? length_before(what, from_ns) : 0;

	for (size_t column = scene_column_at(span, from_ns); column <= last; column++) {
		const uint64_t edge_ns = span->origin_ns + ((uint64_t)(column + 1) << span->shift),
			       until = length_before(what, column == last ? to_ns : edge_ns),
			       ns = until - before;

		series->ns[column] += ns;
		series->total_ns += ns;
		if (candidates && ns)
			add_candidate(&candidates[column], what->node, ns);
		before = until;
	}
}

/* Adds `what` to the columns of a lane. */
static void add_to_columns(const struct span_builder *builder, struct lane_builder *lane,
	const struct scene_occurrence *what)
{
	const struct scene_span *span = builder->span;
	struct scene_series *series = series_of(lane, what->kind);
	uint64_t from_ns = what->begin_ns, to_ns = what->end_ns;

	if (builder->is_window) {
		from_ns = max_u64(from_ns, span->origin_ns);
		to_ns = min_u64(to_ns, span->end_ns);
	}
	if (!builder->is_window || what->begin_ns >= span->origin_ns) {
		series->counts[scene_column_at(span, what->begin_ns)]++;
		series->count++;
	}
	spread_time(span, series, candidates_of(lane, what->kind), what, from_ns, to_ns);
}

/* Frees the events of a lane. A window puts them into columns. */
static void drop_events(struct span_builder *builder, struct lane_builder *lane)
{
	struct scene_lane *of = lane->lane;

	for (size_t i = 0; i < of->event_count; i++) {
		const struct scene_event *event = &of->events[i];
		const struct scene_occurrence what = { .begin_ns = event->begin_ns,
			.end_ns = event->begin_ns + event->duration_ns,
			.length_ns = event->duration_ns,
			.node = event->node,
			.kind = event->kind };

		if (builder->is_window && of->kind != SCENE_GPU)
			add_to_columns(builder, lane, &what);
	}
	builder->events -= of->event_count;
	free(of->events);
	of->events = NULL;
	of->event_count = lane->event_room = 0;
	lane->has_too_many = true;
}

static struct lane_builder *lane_with_most_events(const struct span_builder *builder)
{
	struct lane_builder *most = &builder->lanes[0];

	for (size_t i = 1; i < builder->span->lane_count; i++)
		if (builder->lanes[i].lane->event_count > most->lane->event_count)
			most = &builder->lanes[i];
	return most;
}

static void keep_event(struct span_builder *builder, struct lane_builder *lane,
	const struct scene_occurrence *what)
{
	struct scene_lane *of = lane->lane;

	*ARRAY_ADD(of->events, lane->event_room, of->event_count) = (struct scene_event){
		.begin_ns = what->begin_ns,
		.duration_ns = what->length_ns,
		.node = what->node,
		.name = what->name,
		.kind = what->kind,
	};
	builder->events++;
	if (of->event_count > builder->lane_events_max)
		drop_events(builder, lane);
	else if (builder->events > builder->events_max)
		drop_events(builder, lane_with_most_events(builder));
}

void span_builder_add(
	struct span_builder *builder, size_t lane_index, const struct scene_occurrence *what)
{
	const struct scene_span *span = builder->span;
	struct lane_builder *lane = &builder->lanes[lane_index];

	if (builder->is_window &&
		(what->begin_ns >= span->end_ns || what->end_ns < span->origin_ns ||
			(what->end_ns == span->origin_ns && what->begin_ns < what->end_ns)))
		return;
	lane->lane->events_seen += what->is_event;
	if (!builder->is_window || lane->lane->kind == SCENE_GPU || lane->has_too_many)
		add_to_columns(builder, lane, what);
	if (what->is_event && !lane->has_too_many)
		keep_event(builder, lane, what);
}

COMPARE_BY(by_kind, struct scene_series, kind)

static int by_begin(const void *a, const void *b)
{
	const struct scene_event *left = a, *right = b;

	if (left->begin_ns != right->begin_ns)
		return COMPARE(left->begin_ns, right->begin_ns);
	if (left->kind != right->kind)
		return COMPARE(left->kind, right->kind);
	return COMPARE(left->duration_ns, right->duration_ns);
}

/* Selects the strongest candidate of each column, and frees the candidates. */
static void select_dominants(struct lane_builder *builder)
{
	struct scene_lane *lane = builder->lane;

	for (size_t level = 0; level < SCENE_LEVELS; level++) {
		const struct scene_candidates *of = builder->candidates[level];

		if (!of)
			continue;
		if (!lane->dominants)
			lane->dominants = xcalloc(
				SCENE_LEVELS * SCENE_COLUMNS * sizeof *lane->dominants);
		for (size_t column = 0; column < SCENE_COLUMNS; column++)
			for (unsigned i = 0; i < SCENE_CANDIDATES; i++) {
				struct scene_dominant *to =
					&lane->dominants[level * SCENE_COLUMNS + column];

				if (of[column].ns[i] > to->ns)
					*to = (struct scene_dominant){ .ns = of[column].ns[i],
						.node = of[column].node[i] };
			}
		free(builder->candidates[level]);
	}
}

void span_builder_finish(struct span_builder *builder)
{
	for (size_t i = 0; i < builder->span->lane_count; i++) {
		struct scene_lane *lane = &builder->span->lanes[i];

		if (lane->series_count)
			qsort(lane->series, lane->series_count, sizeof *lane->series, by_kind);
		if (lane->event_count)
			qsort(lane->events, lane->event_count, sizeof *lane->events, by_begin);
		select_dominants(&builder->lanes[i]);
	}
	free(builder->lanes);
}

static void free_series(struct scene_lane *lane)
{
	for (size_t i = 0; i < lane->series_count; i++) {
		free(lane->series[i].ns);
		free(lane->series[i].counts);
	}
	free(lane->series);
}

void scene_span_free(struct scene_span *span)
{
	for (size_t i = 0; i < span->lane_count; i++) {
		free_series(&span->lanes[i]);
		free(span->lanes[i].dominants);
		free(span->lanes[i].events);
		free(span->lanes[i].label);
	}
	for (size_t i = 0; i < span->memory_count; i++)
		free(span->memories[i].columns);
	free(span->lanes);
	free(span->memories);
}
