/* SPDX-License-Identifier: MIT */
#include "report/analysis/event_sweep.h"
#include "report/analysis/stream_table.h"
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/gpu/device_timeline.h"
#include "report/scene/scene_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_BYTES 256u
#define LANES_MAX (SCENE_STREAMS_MAX + SCENE_THREADS_MAX + 1u + 2u * TIMELINE_DEVICES)
#define NO_LANE SIZE_MAX

/* A CUDA stream with its time. */
struct stream_time {
	uint32_t device;
	uint64_t stream, ns;
	bool has_lane;
};

/* When a GPU was busy: the current interval of its union. */
struct gpu_busy {
	uint32_t device;
	struct active_time active;
	uint64_t begin_ns, end_ns, begin_total_ns;
};

struct scene_builder {
	struct scene *scene;
	struct process *process;
	struct activities *activities;
	struct category_lookup *categories;
	struct memory_builder *memory;
	struct span_builder spans[SCENE_SPANS_MAX];
	size_t span_count;
	/* The lanes, before they are copied to each span. */
	struct scene_lane lanes[LANES_MAX];
	size_t lane_count;
	struct gpu_busy gpus[TIMELINE_DEVICES];
	size_t gpu_count;
	uint32_t tid; /* of the last range */
	size_t tid_lane;
	uint8_t *levels; /* by trace node: level + 1, at most SCENE_LEVELS + 1; 0: not known */
	size_t level_room;
	uint32_t *labels; /* by trace node: text + 1 of its label; 0: not known */
	size_t label_room;
};

/* ---- lanes ---- */

static void add_lane(struct scene_builder *builder, struct scene_lane lane, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_lane(struct scene_builder *builder, struct scene_lane lane, const char *format, ...)
{
	va_list arguments;

	if (builder->lane_count == LANES_MAX)
		return;
	lane.label = xcalloc(LABEL_BYTES);
	va_start(arguments, format);
	vsnprintf(lane.label, LABEL_BYTES, format, arguments);
	va_end(arguments);
	builder->lanes[builder->lane_count++] = lane;
}

static int by_stream_time(const void *a, const void *b)
{
	const struct stream_time *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	if (left->device != right->device)
		return COMPARE(left->device, right->device);
	return COMPARE(left->stream, right->stream);
}

/* Lists the streams of all devices, those with most time first. The caller frees the array. */
static struct stream_time *list_streams(
	const struct timeline_device *devices, size_t device_count, size_t *count)
{
	struct stream_time *streams = NULL;
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < device_count; i++)
		for (size_t at = 0; at < devices[i].stream_count; at++) {
			const struct timeline_cuda_stream *of = &devices[i].streams[at];
			size_t known = 0;

			while (known < *count && (streams[known].device != devices[i].device ||
							 streams[known].stream != of->stream))
				known++;
			if (known == *count)
				*ARRAY_ADD(streams, room, *count) = (struct stream_time){
					.device = devices[i].device, .stream = of->stream
				};
			streams[known].ns += of->sum_ns;
		}
	if (*count)
		qsort(streams, *count, sizeof *streams, by_stream_time);
	for (size_t i = 0; i < *count && i < SCENE_STREAMS_MAX; i++)
		streams[i].has_lane = true;
	return streams;
}

static void add_gpu_lanes(struct scene_builder *builder)
{
	const struct timeline_device *devices;
	const size_t device_count = timeline_devices(builder->process->profile->timeline, &devices);
	size_t count;
	struct stream_time *streams = list_streams(devices, device_count, &count);

	for (size_t i = 0; i < device_count; i++) {
		const uint32_t device = devices[i].device;
		bool has_rest = false;

		add_lane(builder, (struct scene_lane){ .kind = SCENE_GPU, .device = device },
			"GPU %u", device);
		for (size_t at = 0; at < count; at++) {
			has_rest |= streams[at].device == device && !streams[at].has_lane;
			if (streams[at].device == device && streams[at].has_lane)
				add_lane(builder,
					(struct scene_lane){ .kind = SCENE_STREAM,
						.device = device,
						.stream = streams[at].stream },
					"stream %llu", (unsigned long long)streams[at].stream);
		}
		if (has_rest)
			add_lane(builder,
				(struct scene_lane){
					.kind = SCENE_STREAM, .device = device, .is_rest = true },
				"other streams");
	}
	free(streams);
}

COMPARE_POINTERS_BY_LARGEST(by_thread_time, struct profile_thread_time, self_ns)

static bool has_thread_lane(const struct scene_builder *builder, uint32_t tid)
{
	for (size_t i = 0; i < builder->lane_count; i++)
		if (builder->lanes[i].kind == SCENE_THREAD && builder->lanes[i].tid == tid)
			return true;
	return false;
}

/* Threads that have ended may have had the same id: they share a lane. */
static void add_thread_lanes(struct scene_builder *builder)
{
	const struct profile *profile = builder->process->profile;
	const size_t count = profile->thread_count;
	const struct profile_thread_time **order = xcalloc(
		(count + 1) * sizeof(struct profile_thread_time *));
	size_t lanes = 0, others = 0;

	for (size_t i = 0; i < count; i++)
		order[i] = &profile->threads[i];
	if (count)
		qsort(order, count, sizeof(struct profile_thread_time *), by_thread_time);
	for (size_t i = 0; i < count; i++) {
		const uint32_t tid = order[i]->tid;

		if (has_thread_lane(builder, tid))
			continue;
		if (lanes++ < SCENE_THREADS_MAX)
			add_lane(builder, (struct scene_lane){ .kind = SCENE_THREAD, .tid = tid },
				tid == builder->process->pid ? "main thread" : "thread %u", tid);
		else
			others++;
	}
	if (others)
		add_lane(builder, (struct scene_lane){ .kind = SCENE_THREAD, .is_rest = true },
			"other threads");
	free(order);
}

/* Returns the lane of a GPU or a stream. A stream without one has that of the rest. */
static size_t find_gpu_lane(const struct scene_builder *builder, enum scene_lane_kind kind,
	uint32_t device, uint64_t stream)
{
	size_t rest = NO_LANE;

	for (size_t i = 0; i < builder->lane_count; i++) {
		const struct scene_lane *lane = &builder->lanes[i];

		if (lane->kind != kind || lane->device != device)
			continue;
		if (kind == SCENE_GPU || (!lane->is_rest && lane->stream == stream))
			return i;
		if (lane->is_rest)
			rest = i;
	}
	return rest;
}

static size_t find_thread_lane(struct scene_builder *builder, uint32_t tid)
{
	if (builder->tid_lane != NO_LANE && builder->tid == tid)
		return builder->tid_lane;
	builder->tid = tid;
	builder->tid_lane = NO_LANE;
	for (size_t i = 0; i < builder->lane_count; i++) {
		const struct scene_lane *lane = &builder->lanes[i];

		if (lane->kind == SCENE_THREAD && (lane->is_rest || lane->tid == tid)) {
			builder->tid_lane = i;
			break;
		}
	}
	return builder->tid_lane;
}

static void add_to_spans(
	struct scene_builder *builder, size_t lane, const struct scene_occurrence *what)
{
	for (size_t i = 0; lane != NO_LANE && i < builder->span_count; i++)
		span_builder_add(&builder->spans[i], lane, what);
}

/* ---- ranges and memory ---- */

/* Returns the level of a node of the trace; SCENE_LEVELS: deeper than any lane has. */
static unsigned level_of(struct scene_builder *builder, uint32_t trace_node)
{
	unsigned level = 0;

	ARRAY_GROW(builder->levels, builder->level_room, (size_t)trace_node + 1);
	if (builder->levels[trace_node])
		return builder->levels[trace_node] - 1u;
	for (uint32_t at = reader_node(builder->process->reader, trace_node)->parent;
		at && level < SCENE_LEVELS; at = reader_node(builder->process->reader, at)->parent)
		level++;
	builder->levels[trace_node] = (uint8_t)(level + 1);
	return level;
}

static uint32_t label_of(struct scene_builder *builder, uint32_t trace_node)
{
	ARRAY_GROW(builder->labels, builder->label_room, (size_t)trace_node + 1);
	if (!builder->labels[trace_node])
		builder->labels[trace_node] =
			node_names_text(builder->process->profile->names,
				reader_node(builder->process->reader, trace_node)->name) +
			1;
	return builder->labels[trace_node] - 1;
}

static void add_range(void *context, const struct observed_segment *part)
{
	struct scene_builder *builder = context;
	struct scene_occurrence what = { .begin_ns = part->begin_ns,
		.end_ns = part->begin_ns + part->total_ns,
		.length_ns = part->total_ns,
		.node = part->node,
		.is_event = true };

	if (!part->trace_node || (what.kind = level_of(builder, part->trace_node)) >= SCENE_LEVELS)
		return;
	what.name = label_of(builder, part->trace_node);
	add_to_spans(builder, find_thread_lane(builder, part->thread->tid), &what);
}

static void add_memory(void *context, const struct observed_memory *seen)
{
	memory_builder_add(((struct scene_builder *)context)->memory, seen);
}

static void on_memory_mark(void *context, const struct trace_event *event)
{
	if (event->kind == TRACE_WINDOW)
		memory_builder_forget_tensors(((struct scene_builder *)context)->memory);
}

static void restart_scene(void *context)
{
	memory_builder_restart(((struct scene_builder *)context)->memory);
}

/* ---- the GPU ---- */

static void add_idle(void *context, const struct idle_part *part)
{
	struct scene_builder *builder = context;
	const struct activity *work = part->ended_by;

	add_to_spans(builder, find_gpu_lane(builder, SCENE_GPU, work->device, 0),
		&(struct scene_occurrence){ .begin_ns = part->part.begin_ns,
			.end_ns = max_u64(part->part.begin_ns, part->part.end_ns),
			.length_ns = part->length_ns,
			.node = idle_part_node(&part->part, work),
			.name = work->name,
			.kind = SCENE_IDLE + idle_cause(part->part.cause, part->length_ns),
			.is_event = true });
}

static void begin_gpu_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct scene_builder *builder = context;
	struct gpu_busy *gpu = device_slot(
		builder->gpus, &builder->gpu_count, sizeof *builder->gpus, work->device);

	mark->first = (uint32_t)(gpu - builder->gpus);
	if (!gpu->active.active) {
		gpu->begin_ns = gpu->end_ns = work->begin_ns;
		gpu->begin_total_ns = gpu->active.total_ns;
	}
	gpu->end_ns = max_u64(gpu->end_ns, work->end_ns);
	active_time_begin(&gpu->active, at_ns);
	add_to_spans(builder, find_gpu_lane(builder, SCENE_STREAM, work->device, work->stream),
		&(struct scene_occurrence){ .begin_ns = work->begin_ns,
			.end_ns = work->end_ns,
			.length_ns = work->duration_ns,
			.node = work->node,
			.name = work->name,
			.kind = category_lookup_of(builder->categories, builder->process->reader,
				work->node, work->trace_name),
			.is_event = true });
}

static void end_gpu_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct scene_builder *builder = context;
	struct gpu_busy *gpu = &builder->gpus[mark->first];

	if (!active_time_end(&gpu->active, at_ns))
		return;
	add_to_spans(builder, find_gpu_lane(builder, SCENE_GPU, gpu->device, 0),
		&(struct scene_occurrence){ .begin_ns = gpu->begin_ns,
			.end_ns = gpu->end_ns,
			.length_ns = gpu->active.total_ns - gpu->begin_total_ns,
			.kind = SCENE_BUSY });
}

static bool is_partial(const struct process *process)
{
	return process->profile->options.steps || process->profile->options.windows;
}

/* Adds the time of the device's span in which it is not known whether it was busy. */
static void add_unknown_time(struct scene_builder *builder, const struct timeline_device *device)
{
	const struct unknown_time *unknown = &device->unknown;

	for (size_t i = 0; i < unknown->count; i++) {
		const struct unknown_span *of = &unknown->spans[i];
		const uint64_t begin_unix = max_u64(
				       of->begin_ns[HANDOVER_REALTIME], device->all.first_ns),
			       end_unix = min_u64(
				       of->end_ns[HANDOVER_REALTIME], device->all.last_ns),
			       begin_ns = of->begin_ns[HANDOVER_TRACE_TIME] +
					  (begin_unix - of->begin_ns[HANDOVER_REALTIME]);

		if (begin_unix >= end_unix)
			continue;
		add_to_spans(builder, find_gpu_lane(builder, SCENE_GPU, device->device, 0),
			&(struct scene_occurrence){ .begin_ns = begin_ns,
				.end_ns = begin_ns + (end_unix - begin_unix),
				.length_ns = end_unix - begin_unix,
				.kind = SCENE_UNKNOWN,
				.is_event = true });
	}
}

static void read_gpu(struct scene_builder *builder)
{
	const struct event_sweep_visitor visitor = {
		.context = builder, .begins = begin_gpu_work, .ends = end_gpu_work
	};
	const struct timeline_device *devices;
	const size_t count = timeline_devices(builder->process->profile->timeline, &devices);

	idle_parts_visit(builder->process, builder->activities, add_idle, builder);
	event_sweep_run(builder->activities, &visitor, false);
	for (size_t i = 0; i < count && !is_partial(builder->process); i++)
		add_unknown_time(builder, &devices[i]);
}

/* Sets the names that the program gave to streams. */
static void name_streams(struct scene_builder *builder)
{
	for (size_t i = 0; i < builder->lane_count; i++) {
		struct scene_lane *lane = &builder->lanes[i];
		const struct device_stream of = { lane->stream, lane->device };

		if (lane->kind != SCENE_STREAM || lane->is_rest)
			continue;
		for (size_t span = 0; span < builder->span_count; span++)
			stream_table_label(&of, builder->activities,
				builder->spans[span].span->lanes[i].label, LABEL_BYTES);
	}
}

/* ---- spans ---- */

/* Returns the end of the run: of its last event or its last GPU operation. */
static uint64_t run_end_ns(const struct process *process)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(process->profile->timeline, &devices);
	uint64_t end_ns = reader_duration_ns(process->reader);

	for (size_t i = 0; i < count; i++)
		end_ns = max_u64(end_ns, reader_realtime(process->reader, devices[i].all.last_ns));
	return end_ns;
}

/* Finds the time of the steps of --steps. Returns false if all of the run is shown. */
static bool find_chosen_steps(const struct process *process, uint64_t *begin_ns, uint64_t *end_ns)
{
	const struct profile_options *options = &process->profile->options;
	bool found = false;

	for (size_t i = 0; options->steps && process->steps && i < process->steps->count; i++) {
		const struct step *step = &process->steps->steps[i];
		const uint64_t last_ns = max_u64(step->end_ns, step->window_end_ns);

		if (step->number < options->first_step || step->number > options->last_step)
			continue;
		*begin_ns = found ? min_u64(*begin_ns, step->begin_ns) : step->begin_ns;
		*end_ns = found ? max_u64(*end_ns, last_ns) : last_ns;
		found = true;
	}
	return found;
}

static void begin_span(struct scene_builder *builder, struct scene_span *span, bool is_window)
{
	struct span_builder *of = &builder->spans[builder->span_count++];

	span->lanes = xcalloc((builder->lane_count + 1) * sizeof *span->lanes);
	span->lane_count = builder->lane_count;
	*of = (struct span_builder){ .span = span,
		.is_window = is_window,
		.lanes = xcalloc((builder->lane_count + 1) * sizeof *of->lanes),
		.events_max = is_window ? SCENE_WINDOW_EVENTS_TOTAL : SCENE_WHOLE_EVENTS_TOTAL,
		.lane_events_max = is_window ? SCENE_WINDOW_EVENTS_MAX : SCENE_WHOLE_EVENTS_MAX };
	for (size_t i = 0; i < builder->lane_count; i++) {
		span->lanes[i] = builder->lanes[i];
		span->lanes[i].label = xcalloc(LABEL_BYTES);
		memcpy(span->lanes[i].label, builder->lanes[i].label, LABEL_BYTES);
		of->lanes[i].lane = &span->lanes[i];
	}
}

COMPARE_BY_TWO(by_window_begin, struct scene_window, begin_ns, end_ns)

static void begin_spans(struct scene_builder *builder, const struct scene_window_list *wanted)
{
	struct scene *scene = builder->scene;
	uint64_t begin_ns = 0, end_ns = 0;

	if (!find_chosen_steps(builder->process, &begin_ns, &end_ns))
		end_ns = run_end_ns(builder->process);
	scene_span_begin(&scene->whole, begin_ns, end_ns);
	begin_span(builder, &scene->whole, false);
	scene->window_count = wanted ? wanted->count : 0;
	scene->windows = xcalloc((scene->window_count + 1) * sizeof *scene->windows);
	scene->window_spans = xcalloc((scene->window_count + 1) * sizeof *scene->window_spans);
	for (size_t i = 0; i < scene->window_count; i++)
		scene->windows[i] = wanted->windows[i];
	if (scene->window_count)
		qsort(scene->windows, scene->window_count, sizeof *scene->windows, by_window_begin);
	for (size_t i = 0; i < scene->window_count; i++) {
		scene_span_begin(&scene->window_spans[i], scene->windows[i].begin_ns,
			scene->windows[i].end_ns);
		begin_span(builder, &scene->window_spans[i], true);
	}
}

/* Frees the events of windows that the whole run has. */
static void share_events(struct scene *scene)
{
	for (size_t i = 0; i < scene->window_count; i++)
		for (size_t at = 0; at < scene->whole.lane_count; at++) {
			struct scene_lane *lane = &scene->window_spans[i].lanes[at];

			if (!scene->whole.lanes[at].events || !lane->events)
				continue;
			free(lane->events);
			lane->events = NULL;
			lane->event_count = 0;
			lane->is_in_whole = true;
		}
}

static void finish_scene(struct scene_builder *builder)
{
	name_streams(builder);
	memory_builder_finish(builder->memory);
	for (size_t i = 0; i < builder->span_count; i++)
		span_builder_finish(&builder->spans[i]);
	share_events(builder->scene);
	for (size_t i = 0; i < builder->lane_count; i++)
		free(builder->lanes[i].label);
	memory_builder_free(builder->memory);
	activities_free(builder->activities);
	category_lookup_free(builder->categories);
	free(builder->levels);
	free(builder->labels);
	free(builder);
}

struct scene *scene_read(struct process *process, const struct scene_window_list *wanted)
{
	struct scene_builder *builder = xcalloc(sizeof *builder);
	struct scene *scene = xcalloc(sizeof *scene);
	const struct profile_observer observer = { .context = builder,
		.restart = restart_scene,
		.segment = add_range,
		.memory_record = add_memory,
		.memory_mark = on_memory_mark };

	scene->process = process;
	builder->scene = scene;
	builder->process = process;
	builder->tid_lane = NO_LANE;
	add_gpu_lanes(builder);
	add_thread_lanes(builder);
	begin_spans(builder, wanted);
	builder->memory = memory_builder_new(process, builder->spans, builder->span_count);
	builder->categories = category_lookup_new(
		process->categories, process->profile->tree, process->texts);
	builder->activities = activities_read_with(process, &observer);
	read_gpu(builder);
	finish_scene(builder);
	return scene;
}

void scene_drop_events(struct scene *scene)
{
	for (size_t i = 0; i < scene->whole.lane_count; i++) {
		free(scene->whole.lanes[i].events);
		scene->whole.lanes[i].events = NULL;
		scene->whole.lanes[i].event_count = 0;
	}
}

void scene_free(struct scene *scene)
{
	if (!scene)
		return;
	scene_span_free(&scene->whole);
	for (size_t i = 0; i < scene->window_count; i++)
		scene_span_free(&scene->window_spans[i]);
	free(scene->windows);
	free(scene->window_spans);
	free(scene);
}

const char *scene_series_name(
	const struct scene *scene, const struct scene_lane *lane, uint32_t kind)
{
	static const char *const collective_parts[] = { [SCENE_WAIT] = "wait",
		[SCENE_TRANSFER] = "transfer",
		[SCENE_UNMATCHED] = "unmatched" };

	if (lane->kind == SCENE_THREAD)
		return NULL;
	if (lane->kind == SCENE_STREAM)
		return categories_name(scene->process->categories, kind);
	if (lane->kind == SCENE_COLLECTIVES)
		return collective_parts[kind];
	if (kind == SCENE_EXPOSED)
		return "exposed communication";
	if (kind == SCENE_BUSY)
		return "busy";
	return kind == SCENE_UNKNOWN ? "unrecorded" : idle_cause_name(kind - SCENE_IDLE);
}
