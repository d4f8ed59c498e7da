/* SPDX-License-Identifier: MIT */
#include "report/analysis/stream_waits.h"
#include "report/analysis/stream_table.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define LAUNCHES 65536u /* a power of two: launches behind waits that may still start */

struct stream_wait_state {
	uint32_t name;
	bool waits;
};

struct waiting_launch {
	uint64_t correlation; /* 0: none */
	uint32_t tid, name;
};

struct stream_waits {
	struct stream_table streams; /* by handle; without a handle: by thread */
	struct stream_wait_state *states;
	size_t room;
	struct waiting_launch launches[LAUNCHES]; /* by the low bits of the correlation id */
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

static struct stream_wait_state *wait_state_of(
	struct stream_waits *waits, const struct activity *call)
{
	const uint32_t number = stream_table_number(
		&waits->streams, call->stream ? 0 : call->tid, call->stream);

	array_grow_zeroed(&waits->states, &waits->room, (size_t)number + 1, sizeof *waits->states);
	return &waits->states[number];
}

static void note_launch(struct stream_waits *waits, const struct activity *call)
{
	struct stream_wait_state *state = wait_state_of(waits, call);

	if (!state->waits)
		return;
	state->waits = false;
	waits->launches[call->correlation & (LAUNCHES - 1)] = (struct waiting_launch){
		.correlation = call->correlation, .tid = call->tid, .name = state->name
	};
}

void stream_waits_add(struct stream_waits *waits, const struct activity *call)
{
	if (call->captured || call->result)
		return;
	switch (call->kind) {
	case ACTIVITY_STREAM_WAIT:
		*wait_state_of(waits, call) = (struct stream_wait_state){ call->name, true };
		break;
	case ACTIVITY_LAUNCH:
	case ACTIVITY_GRAPH_LAUNCH:
	case ACTIVITY_COPY_CALL:
	case ACTIVITY_MEMSET_CALL:
		note_launch(waits, call);
		break;
	default:
		break;
	}
}

bool stream_waits_before(
	const struct stream_waits *waits, const struct activity *work, uint32_t *name)
{
	const struct waiting_launch *launch = &waits->launches[work->correlation & (LAUNCHES - 1)];

	if (!work->has_call || !launch->correlation || launch->correlation != work->correlation ||
		launch->tid != work->tid)
		return false;
	*name = launch->name;
	return true;
}
