/* SPDX-License-Identifier: MIT
 * Gives ids to the frames of samples. An id identifies a frame together with all its callers, so a
 * sample holds one id instead of a stack. The records FRAME and PYTHON_FRAME are written once.
 *
 * Any thread may call, between stream_enter (or stream_enter_dictionary_only) and stream_leave. A
 * lock is held meanwhile: a thread of the program calls under the signal guard. The first frames of
 * a forked child get new ids, in its own file.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_FRAME_TREE_H
#define PPERF_COLLECTOR_SAMPLE_FRAME_TREE_H

#include "collector/trace_format.h"

/* The frames that a process may have. One more is refused. */
#define FRAMES_MAX 1048576u

/* Returns the id of the innermost of `count` native frames, which continue at these addresses. The
 * last address is that of the outermost frame, called by the frame `parent` (0: by none). Returns 0
 * if there is no room; `parent` if there are no frames. */
uint32_t frame_native_id(uint32_t parent, const uint64_t *addresses, uint32_t count);

/* The same for Python frames. `reserved` of each: 1 for an entry frame. */
uint32_t frame_python_id(uint32_t parent, const struct trace_python_frame *frames, uint32_t count);

/* frame_python_id(0, ...), but 0 if another thread holds the lock. */
uint32_t frame_python_id_at_once(const struct trace_python_frame *frames, uint32_t count);

/* Returns how many of a Python frame and its callers are entry frames. */
uint32_t frame_python_entries(uint32_t frame);

/* Returns the innermost of a Python frame and its callers that is reached from the outermost one by
 * at most `entries` entry frames; 0: there is none. */
uint32_t frame_python_outer(uint32_t frame, uint32_t entries);

/* Returns the number of ids that this process has. */
uint32_t frame_count(void);

#endif
