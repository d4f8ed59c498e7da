/* SPDX-License-Identifier: MIT
 * stack.h: native call stacks, by libunwind. The only file that knows it.
 *
 * It is loaded at the first need, RTLD_LOCAL: were it linked, its _Unwind_* functions would take the place of the program's own and handle
 * its C++ exceptions. unw_backtrace neither allocates by malloc nor takes a lock once it has seen a frame.
 * Threads: any.
 */
#ifndef PPERF_PRELOAD_CUDA_NATIVE_STACK_H
#define PPERF_PRELOAD_CUDA_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* No stack is taken before this. */
void native_stack_enable(void);

/* Loads libunwind if stacks are wanted and it has not been tried; if there is none, notes warning.stacks in the trace. To be called where the
 * program's own call would have the dynamic linker at work, too, outside of stream_enter. Cheap when done. */
void native_stack_load(void);

/* The id of the calling thread's stack, innermost frame first and at most STACK_FRAMES_MOST: from the return to `caller` outwards if that is given and found, else from the first frame
 * outside of this library. Objects that the frames lie in are described first. 0: none. Between stream_enter and stream_leave. */
uint32_t native_stack_capture(const void *caller);

/* In a forked child: no more stacks if the parent took any, since another of its threads may have held libunwind's locks. */
void native_stack_forked(void);

#endif
