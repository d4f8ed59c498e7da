/* SPDX-License-Identifier: MIT
 * Allocates memory that a forked child finds zeroed, or inherits.
 *
 * However the child was made (fork, clone), wiped memory holds none of the parent's locks, cursors
 * or descriptors, so the child starts anew. Some kernels cannot wipe it (gVisor, Linux before
 * 4.14). There, a child made by fork wipes it in a fork handler, and a child made by the bare
 * system call must not record.
 */
#ifndef PPERF_COLLECTOR_PROCESS_FORK_WIPED_MEMORY_H
#define PPERF_COLLECTOR_PROCESS_FORK_WIPED_MEMORY_H

#include <stddef.h>

/* Allocates `bytes` of zeroed memory, 64-byte aligned, for the life of the process. A forked child
 * finds it zeroed. Pages take memory only when they are first used. Returns NULL if there is no
 * memory. */
void *fork_wiped_alloc(size_t bytes);

/* Allocates zeroed pages that a forked child inherits unchanged. Returns NULL if there is no
 * memory. */
void *fork_kept_alloc(size_t bytes);

/* Frees what fork_kept_alloc() returned for `bytes`. NULL is allowed. */
void fork_kept_free(void *memory, size_t bytes);

#endif
