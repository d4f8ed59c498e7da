/* SPDX-License-Identifier: MIT
 * quiet_ranges.h: ranges that open while the window is shut (window.h): frames without a record. Which nodes they are is only looked up when somebody asks
 * (stream_find_path): a program that names its steps `step 7` would fill the dictionary with what is in no record.
 * For ranges.c, owned_ranges.c and range_frames.h only. There is room for a frame.
 */
#ifndef PPERF_COLLECTOR_STREAM_UNRECORDED_RANGES_H
#define PPERF_COLLECTOR_STREAM_UNRECORDED_RANGES_H

#include "collector/stream/stream_state.h"

/* The text is copied. Its level. */
int range_push_unrecorded(struct stream *s, uint32_t domain, const char *text);

/* The text must be there until it closes. */
void range_open_unrecorded(struct stream *s, const void *object, const char *text,
	enum trace_node_kind kind, uint32_t link, uint32_t detail);

/* Either, wherever it stands in the row. Its level. */
int range_pop_unrecorded(struct stream *s, struct range_frame *frame);

#endif
