/* SPDX-License-Identifier: MIT */
#include "report/gpu/device_timeline.h"
#include "report/base/compare.h"
#include "report/gpu/cupti_handover.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/gpu/interval_queue.h"
#include "report/gpu/work_categories.h"
#include "report/base/spill_list.h"
#include "report/base/value_file.h"
#include "report/trace/trace_reader.h"
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX (UINT64_MAX / TIMELINE_DEVICES) /* 9 years; longer work is cut to it */
#define NAMES_MAX (1u << 22) /* larger ids are looked up each time: only a damaged trace has them */

/* The bits of an activity. Each union is made of intervals that have any of its bits. */
enum gpu_doing {
	COMPUTING = 1,
	COMMUNICATING = 2,
	COPYING = 4,
	SETTING_MEMORY = 8,
	WITHOUT_LAUNCH = 16
};
#define ACTIVITY_MASK 31u /* all bits; an interval's tag has its CUDA stream's row + 1 above them */

enum { BUSY, COMPUTATION, COMMUNICATION, COPIES, NOT_COPIES, KERNELS, UNIONS };
static const unsigned union_activities[UNIONS] = { [BUSY] = COMPUTING | SETTING_MEMORY |
							    COMMUNICATING | COPYING,
	[COMPUTATION] = COMPUTING | SETTING_MEMORY,
	[COMMUNICATION] = COMMUNICATING,
	[COPIES] = COPYING,
	[NOT_COPIES] = COMPUTING | SETTING_MEMORY | COMMUNICATING,
	[KERNELS] = COMPUTING | COMMUNICATING };

/* The union of intervals that are added in order of their starts: total length, and the latest
 * end. */
struct interval_union {
	uint64_t length, covered;
};

/* Computes the unions of one device. Its intervals arrive in nearly the order of their starts. */
struct device_sweep {
	struct interval_queue waiting;
	struct interval_union unions[UNIONS]; /* of all intervals taken from `waiting` */
	/* Without the work that has no launch. Kept from the first such work on. Until then it
	 * equals `unions`. */
	struct interval_union launched[UNIONS];
	bool some_not_launched;
	bool has_started;
};

/* Operations that overlap or follow each other at once are one noted interval, unless so many
 * others were noted since it began: it must be noted before read_noted_ahead needs it. */
#define NOTED_SINCE_MAX 4096u

/* An interval since the start of the trace in which a device was busy, saved for later. */
struct noted_interval {
	uint64_t start;
	/* duration * TIMELINE_DEVICES + row of the device, in order of appearance */
	uint64_t length;
};

struct timeline {
	/* Not owned. NULL after timeline_end, unless timeline_read made it. */
	struct trace_reader *reader;
	const struct categories *categories; /* not owned; NULL after timeline_end */
	struct spill_list *noted;            /* NULL: not read yet */
	struct handover_list *handovers;     /* NULL: none */
	int64_t device;
	struct timeline_device devices[TIMELINE_DEVICES];
	struct device_sweep sweeps[TIMELINE_DEVICES];
	struct stream_unions {
		struct interval_union *covered;
		size_t last, room, covered_room; /* last: row used last */
	} streams[TIMELINE_DEVICES];
	/* first and last time since the start of the trace */
	struct interval spans[TIMELINE_DEVICES];
	/* The last interval of each device, which may become longer before it is noted. */
	struct unnoted_interval {
		uint64_t start, end, noted_before; /* noted_before: when it began */
		bool exists;
	} unnoted[TIMELINE_DEVICES];
	uint64_t noted_count;
	/* from the row of a device in order of appearance to its row in `devices` */
	uint32_t order[TIMELINE_DEVICES];
	size_t count, waiting;      /* devices; intervals in all queues */
	uint64_t late, late_at_end; /* late_at_end: at timeline_end */
	uint64_t next_ns; /* no waiting interval begins before it, and enough of them wait */
	/* all_read: all of `noted` was read */
	bool has_ended, all_read, some_not_launched;
	/* NULL: not set */
	void (*gap)(void *context, uint32_t device, uint64_t from_ns, uint64_t to_ns);
	void *gap_context;
	/* By the low bits of the correlation id: graph launches. NULL: none yet. */
	uint32_t *graph_launches;
	uint8_t *activity; /* by name id of a kernel: enum gpu_doing; 0: not yet determined */
	size_t activity_room;
};

static void extend_union(struct interval_union *merged, const struct interval *interval)
{
	const uint64_t from = interval->start > merged->covered ? interval->start : merged->covered;

	if (interval->end > from)
		merged->length += interval->end - from;
	if (interval->end > merged->covered)
		merged->covered = interval->end;
}

static void add_graph_launch(struct timeline *timeline, const struct trace_call *call)
{
	const uint32_t launch = (uint32_t)call->correlation;

	if (!timeline->graph_launches)
		timeline->graph_launches = xcalloc(
			UNKNOWN_TIME_GRAPHS * sizeof *timeline->graph_launches);
	timeline->graph_launches[launch & (UNKNOWN_TIME_GRAPHS - 1)] = launch;
}

/* Returns the launch of an operation that may be part of a CUDA graph, although it names no graph
 * node. 0: it is not. Each launch before the trace may be that of a graph. */
static uint32_t graph_launch_of(const struct timeline *timeline, const struct interval *interval)
{
	const uint32_t launch = interval->launch;

	if (!launch || interval->tag & WITHOUT_LAUNCH)
		return launch;
	return timeline->graph_launches &&
			       timeline->graph_launches[launch & (UNKNOWN_TIME_GRAPHS - 1)] ==
				       launch
		       ? launch
		       : 0;
}

/* Finds the unknown time before `interval`. Called before the interval is added to the union. */
static void find_unknown_time(struct timeline *timeline, const struct device_sweep *sweep,
	const struct interval *interval)
{
	struct unknown_time *unknown = &timeline->devices[sweep - timeline->sweeps].unknown;
	const uint64_t covered = sweep->unions[BUSY].covered;
	const bool has_graphs = timeline->graph_launches || timeline->some_not_launched;
	const uint32_t launch = has_graphs ? graph_launch_of(timeline, interval) : 0;

	if ((timeline->handovers || has_graphs) && sweep->has_started && interval->start > covered)
		unknown_time_add_gap(
			unknown, covered, interval->start, timeline->handovers, has_graphs);
	if (launch)
		unknown_time_add_node(unknown, launch, interval->start, interval->end);
}

/* Moves the earliest waiting interval into all unions. */
static void sweep_all_unions(struct timeline *timeline, struct device_sweep *sweep)
{
	const struct interval interval = interval_queue_pop(&sweep->waiting);
	const uint32_t activity = interval.tag & ACTIVITY_MASK,
		       stream = interval.tag / (ACTIVITY_MASK + 1);
	struct stream_unions *streams = &timeline->streams[sweep - timeline->sweeps];

	find_unknown_time(timeline, sweep, &interval);
	if (activity & WITHOUT_LAUNCH && !sweep->some_not_launched) {
		memcpy(sweep->launched, sweep->unions, sizeof sweep->launched);
		sweep->some_not_launched = true;
	}
	for (int i = 0; i < UNIONS; i++)
		if (union_activities[i] & activity)
			extend_union(&sweep->unions[i], &interval);
	for (int i = 0; sweep->some_not_launched && !(activity & WITHOUT_LAUNCH) && i < UNIONS; i++)
		if (union_activities[i] & activity)
			extend_union(&sweep->launched[i], &interval);
	extend_union(&streams->covered[stream - 1], &interval);
	sweep->has_started = true;
}

/* Moves the earliest waiting interval into the busy union. Reports the gap before it. */
static void sweep_busy_union(struct timeline *timeline, struct device_sweep *sweep)
{
	const struct interval interval = interval_queue_pop(&sweep->waiting);
	const uint64_t covered = sweep->unions[BUSY].covered;

	timeline->waiting--;
	if (timeline->gap && sweep->has_started && interval.start > covered)
		timeline->gap(timeline->gap_context,
			timeline->devices[sweep - timeline->sweeps].device, covered,
			interval.start);
	extend_union(&sweep->unions[BUSY], &interval);
	sweep->has_started = true;
}

static size_t device_index(struct timeline *timeline, uint32_t device)
{
	const struct timeline_device *found = device_slot(
		timeline->devices, &timeline->count, sizeof *timeline->devices, device);

	return (size_t)(found - timeline->devices);
}

static void queue_interval(
	struct timeline *timeline, struct device_sweep *sweep, struct interval interval)
{
	if (interval.end < interval.start)
		interval.end = interval.start;
	if (sweep->has_started && interval.start < sweep->unions[BUSY].covered &&
		interval.end <= sweep->unions[BUSY].covered)
		timeline->late += interval.end > interval.start;
	interval_queue_push(&sweep->waiting, interval);
}

static uint8_t kernel_activity(const struct timeline *timeline, uint32_t name)
{
	return categories_is_communication(
		       timeline->categories, reader_name(timeline->reader, name))
		       ? COMMUNICATING
		       : COMPUTING;
}

static unsigned activity_of_record(struct timeline *timeline, const struct trace_gpu *gpu)
{
	const struct trace_kernel *kernel = (const struct trace_kernel *)gpu;

	if (gpu->head.kind != TRACE_KERNEL)
		return gpu->head.kind == TRACE_GPU_COPY ? COPYING : SETTING_MEMORY;
	if (kernel->name >= NAMES_MAX)
		return kernel_activity(timeline, kernel->name);
	if (kernel->name >= timeline->activity_room)
		array_grow_zeroed(
			&timeline->activity, &timeline->activity_room, (size_t)kernel->name + 1, 1);
	if (!timeline->activity[kernel->name])
		timeline->activity[kernel->name] = kernel_activity(timeline, kernel->name);
	return timeline->activity[kernel->name];
}

/* Stores the lengths of `unions`, which must be complete, in `work`. */
static void store_union_lengths(struct timeline_work *work, const struct interval_union *unions)
{
	work->busy_ns = unions[BUSY].length;
	work->kernel_ns = unions[KERNELS].length;
	work->computation_ns = unions[COMPUTATION].length;
	work->communication_ns = unions[COMMUNICATION].length;
	work->copy_ns = unions[COPIES].length;
	work->exposed_communication_ns = unions[NOT_COPIES].length - unions[COMPUTATION].length;
	work->exposed_copy_ns = unions[BUSY].length - unions[NOT_COPIES].length;
}

static void count_work_record(struct timeline_work *work, uint64_t start, uint64_t end)
{
	if (!work->records || start < work->first_ns)
		work->first_ns = start;
	if (end > work->last_ns)
		work->last_ns = end;
	work->records++;
	work->sum_ns += end - start;
}

static void add_stream_row(
	struct timeline_device *device, struct stream_unions *streams, const struct trace_gpu *gpu)
{
	const size_t count = device->stream_count + 1;

	ARRAY_GROW(device->streams, streams->room, count);
	ARRAY_GROW(streams->covered, streams->covered_room, count);
	device->streams[device->stream_count++] = (struct timeline_cuda_stream){
		.context = gpu->context, .stream = gpu->stream
	};
}

static bool is_stream_of(const struct timeline_cuda_stream *stream, const struct trace_gpu *gpu)
{
	return stream->stream == gpu->stream && stream->context == gpu->context;
}

/* Returns the row of the record's CUDA stream. Most work is of the same CUDA stream as the work
 * before. */
static uint32_t timeline_stream_row(
	struct timeline *timeline, size_t device, const struct trace_gpu *gpu)
{
	struct timeline_device *of = &timeline->devices[device];
	struct stream_unions *streams = &timeline->streams[device];
	size_t i = streams->last;

	if (i < of->stream_count && is_stream_of(&of->streams[i], gpu))
		return (uint32_t)i;
	for (i = 0; i < of->stream_count && !is_stream_of(&of->streams[i], gpu);)
		i++;
	if (i == TIMELINE_CUDA_STREAMS)
		i = TIMELINE_CUDA_STREAMS - 1;
	if (i == of->stream_count)
		add_stream_row(of, streams, gpu);
	streams->last = i;
	return (uint32_t)i;
}

COMPARE_BY_TWO(compare_timeline_streams, struct timeline_cuda_stream, context, stream)

/* Saves the last interval of a device. */
static void note_last_interval(struct timeline *timeline, size_t index)
{
	struct unnoted_interval *last = &timeline->unnoted[index];
	const uint64_t length = last->end - last->start;
	struct noted_interval *noted;

	if (!last->exists)
		return;
	noted = spill_list_push(timeline->noted);
	*noted = (struct noted_interval){ .start = last->start,
		.length = min_u64(length, LENGTH_MAX) * TIMELINE_DEVICES + index };
	timeline->noted_count++;
	last->exists = false;
}

/* Saves the times of a record, in nanoseconds since the start of the trace. */
static void note_interval(struct timeline *timeline, size_t index, const struct trace_gpu *gpu)
{
	struct unnoted_interval *last = &timeline->unnoted[index];
	struct interval *span = &timeline->spans[index];
	uint64_t start, end;

	reader_gpu_times(timeline->reader, gpu->start_ns, gpu->end_ns, &start, &end);
	if (last->exists && start >= last->start && start <= last->end &&
		timeline->noted_count - last->noted_before < NOTED_SINCE_MAX) {
		last->end = max_u64(last->end, end);
	} else {
		note_last_interval(timeline, index);
		*last = (struct unnoted_interval){ .start = start,
			.end = end,
			.noted_before = timeline->noted_count,
			.exists = true };
	}
	if (!timeline->devices[index].all.records || start < span->start)
		span->start = start;
	if (end > span->end)
		span->end = end;
}

/* Returns whether the event is timed work of a device of the timeline. */
static bool is_timed_work(const struct timeline *timeline, const struct trace_event *event)
{
	const struct trace_gpu *gpu = event->record;

	return (event->kind == TRACE_KERNEL || event->kind == TRACE_GPU_COPY ||
		       event->kind == TRACE_GPU_SET) &&
	       (timeline->device < 0 || gpu->device == timeline->device) &&
	       (gpu->start_ns || gpu->end_ns);
}

/* Computes the totals in CUPTI's own nanoseconds. */
void timeline_add(struct timeline *timeline, const struct trace_event *event)
{
	const struct trace_gpu *gpu = event->record;
	struct timeline_device *device;
	uint64_t end;
	size_t index;
	uint32_t stream, activity;

	if (event->kind == TRACE_GRAPH_LAUNCH) {
		add_graph_launch(timeline, event->record);
		return;
	}
	if (!is_timed_work(timeline, event))
		return;
	index = device_index(timeline, gpu->device);
	device = &timeline->devices[index];
	note_interval(timeline, index, gpu);
	end = gpu->end_ns > gpu->start_ns ? gpu->end_ns : gpu->start_ns;
	stream = timeline_stream_row(timeline, index, gpu);
	activity = activity_of_record(timeline, gpu) |
		   (gpu->head.flags & TRACE_GPU_NO_LAUNCH ? WITHOUT_LAUNCH : 0);
	count_work_record(&device->all, gpu->start_ns, end);
	if (!(activity & WITHOUT_LAUNCH))
		count_work_record(&device->launched, gpu->start_ns, end);
	else
		timeline->some_not_launched = true;
	device->streams[stream].records++;
	device->streams[stream].sum_ns += end - gpu->start_ns;
	queue_interval(timeline, &timeline->sweeps[index],
		(struct interval){ gpu->start_ns, end,
			activity | (stream + 1) * (ACTIVITY_MASK + 1),
			gpu->graph_node ? 0 : (uint32_t)gpu->correlation });
	if (interval_queue_length(&timeline->sweeps[index].waiting) > TIMELINE_AHEAD)
		sweep_all_unions(timeline, &timeline->sweeps[index]);
}

/* Adds a device's remaining intervals to the unions and stores the results. */
static void end_device(struct timeline *timeline, size_t index)
{
	struct timeline_device *device = &timeline->devices[index];
	struct device_sweep *sweep = &timeline->sweeps[index];

	while (interval_queue_length(&sweep->waiting))
		sweep_all_unions(timeline, sweep);
	store_union_lengths(&device->all, sweep->unions);
	store_union_lengths(
		&device->launched, sweep->some_not_launched ? sweep->launched : sweep->unions);
	for (size_t i = 0; i < device->stream_count; i++)
		device->streams[i].busy_ns = timeline->streams[index].covered[i].length;
	if (device->stream_count)
		qsort(device->streams, device->stream_count, sizeof *device->streams,
			compare_timeline_streams);
	unknown_time_end(&device->unknown, timeline->reader);
	device->unknown_handover_ns = device->unknown.handover_ns;
	device->unknown_ns = unknown_time_within(
		&device->unknown, HANDOVER_REALTIME, device->all.first_ns, device->all.last_ns);
	device->unknown_launched_ns = unknown_time_within(&device->unknown, HANDOVER_REALTIME,
		device->launched.first_ns, device->launched.last_ns);
}

/* Rows of devices, and of what belongs to them, in the order of their numbers. */
static void sort_devices(struct timeline *timeline)
{
	uint32_t came[TIMELINE_DEVICES] = { 0 };
	struct interval spans[TIMELINE_DEVICES];

	memcpy(spans, timeline->spans, sizeof spans);
	for (size_t i = 0; i < timeline->count; i++)
		came[i] = timeline->devices[i].device;
	qsort(timeline->devices, timeline->count, sizeof *timeline->devices, compare_u32);
	for (size_t i = 0; i < timeline->count; i++) {
		timeline->order[i] = (uint32_t)device_index(timeline, came[i]);
		timeline->spans[timeline->order[i]] = spans[i];
	}
}

void timeline_end(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->count; i++) {
		note_last_interval(timeline, i);
		end_device(timeline, i);
	}
	sort_devices(timeline);
	timeline->has_ended = true;
	timeline->late_at_end = timeline->late;
	timeline->reader = NULL;
	timeline->categories = NULL;
	timeline_rewind(timeline);
}

bool timeline_has_ended(const struct timeline *timeline)
{
	return timeline->has_ended;
}

/* Reads the times of all GPU operations, for a timeline that was written without them. The reader
 * then says what it said before. */
static void read_noted_times(struct timeline *timeline)
{
	const struct reader_end end = reader_end_of_pass(timeline->reader);
	struct trace_event event;
	int status;

	timeline->noted = spill_list_new(sizeof(struct noted_interval), "GPU times");
	reader_rewind(timeline->reader);
	while ((status = reader_next(timeline->reader, &event)) > 0)
		if (is_timed_work(timeline, &event))
			note_interval(timeline,
				device_index(
					timeline, ((const struct trace_gpu *)event.record)->device),
				event.record);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(timeline->reader));
	for (size_t i = 0; i < timeline->count; i++)
		note_last_interval(timeline, i);
	reader_resume_end(timeline->reader, &end);
}

void timeline_rewind(struct timeline *timeline)
{
	if (!timeline->noted)
		read_noted_times(timeline);
	for (size_t i = 0; i < timeline->count; i++) {
		struct device_sweep *sweep = &timeline->sweeps[i];

		interval_queue_clear(&sweep->waiting);
		memset(sweep->unions, 0, sizeof sweep->unions);
		sweep->has_started = false;
	}
	timeline->late = timeline->late_at_end;
	timeline->next_ns = timeline->waiting = 0;
	timeline->all_read = false;
	timeline->gap = NULL;
	spill_list_rewind(timeline->noted);
}

struct timeline *timeline_new(
	struct trace_reader *reader, int64_t device, const struct categories *categories)
{
	struct timeline *timeline = xcalloc(sizeof *timeline);

	timeline->device = device;
	timeline->reader = reader;
	timeline->categories = categories;
	timeline->handovers = handover_list_read(reader);
	timeline->noted = spill_list_new(sizeof(struct noted_interval), "GPU times");
	return timeline;
}

void timeline_write(const struct timeline *timeline, struct value_writer *writer)
{
	/* Of too many devices, one has the work of several. */
	writer->failed |= timeline->count == TIMELINE_DEVICES || timeline->handovers != NULL;
	value_write_u64(writer, timeline->count);
	value_write_u64(writer, timeline->late_at_end);
	for (size_t i = 0; i < timeline->count; i++) {
		struct timeline_device device = timeline->devices[i];

		device.streams = NULL;
		device.unknown = (struct unknown_time){ .handover_ns = device.unknown.handover_ns };
		value_write(writer, &device, sizeof device);
		value_write(writer, &timeline->spans[i], sizeof timeline->spans[i]);
		value_write_array(writer, timeline->devices[i].streams, device.stream_count,
			sizeof *device.streams);
		value_write_array(writer, timeline->devices[i].unknown.spans,
			timeline->devices[i].unknown.count, sizeof(struct unknown_span));
	}
}

/* Reads row `index`. The rows are in the order of the devices' numbers, so that none is twice. */
static void read_device(struct timeline *timeline, size_t index, struct value_reader *from)
{
	struct timeline_device *device = &timeline->devices[index];
	struct timeline_cuda_stream *streams;
	struct unknown_span *spans;
	uint64_t stream_count, span_count;

	value_read(from, device, sizeof *device);
	value_read(from, &timeline->spans[index], sizeof timeline->spans[index]);
	streams = value_read_array(
		from, &stream_count, TIMELINE_CUDA_STREAMS, sizeof *device->streams);
	spans = value_read_array(from, &span_count, UINT32_MAX, sizeof *spans);
	value_check(from, !index || device->device > device[-1].device);
	device->unknown = (struct unknown_time){ .spans = spans,
		.count = (size_t)span_count,
		.handover_ns = device->unknown.handover_ns };
	device->streams = streams;
	device->stream_count = (size_t)stream_count;
	timeline->order[index] = (uint32_t)index;
}

struct timeline *timeline_read(
	struct trace_reader *reader, int64_t device, struct value_reader *from)
{
	struct timeline *timeline = xcalloc(sizeof *timeline);
	const size_t count = (size_t)value_read_below(from, TIMELINE_DEVICES - 1);

	timeline->device = device;
	timeline->reader = reader;
	timeline->has_ended = true;
	timeline->late = timeline->late_at_end = value_read_u64(from);
	for (size_t i = 0; i < count && !from->failed; i++) {
		timeline->count++;
		read_device(timeline, i, from);
	}
	return timeline;
}

struct timeline *timeline_open(
	struct trace_reader *reader, int64_t device, const struct categories *categories)
{
	struct timeline *timeline = timeline_new(reader, device, categories);
	struct trace_event event;
	int status;

	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0)
		if (timeline_needs(event.kind))
			timeline_add(timeline, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	timeline_end(timeline);
	reader_rewind(reader);
	if (timeline->count)
		return timeline;
	timeline_free(timeline);
	return NULL;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < TIMELINE_DEVICES; i++) {
		interval_queue_free(&timeline->sweeps[i].waiting);
		free(timeline->devices[i].streams);
		unknown_time_free(&timeline->devices[i].unknown);
		free(timeline->streams[i].covered);
	}
	free(timeline->activity);
	free(timeline->graph_launches);
	spill_list_free(timeline->noted);
	handover_list_free(timeline->handovers);
	free(timeline);
}

size_t timeline_devices(const struct timeline *timeline, const struct timeline_device **devices)
{
	*devices = timeline ? timeline->devices : NULL;
	return timeline ? timeline->count : 0;
}

uint64_t timeline_unknown_within(const struct timeline *timeline, uint32_t device,
	enum handover_axis axis, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; timeline && i < timeline->count; i++)
		if (timeline->devices[i].device == device || i + 1 == TIMELINE_DEVICES)
			return unknown_time_within(
				&timeline->devices[i].unknown, axis, from_ns, to_ns);
	return 0;
}

void timeline_device_span(
	const struct timeline *timeline, size_t index, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = timeline->spans[index].start;
	*last_ns = timeline->spans[index].end;
}

uint64_t timeline_late_records(const struct timeline *timeline)
{
	return timeline ? timeline->late : 0;
}

/* Reads until TIMELINE_AHEAD intervals wait, or all are read. Then none that begins earlier can
 * be missing, unless it is counted as late. */
static void read_noted_ahead(struct timeline *timeline)
{
	while (!timeline->all_read && timeline->waiting < TIMELINE_AHEAD) {
		const struct noted_interval *noted = spill_list_next(timeline->noted);

		if (!noted) {
			timeline->all_read = true;
			break;
		}
		queue_interval(timeline,
			&timeline->sweeps[timeline->order[noted->length % TIMELINE_DEVICES]],
			(struct interval){ noted->start,
				noted->start + noted->length / TIMELINE_DEVICES, 0, 0 });
		timeline->waiting++;
	}
}

static uint64_t busy_until(const struct device_sweep *sweep, uint64_t now_ns)
{
	const struct interval_union *busy = &sweep->unions[BUSY];

	return busy->covered > now_ns ? busy->length - (busy->covered - now_ns) : busy->length;
}

static void advance_timeline(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (now_ns <= timeline->next_ns)
		return;
	for (size_t i = 0; i < timeline->count; i++) {
		struct interval_queue *waiting = &timeline->sweeps[i].waiting;

		read_noted_ahead(timeline);
		while (interval_queue_length(waiting) &&
			interval_queue_next_start(waiting) < now_ns) {
			sweep_busy_union(timeline, &timeline->sweeps[i]);
			read_noted_ahead(timeline);
		}
	}
	for (size_t i = 0; i < timeline->count; i++)
		if (interval_queue_length(&timeline->sweeps[i].waiting) &&
			interval_queue_next_start(&timeline->sweeps[i].waiting) < next_ns)
			next_ns = interval_queue_next_start(&timeline->sweeps[i].waiting);
	timeline->next_ns = next_ns;
}

/* Returns the unknown time of a device up to `until`, which must not be after its last time. */
static uint64_t unknown_until(const struct timeline *timeline, size_t index, uint64_t until)
{
	const struct unknown_time *unknown = &timeline->devices[index].unknown;

	/* Without a call, because this is done for each instance of a range. */
	return unknown->count ? unknown_time_within(unknown, HANDOVER_TRACE_TIME,
					timeline->spans[index].start, until)
			      : 0;
}

uint64_t timeline_unknown(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t unknown = 0;

	for (size_t i = 0; i < timeline->count; i++)
		unknown += unknown_until(timeline, i,
			now_ns < timeline->spans[i].end ? now_ns : timeline->spans[i].end);
	return unknown;
}

/* Returns how long a device had been idle at `now_ns`. It is busy until the end of the busy union,
 * if that is later. */
static inline uint64_t device_idle(const struct timeline *timeline, size_t index, uint64_t now_ns)
{
	const struct interval *span = &timeline->spans[index];
	const struct interval_union *busy = &timeline->sweeps[index].unions[BUSY];
	const uint64_t until = min_u64(now_ns, span->end),
		       since = max_u64(until, busy->covered) - span->start,
		       not_idle = busy->length + unknown_until(timeline, index, until);

	return until > span->start && since > not_idle ? since - not_idle : 0;
}

uint64_t timeline_idle(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t idle = 0;

	if (now_ns > timeline->next_ns)
		advance_timeline(timeline, now_ns);
	for (size_t i = 0; i < timeline->count; i++)
		idle += device_idle(timeline, i, now_ns);
	return idle;
}

void timeline_on_gap(struct timeline *timeline,
	void (*gap)(void *context, uint32_t device, uint64_t from_ns, uint64_t to_ns),
	void *context)
{
	timeline->gap = gap;
	timeline->gap_context = context;
}

uint64_t timeline_busy(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t busy = 0;

	advance_timeline(timeline, now_ns);
	for (size_t i = 0; i < timeline->count; i++)
		busy += busy_until(&timeline->sweeps[i], now_ns);
	return busy;
}
