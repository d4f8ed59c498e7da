/* SPDX-License-Identifier: MIT
 * The part of NCCL's interface that the stand-in has, in NCCL's own names. Written out here because
 * few machines have its header; where it is, each file that includes this one is compiled a second
 * time, with SIM_REAL_HEADERS, against it.
 */
#ifndef NCCL_API_H
#define NCCL_API_H

#include <cuda_runtime_api.h>

#include "libraries/library.h"

#define NCCL_NUMBERS(X)              \
	X(ncclSuccess, 0)            \
	X(ncclUnhandledCudaError, 1) \
	X(ncclSystemError, 2)        \
	X(ncclInternalError, 3)      \
	X(ncclInvalidArgument, 4)    \
	X(ncclInvalidUsage, 5)       \
	X(ncclRemoteError, 6)        \
	X(ncclInProgress, 7)         \
	X(ncclSum, 0)                \
	X(ncclProd, 1)               \
	X(ncclMax, 2)                \
	X(ncclMin, 3)                \
	X(ncclAvg, 4)                \
	X(ncclNumOps, 5)             \
	X(ncclInt8, 0)               \
	X(ncclUint8, 1)              \
	X(ncclInt32, 2)              \
	X(ncclUint32, 3)             \
	X(ncclInt64, 4)              \
	X(ncclUint64, 5)             \
	X(ncclFloat16, 6)            \
	X(ncclFloat32, 7)            \
	X(ncclFloat64, 8)            \
	X(ncclBfloat16, 9)           \
	X(ncclFloat8e4m3, 10)        \
	X(ncclFloat8e5m2, 11)        \
	X(ncclNumTypes, 12)          \
	X(NCCL_UNIQUE_ID_BYTES, 128) \
	X(NCCL_SPLIT_NOCOLOR, -1)

#ifdef SIM_REAL_HEADERS
#include <nccl.h>
#define NCCL_NUMBER(name, value) _Static_assert((int)(name) == (value), #name);
NCCL_NUMBERS(NCCL_NUMBER)
#else
#define NCCL_NUMBER(name, value) name = (value),
enum { NCCL_NUMBERS(NCCL_NUMBER) };

typedef struct ncclComm *ncclComm_t;
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
/* Settings of a communicator; none is looked at. */
typedef struct nccl_config ncclConfig_t;
typedef struct nccl_simulation ncclSimInfo_t;
/* Enumerations; their values are those of NCCL_NUMBERS. */
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t, ncclScalarResidence_t;
#endif
_Static_assert(sizeof(ncclUniqueId) == 128, "as it is handed from rank to rank");

/* Kernels compute nothing, so some of what a call is given is not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NCCL_API(name, proto, args) \
	LIBRARY_API(ncclResult_t, name, proto, args, ncclUnhandledCudaError)

struct channel;

struct ncclComm {
	struct channel *channel;
	char name[NCCL_UNIQUE_ID_BYTES]; /* of the channel */
	int ranks, rank, device;
	int splits;   /* made of it so far */
	bool aborted; /* by any thread: what waits gives up */
	ncclResult_t error;
	uint64_t blocked[2]; /* [receiving] peers; private to the group that runs */
};

/* Bytes of an element, 0: no such type. */
size_t nccl_bytes(ncclDataType_t type);
/* As kernels' names have it: "f32". */
const char *nccl_type_name(ncclDataType_t type);
/* Combines `count` elements of `from` into `into`: into = into (op) from. */
void nccl_combine(void *into, const void *from, size_t count, ncclDataType_t type, ncclRedOp_t op);
/* Divides by the number of ranks, for ncclAvg. */
void nccl_divide(void *values, size_t count, ncclDataType_t type, int by);

#endif
