/* SPDX-License-Identifier: MIT
 * Finds where in Python code a thread is: reads its own chain of frames from memory without the
 * GIL.
 *
 * While a thread is in C, whether or not it holds the GIL, no other thread changes the frames that
 * it will return to. These frames hold references to their code objects. So a thread may read its
 * own frames, and only its own. Nothing is read before a test in Python (frame_selftest.h) has
 * shown that it is read correctly.
 * The frames have two uses. SOURCE records say where in the program's own files a node was first
 * entered. PPERF_PYSTACKS requests the Python call stacks of launches and allocations. If a thread
 * has no Python frames, its native stack is recorded instead, if PPERF_STACKS requests that.
 * Without the setting, large allocations get the innermost line of the program's own files.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAMES_H
#define PPERF_PRELOAD_PYTHON_FRAMES_H

#include "preload/python/code_location.h"

/* Called by the constructor. `stacks`: the value of PPERF_PYSTACKS (NULL: own). Returns false if
 * that is no such value; own is used then. */
bool python_frames_configure(const char *stacks);

/* Tests whether frames can be read, once per process; a forked child keeps the result. Writes it to
 * the trace (source.python_stacks). Requires the GIL and no exception set; runs Python code. */
void python_frames_start(void);

/* Returns the layout of this Python's frames, which stays valid; NULL: they are not known to be
 * readable. */
const struct python_layout *python_frames_layout(void);

/* The calls that get Python stacks (PPERF_PYSTACKS). Written by the constructor only. */
enum python_stack_setting {
	PYTHON_STACKS_OFF,
	PYTHON_STACKS_OWN, /* one line of CUDA allocations, and of tensors from OWN_LINE_BYTES on */
	PYTHON_STACKS_ALLOC,
	PYTHON_STACKS_LAUNCH /* and allocations */
};
extern enum python_stack_setting python_stack_mode;

/* Tensors of at least so many bytes get a stack. INT64_MAX: none does. */
extern int64_t python_stack_min_bytes;
#define OWN_LINE_BYTES (INT64_C(1) << 20)

/* Returns the id of the calling thread's Python stack, innermost frame first, of STACK_FRAMES_MAX
 * frames at most. 0: this thread has no Python, or its frames cannot be read. Between stream_enter
 * and stream_leave. Keeps errno. */
uint32_t python_stack_capture(void);

/* Returns the id of the calling thread's innermost Python frame among those of samples
 * (collector/sample/frame_tree.h). 0: as python_stack_capture, or there are too many frames, or the
 * table of ids is in use. Between stream_enter and stream_leave, under the signal guard. Keeps
 * errno. */
uint32_t python_sample_frames(void);

/* As python_stack_capture, but only the innermost frame in the program's own files
 * (user_code.h). 0: there is none. `*first`: the line's texts were read, which takes longer. */
uint32_t python_own_line_capture(bool *first);

/* Notes that the calling thread has entered `node`. The first such call writes a SOURCE record, if
 * the thread has a frame in the program's own files. Cheap afterwards. Must not be called between
 * stream_enter and stream_leave. */
void python_source_record(uint32_t node);

#endif
