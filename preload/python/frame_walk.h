/* SPDX-License-Identifier: MIT
 * Reads CPython's frames from memory, one after the other, by a layout that says where their fields are.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAME_WALK_H
#define PPERF_PRELOAD_PYTHON_FRAME_WALK_H

#include "preload/python/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* A frame, and the place where it is, read one by one:
 *	struct python_frame frame = python_frame_first(layout, thread state);
 *	for (; python_frame_read(layout, &frame); frame = frame.previous ...) */
struct python_frame {
	uintptr_t code, previous; /* code 0: a frame of the interpreter's own */
	int64_t offset;
};

/* The thread's innermost; 0: it has none. thread: what PyGILState_GetThisThreadState gives. */
uintptr_t python_frame_first(const struct python_layout *layout, uintptr_t thread);
/* false: it is none. */
bool python_frame_read(
	const struct python_layout *layout, uintptr_t address, struct python_frame *frame);

#endif
