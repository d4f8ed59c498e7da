/* SPDX-License-Identifier: MIT
 * The range stack of a thread: its open ranges. Only for ranges.c, object_ranges.c,
 * unrecorded_ranges.c and range_records.c.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGE_STACK_H
#define PPERF_COLLECTOR_STREAM_RANGE_STACK_H

#include "collector/stream/stream_state.h"

/* Returns the level that a new range of `domain` has. */
uint32_t range_level(const struct stream *s, uint32_t domain);

/* Removes `frame`, which may be below others, without writing a record. */
void range_remove_frame(struct stream *s, struct range_frame *frame);

/* Opens a range as the new innermost one and returns its level. The caller has made room for a
 * frame. */
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
