/* SPDX-License-Identifier: MIT
 * fork_memory.h: memory that a forked child finds zeroed, so that whatever made the child (fork, clone), it holds none of our locks,
 * cursors or descriptors and begins anew. Where the kernel cannot empty it (gVisor; Linux before 4.14) children made by fork empty it themselves,
 * and one that was made by the bare system call must not record.
 */
#ifndef PPERF_COLLECTOR_PROCESS_FORK_WIPED_MEMORY_H
#define PPERF_COLLECTOR_PROCESS_FORK_WIPED_MEMORY_H

#include <stddef.h>

/* Zeroed memory for the life of the process, emptied in a child, at a multiple of 64. NULL: no memory. Touched only as it is used. */
void *fork_wiped_alloc(size_t bytes);

/* Zeroed pages that a child inherits as they are. NULL: no memory. */
void *fork_kept_alloc(size_t bytes);

/* Gives back what kept_memory gave. */
void fork_kept_free(void *memory, size_t bytes);

#endif
