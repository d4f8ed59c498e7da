/* SPDX-License-Identifier: MIT
 * NCCL: collectives, and what is sent from one rank to another. Values move; a reduction is
 * computed in the order of the ranks, so that all ranks have the same bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/table.h"
#include "libraries/nccl_operation.h"

/* With one rank there is nothing to do but a copy, and NCCL launches no kernel. */
static ncclResult_t alone(void *target, const void *source, size_t bytes, cudaStream_t stream)
{
	CUresult result;

	if (target == source || bytes == 0)
		return ncclSuccess;
	result = sim_driver.cuMemcpyAsync(
		(CUdeviceptr)target, (CUdeviceptr)source, bytes, (CUstream)stream);
	return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t check(ncclComm_t comm, ncclDataType_t type, int root)
{
	if (!comm || nccl_bytes(type) == 0 || root < 0 || root >= comm->ranks)
		return ncclInvalidArgument;
	return comm->aborted ? ncclInvalidUsage : ncclSuccess;
}

/* Reductions of 8-bit floating point are not simulated. */
static ncclResult_t check_reduction(ncclComm_t comm, ncclDataType_t type, ncclRedOp_t op, int root)
{
	ncclResult_t result = check(comm, type, root);

	if (result != ncclSuccess || (int)op < 0)
		return result != ncclSuccess ? result : ncclInvalidArgument;
	if ((int)type == ncclFloat8e4m3 || (int)type == ncclFloat8e5m2)
		return (ncclResult_t)sim_refuse(
			"a reduction of 8-bit floating point", ncclInvalidArgument);
	return ncclSuccess;
}

/* One that has `own` bytes of this rank to give, from `source`: as they are now. */
static struct nccl_operation *collective(ncclComm_t comm, cudaStream_t stream, const char *kernel,
	size_t bytes, const void *source, size_t own)
{
	struct nccl_operation *operation = nccl_operation_new(comm, stream, 2 * comm->ranks);

	if (!operation)
		return NULL;
	operation->kernel = kernel;
	operation->bytes = bytes;
	operation->own = library_new(own + 1);
	if (operation->own)
		library_read(operation->own, source, own);
	return operation->own ? operation : NULL;
}

/* This rank's own part of the result. */
static void keep(void *target, const void *part, size_t bytes)
{
	memcpy(target, part, bytes);
	library_written(target, bytes);
}

/* One that reduces: `count` elements of every rank are gathered in this one. */
static struct nccl_operation *reduction(ncclComm_t comm, cudaStream_t stream, const char *name,
	const void *source, size_t own, void *target, size_t count, ncclDataType_t type,
	ncclRedOp_t op)
{
	struct nccl_operation *operation = collective(
		comm, stream, "", count * nccl_bytes(type), source, own);

	if (!operation)
		return NULL;
	snprintf(operation->name, sizeof(operation->name), "%s_Sum_%s_RING_LL", name,
		nccl_type_name(type));
	operation->kernel = operation->name;
	operation->target = target;
	operation->count = count;
	operation->type = type;
	operation->reduction = op;
	return operation;
}

/* Gathers what every rank has, from `own` here. False: no memory. */
static bool gather(struct nccl_operation *operation, const void *own)
{
	size_t bytes = operation->bytes;
	int rank = operation->comm->rank;

	operation->gathered = malloc(bytes * (size_t)operation->comm->ranks + 1);
	if (!operation->gathered)
		return false;
	memcpy(operation->gathered + (size_t)rank * bytes, own, bytes);
	for (int i = 0; i < operation->comm->ranks; i++)
		if (i != rank)
			nccl_receive(operation, i, operation->gathered + (size_t)i * bytes, bytes);
	return true;
}

static void reduce_gathered(struct nccl_operation *operation)
{
	char *sum = operation->gathered;
	int ranks = operation->comm->ranks;

	for (int i = 1; i < ranks; i++)
		nccl_combine(sum, operation->gathered + (size_t)i * operation->bytes,
			operation->count, operation->type, operation->reduction);
	if (operation->reduction == ncclAvg)
		nccl_divide(sum, operation->count, operation->type, ranks);
	keep(operation->target, sum, operation->bytes);
}

static ncclResult_t submit_reduction(struct nccl_operation *operation, const void *own)
{
	if (!gather(operation, own))
		return ncclSystemError;
	operation->finish = reduce_gathered;
	return nccl_submit(operation);
}

NCCL_API(ncclAllReduce,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, op, comm, stream))
{
	ncclResult_t result = check_reduction(comm, datatype, op, 0);
	size_t bytes = count * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	if (comm->ranks == 1)
		return alone(recvbuff, sendbuff, bytes, stream);
	operation = reduction(
		comm, stream, "AllReduce", sendbuff, bytes, recvbuff, count, datatype, op);
	if (!operation)
		return ncclSystemError;
	for (int i = 0; i < comm->ranks; i++)
		if (i != comm->rank)
			nccl_send(operation, i, operation->own, bytes);
	return submit_reduction(operation, operation->own);
}

NCCL_API(ncclReduce,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, op, root, comm, stream))
{
	ncclResult_t result = check_reduction(comm, datatype, op, root);
	size_t bytes = count * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	if (comm->ranks == 1)
		return alone(recvbuff, sendbuff, bytes, stream);
	operation = reduction(
		comm, stream, "Reduce", sendbuff, bytes, recvbuff, count, datatype, op);
	if (!operation)
		return ncclSystemError;
	if (comm->rank == root)
		return submit_reduction(operation, operation->own);
	nccl_send(operation, root, operation->own, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclReduceScatter,
	(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
		ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, recvcount, datatype, op, comm, stream))
{
	ncclResult_t result = check_reduction(comm, datatype, op, 0);
	size_t bytes = recvcount * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	if (comm->ranks == 1)
		return alone(recvbuff, sendbuff, bytes, stream);
	operation = reduction(comm, stream, "ReduceScatter", sendbuff, bytes * (size_t)comm->ranks,
		recvbuff, recvcount, datatype, op);
	if (!operation)
		return ncclSystemError;
	for (int i = 0; i < comm->ranks; i++)
		if (i != comm->rank)
			nccl_send(operation, i, operation->own + (size_t)i * bytes, bytes);
	return submit_reduction(operation, operation->own + (size_t)comm->rank * bytes);
}

static ncclResult_t broadcast(const void *source, void *target, size_t count, ncclDataType_t type,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	ncclResult_t result = check(comm, type, root);
	size_t bytes = count * nccl_bytes(type);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	if (comm->ranks == 1)
		return alone(target, source, bytes, stream);
	operation = collective(
		comm, stream, "Broadcast_RING_LL", bytes, source, comm->rank == root ? bytes : 0);
	if (!operation)
		return ncclSystemError;
	if (comm->rank != root) {
		nccl_receive(operation, root, target, bytes);
		return nccl_submit(operation);
	}
	for (int i = 0; i < comm->ranks; i++)
		if (i != root)
			nccl_send(operation, i, operation->own, bytes);
	if (target != source)
		keep(target, operation->own, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclBroadcast,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, root, comm, stream))
{
	return broadcast(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

NCCL_API(ncclBcast,
	(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
		cudaStream_t stream),
	(buff, count, datatype, root, comm, stream))
{
	return broadcast(buff, buff, count, datatype, root, comm, stream);
}

NCCL_API(ncclAllGather,
	(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
		ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, sendcount, datatype, comm, stream))
{
	ncclResult_t result = check(comm, datatype, 0);
	size_t bytes = sendcount * nccl_bytes(datatype);
	char *parts = recvbuff;
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	if (comm->ranks == 1)
		return alone(recvbuff, sendbuff, bytes, stream);
	operation = collective(
		comm, stream, "AllGather_RING_LL", bytes * (size_t)comm->ranks, sendbuff, bytes);
	if (!operation)
		return ncclSystemError;
	for (int i = 0; i < comm->ranks; i++) {
		if (i == comm->rank)
			continue;
		nccl_send(operation, i, operation->own, bytes);
		nccl_receive(operation, i, parts + (size_t)i * bytes, bytes);
	}
	keep(parts + (size_t)comm->rank * bytes, operation->own, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclAlltoAll,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
		ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, comm, stream))
{
	ncclResult_t result = check(comm, datatype, 0);
	size_t bytes = count * nccl_bytes(datatype);
	char *to = recvbuff;
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	operation = collective(
		comm, stream, "SendRecv", bytes, sendbuff, bytes * (size_t)comm->ranks);
	if (!operation)
		return ncclSystemError;
	keep(to + (size_t)comm->rank * bytes, operation->own + (size_t)comm->rank * bytes, bytes);
	for (int i = 0; i < comm->ranks; i++) {
		if (i == comm->rank)
			continue;
		nccl_send(operation, i, operation->own + (size_t)i * bytes, bytes);
		nccl_receive(operation, i, to + (size_t)i * bytes, bytes);
	}
	return nccl_submit(operation);
}

NCCL_API(ncclGather,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, root, comm, stream))
{
	ncclResult_t result = check(comm, datatype, root);
	size_t bytes = count * nccl_bytes(datatype);
	char *to = recvbuff;
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	operation = collective(comm, stream, "SendRecv", bytes, sendbuff, bytes);
	if (!operation)
		return ncclSystemError;
	if (comm->rank == root)
		keep(to + (size_t)root * bytes, operation->own, bytes);
	else
		nccl_send(operation, root, operation->own, bytes);
	for (int i = 0; comm->rank == root && i < comm->ranks; i++)
		if (i != root)
			nccl_receive(operation, i, to + (size_t)i * bytes, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclScatter,
	(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
		ncclComm_t comm, cudaStream_t stream),
	(sendbuff, recvbuff, count, datatype, root, comm, stream))
{
	ncclResult_t result = check(comm, datatype, root);
	size_t bytes = count * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	operation = collective(comm, stream, "SendRecv", bytes, sendbuff,
		comm->rank == root ? bytes * (size_t)comm->ranks : 0);
	if (!operation)
		return ncclSystemError;
	if (comm->rank == root)
		keep(recvbuff, operation->own + (size_t)root * bytes, bytes);
	else
		nccl_receive(operation, root, recvbuff, bytes);
	for (int i = 0; comm->rank == root && i < comm->ranks; i++)
		if (i != root)
			nccl_send(operation, i, operation->own + (size_t)i * bytes, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclSend,
	(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
		cudaStream_t stream),
	(sendbuff, count, datatype, peer, comm, stream))
{
	ncclResult_t result = check(comm, datatype, peer);
	size_t bytes = count * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	operation = collective(comm, stream, "SendRecv", bytes, sendbuff, bytes);
	if (operation)
		nccl_send(operation, peer, operation->own, bytes);
	return nccl_submit(operation);
}

NCCL_API(ncclRecv,
	(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
		cudaStream_t stream),
	(recvbuff, count, datatype, peer, comm, stream))
{
	ncclResult_t result = check(comm, datatype, peer);
	size_t bytes = count * nccl_bytes(datatype);
	struct nccl_operation *operation;

	if (result != ncclSuccess)
		return result;
	operation = collective(comm, stream, "SendRecv", bytes, NULL, 0);
	if (operation)
		nccl_receive(operation, peer, recvbuff, bytes);
	return nccl_submit(operation);
}
