/* SPDX-License-Identifier: MIT
 * own_stack.h: what takes much stack (loading libraries, starting CUPTI, which is not ours to shorten) on a thread of the program's that may have
 * little. Threads: any. Not in a hot path: it may ask for the thread's attributes.
 */
#ifndef PPERF_COLLECTOR_PROCESS_LARGE_STACK_H
#define PPERF_COLLECTOR_PROCESS_LARGE_STACK_H

/* Calls `function` on the calling thread; on memory of our own where less than 128 KiB of the thread's stack are left, or where it is at work on
 * a stack that is not the thread's. Where there is no such memory, on what there is. Nothing may jump or throw out of `function`. Keeps errno. */
void large_stack_run(void (*function)(void *), void *argument);

#endif
