/* SPDX-License-Identifier: MIT
 * Captures native call stacks with libunwind. No other file uses it.
 *
 * libunwind is loaded at the first need, with RTLD_LOCAL. If it were linked, its _Unwind_*
 * functions would replace the program's own and handle its C++ exceptions. unw_backtrace does not
 * call malloc, and takes no lock once it has seen a frame.
 *
 * Threads: any.
 */
#ifndef PPERF_PRELOAD_CUDA_NATIVE_STACK_H
#define PPERF_PRELOAD_CUDA_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Enables call stacks. No stack is captured before this call. */
void native_stack_enable(void);

/* Loads libunwind, at the first call after native_stack_enable. If there is none, sets
 * warning.stacks in the trace. Called where the program's own call would run the dynamic linker,
 * too, and outside of stream_enter. Cheap afterwards. */
void native_stack_load(void);

/* Returns the id of the calling thread's stack; 0: none. It has at most STACK_FRAMES_MAX frames,
 * innermost first. The first is the return address `caller`; if that is NULL or not found, the
 * first frame outside of this library. Also records the objects that contain the frames. Between
 * stream_enter and stream_leave. */
uint32_t native_stack_capture(const void *caller);

/* Called in a forked child. Disables stacks if the parent has captured one, because another of its
 * threads may have held libunwind's locks. */
void native_stack_forked(void);

#endif
