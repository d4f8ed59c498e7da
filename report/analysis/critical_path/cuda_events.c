/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/cuda_events.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define LEAST_SLOTS 64u /* a power of two */

struct path_record {
	uint64_t at_ns;
	uint32_t lane, last; /* last: of its work; once it is closed */
	uint32_t holders;
	bool closed;
};

/* A stream waits for it with all that was asked for from then on. */
struct barrier {
	struct path_record *record;
	uint64_t at_ns;
};

struct event_lane {
	struct path_record **open;
	struct barrier *barriers;
	size_t open_count, open_room, barrier_count, barrier_room;
	uint32_t last, last_there; /* node + 1 */
};

struct event_slot {
	uint64_t event;
	struct path_record *record; /* NULL: free */
};

struct path_events {
	struct event_lane *lanes;
	size_t lane_room;
	struct event_slot *slots;
	size_t slot_count, used;
};

struct path_events *path_events_new(void)
{
	return need(sizeof(struct path_events));
}

void path_record_release(struct path_record *record)
{
	if (record && !--record->holders)
		free(record);
}

void path_events_free(struct path_events *events)
{
	for (size_t i = 0; i < events->lane_room; i++) {
		struct event_lane *lane = &events->lanes[i];

		for (size_t at = 0; at < lane->open_count; at++)
			path_record_release(lane->open[at]);
		for (size_t at = 0; at < lane->barrier_count; at++)
			path_record_release(lane->barriers[at].record);
		free(lane->open);
		free(lane->barriers);
	}
	for (size_t i = 0; i < events->slot_count; i++)
		path_record_release(events->slots[i].record);
	free(events->lanes);
	free(events->slots);
	free(events);
}

static struct event_lane *lane_of(struct path_events *events, uint32_t lane)
{
	grow(&events->lanes, &events->lane_room, (size_t)lane + 1, sizeof *events->lanes);
	return &events->lanes[lane];
}

struct path_record *path_events_here(struct path_events *events, uint32_t lane, uint64_t at_ns)
{
	struct path_record *record = need(sizeof *record);
	struct event_lane *of;

	*record = (struct path_record){ .at_ns = at_ns, .lane = lane, .last = PATH_NONE, .holders = 1 };
	if (lane == PATH_NONE)
		return record;
	of = lane_of(events, lane);
	grow(&of->open, &of->open_room, of->open_count + 1, sizeof(struct path_record *));
	of->open[of->open_count++] = record;
	record->holders++;
	return record;
}

static struct event_slot *slot_of(struct event_slot *slots, size_t count, uint64_t event)
{
	size_t at = (size_t)((event * 0x9e3779b97f4a7c15u) >> 32) & (count - 1);

	while (slots[at].record && slots[at].event != event)
		at = (at + 1) & (count - 1);
	return &slots[at];
}

static void make_room(struct path_events *events)
{
	const size_t count = events->slot_count ? events->slot_count * 2 : LEAST_SLOTS;
	struct event_slot *slots;

	if (events->used * 2 < events->slot_count)
		return;
	slots = need(count * sizeof *slots);
	for (size_t i = 0; i < events->slot_count; i++)
		if (events->slots[i].record)
			*slot_of(slots, count, events->slots[i].event) = events->slots[i];
	free(events->slots);
	events->slots = slots;
	events->slot_count = count;
}

void path_events_record(struct path_events *events, uint64_t event, uint32_t lane, uint64_t at_ns)
{
	struct event_slot *slot;

	make_room(events);
	slot = slot_of(events->slots, events->slot_count, event);
	events->used += !slot->record;
	path_record_release(slot->record);
	*slot = (struct event_slot){ .event = event, .record = path_events_here(events, lane, at_ns) };
}

struct path_record *path_events_of(struct path_events *events, uint64_t event)
{
	struct path_record *record = events->slot_count ? slot_of(events->slots, events->slot_count, event)->record : NULL;

	if (record)
		record->holders++;
	return record;
}

void path_events_wait(struct path_events *events, uint64_t event, uint32_t lane, uint64_t at_ns)
{
	struct path_record *record = path_events_of(events, event);
	struct event_lane *of;

	if (!record)
		return; /* an event that was never recorded holds nobody up */
	of = lane_of(events, lane);
	grow(&of->barriers, &of->barrier_room, of->barrier_count + 1, sizeof *of->barriers);
	of->barriers[of->barrier_count++] = (struct barrier){ .record = record, .at_ns = at_ns };
}

uint32_t path_events_last(const struct path_events *events, uint32_t lane)
{
	return lane < events->lane_room ? events->lanes[lane].last - 1 : PATH_NONE;
}

uint32_t path_events_last_there(const struct path_events *events, uint32_t lane)
{
	return lane < events->lane_room ? events->lanes[lane].last_there - 1 : PATH_NONE;
}

uint32_t path_events_done(const struct path_events *events, const struct path_record *record)
{
	return record->closed || record->lane == PATH_NONE ? record->last : path_events_last(events, record->lane);
}

/* Records made before this work was asked for have seen all of theirs. */
static void close_records(struct event_lane *lane, uint64_t asked_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < lane->open_count; i++) {
		struct path_record *record = lane->open[i];

		if (record->holders == 1) {
			path_record_release(record);
		} else if (record->at_ns < asked_ns) {
			record->closed = true;
			record->last = lane->last - 1;
			path_record_release(record);
		} else {
			lane->open[kept++] = record;
		}
	}
	lane->open_count = kept;
}

void path_events_begin(struct path_events *events, uint32_t lane, uint64_t asked_ns,
	void (*held_up)(void *context, uint32_t node), void *context)
{
	struct event_lane *of = lane_of(events, lane);
	size_t kept = 0;

	close_records(of, asked_ns);
	for (size_t i = 0; i < of->barrier_count; i++) {
		if (of->barriers[i].at_ns >= asked_ns) {
			of->barriers[kept++] = of->barriers[i];
			continue;
		}
		held_up(context, path_events_done(events, of->barriers[i].record));
		path_record_release(of->barriers[i].record);
	}
	of->barrier_count = kept;
}

void path_events_end(struct path_events *events, uint32_t lane, uint32_t node, bool ran_there)
{
	struct event_lane *of = lane_of(events, lane);

	of->last = node + 1;
	if (ran_there)
		of->last_there = node + 1;
}
