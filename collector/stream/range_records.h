/* SPDX-License-Identifier: MIT
 * Writes the records of ranges that begin and end into the thread's stream.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGE_RECORDS_H
#define PPERF_COLLECTOR_STREAM_RANGE_RECORDS_H

#include "collector/stream/frame_request.h"
#include "collector/stream/stream_state.h"

/* The short forms of records, the low two bits of a word (trace_format.h). */
#define FORM_PUSH4 1u
#define FORM_POP4 2u
#define FORM_PUSH8 3u

/* Does what stream_begin does, and updates the fast paths if recording was paused or resumed
 * since, or if a request is out of date. */
static inline struct stream *range_begin(void)
{
	struct stream *s = stream_begin();

	if (s && __builtin_expect(s->paused != recording_is_paused(), 0))
		stream_update_limits(s);
	if (s && __builtin_expect(s->unresolved, 0) && !s->paused)
		stream_resolve_nodes(s);
	if (s && __builtin_expect(__atomic_load_n(&s->frames_due, __ATOMIC_RELAXED) != 0, 0))
		frame_request_check(s);
	return s;
}

/* Writes the push of a range of `node`: 4 bytes, or 8 if the node or the gap does not fit. */
void range_write_push(struct stream *s, uint32_t node);

/* Close a recorded range: the innermost one, or any. Return its level. */
int range_pop_innermost(struct stream *s);
int range_pop_frame(struct stream *s, struct range_frame *frame);
/* Records a pop for which no range is open, so that the report can count it. */
void range_write_unmatched_pop(struct stream *s);

#endif
