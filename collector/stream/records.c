/* SPDX-License-Identifier: MIT */
#include "collector/stream/stream_state.h"

#include <string.h>

static bool is_timed_kind(enum trace_kind kind)
{
	static const uint8_t timed[TRACE_KINDS] = {
#define X(kind, type, is, text) [TRACE_##kind] = is,
		TRACE_RECORDS(X)
#undef X
	};

	return timed[kind];
}

void *stream_record_at(enum trace_kind kind, size_t size, uint64_t stamp)
{
	struct stream *s = stream_tls.mine;
	struct trace_timed *record;

	if (__builtin_expect(!s, 0)) /* stream_forked has cleared it */
		return NULL;
	if (recording_is_paused() && stream_is_skipped(s, kind))
		return NULL;
	if (__builtin_expect(s->unresolved, 0))
		stream_resolve_nodes(s);
	if (stamp - s->last > STREAM_GAP_MAX && stamp > s->last)
		stream_write_clock(s);
	if (!stream_reserve(s, size + 4))
		return NULL;
	record = stream_put_head(s, kind, size);
	if (is_timed_kind(kind))
		record->stamp = s->last = stamp > s->last ? stamp : s->last;
	return record;
}

void *stream_record(enum trace_kind kind, size_t size)
{
	return stream_record_at(kind, size, clock_now());
}

void stream_commit(void)
{
	if (__builtin_expect(stream_tls.mine != NULL, 1)) /* stream_forked has cleared it */
		stream_publish(stream_tls.mine);
}

uint32_t stream_node(void)
{
	struct stream *s = stream_tls.mine;

	if (s && s->slot && s->unresolved)
		stream_resolve_nodes(s);
	return s && s->slot ? s->node : 0;
}

uint64_t stream_begin_skipped_event(enum trace_skip_kind kind)
{
	return stream_tls.mine ? stream_skip_begin(stream_tls.mine, kind) : 0;
}

void stream_end_skipped_event(enum trace_skip_kind kind, uint64_t begin)
{
	if (stream_tls.mine)
		stream_skip_end(stream_tls.mine, kind, begin);
}

void stream_write_stack_cost(uint64_t begin, uint64_t ticks)
{
	struct trace_self *self = stream_record_at(TRACE_SELF, sizeof *self, begin + ticks);

	if (!self)
		return;
	self->duration = ticks;
	self->what = TRACE_SELF_STACK;
	stream_commit();
}
