/* SPDX-License-Identifier: MIT */
#include "collector/stream/stream_state.h"

#include <string.h>

static bool is_timed(enum trace_kind kind)
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
	struct stream *s = stream_here.mine;
	struct trace_timed *record;

	if (__builtin_expect(!s, 0)) /* stream_forked */
		return NULL;
	if (window_is_shut() && stream_is_skipped(s, kind))
		return NULL;
	if (__builtin_expect(s->vague, 0))
		stream_find_path(s);
	if (stamp - s->last > STREAM_GAP_MOST && stamp > s->last)
		stream_clock(s);
	if (!stream_room(s, size + 4))
		return NULL;
	record = stream_put_head(s, kind, size);
	if (is_timed(kind))
		record->stamp = s->last = stamp > s->last ? stamp : s->last;
	return record;
}

void *stream_record(enum trace_kind kind, size_t size)
{
	return stream_record_at(kind, size, clock_now());
}

void stream_commit(void)
{
	if (__builtin_expect(stream_here.mine != NULL, 1)) /* stream_forked */
		stream_publish(stream_here.mine);
}

uint32_t stream_node(void)
{
	struct stream *s = stream_here.mine;

	if (s && s->slot && s->vague)
		stream_find_path(s);
	return s && s->slot ? s->node : 0;
}

uint64_t stream_pass_begins(enum trace_skip_kind kind)
{
	return stream_here.mine ? stream_skip_begins(stream_here.mine, kind) : 0;
}

void stream_pass_ends(enum trace_skip_kind kind, uint64_t begin)
{
	if (stream_here.mine)
		stream_skip_ends(stream_here.mine, kind, begin);
}
