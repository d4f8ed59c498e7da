/* SPDX-License-Identifier: MIT */
#include "report/scene/scene_ranks.h"
#include "report/analysis/event_sweep.h"
#include "report/analysis/idle_parts.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/gpu/device_timeline.h"
#include "report/scene/scene_internal.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <stdlib.h>

#define LABEL_BYTES 64u

enum gpu_state { GPU_IDLE, GPU_BUSY, GPU_EXPOSED };

/* What one GPU does at a point of the sweep. */
struct rank_gpu {
	uint32_t device;
	uint64_t computing, communicating, copying; /* operations that run */
	uint64_t since_ns;                          /* when the state changed last */
	enum gpu_state state;
};

struct ranks_builder {
	const struct ranks *ranks;
	struct span_builder span;
	uint32_t rank; /* that is read */
	int64_t origin_ns;
	struct rank_gpu gpus[TIMELINE_DEVICES];
	size_t gpu_count;
};

/* ---- the common clock ---- */

/* Returns a time of the rank, CLOCK_REALTIME, on the axis of the scene, which begins at
 * `origin_ns` of the reference's clock. */
static int64_t on_common_clock(
	const struct ranks *ranks, uint32_t rank, int64_t origin_ns, uint64_t unix_ns)
{
	const struct rank_process *of = &ranks->all[rank];

	if (!of->aligned)
		return (int64_t)(unix_ns - of->process->start_unix_ns);
	return ranks_time(ranks, rank, (int64_t)unix_ns) - origin_ns;
}

static uint64_t axis_time(const struct ranks_builder *builder, uint64_t unix_ns)
{
	const int64_t at_ns = on_common_clock(
		builder->ranks, builder->rank, builder->origin_ns, unix_ns);

	return at_ns > 0 ? (uint64_t)at_ns : 0;
}

static int64_t first_begin_ns(const struct ranks *ranks)
{
	int64_t first_ns = INT64_MAX;

	for (uint32_t i = 0; i < ranks->count; i++) {
		const int64_t begin_ns = on_common_clock(
			ranks, i, 0, ranks->all[i].process->start_unix_ns);

		if (ranks->all[i].aligned && begin_ns < first_ns)
			first_ns = begin_ns;
	}
	return first_ns;
}

static uint64_t last_end_ns(const struct ranks *ranks, int64_t origin_ns)
{
	int64_t last_ns = 1;

	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct process *process = ranks->all[i].process;
		const uint64_t end_unix_ns = max_u64(process->start_unix_ns + process->wall_ns,
			ranks->all[i].input->gpu_last_unix_ns);
		const int64_t end_ns = on_common_clock(ranks, i, origin_ns, end_unix_ns);

		last_ns = end_ns > last_ns ? end_ns : last_ns;
	}
	return (uint64_t)last_ns;
}

/* ---- GPUs ---- */

static void add_interval(struct ranks_builder *builder, size_t lane, uint32_t kind,
	uint64_t begin_unix_ns, uint64_t length_ns)
{
	const uint64_t begin_ns = axis_time(builder, begin_unix_ns);

	span_builder_add(&builder->span, lane,
		&(struct scene_occurrence){ .begin_ns = begin_ns,
			.end_ns = begin_ns + length_ns,
			.length_ns = length_ns,
			.kind = kind });
}

/* Ends the interval in which the GPU did the same, if that changes now. */
static void update_state(struct ranks_builder *builder, struct rank_gpu *gpu, uint64_t at_ns)
{
	enum gpu_state state = GPU_IDLE;

	if (gpu->computing || gpu->copying)
		state = GPU_BUSY;
	if (gpu->communicating && !gpu->computing)
		state = GPU_EXPOSED;
	if (state == gpu->state)
		return;
	if (gpu->state != GPU_IDLE && at_ns > gpu->since_ns)
		add_interval(builder, 2 * (size_t)builder->rank,
			gpu->state == GPU_EXPOSED ? SCENE_EXPOSED : SCENE_BUSY, gpu->since_ns,
			at_ns - gpu->since_ns);
	gpu->state = state;
	gpu->since_ns = at_ns;
}

/* Returns the counter of operations of this kind. As in the view `ranks`, memsets compute. */
static uint64_t *counter_of(struct rank_gpu *gpu, uint32_t kind)
{
	if (kind == ACTIVITY_COPY)
		return &gpu->copying;
	return kind == ACTIVITY_KINDS ? &gpu->communicating : &gpu->computing;
}

static void begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct ranks_builder *builder = context;
	struct rank_gpu *gpu = device_slot(
		builder->gpus, &builder->gpu_count, sizeof *builder->gpus, work->device);

	mark->first = (uint32_t)(gpu - builder->gpus);
	mark->second = work->communicates ? ACTIVITY_KINDS : work->kind;
	++*counter_of(gpu, mark->second);
	update_state(builder, gpu, at_ns);
}

static void end_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct ranks_builder *builder = context;
	struct rank_gpu *gpu = &builder->gpus[mark->first];

	--*counter_of(gpu, mark->second);
	update_state(builder, gpu, at_ns);
}

/* The clock of the gap is the host's: what ended it began by both clocks. */
static void add_idle(void *context, const struct idle_part *part)
{
	struct ranks_builder *builder = context;
	const struct activity *work = part->ended_by;

	add_interval(builder, 2 * (size_t)builder->rank,
		SCENE_IDLE + idle_cause(part->part.cause, part->length_ns),
		work->start_unix_ns - (work->begin_ns - part->part.begin_ns), part->length_ns);
}

static void read_gpus(struct ranks_builder *builder, struct process *process)
{
	const struct event_sweep_visitor visitor = {
		.context = builder, .begins = begin_work, .ends = end_work
	};
	struct activities *activities = activities_read(process);

	builder->gpu_count = 0;
	idle_parts_visit(process, activities, add_idle, builder);
	event_sweep_run(activities, &visitor, false);
	activities_free(activities);
}

/* ---- collectives ---- */

/* Returns the text `KIND, rank N last by TIME`, as a text of the reference's process. */
static uint32_t name_collective(const struct ranks *ranks, const struct collective *collective)
{
	char text[160], late[FORMAT_NUMBER_BYTES];
	const struct outcome *outcome;
	int length;

	if (collective->outcome == UINT32_MAX) {
		length = snprintf(text, sizeof text, "%s", collective_name(collective->kind));
	} else {
		outcome = &ranks->outcomes[collective->outcome];
		format_with_unit(late, UNIT_TIME, (int64_t)outcome->late_ns, false, false);
		length = outcome->last == UINT32_MAX
				 ? snprintf(text, sizeof text, "%s, no rank clearly last",
					   collective_name(collective->kind))
				 : snprintf(text, sizeof text, "%s, rank %lld last by %s",
					   collective_name(collective->kind),
					   (long long)ranks->all[outcome->last].number, late);
	}
	return string_table_intern(ranks->all[0].process->texts, text, (size_t)length);
}

static void add_part(struct ranks_builder *builder, uint32_t kind, uint32_t name, uint64_t begin_ns,
	uint64_t length_ns)
{
	if (length_ns)
		span_builder_add(&builder->span, 2 * (size_t)builder->rank + 1,
			&(struct scene_occurrence){ .begin_ns = begin_ns,
				.end_ns = begin_ns + length_ns,
				.length_ns = length_ns,
				.name = name,
				.kind = kind,
				.is_event = true });
}

static void read_collectives(struct ranks_builder *builder)
{
	const struct ranks *ranks = builder->ranks;
	const struct collectives *all = ranks->all[builder->rank].collectives;

	for (size_t i = 0; i < all->count; i++) {
		const struct collective *one = &all->all[i];
		uint64_t begin_ns, length_ns, wait_ns;
		uint32_t name;

		if (collective_is_lost(one))
			continue;
		name = name_collective(ranks, one);
		begin_ns = axis_time(builder, (uint64_t)one->start_ns);
		length_ns = (uint64_t)(one->end_ns - one->start_ns);
		wait_ns = ranks_wait_ns(ranks, builder->rank, one);
		add_part(builder, SCENE_WAIT, name, begin_ns, wait_ns);
		add_part(builder, one->outcome == UINT32_MAX ? SCENE_UNMATCHED : SCENE_TRANSFER,
			name, begin_ns + wait_ns, length_ns - wait_ns);
	}
}

/* ---- the scene ---- */

static void add_lanes(struct ranks_builder *builder, struct scene_span *span)
{
	const struct ranks *ranks = builder->ranks;

	span->lane_count = 2 * ranks->count;
	span->lanes = xcalloc((span->lane_count + 1) * sizeof *span->lanes);
	builder->span = (struct span_builder){ .span = span,
		.lanes = xcalloc((span->lane_count + 1) * sizeof *builder->span.lanes),
		.events_max = SCENE_COLLECTIVE_EVENTS_MAX,
		.lane_events_max = SCENE_COLLECTIVE_EVENTS_MAX };
	for (size_t i = 0; i < span->lane_count; i++) {
		const struct rank_process *rank = &ranks->all[i / 2];
		char *label = xcalloc(LABEL_BYTES);

		if (!(i % 2))
			snprintf(label, LABEL_BYTES, "rank %lld", (long long)rank->number);
		span->lanes[i] = (struct scene_lane){ .kind = i % 2 ? SCENE_COLLECTIVES
								    : SCENE_RANK,
			.device = rank->input->gpu_count,
			.label = label };
		builder->span.lanes[i].lane = &span->lanes[i];
	}
}

/* Makes fewer columns of many ranks. */
static void widen_columns(struct scene_span *span, size_t rank_count)
{
	while (span->columns > 64 && span->columns * rank_count > SCENE_RANKS_COLUMNS) {
		span->shift++;
		span->columns = (size_t)((span->end_ns - span->origin_ns - 1) >> span->shift) + 1;
	}
}

struct scene *scene_ranks_read(const struct ranks *ranks, const struct options *options)
{
	struct ranks_builder *builder = xcalloc(sizeof *builder);
	struct scene *scene = xcalloc(sizeof *scene);

	scene->process = ranks_open(ranks, 0, options);
	builder->ranks = ranks;
	builder->origin_ns = first_begin_ns(ranks);
	scene_span_begin(&scene->whole, 0, last_end_ns(ranks, builder->origin_ns));
	widen_columns(&scene->whole, ranks->count);
	add_lanes(builder, &scene->whole);
	for (uint32_t i = 0; i < ranks->count; i++) {
		builder->rank = i;
		read_gpus(builder, i ? ranks_open(ranks, i, options) : scene->process);
		read_collectives(builder);
		if (i)
			ranks_close(ranks, i);
	}
	span_builder_finish(&builder->span);
	free(builder);
	return scene;
}
