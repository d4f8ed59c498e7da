/* SPDX-License-Identifier: MIT
 * NCCL: communicators, groups, and what is asked about them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "driver/table.h"
#include "libraries/nccl_channel.h"
#include "libraries/nccl_operation.h"

#define NCCL_CODE (SIM_MAJOR == 12 ? 22705 : 23007) /* of PyTorch's newest wheels for that CUDA */
#define ID_BYTES 16

NCCL_API(ncclGetVersion, (int *version), (version))
{
	*version = NCCL_CODE;
	return ncclSuccess;
}

static const char *text(ncclResult_t result)
{
	static const char *const texts[] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "unhandled cuda error",
		[ncclSystemError] = "unhandled system error",
		[ncclInternalError] = "internal error",
		[ncclInvalidArgument] = "invalid argument",
		[ncclInvalidUsage] = "invalid usage",
		[ncclRemoteError] = "remote process exited or there was a network error",
		[ncclInProgress] = "NCCL operation in progress",
	};

	return (unsigned)result < sizeof(texts) / sizeof(texts[0]) ? texts[result]
								   : "unknown result code";
}

LIBRARY_API(const char *, ncclGetErrorString, (ncclResult_t result), (result), text(result))
{
	return text(result);
}

LIBRARY_API(const char *, ncclGetLastError, (ncclComm_t comm), (comm), "")
{
	return comm && comm->error != ncclSuccess ? text(comm->error) : "";
}

/* An id is a random number in hexadecimal digits, which a channel's name may consist of. */
NCCL_API(ncclGetUniqueId, (ncclUniqueId * uniqueId), (uniqueId))
{
	unsigned char random[ID_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return ncclSystemError;
	memset(uniqueId, 0, sizeof(*uniqueId));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(uniqueId->internal + 2 * i, 3, "%02x", random[i]);
	return ncclSuccess;
}

static int current_device(void)
{
	return sim_context_current() ? sim_context_device(sim_context_current()) : 0;
}

static ncclResult_t make(ncclComm_t *out, const char *name, int ranks, int rank, int device)
{
	ncclComm_t comm;

	if (ranks < 1 || ranks > CHANNEL_RANKS_MAX || rank < 0 || rank >= ranks)
		return ncclInvalidArgument;
	comm = library_new(sizeof(*comm));
	if (!comm)
		return ncclSystemError;
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	comm->ranks = ranks;
	comm->rank = rank;
	comm->device = device;
	comm->channel = channel_open(comm->name, ranks, rank);
	if (!comm->channel) {
		free(comm);
		return ncclSystemError;
	}
	*out = comm;
	return nccl_wait_complete(comm);
}

static ncclResult_t join(ncclComm_t *out, const ncclUniqueId *id, int ranks, int rank)
{
	size_t length = strspn(id->internal, "0123456789abcdef");

	if (length != 2 * ID_BYTES || id->internal[length])
		return ncclInvalidArgument;
	return library_ready() == 0 ? make(out, id->internal, ranks, rank, current_device())
				    : ncclUnhandledCudaError;
}

NCCL_API(ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank),
	(comm, nranks, commId, rank))
{
	return join(comm, &commId, nranks, rank);
}

NCCL_API(ncclCommInitRankConfig,
	(ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config),
	(comm, nranks, commId, rank, config))
{
	return join(comm, &commId, nranks, rank);
}

/* Several ids spread the work of a large start; the first will do. */
NCCL_API(ncclCommInitRankScalable,
	(ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
		ncclConfig_t *config),
	(newcomm, nranks, myrank, nId, commIds, config))
{
	return nId > 0 ? join(newcomm, &commIds[0], nranks, myrank) : ncclInvalidArgument;
}

NCCL_API(ncclCommInitAll, (ncclComm_t * comm, int ndev, const int *devlist), (comm, ndev, devlist))
{
	ncclUniqueId id;
	ncclResult_t result = ncclGetUniqueId_inside(&id), end;

	if (result != ncclSuccess || library_ready() != 0)
		return result != ncclSuccess ? result : ncclUnhandledCudaError;
	nccl_group_begin();
	for (int i = 0; i < ndev && result == ncclSuccess; i++)
		result = make(&comm[i], id.internal, ndev, i, devlist ? devlist[i] : i);
	end = nccl_group_end();
	return result != ncclSuccess ? result : end;
}

/* What each rank tells the others when a communicator is split. */
struct choice {
	int color, key;
};

/* Gathers the choices of all ranks. */
static ncclResult_t choose(ncclComm_t comm, struct choice mine, struct choice *all)
{
	struct nccl_operation *operation = nccl_operation_new(comm, NULL, 2 * comm->ranks);

	if (!operation)
		return ncclSystemError;
	all[comm->rank] = mine;
	for (int i = 0; i < comm->ranks; i++) {
		if (i == comm->rank)
			continue;
		nccl_send(operation, i, &all[comm->rank], sizeof(mine));
		nccl_receive(operation, i, &all[i], sizeof(mine));
	}
	return nccl_run_now(operation);
}

/* The ranks of one color, in the order of their keys; equal keys in that of their ranks before. */
static int place(const struct choice *all, int ranks, int rank, int *members)
{
	int before = 0;

	*members = 0;
	for (int i = 0; i < ranks; i++) {
		if (all[i].color != all[rank].color)
			continue;
		(*members)++;
		before += all[i].key < all[rank].key || (all[i].key == all[rank].key && i < rank);
	}
	return before;
}

NCCL_API(ncclCommSplit,
	(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config),
	(comm, color, key, newcomm, config))
{
	struct choice all[CHANNEL_RANKS_MAX];
	ncclResult_t result = choose(comm, (struct choice){ color, key }, all);
	char name[2 * NCCL_UNIQUE_ID_BYTES];
	int rank, members;

	*newcomm = NULL;
	if (result != ncclSuccess)
		return result;
	comm->splits++;
	if (color == NCCL_SPLIT_NOCOLOR)
		return ncclSuccess;
	rank = place(all, comm->ranks, comm->rank, &members);
	if (snprintf(name, sizeof(name), "%s.%d.%d", comm->name, comm->splits, color) >=
		NCCL_UNIQUE_ID_BYTES)
		return ncclInvalidUsage;
	return make(newcomm, name, members, rank, comm->device);
}

static ncclResult_t destroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	channel_close(comm->channel);
	free(comm);
	return ncclSuccess;
}

NCCL_API(ncclCommFinalize, (ncclComm_t comm), (comm))
{
	return comm ? ncclSuccess : ncclInvalidArgument;
}

NCCL_API(ncclCommDestroy, (ncclComm_t comm), (comm))
{
	return destroy(comm);
}

/* The thread that waits in a collective still has the communicator in hand, so it is not freed. */
NCCL_API(ncclCommAbort, (ncclComm_t comm), (comm))
{
	if (!comm)
		return ncclSuccess;
	__atomic_store_n(&comm->aborted, true, __ATOMIC_RELAXED);
	channel_leave(comm->channel);
	return ncclSuccess;
}

NCCL_API(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *asyncError), (comm, asyncError))
{
	*asyncError = comm->error;
	return ncclSuccess;
}

NCCL_API(ncclCommCount, (const ncclComm_t comm, int *count), (comm, count))
{
	*count = comm->ranks;
	return ncclSuccess;
}

NCCL_API(ncclCommUserRank, (const ncclComm_t comm, int *rank), (comm, rank))
{
	*rank = comm->rank;
	return ncclSuccess;
}

NCCL_API(ncclCommCuDevice, (const ncclComm_t comm, int *device), (comm, device))
{
	*device = comm->device;
	return ncclSuccess;
}

NCCL_API(ncclCommRegister, (const ncclComm_t comm, void *buff, size_t size, void **handle),
	(comm, buff, size, handle))
{
	*handle = buff;
	return ncclSuccess;
}

NCCL_API(ncclCommDeregister, (const ncclComm_t comm, void *handle), (comm, handle))
{
	return ncclSuccess;
}

NCCL_API(ncclMemAlloc, (void **ptr, size_t size), (ptr, size))
{
	CUdeviceptr address = 0;
	CUresult result = sim_driver.cuMemAlloc_v2(&address, size);

	*ptr = (void *)address;
	return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

NCCL_API(ncclMemFree, (void *ptr), (ptr))
{
	return sim_driver.cuMemFree_v2((CUdeviceptr)ptr) == CUDA_SUCCESS ? ncclSuccess
									 : ncclUnhandledCudaError;
}

/* A sum of what was multiplied before; the factor is not applied. */
NCCL_API(ncclRedOpCreatePreMulSum,
	(ncclRedOp_t * op, void *scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
		ncclComm_t comm),
	(op, scalar, datatype, residence, comm))
{
	*op = (ncclRedOp_t)ncclNumOps;
	return ncclSuccess;
}

NCCL_API(ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))
{
	return ncclSuccess;
}

NCCL_API(ncclGroupStart, (void), ())
{
	nccl_group_begin();
	return ncclSuccess;
}

NCCL_API(ncclGroupEnd, (void), ())
{
	return nccl_group_end();
}

NCCL_API(ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo), (simInfo))
{
	return nccl_group_end();
}
