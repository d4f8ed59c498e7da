/* SPDX-License-Identifier: MIT
 * python_frames.h: where in Python a thread is: its own chain of frames, read from memory without the GIL.
 *
 * While a thread is in C, whether it holds the GIL or has given it up, nobody changes the frames that it will
 * return to, and they hold the code objects that they run. So a thread may read its own, and only its own. Nothing
 * is read before a trial in Python (python_check.h) has shown that it is read right.
 *
 * Two things come of it. SOURCE: where in the program's own files a place in the tree of contexts was first
 * entered. And call stacks, where PPERF_PYSTACKS asks for them: of launches and allocations; PPERF_STACKS gives the
 * native one where a thread has no Python.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAMES_H
#define PPERF_PRELOAD_PYTHON_FRAMES_H

#include "preload/python/code_location.h"

/* In the constructor. stacks: the value of PPERF_PYSTACKS (NULL: off). false: no such value; then it is off. */
bool python_frames_configure(const char *stacks);

/* Tries whether frames can be read, once in a process (a forked child keeps what is known), and says in the trace
 * how that went: source.python_stacks. Holding the GIL, no exception set; runs Python. */
void python_frames_start(void);

/* What PPERF_PYSTACKS asks for. Written by the constructor only. */
enum python_stack_mode {
	PYTHON_STACKS_OFF,
	PYTHON_STACKS_ALLOC,
	PYTHON_STACKS_LAUNCH /* and of allocations */
};
extern enum python_stack_mode python_stacks;

/* The id of the calling thread's Python stack, innermost frame first and at most STACK_FRAMES_MOST. 0: this thread
 * has no Python, or its frames cannot be read. Between stream_enter and stream_leave. Keeps errno. */
uint32_t python_stack_capture(void);

/* The calling thread has entered the place `node` of the tree: if nobody has before, and a frame of the program's
 * own is there, it is noted. Cheap when noted. Not within stream_enter. */
void python_source_record(uint32_t node);

#endif
