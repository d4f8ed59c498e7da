/* SPDX-License-Identifier: MIT
 * Finds the native stack of a thread that is blocked in the kernel. Its stack does not change, and
 * the kernel says where it is and at which instruction (/proc/self/task/TID/syscall). The other
 * registers are not known. No permission is needed.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_BLOCKED_THREAD_H
#define PPERF_COLLECTOR_SAMPLE_BLOCKED_THREAD_H

#include "collector/sample/unwind.h"

/* Walks the stack of the thread. Returns false if the thread is running or has moved meanwhile, or
 * if the kernel does not say where it is. */
bool blocked_thread_walk(struct unwinder *u, uint32_t tid, struct unwind_stack *stack);

#endif
