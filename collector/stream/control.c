/* SPDX-License-Identifier: MIT */
#include "collector/stream/control.h"

#include "collector/file/dictionary.h"
#include "collector/file/ring.h"
#include "collector/file/trace_file.h"
#include "collector/stream/stream_state.h"

#include <string.h>

/* The last request that a thread has begun to answer; of this process. */
static uint32_t begun; /* atomic */

/* Writes a MARK with the text of the request. Returns false if there is no room. */
static bool write_mark(struct stream *s, const struct trace_control *control)
{
	char text[sizeof control->text];
	const size_t given = __atomic_load_n(&control->text_bytes, __ATOMIC_RELAXED),
		     bytes = given < sizeof text ? given : sizeof text;
	struct trace_range *mark;

	memcpy(text, control->text, bytes);
	if (s->slot->used + sizeof *mark + 4 > s->room)
		return false;
	mark = stream_put_head(s, TRACE_MARK, sizeof *mark);
	mark->stamp = s->last = clock_now() > s->last ? clock_now() : s->last;
	mark->name = name_id_always(text, bytes);
	stream_publish(s);
	return mark->name != 0;
}

static enum trace_command_result execute(
	struct stream *s, const struct trace_control *control, bool *wrote)
{
	const uint32_t command = __atomic_load_n(&control->command, __ATOMIC_RELAXED);

	switch (command) {
	case TRACE_COMMAND_STATUS:
		return TRACE_COMMAND_DONE;
	case TRACE_COMMAND_STOP:
	case TRACE_COMMAND_START:
		if (!ring_is_used())
			return TRACE_COMMAND_NO_RING;
		if (command == TRACE_COMMAND_STOP)
			ring_stop(TRACE_STOP_COMMAND, true, 0, 0);
		else
			ring_restart();
		return TRACE_COMMAND_DONE;
	case TRACE_COMMAND_MARK:
		*wrote = s && write_mark(s, control);
		return *wrote ? TRACE_COMMAND_DONE : TRACE_COMMAND_FAILED;
	default:
		return TRACE_COMMAND_UNKNOWN;
	}
}

/* Returns the control words if there is a request that no thread has begun to answer. */
static struct trace_control *new_request(void)
{
	struct trace_header *header = trace_header();
	uint32_t request, before = __atomic_load_n(&begun, __ATOMIC_RELAXED);

	if (!header)
		return NULL;
	request = __atomic_load_n(&header->control.request, __ATOMIC_ACQUIRE);
	return request != before && request != header->control.answer &&
			       __atomic_compare_exchange_n(&begun, &before, request, false,
				       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
		       ? &header->control
		       : NULL;
}

static bool answer(struct stream *s, struct trace_control *control)
{
	const uint32_t request = __atomic_load_n(&begun, __ATOMIC_RELAXED);
	bool wrote = false;

	control->result = (uint32_t)execute(s, control, &wrote);
	__atomic_store_n(&control->answer, request, __ATOMIC_RELEASE);
	return wrote;
}

bool control_poll_sealed(struct stream *s)
{
	struct trace_control *control = new_request();

	return control && answer(s, control);
}

void control_poll(void)
{
	struct trace_control *control = new_request();
	struct stream *s;

	if (!control)
		return;
	s = stream_begin();
	if (s && s->unresolved)
		stream_resolve_nodes(s);
	if (s)
		stream_reserve(s, sizeof(struct trace_range) + 4);
	answer(s, control);
	if (s)
		stream_finish();
}
