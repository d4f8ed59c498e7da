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

/* Returns the id of the native frame that continues at `address`, called by the frame `parent` (0:
 * it is the outermost). Returns 0 if there is no room; the caller counts the sample as lost. */
uint32_t frame_native_id(uint32_t parent, uint64_t address);

/* Returns the id of a Python frame called by `parent`. at->reserved: 1 for an entry frame. Returns
 * 0 as frame_native_id does. */
uint32_t frame_python_id(uint32_t parent, const struct trace_python_frame *at);

/* Returns the number of ids that this process has. */
uint32_t frame_count(void);

#endif
