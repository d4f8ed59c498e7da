/* SPDX-License-Identifier: MIT
 * Adds rows for events that are not ranges: calls, GPU work, memory events, flow arrows, metadata.
 */
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdio.h>
#include <stdlib.h>

#define SKIPPED_CATEGORIES_MAX 64u /* including the last one, which sums up all others */
#define PROCESS_NAMES_MAX 64u      /* processes whose names are kept */

uint64_t kineto_external_id(const struct kineto_args *args)
{
	const uint64_t external = kineto_arg(args, KINETO_EXTERNAL);

	return external ? external : kineto_arg(args, KINETO_EXTERNAL_OLD);
}

static void add_cuda_call(struct kineto_reader *reader, const struct kineto_times *span)
{
	const struct kineto_args *args = &reader->event.args;

	*EVENT_ROWS_ADD(
		reader->imported, call, calls) = (struct imported_call){ .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.external = kineto_external_id(args),
		.name = kineto_intern(reader, &reader->event.name),
		.kernel = args->values[KINETO_KERNEL].form == JSON_STRING
				  ? kineto_intern(reader, &args->values[KINETO_KERNEL])
				  : 0,
		.stack = kineto_call_stack(reader),
		.thread = kineto_thread_of(reader) };
}

/* Returns the device or CUDA stream of a GPU event. If the arguments lack it, the event's
 * process is the device and its thread the CUDA stream. */
static uint32_t device_or_stream(
	struct kineto_reader *reader, enum kineto_arg arg, const struct json_text *otherwise)
{
	const struct json_text *given = &reader->event.args.values[arg];

	if (given->form && given->form != JSON_NULL)
		return kineto_arg32(&reader->event.args, arg);
	return event_rows_number(reader->imported, kineto_intern(reader, otherwise));
}

static void add_gpu_event(struct kineto_reader *reader, const struct kineto_times *span)
{
	const struct kineto_event *event = &reader->event;
	const struct kineto_args *args = &event->args;
	struct imported_gpu gpu = { .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.graph_node = kineto_arg(args, KINETO_GRAPH_NODE),
		.graph = kineto_arg32(args, KINETO_GRAPH),
		.bytes = kineto_arg(args, KINETO_BYTES),
		.name = kineto_intern(reader, &event->name),
		.device = device_or_stream(reader, KINETO_DEVICE, &event->pid),
		.stream = device_or_stream(reader, KINETO_STREAM, &event->tid),
		.context = kineto_arg32(args, KINETO_CONTEXT),
		.external = kineto_external_id(args),
		.registers = kineto_arg32(args, KINETO_REGISTERS),
		.shared = kineto_arg32(args, KINETO_SHARED),
		.kind = event->class == KINETO_IS_KERNEL ? IMPORTED_KERNEL
			: event->class == KINETO_IS_COPY ? IMPORTED_COPY
							 : IMPORTED_MEMSET };

	kineto_arg_triple(args, KINETO_GRID, gpu.grid);
	kineto_arg_triple(args, KINETO_BLOCK, gpu.block);
	if (args->values[KINETO_GROUP].form)
		kineto_add_kernel_group(reader, gpu.device, gpu.stream);
	*EVENT_ROWS_ADD(reader->imported, gpu, gpus) = gpu;
}

static void add_sync(struct kineto_reader *reader, const struct kineto_times *span)
{
	const struct kineto_args *args = &reader->event.args;

	*EVENT_ROWS_ADD(
		reader->imported, sync, syncs) = (struct imported_sync){ .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.name = kineto_intern(reader, &reader->event.name),
		.stream = kineto_arg32(args, KINETO_STREAM),
		.context = kineto_arg32(args, KINETO_CONTEXT),
		.event = kineto_arg32(args, KINETO_WAITED_EVENT),
		.waited_stream = kineto_arg32(args, KINETO_WAITED_STREAM),
		.record = args->values[KINETO_WAITED_STREAM].form
				  ? kineto_arg(args, KINETO_WAITED_RECORD)
				  : 0 };
}

static void add_memory_event(struct kineto_reader *reader, int64_t time)
{
	const struct kineto_args *args = &reader->event.args;
	struct imported_memory memory = { .time = time,
		.bytes = (int64_t)kineto_arg(args, KINETO_ALLOC_BYTES),
		.address = kineto_arg(args, KINETO_ADDRESS),
		.allocated = kineto_arg(args, KINETO_ALLOCATED),
		.reserved = kineto_arg(args, KINETO_RESERVED),
		.device = kineto_arg32(args, KINETO_DEVICE_ID),
		.type = kineto_arg32(args, KINETO_DEVICE_TYPE),
		.has_totals = args->values[KINETO_ALLOCATED].form != JSON_NONE };

	memory.stack = kineto_call_stack(reader);
	memory.thread = kineto_thread_of(reader);
	*EVENT_ROWS_ADD(reader->imported, memory, memories) = memory;
}

static void add_flow(struct kineto_reader *reader, int64_t time)
{
	const struct kineto_event *event = &reader->event;
	struct imported_flow flow = { .time = time, .finish = event->phase.bytes[0] == 'f' };

	if (!json_unsigned(&event->id, &flow.id))
		return;
	flow.thread = kineto_thread_of(reader);
	*EVENT_ROWS_ADD(reader->imported, flow, flows) = flow;
}

/* Adds the name of a process. The name of the main process becomes the trace's command. */
static void add_process_name(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;
	char key[64];

	if (!json_is(&event->name, "process_name") || !event->pid.length ||
		event->pid.length > 40 || reader->names == PROCESS_NAMES_MAX)
		return;
	reader->names++;
	memcpy(key, "process.", 8);
	memcpy(key + 8, event->pid.bytes, event->pid.length);
	key[8 + event->pid.length] = '\0';
	kineto_add_metadata(reader, key, &event->args.values[KINETO_NAME]);
}

/* The last row is for all categories that have no row. */
static void add_skipped_category(struct event_rows *imported, uint32_t category, bool is_marker)
{
	const bool is_last = imported->skip_count + 1 == SKIPPED_CATEGORIES_MAX;

	if (is_last)
		category = string_table_intern(
			imported->texts, IMPORTED_OTHERS, strlen(IMPORTED_OTHERS));
	*EVENT_ROWS_ADD(imported, skip, skips) = (struct imported_skip){ .category = category,
		.is_marker = is_marker && !is_last };
}

/* Returns true for what Kineto writes about its own recording: the span of the whole trace, and
 * instants at its begin and end. */
static bool is_kineto_marker(const struct kineto_event *event)
{
	static const char start[] = "Iteration Start: ";

	if (json_is(&event->category, "Trace"))
		return true;
	return event->phase.length == 1 && *event->phase.bytes == 'i' && !event->category.form &&
	       (json_is(&event->name, "Record Window End") ||
		       (event->name.length > strlen(start) &&
			       !memcmp(event->name.bytes, start, strlen(start))));
}

static void skip_event(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;
	struct event_rows *imported = reader->imported;
	const uint32_t category = kineto_intern(
		reader, event->category.form ? &event->category : &event->name);
	size_t i = 0;

	while (i < imported->skip_count && imported->skips[i].category != category)
		i++;
	if (i == SKIPPED_CATEGORIES_MAX)
		i--;
	else if (i == imported->skip_count)
		add_skipped_category(imported, category, is_kineto_marker(event));
	imported->skips[i].events++;
	if (event->phase.length == 1 && *event->phase.bytes == 'B')
		kineto_begin_event(reader, KINETO_NO_RANGE);
}

/* Reads the times of an event. Returns false if they are absent or out of range. */
static bool read_event_times(const struct kineto_event *event, struct kineto_times *span)
{
	const int64_t far = INT64_MAX / 4;
	int64_t duration = 0;

	if (!json_scaled(&event->time, 3, &span->start) || span->start >= far ||
		span->start <= -far)
		return false;
	if (event->phase.bytes[0] == 'X' && !json_scaled(&event->duration, 3, &duration))
		return false;
	span->duration = event->phase.bytes[0] == 'B' ? IMPORTED_NOT_ENDED : (uint64_t)duration;
	return duration >= 0 && duration < far;
}

/* Updates the latest time. Open ranges without an end last until it. */
static void extend_latest(struct kineto_reader *reader, const struct kineto_times *span)
{
	const int64_t end = span->start +
			    (span->duration == IMPORTED_NOT_ENDED ? 0 : (int64_t)span->duration);

	if (end > reader->latest_time)
		reader->latest_time = end;
}

/* Adds a row for an event with a time. Returns false if the event is unreadable. */
static bool add_timed_event(struct kineto_reader *reader)
{
	struct kineto_times span;

	if (!read_event_times(&reader->event, &span))
		return false;
	extend_latest(reader, &span);
	switch (reader->event.class) {
	case KINETO_IS_OPERATOR:
	case KINETO_IS_ANNOTATION:
	case KINETO_IS_PYTHON:
		kineto_add_range(reader, &span);
		break;
	case KINETO_IS_END:
		return kineto_end_event(reader, span.start);
	case KINETO_IS_MEMORY:
		add_memory_event(reader, span.start);
		break;
	case KINETO_IS_FLOW:
		add_flow(reader, span.start);
		break;
	default:
		if (span.duration == IMPORTED_NOT_ENDED) {
			kineto_begin_event(reader, KINETO_NO_RANGE);
			return false;
		}
		if (reader->event.class == KINETO_IS_CALL)
			add_cuda_call(reader, &span);
		else if (reader->event.class == KINETO_IS_SYNC)
			add_sync(reader, &span);
		else if (reader->event.class == KINETO_IS_OVERHEAD)
			*EVENT_ROWS_ADD(reader->imported, overhead,
				overheads) = (struct imported_overhead){ .start = span.start,
				.duration = span.duration,
				.name = kineto_intern(reader, &reader->event.name) };
		else
			add_gpu_event(reader, &span);
		break;
	}
	return true;
}

/* Returns true for arrows from a call to its GPU work, which the correlation id already gives. */
static bool is_correlation_flow(const struct kineto_event *event)
{
	return event->phase.length == 1 && memchr("stf", event->phase.bytes[0], 3);
}

/* Notes that the file has annotations of GPU work. They are not imported: the ranges and the GPU
 * work that they summarize are. */
static void note_gpu_annotations(struct kineto_reader *reader)
{
	static const struct json_text yes = { .bytes = "1", .length = 1, .form = JSON_NUMBER };

	if (reader->has_gpu_annotations || !json_is(&reader->event.category, "gpu_user_annotation"))
		return;
	reader->has_gpu_annotations = true;
	kineto_add_metadata(reader, "kineto.gpu_annotations", &yes);
}

void kineto_add_event(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;

	reader->imported->events++;
	if (event->class == KINETO_OTHER)
		note_gpu_annotations(reader);
	if (event->class == KINETO_IS_META)
		add_process_name(reader);
	else if (event->class == KINETO_OTHER && !is_correlation_flow(event))
		skip_event(reader);
	else if (event->class != KINETO_OTHER)
		reader->imported->unreadable += !add_timed_event(reader);
}

void kineto_finish_events(struct kineto_reader *reader)
{
	kineto_close_open_ranges(reader);
	kineto_free_ranges(reader);
	kineto_finish_groups(reader);
	hash_index_free(&reader->threads);
}
