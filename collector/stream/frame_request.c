/* SPDX-License-Identifier: MIT */
#include "collector/stream/frame_request.h"

#include "collector/process/signal_guard.h"
#include "collector/stream/stream_state.h"

static uint32_t (*reader)(void);

void frame_request_set_reader(uint32_t (*read)(void))
{
	reader = read;
}

/* If the thread reads node and time while they are replaced, they may be of two requests. A range
 * that fits both was open at that time all the same. */
void frame_request_make(struct stream *peer, uint32_t node, uint64_t at, uint64_t replaced)
{
	const uint64_t earlier = __atomic_load_n(&peer->frames_due, __ATOMIC_RELAXED);

	if (!reader || (earlier && earlier != replaced))
		return;
	__atomic_store_n(&peer->frames_due_node, node, __ATOMIC_RELAXED);
	__atomic_store_n(&peer->frames_due, at, __ATOMIC_SEQ_CST);
	__atomic_store_n(&peer->fast_room, 0, __ATOMIC_SEQ_CST);
}

static bool has_begin(const struct range_frame *frame)
{
	return frame_is_recorded(frame) || frame->domain == FRAME_COUNTED;
}

/* Returns the open range that the request is about; NULL: it has ended. */
static const struct range_frame *requested_range(const struct stream *s)
{
	const uint64_t due = __atomic_load_n(&s->frames_due, __ATOMIC_ACQUIRE);
	const uint32_t node = __atomic_load_n(&s->frames_due_node, __ATOMIC_RELAXED);
	const struct range_frame *frame = s->top;

	while (frame > s->frames && frame->node != node)
		frame--;
	return frame > s->frames && has_begin(frame) && frame->begin <= due ? frame : NULL;
}

static void drop_request(struct stream *s)
{
	__atomic_store_n(&s->frames_due, 0, __ATOMIC_SEQ_CST);
	stream_update_limits(s);
}

void frame_request_check(struct stream *s)
{
	if (s->paused || !requested_range(s))
		drop_request(s);
}

static uint32_t read_frames(void)
{
	struct signal_guard guard;
	uint32_t python;

	signal_guard_begin(&guard);
	python = reader();
	signal_guard_end(&guard);
	return python;
}

void frame_request_answer(struct stream *s)
{
	struct trace_sample_python *record;
	uint32_t python;

	if (requested_range(s) != s->top)
		return;
	python = read_frames();
	record = python ? stream_record(TRACE_SAMPLE_PYTHON, sizeof *record) : NULL;
	if (record) {
		record->since = s->top->begin;
		record->python = python;
		stream_commit();
	}
	drop_request(s);
}
