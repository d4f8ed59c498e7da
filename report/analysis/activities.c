/* SPDX-License-Identifier: MIT */
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/base/external_sort.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>
#include <string.h>

#define STREAMS_MOST 65536u /* that have a name */
#define NAMES_MOST (1u << 22) /* ids beyond are looked at each time: only a damaged trace has them */

/* A stream that the program gave a name. */
struct named_stream {
	uint64_t handle;
	uint32_t name; /* of the trace */
};

struct activities {
	struct process *process;
	struct sorter *sorter;
	uint64_t work, untimed;
	struct activity_window *windows;
	size_t window_count, window_room;
	struct named_stream *streams;
	size_t stream_count, stream_room;
	size_t step;         /* the last one that something was found in */
	uint8_t *nature;     /* by name of a kernel: 0 not looked at yet, 1 computes, 2 communicates */
	size_t nature_room;
};

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
	const struct activity *a = left, *b = right;
	const bool work = activity_is_work(a);

	if (a->begin_ns != b->begin_ns)
		return by_number(a->begin_ns, b->begin_ns);
	if (work != activity_is_work(b) || !work) {
		if (a->kind != b->kind)
			return a->kind < b->kind ? -1 : 1;
	} else if (a->start_unix_ns != b->start_unix_ns) {
		return by_number(a->start_unix_ns, b->start_unix_ns);
	}
	return by_number(a->arrival, b->arrival);
}

/* The step in which that moment lies. Most lie where the last one did, or in the next. */
static uint32_t step_at(struct activities *activities, uint64_t at_ns)
{
	const struct steps *steps = activities->process->steps;
	size_t low = 0, high = steps ? steps->count : 0;

	if (activities->step < high && at_ns >= steps->steps[activities->step].begin_ns &&
		at_ns < steps->steps[activities->step].end_ns)
		return (uint32_t)activities->step;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (steps->steps[middle].begin_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at_ns >= steps->steps[low - 1].end_ns)
		return ACTIVITY_NO_STEP;
	activities->step = low - 1;
	return (uint32_t)activities->step;
}

static bool communicates(struct activities *activities, uint32_t name)
{
	struct trace_reader *reader = activities->process->reader;

	if (name >= NAMES_MOST)
		return timeline_is_communication(reader_name(reader, name));
	grow(&activities->nature, &activities->nature_room, (size_t)name + 1, 1);
	if (!activities->nature[name])
		activities->nature[name] = timeline_is_communication(reader_name(reader, name)) ? 2 : 1;
	return activities->nature[name] == 2;
}

static struct activity *add(struct activities *activities, enum activity_kind kind)
{
	const uint64_t arrival = sorter_count(activities->sorter);
	struct activity *activity = sorter_add(activities->sorter);

	activity->kind = (uint8_t)kind;
	activity->arrival = arrival;
	activity->device = activity->other_device = ACTIVITY_NO_DEVICE;
	activity->kernel = ACTIVITY_NO_KERNEL;
	activity->step = ACTIVITY_NO_STEP;
	return activity;
}

static void begins(void *context)
{
	struct activities *activities = context;

	sorter_empty(activities->sorter);
	activities->work = activities->untimed = 0;
	activities->window_count = activities->stream_count = 0;
}

static enum activity_kind sync_kind(const struct trace_sync *sync)
{
	switch (sync->type) {
	case TRACE_SYNC_EVENT:
	case TRACE_SYNC_STREAM:
	case TRACE_SYNC_CONTEXT:
		return ACTIVITY_WAIT;
	case TRACE_SYNC_STREAM_WAIT:
		return ACTIVITY_STREAM_WAIT;
	case TRACE_EVENT_RECORD:
		return ACTIVITY_EVENT_RECORD;
	default:
		return ACTIVITY_OTHER_CALL;
	}
}

static enum activity_kind call_kind(const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_LAUNCH:
		return ACTIVITY_LAUNCH;
	case TRACE_GRAPH_LAUNCH:
		return ACTIVITY_GRAPH_LAUNCH;
	case TRACE_COPY:
		return ACTIVITY_COPY_CALL;
	case TRACE_SET:
		return ACTIVITY_SET_CALL;
	case TRACE_ALLOC:
		return ACTIVITY_ALLOC;
	case TRACE_FREE:
		return ACTIVITY_FREE;
	default:
		return sync_kind(event->record);
	}
}

/* What only records of some kinds have. */
static void describe_call(struct activity *activity, const struct trace_event *event)
{
	const struct trace_launch *launch = event->record;
	const struct trace_copy *copy = event->record;
	const struct trace_sync *sync = event->record;
	const struct trace_memory *memory = event->record;

	switch (event->kind) {
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
		activity->stream = launch->stream;
		break;
	case TRACE_COPY:
	case TRACE_SET:
		activity->stream = copy->stream;
		activity->bytes = copy->bytes;
		activity->copy_kind = (uint8_t)copy->copy_kind;
		break;
	case TRACE_ALLOC:
	case TRACE_FREE:
		activity->stream = memory->stream;
		activity->bytes = memory->bytes;
		break;
	default:
		activity->stream = sync->stream;
		activity->event = sync->event;
		activity->sync = (uint8_t)sync->type;
	}
}

static void call(void *context, const struct fold_seen_call *seen)
{
	struct activities *activities = context;
	const struct trace_call *record = seen->event->record;
	struct activity *activity = add(activities, call_kind(seen->event));

	activity->begin_ns = activity->call_begin_ns = seen->begin_ns;
	activity->end_ns = activity->call_end_ns = seen->begin_ns + seen->duration_ns;
	activity->duration_ns = seen->duration_ns;
	activity->correlation = record->correlation;
	activity->node = seen->node;
	activity->owner = seen->owner;
	activity->name = seen->name;
	activity->tid = seen->event->stream->tid;
	activity->device = record->device;
	activity->step = step_at(activities, seen->begin_ns);
	activity->result = record->result;
	activity->timed = true;
	activity->in_range = seen->event->node != 0;
	activity->captured = (record->head.flags & TRACE_CALL_CAPTURED) != 0;
	activity->counts = seen->counts;
	describe_call(activity, seen->event);
}

static void describe_work(struct activities *activities, struct activity *activity, const struct trace_gpu *gpu)
{
	const struct trace_gpu_copy *copy = (const struct trace_gpu_copy *)gpu;

	if (activity->kind == ACTIVITY_KERNEL) {
		activity->communicates = communicates(activities, ((const struct trace_kernel *)gpu)->name);
		return;
	}
	activity->bytes = copy->bytes;
	if (activity->kind != ACTIVITY_COPY)
		return;
	activity->copy_kind = (uint8_t)copy->copy_kind;
	activity->source_kind = (uint8_t)copy->source_kind;
	activity->target_kind = (uint8_t)copy->target_kind;
	activity->other_device = copy->other_device;
}

static void set_work_times(struct activities *activities, struct activity *activity, const struct fold_seen_work *seen)
{
	const struct trace_gpu *gpu = seen->gpu;

	activity->timed = seen->timed;
	activity->begin_ns = activity->end_ns = activity->call_begin_ns;
	activities->untimed += !seen->timed;
	if (!seen->timed)
		return;
	activity->begin_ns = seen->begin_ns;
	activity->end_ns = seen->end_ns;
	activity->start_unix_ns = gpu->start_ns;
	activity->duration_ns = gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns : 0;
}

static void work(void *context, const struct fold_seen_work *seen)
{
	struct activities *activities = context;
	const struct trace_gpu *gpu = seen->gpu;
	struct activity *activity = add(activities, gpu->head.kind == TRACE_KERNEL     ? ACTIVITY_KERNEL
						    : gpu->head.kind == TRACE_GPU_COPY ? ACTIVITY_COPY
										       : ACTIVITY_SET);

	activities->work++;
	if (seen->launch) {
		activity->has_call = true;
		activity->call_begin_ns = seen->launch->begin_ns;
		activity->call_end_ns = seen->launch->end_ns;
		activity->tid = seen->launch->tid;
		activity->in_range = seen->launch->in_range;
		activity->of_graph = seen->launch->graph_node != 0;
	}
	set_work_times(activities, activity, seen);
	activity->correlation = gpu->correlation;
	activity->stream = gpu->stream;
	activity->device = gpu->device;
	activity->node = seen->node;
	activity->owner = seen->owner;
	activity->name = seen->name;
	if (activity->kind == ACTIVITY_KERNEL && seen->counts)
		activity->kernel = seen->kernel;
	activity->step = step_at(activities, seen->launch ? seen->launch->begin_ns : activity->begin_ns);
	activity->counts = seen->counts;
	describe_work(activities, activity, gpu);
}

static void name_stream(struct activities *activities, const struct trace_object *object)
{
	if ((object->type != TRACE_OBJECT_CU_STREAM && object->type != TRACE_OBJECT_CUDA_STREAM) ||
		activities->stream_count >= STREAMS_MOST)
		return;
	grow(&activities->streams, &activities->stream_room, activities->stream_count + 1,
		sizeof *activities->streams);
	activities->streams[activities->stream_count++] =
		(struct named_stream){ .handle = object->object, .name = object->name };
}

static uint64_t handle_of(struct trace_reader *reader, uint32_t device, uint64_t stream)
{
	const struct trace_context *context;
	uint64_t handle = 0;

	for (uint32_t i = 0; (context = reader_dictionary(reader, TRACE_CONTEXT, i)); i++)
		if (context->device == device && context->stream == stream)
			handle = context->handle;
	return handle;
}

struct text activities_stream_name(const struct activities *activities, uint32_t device, uint64_t stream)
{
	const uint64_t handle =
		activities->stream_count ? handle_of(activities->process->reader, device, stream) : 0;
	struct trace_text name = { .bytes = "" };

	for (size_t i = 0; handle && i < activities->stream_count; i++)
		if (activities->streams[i].handle == handle)
			name = reader_name(activities->process->reader, activities->streams[i].name);
	return (struct text){ .bytes = name.bytes, .length = name.length };
}

static void told(void *context, const struct trace_event *event)
{
	struct activities *activities = context;
	const struct trace_gpu_sync *sync = event->record;
	const struct trace_api *api = event->record;
	const bool is_api = event->kind == TRACE_API;
	struct activity *activity;

	if (event->kind == TRACE_OBJECT) {
		name_stream(activities, event->record);
		return;
	}
	activity = add(activities, is_api ? ACTIVITY_API : ACTIVITY_SYNC);
	activity->timed = reader_gpu_times(activities->process->reader, sync->start_ns, sync->end_ns,
		&activity->begin_ns, &activity->end_ns); /* both have them there */
	if (!activity->timed)
		activity->begin_ns = activity->end_ns = 0;
	activity->call_begin_ns = activity->begin_ns;
	activity->call_end_ns = activity->end_ns;
	activity->duration_ns = activity->end_ns - activity->begin_ns;
	activity->correlation = sync->correlation;
	activity->step = step_at(activities, activity->begin_ns);
	activity->counts = true;
	if (is_api) {
		activity->tid = api->tid;
		activity->result = api->result;
		activity->name = names_text(activities->process->fold->names, api->name);
		return;
	}
	activity->stream = sync->stream;
	activity->event = sync->event;
	activity->sync = (uint8_t)sync->type;
}

static void counting(void *context, bool counts, uint64_t at_ns)
{
	struct activities *activities = context;

	if (counts) {
		grow(&activities->windows, &activities->window_room, activities->window_count + 1,
			sizeof *activities->windows);
		activities->windows[activities->window_count++] = (struct activity_window){ at_ns, at_ns };
	} else if (activities->window_count) {
		activities->windows[activities->window_count - 1].end_ns = at_ns;
	}
}

struct activities *activities_read(struct process *process)
{
	struct activities *activities = need(sizeof *activities);
	const struct fold_observer observer = { .context = activities,
		.begins = begins,
		.call = call,
		.work = work,
		.told = told,
		.counting = counting };
	const struct fold_options options = fold_options_telling(process->fold, &observer);

	activities->process = process;
	activities->sorter =
		sorter_new(sizeof(struct activity), ACTIVITY_HELD, compare, "what happened on the GPU and around it");
	if (process_has_records(process))
		fold_free(fold_run(process->reader, process->texts, &options));
	return activities;
}

void activities_free(struct activities *activities)
{
	if (!activities)
		return;
	sorter_free(activities->sorter);
	free(activities->windows);
	free(activities->streams);
	free(activities->nature);
	free(activities);
}

void activities_rewind(struct activities *activities)
{
	sorter_rewind(activities->sorter);
}

const struct activity *activities_first(const struct activities *activities)
{
	return sorter_first(activities->sorter);
}

void activities_next(struct activities *activities)
{
	sorter_next(activities->sorter);
}

uint64_t activities_count(const struct activities *activities)
{
	return sorter_count(activities->sorter);
}

uint64_t activities_work(const struct activities *activities)
{
	return activities->work;
}

uint64_t activities_untimed(const struct activities *activities)
{
	return activities->untimed;
}

bool activities_count_at(const struct activities *activities, uint64_t at_ns)
{
	const struct fold_options *options = &activities->process->fold->options;

	for (size_t i = 0; i < activities->window_count; i++)
		if (at_ns >= activities->windows[i].begin_ns && at_ns < activities->windows[i].end_ns)
			return true;
	return !options->steps && !options->windows;
}

size_t activities_windows(const struct activities *activities, const struct activity_window **windows)
{
	*windows = activities->windows;
	return activities->window_count;
}
