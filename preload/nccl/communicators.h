/* SPDX-License-Identifier: MIT
 * Knows the communicators of NCCL by their handles, and writes a COMMUNICATOR record of each.
 *
 * Any thread, without a lock. A handle is removed before NCCL frees it, so one that is used again
 * is a new communicator.
 */
#ifndef PPERF_PRELOAD_NCCL_COMMUNICATORS_H
#define PPERF_PRELOAD_NCCL_COMMUNICATORS_H

#include "preload/nccl/real.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Communicators that exist at a time. Calls on further ones are recorded without one. */
#define NCCL_COMMUNICATORS_MAX 1024u

struct nccl_communicator {
	_Atomic uintptr_t handle; /* 0: free; NCCL_BUSY: being filled in */
	uint32_t id;
	uint32_t ranks, rank, device; /* ranks: 0 until they are known */
	uint64_t key;
	_Atomic uint64_t sequence; /* of the next call */
	_Atomic uint32_t splits;   /* made of it so far */
	_Atomic bool written;
};

/* Returns a hash of `bytes` bytes, continued from `key` (0: begin). Never 0. */
uint64_t nccl_key(uint64_t key, const void *from, size_t bytes);

/* Adds a new communicator. `ranks`: 0 if they are not known yet; they are queried at its first
 * call. */
void nccl_communicator_add(void *handle, uint64_t key, uint32_t ranks, uint32_t rank);
void nccl_communicator_remove(void *handle);

/* Returns the communicator of a handle, or NULL. */
struct nccl_communicator *nccl_communicator_find(void *handle);

/* Returns the communicator of a call that succeeded, or NULL. Adds one whose begin was not seen,
 * queries its ranks if they are not known, and writes its record. Between stream_enter and
 * stream_leave. */
struct nccl_communicator *nccl_communicator_of_call(const struct nccl_real *real, void *handle);

#endif
