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
	uint32_t ranks, rank; /* ranks: 0 until they are known */
	uint64_t key;
	_Atomic uint64_t sequence; /* of the next call */
	_Atomic uint32_t splits;   /* made of it so far */
	_Atomic bool written;
};

/* Returns a hash of `bytes` bytes, continued from `key` (0: begin). Never 0. */
uint64_t nccl_key(uint64_t key, const void *from, size_t bytes);

/* Returns the name that a configuration has; NULL: none. */
const char *nccl_config_name(const struct nccl_config *config);

/* Writes the record of a communicator that is about to be made on the current device, and returns
 * its id. `name`: NULL: none. Between stream_enter and stream_leave. */
uint32_t nccl_communicator_announce(uint64_t key, uint32_t ranks, uint32_t rank, const char *name);

/* Adds a new communicator. `id`: as nccl_communicator_announce returned it; 0: its record is not
 * written yet. `ranks`: 0 if they are not known yet. */
void nccl_communicator_add(void *handle, uint32_t id, uint64_t key, uint32_t ranks, uint32_t rank);
void nccl_communicator_remove(void *handle);

/* Returns the communicator of a handle, or NULL. */
struct nccl_communicator *nccl_communicator_find(void *handle);

/* Returns the communicator of a handle. Adds one whose begin was not seen. NULL: there are too
 * many. */
struct nccl_communicator *nccl_communicator_of(void *handle);

/* Writes the record of a communicator that is ready, if it is not written yet. Queries its ranks if
 * they are not known. `name`: NULL: none. Between stream_enter and stream_leave. */
void nccl_communicator_write(const struct nccl_real *real, void *handle,
	struct nccl_communicator *one, const char *name);

#endif
