/* SPDX-License-Identifier: MIT
 * Reads memory that another thread may change or unmap at any moment. Every read goes through the
 * kernel, so that a wrong address is an error and no fault. Measured: 0.3 us for a small piece, 0.7
 * us for four pages.
 */
#ifndef PPERF_PRELOAD_PYTHON_PEER_MEMORY_H
#define PPERF_PRELOAD_PYTHON_PEER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pieces that peer_read_many reads with one system call. */
#define PEER_READ_MANY_MAX 64u

/* Reads `bytes` bytes. Returns false if they cannot be read, or the kernel refuses all reads. */
bool peer_read(void *to, uintptr_t from, size_t bytes);

/* Reads pieces of `bytes` bytes each, at most PEER_READ_MANY_MAX, into `to`, one after the other.
 * Returns how many could be read: it stops at the first that cannot. */
size_t peer_read_many(void *to, const uintptr_t *from, size_t count, size_t bytes);

/* Returns the errno with which the kernel refuses all reads; 0: it does not. */
int peer_read_refused(void);

#endif
