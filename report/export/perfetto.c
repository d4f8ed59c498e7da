/* SPDX-License-Identifier: MIT
 *
 * Perfetto's protobuf trace (https://perfetto.dev/docs/reference/synthetic-track-event). Slices are
 * pairs of a begin and an end that nest on their track: what would overlap is on a further track of
 * the same thread or CUDA stream. Launches and their GPU work are joined by flows. Memory, the
 * program's counters and the lengths of the queues of CUDA streams are counter tracks, and the idle
 * time of each GPU is a track of slices that are named by their cause. CPU samples are those of a
 * perf event. They have no weights: their timebase counts the CPU time of all threads so far.
 *
 * Each track is a sequence of packets, whose first packet says what the others leave out: the
 * track, and a clock of which each time is the difference to the time before. Names and categories
 * are written once in a sequence. A packet of an end has 13 bytes instead of 18.
 */
#include "report/analysis/idle_parts.h"
#include "report/analysis/step_idle.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/escape.h"
#include "report/base/external_sort.h"
#include "report/base/hash_index.h"
#include "report/export/export.h"
#include "report/export/kineto_names.h"
#include "report/export/protobuf.h"
#include "report/export/record_events.h"
#include "report/export/record_samples.h"
#include <stdio.h>
#include <stdlib.h>

/* Fields of perfetto.protos. */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	SNAPSHOT_CLOCKS = 1,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	CLOCK_IS_INCREMENTAL = 3,
	DEFAULTS_TRACK_EVENT = 11,
	DEFAULTS_CLOCK_ID = 58,
	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_FUNCTIONS = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_PATHS = 17,
	INTERNED_MAPPINGS = 19,
	FRAME_ID = 1,
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_OFFSET = 4,
	FRAME_LINE = 6,
	MAPPING_ID = 1,
	MAPPING_PATH = 7,
	STACK_ID = 1,
	STACK_FRAMES = 2,
	SAMPLE_CPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_STACK = 4,
	SAMPLE_CPU_MODE = 5,
	SAMPLE_TIMEBASE_COUNT = 6,
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
enum { MODE_UNKNOWN = 0, MODE_KERNEL = 1, MODE_USER = 2 }; /* of a sample */

enum { CLOCK_BOOTTIME = 6, CLOCK_OF_SEQUENCE = 64 };

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

enum category {
	CATEGORY_NONE,
	CATEGORY_OPERATOR,
	CATEGORY_MODULE,
	CATEGORY_ANNOTATION,
	CATEGORY_RUNTIME,
	CATEGORY_DRIVER,
	CATEGORY_ASYNC,
	CATEGORY_MARK,
	CATEGORY_MEMORY,
	CATEGORY_SYNC,
	CATEGORY_KERNEL,
	CATEGORY_MEMSET,
	CATEGORY_MEMCPY,
	CATEGORY_IDLE
};

static const char *const categories[] = { "", "cpu_op", "module", "user_annotation", "cuda_runtime",
	"cuda_driver", "start_end_range", "mark", "memory", "cuda_sync", "kernel", "gpu_memset",
	"gpu_memcpy", "idle" };

/* A track: of a thread (id), a CUDA stream (id and device `of`), a counter. */
struct track {
	uint64_t uuid;  /* also the number of its sequence */
	uint64_t at_ns; /* of the last packet of its sequence */
	uint64_t *ends; /* of the slices that are open on it, the outermost first */
	size_t count, room;
	uint8_t *names; /* a bit for each name that its sequence has */
	size_t name_room;
	uint64_t value; /* MEMORY, QUEUE: the last one */
	uint32_t id, of;
	uint32_t lane;       /* 0; else what does not nest on the lanes before */
	uint32_t categories; /* a bit for each that its sequence has */
	uint8_t kind;        /* enum track_kind */
};

/* A launch or an end of GPU work. */
struct queue_change {
	uint64_t at_ns;
	uint32_t device, stream;
	bool is_launch; /* after ends of the same time, as in the view queue */
};

struct perfetto {
	struct output *out;
	struct process *process;
	struct record_events *events;
	uint64_t process_uuid, uuids, shift_ns;
	uint64_t first_flow; /* added to correlation ids: unique in the file */
	uint32_t pid;
	struct track *tracks; /* of the process */
	size_t track_count, track_room;
	struct hash_index index;       /* of tracks */
	struct external_sort *changes; /* queue_change */
	struct string_table *names;
	struct protobuf packet, event, interned, inner;
};

/* ---- packets ---- */

/* Begins a packet with a track event, not before the last one of the track. The caller adds to
 * perfetto->event, then calls put_event. */
static void begin_event(
	struct perfetto *perfetto, struct track *track, unsigned type, uint64_t at_ns)
{
	at_ns += perfetto->shift_ns;
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_TIMESTAMP, at_ns - track->at_ns);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, track->uuid);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	protobuf_clear(&perfetto->interned);
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, EVENT_TYPE, type);
	track->at_ns = at_ns;
}

static void put_event(struct perfetto *perfetto)
{
	if (perfetto->interned.bytes.used)
		protobuf_message(&perfetto->packet, PACKET_INTERNED_DATA, &perfetto->interned);
	protobuf_message(&perfetto->packet, PACKET_TRACK_EVENT, &perfetto->event);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

/* Adds a text to the interned data of the event, escaped so that it is valid UTF-8. */
static void add_interned(
	struct perfetto *perfetto, unsigned field, uint32_t id, struct string_view text)
{
	char shown[6 * NAME_BYTES + 1];

	text.length = (uint32_t)escape_text(shown, sizeof shown, text.bytes,
		text.length < NAME_BYTES ? text.length : NAME_BYTES, false);
	text.bytes = shown;
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, 1, id);
	protobuf_text(&perfetto->inner, 2, text);
	protobuf_message(&perfetto->interned, field, &perfetto->inner);
}

/* Returns whether a sequence has a name already, and notes that it has it from now on. */
static bool has_name(struct track *track, uint32_t id)
{
	const uint8_t bit = (uint8_t)(1u << id % 8);
	bool has;

	ARRAY_GROW(track->names, track->name_room, id / 8 + 1);
	has = track->names[id / 8] & bit;
	track->names[id / 8] |= bit;
	return has;
}

/* Adds name and category to the event. */
static void add_names(struct perfetto *perfetto, struct track *track, struct string_view name,
	enum category category)
{
	static const struct string_view unnamed = { "(no name)", 9 };
	const struct string_view shown = name.length ? name : unnamed;
	const uint32_t id = string_table_intern(perfetto->names, shown.bytes, shown.length);

	if (!has_name(track, id))
		add_interned(perfetto, INTERNED_NAMES, id + 1, shown);
	if (!(track->categories & 1u << category))
		add_interned(perfetto, INTERNED_CATEGORIES, category,
			(struct string_view){
				categories[category], (uint32_t)strlen(categories[category]) });
	track->categories |= 1u << category;
	protobuf_number(&perfetto->event, EVENT_NAME_IID, id + 1);
	protobuf_number(&perfetto->event, EVENT_CATEGORY_IIDS, category);
}

/* ---- tracks ---- */

static void put_descriptor(
	struct perfetto *perfetto, uint64_t uuid, const struct protobuf *descriptor)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, uuid);
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
	put_descriptor(perfetto, perfetto->process_uuid, &perfetto->event);
}

/* Adds a clock at 0 to the clock snapshot in perfetto->event. */
static void add_clock(struct perfetto *perfetto, unsigned clock)
{
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, CLOCK_ID, clock);
	protobuf_number(&perfetto->inner, CLOCK_TIMESTAMP, 0);
	if (clock == CLOCK_OF_SEQUENCE)
		protobuf_number(&perfetto->inner, CLOCK_IS_INCREMENTAL, 1);
	protobuf_message(&perfetto->event, SNAPSHOT_CLOCKS, &perfetto->inner);
}

/* Begins the sequence of a track. */
static void put_sequence(struct perfetto *perfetto, const struct track *track)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, track->uuid);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, EVENT_TRACK_UUID, track->uuid);
	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, DEFAULTS_CLOCK_ID, CLOCK_OF_SEQUENCE);
	protobuf_message(&perfetto->event, DEFAULTS_TRACK_EVENT, &perfetto->inner);
	protobuf_message(&perfetto->packet, PACKET_DEFAULTS, &perfetto->event);
	protobuf_clear(&perfetto->event);
	add_clock(perfetto, CLOCK_OF_SEQUENCE);
	add_clock(perfetto, CLOCK_BOOTTIME);
	protobuf_message(&perfetto->packet, PACKET_CLOCK_SNAPSHOT, &perfetto->event);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
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
	put_descriptor(perfetto, track->uuid, &perfetto->event);
}

static uint64_t parent_of(struct perfetto *perfetto, const struct track *track);

/* Adds a track, described with its name: of a counter `counter`. */
static struct track *add_track(
	struct perfetto *perfetto, const struct track *key, struct string_view counter)
{
	static const char *const formats[] = { [TRACK_THREAD] = "thread %u",
		[TRACK_ASYNC] = "start/end ranges",
		[TRACK_DEVICE] = "GPU %u",
		[TRACK_STREAM] = "stream %u",
		[TRACK_WAITS] = "stream %u waits",
		[TRACK_IDLE] = "idle",
		[TRACK_QUEUE] = "queue of stream %u" };
	const uint64_t parent = parent_of(perfetto, key);
	struct track *track = ARRAY_ADD(
		perfetto->tracks, perfetto->track_room, perfetto->track_count);
	char name[512];
	int length;

	if (key->kind == TRACK_COUNTER || key->kind == TRACK_MEMORY)
		length = snprintf(name, sizeof name, "%.*s",
			counter.length < 400 ? (int)counter.length : 400, counter.bytes);
	else if (key->kind == TRACK_WAITS && key->id == UINT32_MAX)
		length = snprintf(name, sizeof name, "host waits");
	else
		length = snprintf(name, sizeof name, formats[key->kind], key->id);
	if (key->lane)
		snprintf(name + length, sizeof name - (size_t)length, " (%u)", key->lane + 1);
	*track = *key;
	track->uuid = ++perfetto->uuids;
	if (track->kind != TRACK_DEVICE)
		put_sequence(perfetto, track);
	put_track_descriptor(perfetto, track, name, parent);
	return track;
}

/* Returns the track of these members of `key`: kind, id, of, lane. It is described at its first
 * use. */
static struct track *track_of(
	struct perfetto *perfetto, const struct track *key, struct string_view counter)
{
	const uint64_t hash = hash_u64(hash_u64((uint64_t)key->id << 32 | key->of) ^
				       ((uint64_t)key->lane << 8 | key->kind));
	struct hash_slot *slot;
	struct track *track;

	hash_index_reserve(&perfetto->index);
	for (slot = hash_index_first(&perfetto->index, hash); slot->number;
		slot = hash_index_next(&perfetto->index, slot)) {
		track = &perfetto->tracks[slot->number - 1];
		if (track->kind == key->kind && track->id == key->id && track->of == key->of &&
			track->lane == key->lane)
			return track;
	}
	track = add_track(perfetto, key, counter);
	hash_index_reserve(&perfetto->index);
	for (slot = hash_index_first(&perfetto->index, hash); slot->number;)
		slot = hash_index_next(&perfetto->index, slot);
	hash_index_add(&perfetto->index, slot, hash, (uint32_t)perfetto->track_count);
	return track;
}

static struct track *plain_track(
	struct perfetto *perfetto, enum track_kind kind, uint32_t id, uint32_t of)
{
	const struct track key = { .kind = (uint8_t)kind, .id = id, .of = of };

	return track_of(perfetto, &key, (struct string_view){ "", 0 });
}

static uint64_t parent_of(struct perfetto *perfetto, const struct track *track)
{
	if (track->lane && track->kind == TRACK_THREAD)
		return plain_track(perfetto, TRACK_THREAD, track->id, track->of)->uuid;
	if (track->kind != TRACK_STREAM && track->kind != TRACK_WAITS &&
		track->kind != TRACK_IDLE && track->kind != TRACK_MEMORY &&
		track->kind != TRACK_QUEUE)
		return perfetto->process_uuid;
	return plain_track(perfetto, TRACK_DEVICE, track->of, 0)->uuid;
}

/* ---- slices ---- */

static void put_ends_until(struct perfetto *perfetto, struct track *track, uint64_t at_ns)
{
	while (track->count && track->ends[track->count - 1] <= at_ns) {
		begin_event(perfetto, track, SLICE_END, track->ends[--track->count]);
		put_event(perfetto);
	}
}

static void put_all_ends(struct perfetto *perfetto)
{
	for (size_t i = 0; i < perfetto->track_count; i++)
		put_ends_until(perfetto, &perfetto->tracks[i], UINT64_MAX);
}

/* Begins a slice on the first lane of a track on which it nests in the slices that are open. The
 * caller may add to the event, then calls put_event. Returns the lane. */
static struct track *begin_slice(struct perfetto *perfetto, enum track_kind kind, uint32_t id,
	uint32_t of, uint64_t begin_ns, uint64_t end_ns)
{
	struct track key = { .kind = (uint8_t)kind, .id = id, .of = of };
	struct track *track;

	for (;; key.lane++) {
		track = track_of(perfetto, &key, (struct string_view){ "", 0 });
		put_ends_until(perfetto, track, begin_ns);
		if (!track->count || track->ends[track->count - 1] >= end_ns)
			break;
	}
	*ARRAY_ADD(track->ends, track->room, track->count) = end_ns;
	begin_event(perfetto, track, SLICE_BEGIN, begin_ns);
	return track;
}

/* Writes how much memory is in use, or how long a queue is, if that has changed. */
static void put_level(struct perfetto *perfetto, const struct track *key, struct string_view name,
	uint64_t at_ns, uint64_t value)
{
	struct track *track = track_of(perfetto, key, name);

	if (track->at_ns && track->value == value)
		return;
	track->value = value;
	begin_event(perfetto, track, COUNTER, at_ns);
	protobuf_number(&perfetto->event, EVENT_COUNTER_VALUE, value);
	put_event(perfetto);
}

/* ---- what happened on threads ---- */

static enum category range_category(struct perfetto *perfetto, const struct host_event *event)
{
	switch (reader_node(perfetto->process->reader, event->node)->kind) {
	case TRACE_NODE_OP:
	case TRACE_NODE_BACKWARD:
		return CATEGORY_OPERATOR;
	case TRACE_NODE_MODULE:
		return CATEGORY_MODULE;
	default:
		return CATEGORY_ANNOTATION;
	}
}

static void put_thread_slice(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	struct track *track = begin_slice(
		perfetto, TRACK_THREAD, event->tid, 0, event->begin_ns, event->end_ns);

	if (event->kind == HOST_RANGE)
		add_names(perfetto, track, name, range_category(perfetto, event));
	else
		add_names(perfetto, track, name,
			kineto_is_driver_call(name.bytes, name.length) ? CATEGORY_DRIVER
								       : CATEGORY_RUNTIME);
	if (event->has_work)
		protobuf_fixed64(&perfetto->event, EVENT_FLOW_IDS,
			perfetto->first_flow + event->of.call.correlation);
	put_event(perfetto);
}

static void put_async(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	struct track *track = begin_slice(
		perfetto, TRACK_ASYNC, 0, 0, event->begin_ns, event->end_ns);

	add_names(perfetto, track, name, CATEGORY_ASYNC);
	put_event(perfetto);
}

static void put_mark(struct perfetto *perfetto, const struct host_event *event,
	struct string_view name, enum category category)
{
	struct track *track = plain_track(perfetto, TRACK_THREAD, event->tid, 0);

	put_ends_until(perfetto, track, event->begin_ns);
	begin_event(perfetto, track, INSTANT, event->begin_ns);
	add_names(perfetto, track, name, category);
	put_event(perfetto);
}

static void put_levels(struct perfetto *perfetto, const struct host_event *event)
{
	static const struct string_view allocated = { "allocated", 9 },
					reserved = { "reserved", 8 };
	struct track key = { .kind = TRACK_MEMORY, .of = event->device };

	put_level(perfetto, &key, allocated, event->begin_ns, event->of.tensor.allocated);
	key.id = 1;
	if (event->of.tensor.reserved)
		put_level(perfetto, &key, reserved, event->begin_ns, event->of.tensor.reserved);
}

static void put_counter(
	struct perfetto *perfetto, const struct host_event *event, struct string_view name)
{
	const struct track key = { .kind = TRACK_COUNTER, .id = event->name };

	begin_event(perfetto, track_of(perfetto, &key, name), COUNTER, event->begin_ns);
	if (event->of.counter.type == TRACE_METRIC_I64)
		protobuf_number(&perfetto->event, EVENT_COUNTER_VALUE, event->of.counter.bits);
	else
		protobuf_fixed64(
			&perfetto->event, EVENT_DOUBLE_COUNTER_VALUE, event->of.counter.bits);
	put_event(perfetto);
}

static void put_host(struct perfetto *perfetto, const struct host_event *event)
{
	const struct string_view name = record_event_name(perfetto->events, event);

	switch ((enum host_kind)event->kind) {
	case HOST_RANGE:
	case HOST_CALL:
		put_thread_slice(perfetto, event, name);
		break;
	case HOST_ASYNC:
		put_async(perfetto, event, name);
		break;
	case HOST_MARK:
		put_mark(perfetto, event, name, CATEGORY_MARK);
		break;
	case HOST_OOM:
		put_mark(perfetto, event, (struct string_view){ "out of memory", 13 },
			CATEGORY_MEMORY);
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

/* ---- queues ---- */

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

	external_sort_rewind(perfetto->changes);
	while ((next = external_sort_peek(perfetto->changes))) {
		last = *next;
		length += last.is_launch ? 1 : -(uint64_t)1;
		external_sort_next(perfetto->changes);
		next = external_sort_peek(perfetto->changes);
		if (next && next->device == last.device && next->stream == last.stream &&
			next->at_ns == last.at_ns)
			continue;
		put_level(perfetto,
			&(struct track){
				.kind = TRACK_QUEUE, .id = last.stream, .of = last.device },
			(struct string_view){ "", 0 }, last.at_ns, length);
	}
}

/* ---- what the GPUs did ---- */

static struct string_view work_name(
	struct perfetto *perfetto, const struct gpu_event *gpu, char copy[KINETO_NAME_BYTES])
{
	const char *name = copy;

	if (gpu->kind == TRACE_KERNEL)
		return record_kernel_name(perfetto->events, &gpu->record.kernel);
	if (gpu->kind == TRACE_GPU_SYNC)
		name = kineto_sync_name(gpu->record.sync.type);
	else
		kineto_copy_name(copy, &gpu->record.copy);
	return (struct string_view){ name, (uint32_t)strlen(name) };
}

static void put_sync(struct perfetto *perfetto, const struct gpu_event *gpu)
{
	struct track *track = begin_slice(perfetto, TRACK_WAITS, gpu->record.sync.stream,
		gpu->device, gpu->begin_ns, gpu->end_ns);

	add_names(perfetto, track, work_name(perfetto, gpu, NULL), CATEGORY_SYNC);
	put_event(perfetto);
}

static void put_work(struct perfetto *perfetto, const struct gpu_event *gpu)
{
	const struct trace_gpu *work = &gpu->record.gpu;
	const unsigned flow = work->graph || work->graph_node ? EVENT_FLOW_IDS
							      : EVENT_TERMINATING_FLOW_IDS;
	struct track *track = begin_slice(
		perfetto, TRACK_STREAM, work->stream, gpu->device, gpu->begin_ns, gpu->end_ns);
	char copy[KINETO_NAME_BYTES];

	add_names(perfetto, track, work_name(perfetto, gpu, copy),
		gpu->kind == TRACE_KERNEL    ? CATEGORY_KERNEL
		: gpu->kind == TRACE_GPU_SET ? CATEGORY_MEMSET
					     : CATEGORY_MEMCPY);
	if (gpu->launch_tid) {
		protobuf_fixed64(&perfetto->event, flow, perfetto->first_flow + work->correlation);
		add_to_queue(perfetto, gpu);
	}
	put_event(perfetto);
}

static void put_idle(void *context, const struct idle_part *idle)
{
	struct perfetto *perfetto = context;
	const struct gap_part *part = &idle->part;
	const bool is_long = part->cause == GAP_LAUNCH && idle->length_ns >= STEP_IDLE_LONG_NS;
	const char *cause = is_long ? IDLE_HOST_NAME : gap_cause_name(part->cause);
	struct track *track;

	if (!idle->length_ns)
		return;
	track = begin_slice(
		perfetto, TRACK_IDLE, 0, idle->ended_by->device, part->begin_ns, part->end_ns);
	add_names(perfetto, track, (struct string_view){ cause, (uint32_t)strlen(cause) },
		CATEGORY_IDLE);
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
}

/* ---- CPU samples ---- */

/* The sequence of the samples of a process, and a bit for each text, library and frame that it
 * has. */
struct sample_sequence {
	uint64_t number;
	const struct record_samples *samples;
	struct track functions, files, frames, stacks; /* only `names` is used */
};

static void put_sample_interned(struct perfetto *perfetto, const struct sample_sequence *sequence)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, sequence->number);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	protobuf_message(&perfetto->packet, PACKET_INTERNED_DATA, &perfetto->interned);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

/* Adds a library or file as a mapping, which each frame must have. */
static void add_mapping(struct perfetto *perfetto, uint32_t file, struct string_view path)
{
	add_interned(perfetto, INTERNED_PATHS, file, path);
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, MAPPING_ID, file);
	protobuf_number(&perfetto->inner, MAPPING_PATH, file);
	protobuf_message(&perfetto->interned, INTERNED_MAPPINGS, &perfetto->inner);
}

/* Adds a frame with its texts to the interned data. The offset of a Python frame is its line:
 * frames of one function and offset are the same for readers. */
static void add_stack_frame(
	struct perfetto *perfetto, struct sample_sequence *sequence, uint32_t number)
{
	const struct stack_frame *frame = &sequence->samples->stacks->all[number];
	const struct sample_function *function =
		&sequence->samples->cells->functions.all[frame->frame.function];

	if (!has_name(&sequence->functions, frame->frame.function))
		add_interned(perfetto, INTERNED_FUNCTIONS, frame->frame.function,
			record_frame_name(sequence->samples, frame));
	if (!has_name(&sequence->files, function->library))
		add_mapping(perfetto, function->library + 1,
			record_frame_file(sequence->samples, frame));
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, FRAME_ID, number);
	protobuf_number(&perfetto->inner, FRAME_FUNCTION, frame->frame.function);
	protobuf_number(&perfetto->inner, FRAME_MAPPING, (uint64_t)function->library + 1);
	protobuf_number(&perfetto->inner, FRAME_OFFSET, frame->frame.line);
	if (frame->frame.line)
		protobuf_number(&perfetto->inner, FRAME_LINE, frame->frame.line);
	protobuf_message(&perfetto->interned, INTERNED_FRAMES, &perfetto->inner);
}

/* Writes the stack with that innermost frame, and those of its frames that are new. */
static void put_stack(
	struct perfetto *perfetto, struct sample_sequence *sequence, uint32_t innermost)
{
	const struct stack_frame *frames = sequence->samples->stacks->all;
	uint32_t path[SAMPLE_STACK_MAX];
	size_t count = 0;

	protobuf_clear(&perfetto->interned);
	for (uint32_t at = innermost; at && count < SAMPLE_STACK_MAX; at = frames[at].caller) {
		path[count++] = at;
		if (!has_name(&sequence->frames, at))
			add_stack_frame(perfetto, sequence, at);
	}
	protobuf_clear(&perfetto->inner);
	protobuf_number(&perfetto->inner, STACK_ID, innermost);
	while (count)
		protobuf_number(&perfetto->inner, STACK_FRAMES, path[--count]);
	protobuf_message(&perfetto->interned, INTERNED_STACKS, &perfetto->inner);
	put_sample_interned(perfetto, sequence);
}

static void put_sample(struct perfetto *perfetto, const struct sample_sequence *sequence,
	const struct record_sample *sample, uint64_t cpu_ns)
{
	const unsigned state = sample->cell->state;

	protobuf_clear(&perfetto->event);
	protobuf_number(&perfetto->event, SAMPLE_CPU, 0);
	protobuf_number(&perfetto->event, SAMPLE_PID, perfetto->pid);
	protobuf_number(&perfetto->event, SAMPLE_TID, sample->tid);
	protobuf_number(&perfetto->event, SAMPLE_STACK, sample->frame);
	protobuf_number(&perfetto->event, SAMPLE_CPU_MODE,
		state == TRACE_SAMPLE_KERNEL   ? MODE_KERNEL
		: state == TRACE_SAMPLE_ON_CPU ? MODE_USER
					       : MODE_UNKNOWN);
	protobuf_number(&perfetto->event, SAMPLE_TIMEBASE_COUNT, cpu_ns);
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_TIMESTAMP, sample->at_ns + perfetto->shift_ns);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, sequence->number);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	protobuf_message(&perfetto->packet, PACKET_PERF_SAMPLE, &perfetto->event);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

/* Begins the sequence. Its times are not differences, so it says nothing else. */
static void put_sample_sequence(struct perfetto *perfetto, const struct sample_sequence *sequence)
{
	protobuf_clear(&perfetto->packet);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_ID, sequence->number);
	protobuf_number(&perfetto->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	protobuf_write(perfetto->out, TRACE_PACKET, &perfetto->packet);
}

static bool is_on_cpu(const struct record_sample *sample)
{
	return sample->cell->state != TRACE_SAMPLE_WAITS_FOR_CORE &&
	       sample->cell->state != TRACE_SAMPLE_BLOCKED;
}

static void put_samples(struct perfetto *perfetto)
{
	struct record_samples *samples = record_samples_read(perfetto->process);
	struct sample_sequence sequence = { .samples = samples };
	struct record_sample sample;
	uint64_t cpu_ns = 0;

	if (!samples)
		return;
	sequence.number = ++perfetto->uuids;
	put_sample_sequence(perfetto, &sequence);
	while (!perfetto->out->error && record_samples_next(samples, &sample)) {
		cpu_ns += is_on_cpu(&sample) ? sample.weight_ns : 0;
		if (!has_name(&sequence.stacks, sample.frame))
			put_stack(perfetto, &sequence, sample.frame);
		put_sample(perfetto, &sequence, &sample, cpu_ns);
	}
	free(sequence.functions.names);
	free(sequence.files.names);
	free(sequence.frames.names);
	free(sequence.stacks.names);
	record_samples_free(samples);
}

/* ---- processes ---- */

static void free_tracks(struct perfetto *perfetto)
{
	for (size_t i = 0; i < perfetto->track_count; i++) {
		free(perfetto->tracks[i].ends);
		free(perfetto->tracks[i].names);
	}
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
		else if (event.gpu->kind == TRACE_GPU_SYNC)
			put_sync(perfetto, event.gpu);
		else
			put_work(perfetto, event.gpu);
	}
	record_events_free(perfetto->events);
	put_queues(perfetto);
	external_sort_free(perfetto->changes);
	put_idle_parts(perfetto);
	put_samples(perfetto);
	put_all_ends(perfetto);
	free_tracks(perfetto);
}

static void free_perfetto(struct perfetto *perfetto)
{
	string_table_free(perfetto->names);
	protobuf_free(&perfetto->packet);
	protobuf_free(&perfetto->event);
	protobuf_free(&perfetto->inner);
	protobuf_free(&perfetto->interned);
	free(perfetto->tracks);
}

void export_perfetto(const struct options *options, struct processes *processes, struct output *out)
{
	struct perfetto perfetto = { .out = out };
	uint64_t base_unix_ns = UINT64_MAX;

	perfetto.names = string_table_new();
	for (size_t i = 0; i < processes->shown; i++)
		if (processes->all[i].start_unix_ns < base_unix_ns)
			base_unix_ns = processes->all[i].start_unix_ns;
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
