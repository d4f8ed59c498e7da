/* SPDX-License-Identifier: MIT
 * Requests that a thread reads its own Python frames when its innermost operator ends. Another
 * thread can read them only while they may change. The frames outside of an operator cannot change
 * as long as that is open, so the thread reads the right ones.
 *
 * A request takes away the fast paths of the thread (stream_update_limits), so they have no test
 * for it. It ends when the operator ends, or when the thread notices that it has ended.
 */
#ifndef PPERF_COLLECTOR_STREAM_FRAME_REQUEST_H
#define PPERF_COLLECTOR_STREAM_FRAME_REQUEST_H

#include <stdint.h>

struct stream;

/* Sets the function that reads the calling thread's Python frames: returns the id of the innermost
 * (collector/sample/frame_tree.h), 0: they are not known. It is called between stream_enter and
 * stream_leave, under the signal guard. Without it there are no requests. */
void frame_request_set_reader(uint32_t (*read)(void));

/* Requests the frames of the thread of `peer`, which had the operator `node` open at `at`, in ticks
 * of the trace's clock. An earlier request stays, unless it was made at `replaced`. Any thread. */
void frame_request_make(struct stream *peer, uint32_t node, uint64_t at, uint64_t replaced);

/* For ranges.c and object_ranges.c, on the stream's own thread, if there is a request. Drops it if
 * its operator is no longer open. */
void frame_request_check(struct stream *s);
/* Called before the innermost range closes. Writes the SAMPLE_PYTHON record if that is the operator
 * of the request. */
void frame_request_answer(struct stream *s);

#endif
