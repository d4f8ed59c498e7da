/* SPDX-License-Identifier: MIT
 * range_frames.h: a thread's row of open ranges, and the words that tell of it. For ranges.c, owned_ranges.c and quiet_ranges.c only.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGE_STACK_H
#define PPERF_COLLECTOR_STREAM_RANGE_STACK_H

#include "collector/stream/stream_state.h"

/* stream_begin for ranges: the quick ways are made right if the window has turned. */
static inline struct stream *range_begin(void)
{
	struct stream *s = stream_begin();

	if (s && __builtin_expect(s->paused != recording_is_paused(), 0))
		stream_update_limits(s);
	if (s && __builtin_expect(s->unresolved, 0) && !s->paused)
		stream_resolve_nodes(s);
	return s;
}

/* The level that a new range of the domain has. */
uint32_t range_level(const struct stream *s, uint32_t domain);

/* Out of the row, without a record. */
void range_remove_frame(struct stream *s, struct range_frame *frame);

/* The new innermost range. Its level. There is room. */
static inline int range_open_frame(struct stream *s, uint32_t node, uint32_t domain)
{
	uint32_t level = s->top->domain == domain ? s->top->level + 1 : range_level(s, domain);

	s->top[1].begin = s->last;
	s->top[1].node = node;
	s->top[1].domain = domain;
	s->top[1].level = level;
	stream_set_top(s, s->top + 1);
	return (int)level;
}

#endif
