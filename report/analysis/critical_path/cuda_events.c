/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/cuda_events.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define MIN_SLOTS 64u /* a power of two */

struct event_record {
	uint64_t at_ns;
	uint32_t stream, last; /* last: of its work, once it is closed */
	uint32_t holders;
	bool closed;
};

/* Work that was requested from at_ns on waits for `record`. */
struct stream_wait {
	struct event_record *record;
	uint64_t at_ns;
};

struct event_stream_state {
	struct event_record **open;
	struct stream_wait *barriers;
	size_t open_count, open_room, barrier_count, barrier_room;
	uint32_t last, last_run; /* node + 1 */
};

struct event_slot {
	uint64_t event;
	struct event_record *record; /* NULL: free */
};

struct cuda_events {
	struct event_stream_state *streams;
	size_t stream_room;
	struct event_slot *slots;
	size_t slot_count, used;
};

struct cuda_events *cuda_events_new(void)
{
	return xcalloc(sizeof(struct cuda_events));
}

void event_record_release(struct event_record *record)
{
	if (record && !--record->holders)
		free(record);
}

void cuda_events_free(struct cuda_events *events)
{
	for (size_t i = 0; i < events->stream_room; i++) {
		struct event_stream_state *stream = &events->streams[i];

		for (size_t at = 0; at < stream->open_count; at++)
			event_record_release(stream->open[at]);
		for (size_t at = 0; at < stream->barrier_count; at++)
			event_record_release(stream->barriers[at].record);
		free(stream->open);
		free(stream->barriers);
	}
	for (size_t i = 0; i < events->slot_count; i++)
		event_record_release(events->slots[i].record);
	free(events->streams);
	free(events->slots);
	free(events);
}

static struct event_stream_state *event_stream_of(struct cuda_events *events, uint32_t stream)
{
	ARRAY_GROW(events->streams, events->stream_room, (size_t)stream + 1);
	return &events->streams[stream];
}

struct event_record *cuda_events_stream_now(
	struct cuda_events *events, uint32_t stream, uint64_t at_ns)
{
	struct event_record *record = xcalloc(sizeof *record);
	struct event_stream_state *of;

	*record = (struct event_record){
		.at_ns = at_ns, .stream = stream, .last = PATH_NONE, .holders = 1
	};
	if (stream == PATH_NONE)
		return record;
	of = event_stream_of(events, stream);
	array_grow_zeroed(
		&of->open, &of->open_room, of->open_count + 1, sizeof(struct event_record *));
	of->open[of->open_count++] = record;
	record->holders++;
	return record;
}

static struct event_slot *event_slot_of(struct event_slot *slots, size_t count, uint64_t event)
{
	size_t at = (size_t)((event * 0x9e3779b97f4a7c15u) >> 32) & (count - 1);

	while (slots[at].record && slots[at].event != event)
		at = (at + 1) & (count - 1);
	return &slots[at];
}

static void grow_event_slots(struct cuda_events *events)
{
	const size_t count = events->slot_count ? events->slot_count * 2 : MIN_SLOTS;
	struct event_slot *slots;

	if (events->used * 2 < events->slot_count)
		return;
	slots = xcalloc(count * sizeof *slots);
	for (size_t i = 0; i < events->slot_count; i++)
		if (events->slots[i].record)
			*event_slot_of(slots, count, events->slots[i].event) = events->slots[i];
	free(events->slots);
	events->slots = slots;
	events->slot_count = count;
}

void cuda_events_record(struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns)
{
	struct event_slot *slot;

	grow_event_slots(events);
	slot = event_slot_of(events->slots, events->slot_count, event);
	events->used += !slot->record;
	event_record_release(slot->record);
	*slot = (struct event_slot){ .event = event,
		.record = cuda_events_stream_now(events, stream, at_ns) };
}

struct event_record *cuda_events_find(struct cuda_events *events, uint64_t event)
{
	struct event_record *record =
		events->slot_count ? event_slot_of(events->slots, events->slot_count, event)->record
				   : NULL;

	if (record)
		record->holders++;
	return record;
}

void cuda_events_wait(struct cuda_events *events, uint64_t event, uint32_t stream, uint64_t at_ns)
{
	struct event_record *record = cuda_events_find(events, event);
	struct event_stream_state *of;

	if (!record)
		return; /* an event that was never recorded does not block */
	of = event_stream_of(events, stream);
	*ARRAY_ADD(of->barriers, of->barrier_room,
		of->barrier_count) = (struct stream_wait){ .record = record, .at_ns = at_ns };
}

uint32_t cuda_events_last(const struct cuda_events *events, uint32_t stream)
{
	return stream < events->stream_room ? events->streams[stream].last - 1 : PATH_NONE;
}

uint32_t cuda_events_last_run(const struct cuda_events *events, uint32_t stream)
{
	return stream < events->stream_room ? events->streams[stream].last_run - 1 : PATH_NONE;
}

uint32_t cuda_events_done(const struct cuda_events *events, const struct event_record *record)
{
	return record->closed || record->stream == PATH_NONE
		       ? record->last
		       : cuda_events_last(events, record->stream);
}

/* Records made before this work was requested are complete: all of their work is over. */
static void close_records(struct event_stream_state *stream, uint64_t requested_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < stream->open_count; i++) {
		struct event_record *record = stream->open[i];

		if (record->holders == 1) {
			event_record_release(record);
		} else if (record->at_ns < requested_ns) {
			record->closed = true;
			record->last = stream->last - 1;
			event_record_release(record);
		} else {
			stream->open[kept++] = record;
		}
	}
	stream->open_count = kept;
}

void cuda_events_work_begin(struct cuda_events *events, uint32_t stream, uint64_t requested_ns,
	void (*held_up)(void *context, uint32_t node), void *context)
{
	struct event_stream_state *of = event_stream_of(events, stream);
	size_t kept = 0;

	close_records(of, requested_ns);
	for (size_t i = 0; i < of->barrier_count; i++) {
		if (of->barriers[i].at_ns >= requested_ns) {
			of->barriers[kept++] = of->barriers[i];
			continue;
		}
		held_up(context, cuda_events_done(events, of->barriers[i].record));
		event_record_release(of->barriers[i].record);
	}
	of->barrier_count = kept;
}

void cuda_events_work_end(
	struct cuda_events *events, uint32_t stream, uint32_t node, bool ran_there)
{
	struct event_stream_state *of = event_stream_of(events, stream);

	of->last = node + 1;
	if (ran_there)
		of->last_run = node + 1;
}
