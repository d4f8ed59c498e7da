/* SPDX-License-Identifier: MIT */
#include "report/trace/ring_window.h"

#include "report/trace/trace_reader_state.h"

void ring_window_rewind(struct event_decoder *decoder)
{
	struct ring_window *window = &decoder->state->ring;

	window->awaits_begin = window->stamp && !window->unreadable;
	window->resuming = window->restating = false;
	window->held.kind = TRACE_NONE;
	window->begin_ns = window->early_gpu = 0;
	window->first_call = UINT64_MAX;
}

static const struct trace_window *window_edge(const struct trace_event *event, unsigned edge)
{
	const struct trace_window *record = event->kind == TRACE_WINDOW ? event->record : NULL;

	return record && record->edge == edge ? record : NULL;
}

static int next_of_any_kind(struct event_decoder *decoder, struct trace_event *event)
{
	return decoder_next_short(decoder, event) ? 1 : decoder_next_raw(decoder, event);
}

/* Reads up to where the window begins. What is damaged before that is not part of the trace. */
static int skip_to_window(struct event_decoder *decoder)
{
	struct reader_state *state = decoder->state;
	struct trace_event event;
	int status;

	while ((status = next_of_any_kind(decoder, &event)) > 0) {
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
		decoder_rewind(decoder);
		return 1;
	}
	return status;
}

/* Returns the stream whose next range to resume began first. NULL: all were resumed. */
static struct trace_stream *next_to_resume(const struct reader_state *state)
{
	struct trace_stream *first = NULL;
	uint64_t first_ns = 0;

	for (uint32_t i = 0; i < state->stream_count; i++) {
		struct trace_stream *stream = &state->streams[i];
		const struct stream_cursor *cursor = stream->cursor;
		uint64_t begin_ns;

		if (!cursor || stream == state->ended_stream ||
			cursor->resumed >= cursor->run.depth)
			continue;
		begin_ns = cursor->run.ranges[cursor->resumed].begin_ns;
		if (!first || begin_ns < first_ns) {
			first = stream;
			first_ns = begin_ns;
		}
	}
	return first;
}

/* Returns the next range that is open where the window begins. */
static bool next_resumed(struct event_decoder *decoder, struct trace_event *event)
{
	struct trace_stream *stream = next_to_resume(decoder->state);
	struct stream_cursor *cursor = stream ? stream->cursor : NULL;

	if (!stream)
		return false;
	*event = (struct trace_event){ .kind = EVENT_RESUMED,
		.node = cursor->run.ranges[cursor->resumed].node,
		.depth = cursor->resumed,
		.time_ns = decoder->state->ring.begin_ns,
		.begin_ns = cursor->run.ranges[cursor->resumed].begin_ns,
		.stream = stream };
	cursor->resumed++;
	return true;
}

/* Whether a stream restates records of this kind. */
static bool is_restated(uint32_t kind)
{
	switch (kind) {
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_MAPPING:
	case TRACE_TENSOR:
	case TRACE_OBJECT:
	case TRACE_METRIC:
	case TRACE_START:
	case TRACE_AWAY:
		return true;
	default:
		return false;
	}
}

/* Handles an event while what is held is restated. Returns false if it is left out. The first other
 * event ends this. It is held back until the begin of the window was reported. */
static bool take_restated(struct event_decoder *decoder, struct trace_event *event)
{
	struct ring_window *window = &decoder->state->ring;

	decoder->state->last_stamp = window->begins.stamp;
	if (event->kind < EVENT_KINDS && !window_edge(event, TRACE_WINDOW_RESTATED) &&
		event->kind != EVENT_GAP && event->kind != EVENT_LEFT_OPEN &&
		event->kind != EVENT_STREAM_END) {
		event->time_ns = window->begin_ns;
		return is_restated(event->kind);
	}
	window->restating = false;
	window->resuming = true;
	window->held = *event;
	window->run = decoder->run;
	decoder->run = &decoder->state->idle; /* has no short records, which are read past this */
	return false;
}

/* Returns what is open where the window begins, then its begin. */
static void report_begin(struct event_decoder *decoder, struct trace_event *event)
{
	struct ring_window *window = &decoder->state->ring;

	if (next_resumed(decoder, event))
		return;
	window->resuming = false;
	decoder->run = window->run;
	*event = (struct trace_event){ .kind = TRACE_WINDOW,
		.record = &window->begins,
		.node = window->held.node,
		.time_ns = window->begin_ns,
		.stream = window->held.stream };
	if (window_edge(&window->held, TRACE_WINDOW_RESTATED))
		window->held.kind = TRACE_NONE;
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
	case TRACE_GPU_MEMORY:
		return ((const struct trace_gpu_memory *)event->record)->correlation;
	case TRACE_API:
		return ((const struct trace_api *)event->record)->correlation;
	case TRACE_OVERHEAD:
		return ((const struct trace_overhead *)event->record)->correlation;
	default:
		return 0;
	}
}

static bool is_call(uint32_t kind)
{
	return (kind >= TRACE_LAUNCH && kind <= TRACE_FREE) || kind == TRACE_MAPPING;
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
	window->early_gpu += event->kind == TRACE_KERNEL || event->kind == TRACE_GPU_COPY ||
			     event->kind == TRACE_GPU_SET;
	return true;
}

/* Whether the event is part of the trace: not restated at another time than the window's begin.
 */
static bool is_kept(struct event_decoder *decoder, const struct trace_event *event)
{
	struct stream_cursor *cursor = event->stream->cursor;

	if (event->kind == EVENT_GAP)
		cursor->restates = false;
	if (window_edge(event, TRACE_WINDOW_RESTATES) ||
		window_edge(event, TRACE_WINDOW_RESTATED)) {
		cursor->restates = window_edge(event, TRACE_WINDOW_RESTATES) != NULL;
		return false;
	}
	if (cursor->restates && is_restated(event->kind))
		return false;
	return !is_early_gpu_record(&decoder->state->ring, event);
}

/* If nothing was restated in what is left, the window begins with the first payload. Makes its
 * CLOCK record the begin. */
static bool begin_at_first(struct ring_window *window, struct trace_event *event)
{
	if (window->begin_ns || event->kind != TRACE_CLOCK)
		return false;
	window->begin_ns = event->time_ns ? event->time_ns : 1;
	window->begins = (struct trace_window){ .head = { sizeof window->begins, TRACE_WINDOW, 0,
							0 },
		.stamp = ((const struct trace_timed *)event->record)->stamp,
		.edge = TRACE_WINDOW_BEGINS };
	event->kind = TRACE_WINDOW;
	event->record = &window->begins;
	return true;
}

int ring_window_next(struct event_decoder *decoder, struct trace_event *event)
{
	struct ring_window *window = &decoder->state->ring;
	int status;

	while (window->awaits_begin) {
		status = skip_to_window(decoder);
		if (status <= 0)
			return status;
	}
	while (!window->resuming && window->held.kind == TRACE_NONE) {
		status = decoder_next_raw(decoder, event);
		if (status <= 0)
			return status;
		if (window->unreadable && begin_at_first(window, event))
			return 1;
		if (window->restating ? take_restated(decoder, event) : is_kept(decoder, event))
			return 1;
	}
	if (window->resuming) {
		report_begin(decoder, event);
	} else {
		*event = window->held;
		window->held.kind = TRACE_NONE;
	}
	return 1;
}
