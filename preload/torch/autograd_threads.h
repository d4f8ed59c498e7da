/* SPDX-License-Identifier: MIT
 * Gives the GIL to PyTorch's autograd threads before Python ends, so that recording never makes the
 * program abort there more often.
 *
 * After backward() has returned, the autograd thread of a device still frees the graph. It requests
 * the GIL for objects of Python in it. Once Python's finalization has begun, CPython before 3.14
 * ends every thread that requests the GIL, by pthread_exit. Through PyTorch's noexcept frames this
 * is std::terminate: "terminate called without an active exception". Without pperf it happens too.
 * Everything that delays that thread makes it more likely, and so does recording.
 */
#ifndef PPERF_AUTOGRAD_THREADS_H
#define PPERF_AUTOGRAD_THREADS_H

/* Releases the GIL until the autograd threads are idle, at most 0.1 s. It returns at once in a
 * process that has none. Called by Python's atexit, on the main thread, with the GIL. */
void autograd_threads_finish(void);

#endif
