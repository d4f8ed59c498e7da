/* SPDX-License-Identifier: MIT
 * Finds the function, file and line of the frames of another thread. The memory of a code object
 * may become another object's at any moment. So each code object is compared, in each sample, with
 * what was known of it: its type, the addresses of its parts, its version or its name's length and
 * hash. It must be referenced. What is read for the first time is read twice. So no name is
 * invented.
 *
 * Only the sampler's thread calls, between stream_enter and stream_leave.
 */
#ifndef PPERF_PRELOAD_PYTHON_PEER_CODE_H
#define PPERF_PRELOAD_PYTHON_PEER_CODE_H

#include "preload/python/layout.h"

struct peer_frame {
	uintptr_t address, code;
	int64_t offset; /* of the current instruction, in bytes */
	bool is_entry;  /* C code entered the interpreter for this frame */
};

/* Returns the id (frame_tree.h) of the innermost of `count` frames, which are in the order from the
 * innermost to the outermost. Returns 0 if one of them is not a frame of a code object. */
uint32_t peer_frames_id(
	const struct python_layout *layout, const struct peer_frame *frames, size_t count);

#endif
