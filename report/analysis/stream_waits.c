/* SPDX-License-Identifier: MIT */
#include "report/analysis/stream_waits.h"
#include "report/analysis/stream_table.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define LAUNCHES 65536u /* a power of two: launches behind waits that may still start */

#define EVENTS 65536u                   /* a power of two: events that were recorded last */
#define CUPTI_EVENT (UINT64_C(1) << 63) /* marks CUPTI's ids, which are no handles */

struct stream_wait_state {
	struct stream_wait wait;
	uint64_t correlation;
	bool waits;
};

struct waiting_launch {
	uint64_t correlation; /* 0: none */
	struct stream_wait wait;
	uint32_t tid;
};

struct stream_waits {
	struct stream_table streams; /* by handle; without a handle: by thread */
	struct stream_wait_state *states;
	size_t room;
	uint32_t last;                            /* index of the state that changed last */
	struct waiting_launch launches[LAUNCHES]; /* by the low bits of the correlation id */
	/* Events that were recorded, by hash. A later one may replace an earlier one, whose record
	 * then counts as not in the trace. */
	uint64_t recorded[EVENTS];
};

struct stream_waits *stream_waits_new(void)
{
	return xcalloc(sizeof(struct stream_waits));
}

void stream_waits_free(struct stream_waits *waits)
{
	stream_table_free(&waits->streams);
	free(waits->states);
	free(waits);
}

static uint64_t *recorded_slot(struct stream_waits *waits, uint64_t event)
{
	return &waits->recorded[event * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (EVENTS - 1)];
}

static bool is_recorded(struct stream_waits *waits, uint64_t event)
{
	return event && *recorded_slot(waits, event) == event;
}

static struct stream_wait_state *wait_state_of(
	struct stream_waits *waits, const struct activity *call)
{
	const uint32_t number = stream_table_number(
		&waits->streams, call->stream ? 0 : call->tid, call->stream);

	array_grow_zeroed(&waits->states, &waits->room, (size_t)number + 1, sizeof *waits->states);
	waits->last = number;
	return &waits->states[number];
}

static void note_wait(struct stream_waits *waits, const struct activity *call)
{
	*wait_state_of(waits, call) = (struct stream_wait_state){
		.wait = { .at_ns = call->begin_ns,
			.name = call->name,
			.recorded = is_recorded(waits, call->event) },
		.correlation = call->correlation,
		.waits = true
	};
}

static void note_launch(struct stream_waits *waits, const struct activity *call)
{
	struct stream_wait_state *state = wait_state_of(waits, call);

	if (!state->waits)
		return;
	state->waits = false;
	waits->launches[call->correlation & (LAUNCHES - 1)] = (struct waiting_launch){
		.correlation = call->correlation, .tid = call->tid, .wait = state->wait
	};
}

/* Adds a record of CUPTI, which names the event where the call does not. */
static void note_cupti_record(struct stream_waits *waits, const struct activity *record)
{
	struct stream_wait_state *state = waits->last < waits->room ? &waits->states[waits->last]
								    : NULL;

	if (!record->event)
		return;
	if (record->sync == TRACE_EVENT_RECORD)
		*recorded_slot(waits, record->event | CUPTI_EVENT) = record->event | CUPTI_EVENT;
	else if (record->sync == TRACE_SYNC_STREAM_WAIT && state && state->waits &&
		 record->correlation && state->correlation == record->correlation)
		state->wait.recorded |= is_recorded(waits, record->event | CUPTI_EVENT);
}

void stream_waits_add(struct stream_waits *waits, const struct activity *call)
{
	if (call->captured || call->result)
		return;
	switch (call->kind) {
	case ACTIVITY_EVENT_RECORD:
		if (call->event)
			*recorded_slot(waits, call->event) = call->event;
		break;
	case ACTIVITY_STREAM_WAIT:
		note_wait(waits, call);
		break;
	case ACTIVITY_LAUNCH:
	case ACTIVITY_GRAPH_LAUNCH:
	case ACTIVITY_COPY_CALL:
	case ACTIVITY_MEMSET_CALL:
		note_launch(waits, call);
		break;
	case ACTIVITY_SYNC:
		note_cupti_record(waits, call);
		break;
	default:
		break;
	}
}

bool stream_waits_before(
	const struct stream_waits *waits, const struct activity *work, struct stream_wait *wait)
{
	const struct waiting_launch *launch = &waits->launches[work->correlation & (LAUNCHES - 1)];

	if (!work->has_call || !launch->correlation || launch->correlation != work->correlation ||
		launch->tid != work->tid)
		return false;
	*wait = launch->wait;
	return true;
}
