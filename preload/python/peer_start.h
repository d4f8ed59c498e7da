/* SPDX-License-Identifier: MIT
 * Prepares the reading of other threads' Python frames, in a program that may import no PyTorch.
 * The test of frame_selftest.h needs the GIL. So the sampler's thread waits until the process has a
 * Python, and lets its main thread run the test between two bytecodes (Py_AddPendingCall).
 */
#ifndef PPERF_PRELOAD_PYTHON_PEER_START_H
#define PPERF_PRELOAD_PYTHON_PEER_START_H

#include <stdbool.h>

/* Called by the sampler's thread now and then, until it returns true: the frames can be read, or
 * never will be. */
bool peer_start_poll(void);

/* Whether the process has a Python, and it is not known yet whether its frames can be read. */
bool peer_start_is_waiting(void);

/* Requests that the main thread of Python calls `function` between two bytecodes, once. Returns
 * false if the process has no Python, or that has ended, or its queue is full. Any thread, with or
 * without the GIL. */
bool python_call_later(void (*function)(void));

/* Whether the process has a CPython that warns if a process with threads forks: 3.12 and later. */
bool python_warns_of_threads(void);

#endif
