/* SPDX-License-Identifier: MIT
 * python_check.h: the trial before any frame is trusted. Python text of ours calls a function of ours from
 * functions, methods, comprehensions, generators, coroutines, class bodies, handlers and functions of C, on lines
 * near and far, and says each time what Python itself takes for the stack: file, qualified name and line of every
 * frame, to the outermost. What is read from memory must be the same, letter by letter.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAME_SELFTEST_H
#define PPERF_PRELOAD_PYTHON_FRAME_SELFTEST_H

#include "preload/python/layout.h"

/* Reads carefully only: between peek_open and peek_close. Holding the GIL. Also learns which folders are not the
 * program's own (python_own.h). */
enum python_trouble python_frame_selftest(const struct python_layout *layout);

#endif
