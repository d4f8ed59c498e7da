/* SPDX-License-Identifier: MIT
 * Tests that frames are read correctly, before any is trusted. Python code of pperf calls `probe`,
 * a C function, and passes what Python itself reports as the stack: file, qualified name and line
 * of every frame. What is read from memory must equal it, byte by byte.
 *
 * The calls are on lines near and far, in functions, methods, comprehensions, generators,
 * coroutines, class bodies, exception handlers and callbacks of C functions.
 */
#ifndef PPERF_PRELOAD_PYTHON_FRAME_SELFTEST_H
#define PPERF_PRELOAD_PYTHON_FRAME_SELFTEST_H

#include "preload/python/layout.h"

/* Runs the test. Holds the GIL; between safe_read_open and safe_read_close, so that all reads are
 * checked. Also learns which folders are not the program's own (user_code.h). */
enum python_trouble python_frame_selftest(const struct python_layout *layout);

#endif
