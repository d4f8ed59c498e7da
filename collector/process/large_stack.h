/* SPDX-License-Identifier: MIT
 * Runs work that needs much stack on a program's thread that may have little. Such work loads
 * libraries or starts CUPTI, whose stack use we neither know nor can reduce.
 */
#ifndef PPERF_COLLECTOR_PROCESS_LARGE_STACK_H
#define PPERF_COLLECTOR_PROCESS_LARGE_STACK_H

/* Calls `function` with `argument` on the calling thread. The call runs on a mapped stack of 4 MiB
 * in two cases:
 *  - less than 1 MiB of the thread's stack are left,
 *  - the thread runs on a stack that is not its own.
 *
 * If that stack cannot be mapped, the current one is used. `function` must return: nothing may jump
 * or throw out of it. errno is preserved. Any thread may call this. It is too slow for the hot
 * path, because it may read the thread's attributes. */
void large_stack_run(void (*function)(void *), void *argument);

#endif
