/* SPDX-License-Identifier: MIT
 * Reads CPython's frames from memory, one after the other, by a layout that says where their fields
 * are.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAME_WALK_H
#define PPERF_PRELOAD_PYTHON_FRAME_WALK_H

#include "preload/python/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* A frame: its code object and the instruction that it is at. The frames of a thread are read like
 * this:
 *	uintptr_t address = python_frame_first(layout, thread);
 *	struct python_frame frame;
 *
 *	for (; address && python_frame_read(layout, address, &frame); address = frame.previous)
 */
struct python_frame {
	uintptr_t code, previous; /* code 0: a frame of the interpreter itself */
	int64_t offset;           /* of the current instruction in the bytecode, in bytes */
	/* C code entered the interpreter for it. From 3.12 on the frame of the interpreter that it
	 * has as its caller says that: is_entry of that is set. */
	bool is_entry;
};

/* Returns the address of the thread's innermost frame, or 0 if it has none. `thread`: address of
 * its PyThreadState. */
uintptr_t python_frame_first(const struct python_layout *layout, uintptr_t thread);
/* Reads the frame at `address`. Returns false if the memory cannot be read. Does not check that it
 * is a frame. */
bool python_frame_read(
	const struct python_layout *layout, uintptr_t address, struct python_frame *frame);

#endif
