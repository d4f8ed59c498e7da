/* SPDX-License-Identifier: MIT
 * Writes the records of ranges that begin and end into the thread's stream.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGE_RECORDS_H
#define PPERF_COLLECTOR_STREAM_RANGE_RECORDS_H

#include "collector/stream/stream_state.h"

/* The short forms of records, the low two bits of a word (trace_format.h). */
#define FORM_PUSH4 1u
#define FORM_POP4 2u
#define FORM_PUSH8 3u

/* Writes the push of a range of `node`: 4 bytes, or 8 if the node or the gap does not fit. */
void range_write_push(struct stream *s, uint32_t node);

/* Close a recorded range: the innermost one, or any. Return its level. */
int range_pop_innermost(struct stream *s);
int range_pop_frame(struct stream *s, struct range_frame *frame);

#endif
