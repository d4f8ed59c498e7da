/* SPDX-License-Identifier: MIT */
#include "report/trace/ring_window.h"

#include "report/trace/trace_reader_state.h"

void ring_window_rewind(struct trace_reader *reader)
{
	struct ring_window *window = &reader->state->ring;

	window->awaits_begin = window->stamp && !window->unreadable;
	window->restating = false;
	window->stream = window->depth = 0;
	window->begin_ns = window->early_gpu = 0;
	window->first_call = UINT64_MAX;
}

static const struct trace_window *window_edge(const struct trace_event *event, unsigned edge)
{
	const struct trace_window *record = event->kind == TRACE_WINDOW ? event->record : NULL;

	return record && record->edge == edge ? record : NULL;
}

static int next_of_any_kind(struct trace_reader *reader, struct trace_event *event)
{
	return reader_next_short(reader, event) ? 1 : reader_next_raw(reader, event);
}

/* Reads up to where the window begins. What is damaged before that is not part of the trace. */
static int skip_to_window(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;
	struct trace_event event;
	int status;

	while ((status = next_of_any_kind(reader, &event)) > 0) {
		const struct trace_window *restates = window_edge(&event, TRACE_WINDOW_RESTATES);

		if (!restates || restates->stamp < state->ring.stamp)
			continue;
		state->warnings = state->warnings_at_open;
		state->ring.awaits_begin = false;
		state->ring.restating = true;
		state->ring.begin_ns = event.time_ns;
		state->ring.begins = *restates;
		state->ring.begins.edge = TRACE_WINDOW_BEGINS;
		return 1;
	}
	if (status == 0) { /* the begin was lost: cut or damaged */
		state->ring.unreadable = true;
		reader_rewind(reader);
		return 1;
	}
	return status;
}

/* Returns the next range that is open where the window begins. */
static bool next_resumed(struct trace_reader *reader, struct trace_event *event)
{
	struct reader_state *state = reader->state;
	struct ring_window *window = &state->ring;

	for (; window->stream < state->stream_count; window->stream++, window->depth = 0) {
		struct trace_stream *stream = &state->streams[window->stream];
		const struct stream_run *run = stream->cursor ? &stream->cursor->run : NULL;

		if (!run || stream == state->ended_stream || window->depth >= run->depth)
			continue;
		stream->started = 1;
		*event = (struct trace_event){ .kind = EVENT_RESUMED,
			.node = run->ranges[window->depth].node,
			.depth = window->depth,
			.time_ns = window->begin_ns,
			.begin_ns = run->ranges[window->depth].begin_ns,
			.stream = stream };
		window->depth++;
		return true;
	}
	return false;
}

/* Handles an event while what is held is restated. Returns false if it is left out. */
static bool take_restated(struct trace_reader *reader, struct trace_event *event)
{
	struct ring_window *window = &reader->state->ring;

	window->restating = event->kind != EVENT_GAP && event->kind < EVENT_KINDS &&
			    !window_edge(event, TRACE_WINDOW_RESTATED) &&
			    event->kind != EVENT_LEFT_OPEN && event->kind != EVENT_STREAM_END;
	reader->state->last_stamp = window->begins.stamp;
	reader->state->last_ns = window->begin_ns;
	event->time_ns = window->begin_ns;
	if (window_edge(event, TRACE_WINDOW_RESTATED))
		event->record = &window->begins;
	return window->restating ? event->kind == TRACE_ALLOC || event->kind == TRACE_TENSOR : true;
}

/* Returns the correlation id of a GPU record, or 0. */
static uint64_t gpu_correlation(const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		return ((const struct trace_gpu *)event->record)->correlation;
	case TRACE_GPU_SYNC:
		return ((const struct trace_gpu_sync *)event->record)->correlation;
	case TRACE_API:
		return ((const struct trace_api *)event->record)->correlation;
	default:
		return 0;
	}
}

static bool is_call(uint32_t kind)
{
	return kind >= TRACE_LAUNCH && kind <= TRACE_FREE;
}

/* Whether the GPU record is of a call before the window. CUPTI gives its ids in the order of the
 * calls, and delivers a record after the call was recorded. */
static bool is_early_gpu_record(struct ring_window *window, const struct trace_event *event)
{
	const uint64_t id = gpu_correlation(event);

	if (is_call(event->kind)) {
		const uint64_t call = ((const struct trace_call *)event->record)->correlation;

		if (call && call < window->first_call)
			window->first_call = call;
		return false;
	}
	if (!window->begin_ns || !id || id >= window->first_call)
		return false;
	window->early_gpu += event->kind != TRACE_API && event->kind != TRACE_GPU_SYNC;
	return true;
}

/* Whether the event is part of the trace: not restated at another time than the window's begin.
 */
static bool is_kept(struct trace_reader *reader, const struct trace_event *event)
{
	struct stream_cursor *cursor = event->stream->cursor;

	if (event->kind == EVENT_GAP)
		cursor->restates = false;
	if (window_edge(event, TRACE_WINDOW_RESTATES) ||
		window_edge(event, TRACE_WINDOW_RESTATED)) {
		cursor->restates = window_edge(event, TRACE_WINDOW_RESTATES) != NULL;
		return false;
	}
	if (cursor->restates && (event->kind == TRACE_ALLOC || event->kind == TRACE_TENSOR))
		return false;
	return !is_early_gpu_record(&reader->state->ring, event);
}

int ring_window_next(struct trace_reader *reader, struct trace_event *event)
{
	struct ring_window *window = &reader->state->ring;
	int status;

	while (window->awaits_begin) {
		status = skip_to_window(reader);
		if (status <= 0)
			return status;
	}
	if (window->restating && next_resumed(reader, event))
		return 1;
	while ((status = reader_next_raw(reader, event)) > 0) {
		if (window->restating ? take_restated(reader, event) : is_kept(reader, event))
			return 1;
	}
	return status;
}
