/* SPDX-License-Identifier: MIT
 * Runs the sampler (collector/sample/sampler.h) in this process and in its forked children.
 *
 * The sampler's thread is created by the constructor, where memory may be allocated: a program
 * without any range is sampled too. Later moments are less safe, because the first range may come
 * from a signal handler that has interrupted malloc.
 */
#ifndef PPERF_PRELOAD_SAMPLING_H
#define PPERF_PRELOAD_SAMPLING_H

#include "preload/settings.h"

/* Called by the constructor, after everything else is configured. */
void sampling_start(const struct pperf_settings *settings);

/* Called around each fork. CPython 3.12 and later warns of a fork in a process with threads, and so
 * the sampler's thread ends before, if the program has no other thread. If the main thread of a
 * Python process forks, process and child create the thread again between two of its bytecodes.
 * Another child creates it at once, if its parent had no other thread and fork was not called in a
 * signal handler. */
void sampling_fork_prepare(void);
void sampling_fork_parent(void);
void sampling_fork_child(void);

/* Takes the last samples. Called at the end of the process, before the trace is closed. */
void sampling_end(void);

#endif
