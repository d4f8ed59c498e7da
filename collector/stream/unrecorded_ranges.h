/* SPDX-License-Identifier: MIT
 * Opens ranges while recording is paused (recording_switch.h): frames without a record. Their nodes
 * are looked up only when a record or a counted range needs them, or when a text cannot be kept
 * (stream_resolve_nodes). Otherwise a program that names its steps `step 7` would fill the
 * dictionary with names that no record uses.
 *
 * Only for ranges.c and object_ranges.c. The caller has made room for a frame.
 */
#ifndef PPERF_COLLECTOR_STREAM_UNRECORDED_RANGES_H
#define PPERF_COLLECTOR_STREAM_UNRECORDED_RANGES_H

#include "collector/stream/stream_state.h"

/* Pushes a range of NVTX and returns its level. `text` is copied. */
int range_push_unrecorded(struct stream *s, uint32_t domain, const char *text);

/* Opens a range that belongs to `object`. `text` must stay valid until the range closes. With a
 * `link`, its node is looked up at once. */
void range_open_unrecorded(struct stream *s, const void *object, const char *text,
	enum trace_node_kind kind, uint32_t link, uint32_t detail);

/* Closes either kind of range, wherever it is in the range stack. Returns its level. */
int range_pop_unrecorded(struct stream *s, struct range_frame *frame);

#endif
