/* SPDX-License-Identifier: MIT
 *
 * Perfetto's protobuf trace (https://perfetto.dev/docs/reference/synthetic-track-event). Slices are
 * pairs of a begin and an end that nest on their track: what would overlap is on a further track of
 * the same thread or CUDA stream. Names and categories are written once. Launches and their GPU
 * work are joined by flows. Memory, the program's counters and the lengths of the queues of CUDA
 * streams are counter tracks, and the idle time of each GPU is a track of slices that are named by
 * their cause.
 */
#include "report/analysis/idle_parts.h"
#include "report/analysis/step_idle.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/escape.h"
#include "report/base/external_sort.h"
#include "report/base/hash_index.h"
#include "report/base/heap.h"
#include "report/export/export.h"
#include "report/export/kineto_names.h"
#include "report/export/protobuf.h"
#include "report/export/record_events.h"
#include <stdio.h>
#include <stdlib.h>

/* Fields of perfetto.protos. */
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	EVENT_CATEGORY_IIDS = 3,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_DOUBLE_COUNTER_VALUE = 44,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };

#define SEQUENCE 1u
#define CHANGES_IN_MEMORY 32768u
#define NAME_BYTES 1000u /* longer names are cut */

enum track_kind {
	TRACK_THREAD,
	TRACK_ASYNC,
	TRACK_DEVICE,
	TRACK_STREAM,
	TRACK_WAITS,
	TRACK_IDLE,
	TRACK_COUNTER,
	TRACK_MEMORY,
	TRACK_QUEUE
};

/* A track: of a thread (id), a CUDA stream (id and device `of`), a counter. */
struct track {
	uint64_t uuid;
	uint64_t *ends; /* of the slices that are open on it, the outermost first */
	size_t count, room;
	uint32_t id, of;
	uint32_t lane; /* 0; else what does not nest on the lanes before */
	uint8_t kind;  /* enum track_kind */
};

/* A launch or an end of GPU work. */
struct queue_change {
	uint64_t at_ns;
	uint32_t device, stream;
	bool is_launch; /* after ends of the same time, as in the view queue */
};

/* An end of a slice that is to be written. */
struct pending_end {
	uint64_t at_ns, number, track;
};

struct perfetto {
	struct output *out;
	struct process *process;
	struct record_events *events;
	uint64_t process_uuid, uuids, numbers, shift_ns;
	uint64_t first_flow; /* added to correlation ids: unique in the file */
	uint32_t pid;
	struct track *tracks; /* of the process */
	size_t track_count, track_room;
	struct hash_index index; /* of tracks */
	struct pending_end *ends;
	size_t end_count, end_room;
	struct external_sort *changes; /* queue_change */
	struct string_table *names, *categories;
	uint32_t name_count, category_count; /* written so far; ids from 1 */
	struct protobuf packet, event, interned, inner;
};

/* Of slices that end together, the one that began last is inside the others. */
static bool ends_before(const struct pending_end *a, const struct pending_end *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number > b->number;
}

DEFINE_HEAP(ends, struct pending_end, ends_before)

/* ---- packets ---- */

/* Begins a packet with a track event. The caller adds to perfetto->event, then calls put_event. */
static void begin_event(struct perfetto *perfetto, unsigned type, uint64_t track, uint64_t at_ns)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_TIMESTAMP, at_ns + perfetto->shift_ns);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, SEQUENCE);
	protobuf_clear(&perfetto->interned);
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, EVENT_TYPE, type);
	protobuf_number(&perfetto->event, EVENT_TRACK_UUID, track);
}

static void put_event(struct perfetto *perfetto)
{
	if (perfetto->interned.bytes.used)
		protobuf_message(&perfetto->packet, PACKET_INTERNED_DATA, &perfetto->interned);
	protobuf_message(&perfetto->packet, PACKET_TRACK_EVENT, &perfetto->event);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

/* Adds a text to the interned data of the event if it is new, escaped so that it is valid UTF-8.
 * Returns its id. */
static uint32_t intern(struct perfetto *perfetto, struct string_table *table, uint32_t *count,
	unsigned field, struct string_view text)
{
	const uint32_t id = string_table_intern(table, text.bytes, text.length) + 1;
	char shown[6 * NAME_BYTES + 1];

	if (id <= *count)
		return id;
	*count = id;
	text.length = (uint32_t)escape_text(shown, sizeof shown, text.bytes,
		text.length < NAME_BYTES ? text.length : NAME_BYTES, false);
	text.bytes = shown;
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, 1, id);
	protobuf_text(&perfetto->inner, 2, text);
	protobuf_message(&perfetto->interned, field, &perfetto->inner);
	return id;
}

/* Adds name and category to the event. */
static void add_names(struct perfetto *perfetto, struct string_view name, const char *category)
{
	const struct string_view word = { category, (uint32_t)strlen(category) };
	const uint32_t category_id = intern(perfetto, perfetto->categories,
			       &perfetto->category_count, INTERNED_CATEGORIES, word),
		       name_id = intern(perfetto, perfetto->names, &perfetto->name_count,
			       INTERNED_NAMES,
			       name.length ? name : (struct string_view){ "(no name)", 9 });

	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	protobuf_number(&perfetto->event, EVENT_NAME_IID, name_id);
	protobuf_number(&perfetto->event, EVENT_CATEGORY_IIDS, category_id);
}

/* ---- tracks ---- */

static void put_descriptor(struct perfetto *perfetto, const struct protobuf *descriptor)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, SEQUENCE);
	protobuf_message(&perfetto->packet, PACKET_TRACK_DESCRIPTOR, descriptor);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

static void add_text(struct protobuf *message, unsigned field, const char *text)
{
	protobuf_text(message, field, (struct string_view){ text, (uint32_t)strlen(text) });
}

static void put_process_descriptor(struct perfetto *perfetto)
{
	const struct process *process = perfetto->process;

	perfetto->process_uuid = ++perfetto->uuids;
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, 1, perfetto->pid);
	add_text(&perfetto->inner, 6, *process->command ? process->command : process_name(process));
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, DESCRIPTOR_UUID, perfetto->process_uuid);
	protobuf_message(&perfetto->event, DESCRIPTOR_PROCESS, &perfetto->inner);
	put_descriptor(perfetto, &perfetto->event);
}

/* Describes a track below `parent`. */
static void put_track_descriptor(
	struct perfetto *perfetto, const struct track *track, const char *name, uint64_t parent)
{
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, DESCRIPTOR_UUID, track->uuid);
	protobuf_number(&perfetto->event, DESCRIPTOR_PARENT, parent);
	if (track->kind == TRACK_THREAD && !track->lane) {
		protobuf_clear(&perfetto->inner);
		protobuf_number(&perfetto->inner, 1, perfetto->pid);
		protobuf_number(&perfetto->inner, 2, track->id);
		add_text(&perfetto->inner, 5, name);
		protobuf_message(&perfetto->event, DESCRIPTOR_THREAD, &perfetto->inner);
	} else {
		add_text(&perfetto->event, DESCRIPTOR_NAME, name);
	}
	if (track->kind == TRACK_COUNTER || track->kind == TRACK_MEMORY ||
		track->kind == TRACK_QUEUE) {
		protobuf_clear(&perfetto->inner);
		if (track->kind == TRACK_MEMORY)
			protobuf_number(&perfetto->inner, 3, 3); /* unit: bytes */
		protobuf_message(&perfetto->event, DESCRIPTOR_COUNTER, &perfetto->inner);
	}
	put_descriptor(perfetto, &perfetto->event);
}

static size_t track_of(struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of,
	uint32_t lane, const char *name);

static uint64_t track_uuid(
	struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of, const char *name)
{
	const size_t index = track_of(perfetto, kind, id, of, 0, name);

	return perfetto->tracks[index].uuid;
}

static uint64_t parent_of(
	struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of, uint32_t lane)
{
	char name[32];

	if (lane && kind == TRACK_THREAD)
		return track_uuid(perfetto, kind, id, of, "");
	if (kind != TRACK_STREAM && kind != TRACK_WAITS && kind != TRACK_IDLE &&
		kind != TRACK_MEMORY && kind != TRACK_QUEUE)
		return perfetto->process_uuid;
	snprintf(name, sizeof name, "GPU %u", of);
	return track_uuid(perfetto, TRACK_DEVICE, of, 0, name);
}

static size_t add_track(struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of,
	uint32_t lane, const char *name)
{
	const uint64_t parent = parent_of(perfetto, kind, id, of, lane);
	struct track *track;
	char numbered[512];

	track = ARRAY_ADD(perfetto->tracks, perfetto->track_room, perfetto->track_count);
	*track = (struct track){
		.uuid = ++perfetto->uuids, .id = id, .of = of, .lane = lane, .kind = (uint8_t)kind
	};
	snprintf(numbered, sizeof numbered, "%s (%u)", name, lane + 1);
	put_track_descriptor(perfetto, track, lane ? numbered : name, parent);
	return perfetto->track_count - 1;
}

/* Returns the index of a track, described at its first use with `name`. */
static size_t track_of(struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of,
	uint32_t lane, const char *name)
{
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)id << 32 | of) ^ ((uint64_t)lane << 8 | kind));
	struct hash_slot *slot;
	size_t added;

	hash_index_reserve(&perfetto->index);
	for (slot = hash_index_first(&perfetto->index, hash); slot->number;
		slot = hash_index_next(&perfetto->index, slot)) {
		const struct track *track = &perfetto->tracks[slot->number - 1];

		if (track->kind == kind && track->id == id && track->of == of &&
			track->lane == lane)
			return slot->number - 1;
	}
	added = add_track(perfetto, kind, id, of, lane, name);
	hash_index_reserve(&perfetto->index);
	for (slot = hash_index_first(&perfetto->index, hash); slot->number;)
		slot = hash_index_next(&perfetto->index, slot);
	hash_index_add(&perfetto->index, slot, hash, (uint32_t)added + 1);
	return added;
}

/* ---- slices ---- */

static void put_ends_until(struct perfetto *perfetto, uint64_t at_ns)
{
	while (perfetto->end_count && perfetto->ends[0].at_ns <= at_ns) {
		const struct pending_end end = perfetto->ends[0];

		begin_event(perfetto, SLICE_END, end.track, end.at_ns);
		put_event(perfetto);
		perfetto->end_count--;
		if (perfetto->end_count)
			ends_down(perfetto->ends, perfetto->end_count,
				perfetto->ends[perfetto->end_count]);
	}
}

/* Returns whether a slice nests in those that are open on the track. */
static bool nests(struct track *track, uint64_t begin_ns, uint64_t end_ns)
{
	while (track->count && track->ends[track->count - 1] <= begin_ns)
		track->count--;
	return !track->count || track->ends[track->count - 1] >= end_ns;
}

/* Begins a slice on the first lane of a track on which it nests. The caller may add to the event,
 * then calls put_event. */
static void begin_slice(struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of,
	const char *track_name, uint64_t begin_ns, uint64_t end_ns)
{
	struct track *track;
	uint32_t lane = 0;

	put_ends_until(perfetto, begin_ns);
	do {
		const size_t index = track_of(perfetto, kind, id, of, lane++, track_name);

		track = &perfetto->tracks[index];
	} while (!nests(track, begin_ns, end_ns));
	*ARRAY_ADD(track->ends, track->room, track->count) = end_ns;
	ARRAY_GROW(perfetto->ends, perfetto->end_room, perfetto->end_count + 1);
	ends_up(perfetto->ends, perfetto->end_count++,
		(struct pending_end){ end_ns, ++perfetto->numbers, track->uuid });
	begin_event(perfetto, SLICE_BEGIN, track->uuid, begin_ns);
}

static void put_value(struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of,
	const char *name, uint64_t at_ns, uint64_t value)
{
	begin_event(perfetto, COUNTER, track_uuid(perfetto, kind, id, of, name), at_ns);
	protobuf_number(&perfetto->event, EVENT_COUNTER_VALUE, value);
	put_event(perfetto);
}

/* ---- what happened on threads ---- */

static const char *range_category(struct perfetto *perfetto, const struct host_event *event)
{
	switch (reader_node(perfetto->process->reader, event->node)->kind) {
	case TRACE_NODE_OP:
	case TRACE_NODE_BACKWARD:
		return "cpu_op";
	case TRACE_NODE_MODULE:
		return "module";
	default:
		return "user_annotation";
	}
}

/* Whether a call can have GPU work, to which a flow leads. */
static bool call_launches(const struct host_event *event)
{
	const uint32_t kind = event->of.call.record_kind;

	return event->of.call.correlation && !event->of.call.result &&
	       (kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH || kind == TRACE_COPY ||
		       kind == TRACE_SET);
}

static void put_thread_slice(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	char track[32];

	snprintf(track, sizeof track, "thread %u", event->tid);
	begin_slice(perfetto, TRACK_THREAD, event->tid, 0, track, event->begin_ns, event->end_ns);
	add_names(perfetto, name,
		event->kind == HOST_CALL ? kineto_call_category(name.bytes, name.length)
					 : range_category(perfetto, event));
	if (event->kind == HOST_CALL && call_launches(event))
		protobuf_fixed64(&perfetto->event, EVENT_FLOW_IDS,
			perfetto->first_flow + event->of.call.correlation);
	put_event(perfetto);
}

static void put_mark(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	char track[32];

	snprintf(track, sizeof track, "thread %u", event->tid);
	begin_event(perfetto, INSTANT, track_uuid(perfetto, TRACK_THREAD, event->tid, 0, track),
		event->begin_ns);
	add_names(perfetto, name, event->kind == HOST_OOM ? "memory" : "mark");
	put_event(perfetto);
}

static void put_levels(struct perfetto *perfetto, const struct host_event *event)
{
	put_value(perfetto, TRACK_MEMORY, 0, event->device, "allocated", event->begin_ns,
		event->of.tensor.allocated);
	if (event->of.tensor.reserved)
		put_value(perfetto, TRACK_MEMORY, 1, event->device, "reserved", event->begin_ns,
			event->of.tensor.reserved);
}

static void put_counter(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	char track[400];
	double real;

	snprintf(track, sizeof track, "%.*s", (int)name.length, name.bytes);
	if (event->of.counter.type == TRACE_METRIC_I64) {
		put_value(perfetto, TRACK_COUNTER, event->name, 0, track, event->begin_ns,
			event->of.counter.bits);
		return;
	}
	memcpy(&real, &event->of.counter.bits, sizeof real);
	begin_event(perfetto, COUNTER, track_uuid(perfetto, TRACK_COUNTER, event->name, 0, track),
		event->begin_ns);
	protobuf_double(&perfetto->event, EVENT_DOUBLE_COUNTER_VALUE, real);
	put_event(perfetto);
}

static void put_host(struct perfetto *perfetto, const struct host_event *event)
{
	const struct string_view name = record_event_name(perfetto->events, event);

	put_ends_until(perfetto, event->begin_ns);
	switch ((enum host_kind)event->kind) {
	case HOST_RANGE:
	case HOST_CALL:
		put_thread_slice(perfetto, event, name);
		break;
	case HOST_ASYNC:
		begin_slice(perfetto, TRACK_ASYNC, 0, 0, "start/end ranges", event->begin_ns,
			event->end_ns);
		add_names(perfetto, name, "start_end_range");
		put_event(perfetto);
		break;
	case HOST_MARK:
		put_mark(perfetto, event, name);
		break;
	case HOST_OOM:
		put_mark(perfetto, event, (struct string_view){ "out of memory", 13 });
		break;
	case HOST_TENSOR:
		put_levels(perfetto, event);
		break;
	case HOST_COUNTER:
		put_counter(perfetto, event, name);
		break;
	case HOST_OVERHEAD:
		break;
	}
}

/* ---- what the GPUs did ---- */

static int compare_changes(const void *a, const void *b)
{
	const struct queue_change *left = a, *right = b;

	if (left->device != right->device)
		return COMPARE(left->device, right->device);
	if (left->stream != right->stream)
		return COMPARE(left->stream, right->stream);
	if (left->at_ns != right->at_ns)
		return COMPARE(left->at_ns, right->at_ns);
	return COMPARE(left->is_launch, right->is_launch);
}

static void add_to_queue(struct perfetto *perfetto, const struct gpu_event *gpu)
{
	struct queue_change change = { gpu->launch_begin_ns, gpu->device, gpu->record.gpu.stream,
		true };

	/* Clocks of host and GPU may differ by more than a launch takes. */
	if (change.at_ns > gpu->begin_ns)
		change.at_ns = gpu->begin_ns;
	*(struct queue_change *)external_sort_add(perfetto->changes) = change;
	change.at_ns = gpu->end_ns;
	change.is_launch = false;
	*(struct queue_change *)external_sort_add(perfetto->changes) = change;
}

/* Writes how much work of each CUDA stream was launched and had not ended. A length is written
 * when time passes after a change. */
static void put_queues(struct perfetto *perfetto)
{
	const struct queue_change *next;
	struct queue_change last;
	uint64_t length = 0;
	char name[32];

	external_sort_rewind(perfetto->changes);
	while ((next = external_sort_peek(perfetto->changes))) {
		last = *next;
		length += last.is_launch ? 1 : -(uint64_t)1;
		external_sort_next(perfetto->changes);
		next = external_sort_peek(perfetto->changes);
		if (next && next->device == last.device && next->stream == last.stream &&
			next->at_ns == last.at_ns)
			continue;
		snprintf(name, sizeof name, "queue of stream %u", last.stream);
		put_value(
			perfetto, TRACK_QUEUE, last.stream, last.device, name, last.at_ns, length);
	}
}

static void put_gpu(struct perfetto *perfetto, const struct gpu_event *gpu)
{
	const bool is_sync = gpu->kind == TRACE_GPU_SYNC;
	const uint32_t stream = is_sync ? gpu->record.sync.stream : gpu->record.gpu.stream;
	char track[48], copy[KINETO_NAME_BYTES];
	struct string_view name = { copy, 0 };

	if (stream == UINT32_MAX)
		snprintf(track, sizeof track, "host waits");
	else
		snprintf(track, sizeof track, is_sync ? "stream %u waits" : "stream %u", stream);
	if (is_sync)
		name.bytes = kineto_sync_name(gpu->record.sync.type);
	else if (gpu->kind != TRACE_KERNEL)
		kineto_copy_name(copy, &gpu->record.copy);
	if (gpu->kind == TRACE_KERNEL)
		name = record_kernel_name(perfetto->events, &gpu->record.kernel);
	else
		name.length = (uint32_t)strlen(name.bytes);
	begin_slice(perfetto, is_sync ? TRACK_WAITS : TRACK_STREAM, stream, gpu->device, track,
		gpu->begin_ns, gpu->end_ns);
	add_names(perfetto, name,
		is_sync                      ? "cuda_sync"
		: gpu->kind == TRACE_KERNEL  ? "kernel"
		: gpu->kind == TRACE_GPU_SET ? "gpu_memset"
					     : "gpu_memcpy");
	if (gpu->launch_tid && !is_sync)
		protobuf_fixed64(&perfetto->event,
			gpu->record.gpu.graph || gpu->record.gpu.graph_node
				? EVENT_FLOW_IDS
				: EVENT_TERMINATING_FLOW_IDS,
			perfetto->first_flow + gpu->record.gpu.correlation);
	put_event(perfetto);
	if (gpu->launch_tid && !is_sync)
		add_to_queue(perfetto, gpu);
}

static void put_idle(void *context, const struct idle_part *idle)
{
	struct perfetto *perfetto = context;
	const struct gap_part *part = &idle->part;
	const bool is_long = part->cause == GAP_LAUNCH && idle->length_ns >= STEP_IDLE_LONG_NS;
	const char *cause = is_long ? IDLE_HOST_NAME : gap_cause_name(part->cause);

	if (!idle->length_ns)
		return;
	begin_slice(perfetto, TRACK_IDLE, 0, idle->ended_by->device, "idle", part->begin_ns,
		part->end_ns);
	add_names(perfetto, (struct string_view){ cause, (uint32_t)strlen(cause) }, "idle");
	put_event(perfetto);
}

static void put_idle_parts(struct perfetto *perfetto)
{
	struct activities *activities;

	if (!perfetto->process->profile->timeline)
		return;
	activities = activities_read(perfetto->process);
	idle_parts_visit(perfetto->process, activities, put_idle, perfetto);
	activities_free(activities);
	put_ends_until(perfetto, UINT64_MAX);
}

/* ---- processes ---- */

static void free_tracks(struct perfetto *perfetto)
{
	for (size_t i = 0; i < perfetto->track_count; i++)
		free(perfetto->tracks[i].ends);
	if (perfetto->track_count)
		memset(perfetto->tracks, 0, perfetto->track_count * sizeof *perfetto->tracks);
	perfetto->track_count = 0;
	hash_index_free(&perfetto->index);
	perfetto->index = (struct hash_index){ 0 };
}

static void put_process(struct perfetto *perfetto, const struct options *options)
{
	struct record_event event;

	put_process_descriptor(perfetto);
	perfetto->changes = external_sort_new(sizeof(struct queue_change), CHANGES_IN_MEMORY,
		compare_changes, "the queues of CUDA streams");
	perfetto->events = record_events_read(perfetto->process, options);
	while (!perfetto->out->error && record_events_next(perfetto->events, &event)) {
		if (event.host)
			put_host(perfetto, event.host);
		else
			put_gpu(perfetto, event.gpu);
	}
	put_ends_until(perfetto, UINT64_MAX);
	record_events_free(perfetto->events);
	put_queues(perfetto);
	external_sort_free(perfetto->changes);
	put_idle_parts(perfetto);
	free_tracks(perfetto);
}

/* The first packet: names are counted from here on. */
static void put_first_packet(struct perfetto *perfetto)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, SEQUENCE);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

static void free_perfetto(struct perfetto *perfetto)
{
	string_table_free(perfetto->names);
	string_table_free(perfetto->categories);
	protobuf_free(&perfetto->packet);
	protobuf_free(&perfetto->event);
	protobuf_free(&perfetto->inner);
	protobuf_free(&perfetto->interned);
	free(perfetto->tracks);
	free(perfetto->ends);
}

void export_perfetto(const struct options *options, struct processes *processes, struct output *out)
{
	struct perfetto perfetto = { .out = out };
	uint64_t base_unix_ns = UINT64_MAX;

	perfetto.names = string_table_new();
	perfetto.categories = string_table_new();
	for (size_t i = 0; i < processes->shown; i++)
		if (processes->all[i].start_unix_ns < base_unix_ns)
			base_unix_ns = processes->all[i].start_unix_ns;
	put_first_packet(&perfetto);
	for (size_t i = 0; i < processes->shown; i++) {
		perfetto.process = &processes->all[i];
		perfetto.pid = processes->all[i].pid;
		for (size_t k = 0; k < i; k++)
			if (processes->all[k].pid == perfetto.pid)
				perfetto.pid = 100000000u + (uint32_t)i;
		perfetto.first_flow = (uint64_t)i << 48;
		perfetto.shift_ns = processes->all[i].start_unix_ns - base_unix_ns;
		put_process(&perfetto, options);
	}
	free_perfetto(&perfetto);
}
