/* SPDX-License-Identifier: MIT
 * What a call of NCCL is made of: bytes that go to and come from other ranks, then what becomes of
 * them, and a kernel. The calls of a group run together when the group ends; a call outside of any
 * is a group of its own.
 *
 * A group runs on the thread that ends it, and only when all its bytes are moved are its kernels
 * launched: unlike the real ones, a collective waits on the host for the other ranks. Whoever waits
 * gives up when the communicator is aborted (by another thread), or another rank is gone.
 */
#ifndef NCCL_OPERATION_H
#define NCCL_OPERATION_H

#include "libraries/nccl_api.h"

struct nccl_transfer {
	int peer;
	bool receive;
	/* what is sent is not changed; what is received lies on the device, or in `gathered` */
	char *bytes;
	size_t count, done;
};

struct nccl_operation {
	ncclComm_t comm;
	void *stream;
	/* what NCCL calls it, "AllReduce_Sum_f32_RING_LL"; empty: launches none */
	const char *kernel;
	char name[96];  /* `kernel` points here, or to a constant */
	uint64_t bytes; /* that the kernel treats */
	struct nccl_transfer *transfers;
	int transfer_count;
	/* Called once all bytes are there; may be NULL. */
	void (*finish)(struct nccl_operation *operation);
	/* this rank's bytes as they were at the call, freed with the operation; may be NULL */
	char *own;
	char *gathered; /* what all ranks have, [rank], for `finish`; NULL: none */
	void *target;
	const void *source;
	size_t count; /* elements */
	ncclDataType_t type;
	ncclRedOp_t reduction;
	struct nccl_operation *next;
};

/* A new one with room for so many transfers, NULL: no memory. */
struct nccl_operation *nccl_operation_new(ncclComm_t comm, void *stream, int transfers);
void nccl_send(struct nccl_operation *operation, int peer, const void *bytes, size_t count);
void nccl_receive(struct nccl_operation *operation, int peer, void *bytes, size_t count);
/* Adds it to the group that is open on this thread, or runs it; frees it in the end. */
ncclResult_t nccl_submit(struct nccl_operation *operation);
/* Runs it at once, whatever is open, and frees it: for what the ranks agree on themselves. */
ncclResult_t nccl_run_now(struct nccl_operation *operation);
/* Opens and closes a group; the last one runs what was submitted. */
void nccl_group_begin(void);
ncclResult_t nccl_group_end(void);
/* Waits until all ranks have come, now or at the end of the open group. */
ncclResult_t nccl_wait_complete(ncclComm_t comm);

#endif
