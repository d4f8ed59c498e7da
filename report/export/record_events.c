/* SPDX-License-Identifier: MIT */
#include "report/export/record_events.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/export/record_events_internal.h"
#include <stdlib.h>

#define EVENTS_IN_MEMORY 32768u

/* Outer ranges come before what is in them. */
static int compare_hosts(const void *a, const void *b)
{
	const struct host_event *left = a, *right = b;

	if (left->begin_ns != right->begin_ns)
		return COMPARE(left->begin_ns, right->begin_ns);
	if (left->end_ns != right->end_ns)
		return COMPARE(right->end_ns, left->end_ns);
	return COMPARE(left->number, right->number);
}

static int compare_gpus(const void *a, const void *b)
{
	const struct gpu_event *left = a, *right = b;

	if (left->begin_ns != right->begin_ns)
		return COMPARE(left->begin_ns, right->begin_ns);
	return COMPARE(left->arrival, right->arrival);
}

/* ---- which part of the trace ---- */

static void note_counting(void *context, bool counts, uint64_t at_ns)
{
	struct record_events *events = context;

	if (counts && events->begin_ns == UINT64_MAX)
		events->begin_ns = at_ns;
	if (!counts && events->begin_ns != UINT64_MAX)
		events->finish_ns = at_ns;
}

static void note_restart(void *context)
{
	struct record_events *events = context;

	events->begin_ns = events->finish_ns = UINT64_MAX;
}

/* Finds the time of the steps of --steps. */
static void find_steps_window(struct record_events *events)
{
	const struct profile_observer observer = {
		.context = events, .restart = note_restart, .counting = note_counting
	};
	const struct profile_options options = profile_options_for_observer(
		events->process->profile, &observer);

	note_restart(events);
	profile_free(profile_build(events->reader, events->process->texts, &options));
}

bool record_events_cut(const struct record_events *events, uint64_t *begin_ns, uint64_t *end_ns)
{
	if (*end_ns < events->begin_ns || *begin_ns >= events->finish_ns)
		return false;
	if (*begin_ns < events->begin_ns)
		*begin_ns = events->begin_ns;
	if (*end_ns > events->finish_ns)
		*end_ns = events->finish_ns;
	return true;
}

/* ---- reading ---- */

struct record_events *record_events_read(
	const struct process *process, const struct options *options)
{
	struct record_events *events = xcalloc(sizeof *events);

	events->process = process;
	events->reader = process->reader;
	events->texts = string_table_new();
	events->device = options->device;
	events->finish_ns = UINT64_MAX;
	events->hosts = external_sort_new(
		sizeof(struct host_event), EVENTS_IN_MEMORY, compare_hosts, "the events");
	events->gpus = external_sort_new(
		sizeof(struct gpu_event), EVENTS_IN_MEMORY, compare_gpus, "the GPU records");
	if (options->steps)
		find_steps_window(events);
	record_collect(events);
	record_events_rewind(events);
	return events;
}

void record_events_free(struct record_events *events)
{
	external_sort_free(events->hosts);
	external_sort_free(events->gpus);
	external_sort_free(events->annotations);
	string_table_free(events->texts);
	free(events->kernels);
	free(events->lanes);
	free(events->open_annotations);
	free(events);
}

void record_events_rewind(struct record_events *events)
{
	events->lane_count = events->open_count = 0;
	external_sort_rewind(events->hosts);
	external_sort_rewind(events->gpus);
	external_sort_rewind(events->annotations);
}

/* Returns a lane of the event's CUDA stream on which nothing runs when it begins. Waits have lanes
 * of their own. */
static struct record_lane *free_lane(struct record_events *events, const struct gpu_event *gpu)
{
	const enum record_lane_kind kind = gpu->kind == TRACE_GPU_SYNC ? LANE_SYNC : LANE_WORK;
	const uint32_t stream = kind == LANE_SYNC ? gpu->record.sync.stream
						  : gpu->record.gpu.stream;
	uint32_t count = 0;

	for (size_t i = 0; i < events->lane_count; i++) {
		struct record_lane *lane = &events->lanes[i];

		if (lane->device != gpu->device || lane->stream != stream || lane->kind != kind)
			continue;
		if (lane->end_ns <= gpu->begin_ns)
			return lane;
		count++;
	}
	*ARRAY_ADD(events->lanes, events->lane_room, events->lane_count) = (struct record_lane){
		.device = gpu->device, .stream = stream, .lane = count, .kind = kind
	};
	return &events->lanes[events->lane_count - 1];
}

static const struct gpu_event *next_gpu(struct record_events *events, const struct gpu_event *gpu)
{
	struct record_lane *lane;

	events->current = *gpu;
	lane = free_lane(events, gpu);
	lane->end_ns = gpu->end_ns;
	events->current.lane = lane->lane;
	external_sort_next(events->gpus);
	return &events->current;
}

bool record_events_next(struct record_events *events, struct record_event *event)
{
	const struct host_event *host = external_sort_peek(events->hosts);
	const struct gpu_event *gpu = external_sort_peek(events->gpus);

	*event = (struct record_event){ NULL, NULL };
	if (gpu && (!host || gpu->begin_ns < host->begin_ns)) {
		event->gpu = next_gpu(events, gpu);
	} else if (host) {
		events->current_host = *host;
		event->host = &events->current_host;
		external_sort_next(events->hosts);
	}
	return host || gpu;
}

const struct record_lane *record_events_lanes(const struct record_events *events, size_t *count)
{
	*count = events->lane_count;
	return events->lanes;
}

uint64_t record_events_untimed(const struct record_events *events)
{
	return events->untimed;
}

/* ---- names ---- */

static struct string_view name_of(const struct record_events *events, uint32_t name, bool own)
{
	struct trace_text text;

	if (own)
		return string_table_get(events->texts, name);
	text = reader_name(events->reader, name);
	return (struct string_view){ text.bytes, text.length };
}

struct string_view record_event_name(
	const struct record_events *events, const struct host_event *event)
{
	return name_of(events, event->name, event->own_name);
}

struct string_view record_annotation_name(
	const struct record_events *events, const struct gpu_annotation *annotation)
{
	return name_of(events, annotation->name, annotation->own_name);
}

static uint32_t intern_kernel(struct record_events *events, struct trace_text name)
{
	char full[DEMANGLE_OUTPUT];
	const bool as_it_is = reader_meta(events->reader, "import.format").known;
	const size_t length = as_it_is ? 0
				       : demangle(DEMANGLE_FULL, name.bytes, name.length, full,
						 sizeof full);

	return length ? string_table_intern(events->texts, full, length)
		      : string_table_intern(events->texts, name.bytes, name.length);
}

struct string_view record_kernel_name(
	struct record_events *events, const struct trace_kernel *kernel)
{
	const struct trace_text name = reader_name(events->reader, kernel->name);

	if (!name.known)
		return (struct string_view){ "(unknown kernel)", 16 };
	ARRAY_GROW(events->kernels, events->kernel_room, (size_t)kernel->name + 1);
	if (!events->kernels[kernel->name])
		events->kernels[kernel->name] = intern_kernel(events, name) + 1;
	return string_table_get(events->texts, events->kernels[kernel->name] - 1);
}
