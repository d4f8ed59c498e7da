/* SPDX-License-Identifier: MIT
 * The part of cuSOLVER's dense interface that the stand-in has, in cuSOLVER's own names. Where its
 * header is, each file that includes this one is compiled a second time, with SIM_REAL_HEADERS,
 * against it.
 */
#ifndef SOLVER_API_H
#define SOLVER_API_H

#include <cuComplex.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#include "libraries/library.h"

#ifdef SIM_REAL_HEADERS
#include <cusolverDn.h>
_Static_assert(CUSOLVER_STATUS_SUCCESS == 0 && CUSOLVER_STATUS_NOT_INITIALIZED == 1, "results");
_Static_assert(CUSOLVER_STATUS_ALLOC_FAILED == 2 && CUSOLVER_STATUS_INVALID_VALUE == 3, "results");
_Static_assert(CUSOLVER_STATUS_EXECUTION_FAILED == 6, "results");
#else
typedef enum {
	CUSOLVER_STATUS_SUCCESS = 0,
	CUSOLVER_STATUS_NOT_INITIALIZED = 1,
	CUSOLVER_STATUS_ALLOC_FAILED = 2,
	CUSOLVER_STATUS_INVALID_VALUE = 3,
	CUSOLVER_STATUS_EXECUTION_FAILED = 6,
} cusolverStatus_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnParams *cusolverDnParams_t;
typedef struct syevjInfo *syevjInfo_t;
typedef struct gesvdjInfo *gesvdjInfo_t;
typedef int cusolverEigMode_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t;
#endif

/* Kernels compute nothing, so most of what a call is given is not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct cusolverDnContext {
	cudaStream_t stream;
};

#define SOLVER_API(name, proto, args) \
	LIBRARY_API(cusolverStatus_t, name, proto, args, CUSOLVER_STATUS_NOT_INITIALIZED)

/* letter, type of an element, type of a real number of that precision, mangled type */
#define SOLVER_TYPES(X)                   \
	X(S, float, float, "f")           \
	X(D, double, double, "d")         \
	X(C, cuComplex, float, "6float2") \
	X(Z, cuDoubleComplex, double, "7double2")

/* Elements of a workspace, whatever is done in it. */
#define SOLVER_WORK 4096

/* Launches the kernel `name<type, 32>` that treats a matrix of `rows` by `columns`, `batch` times.
 */
cusolverStatus_t solver_launch(cusolverDnHandle_t handle, const char *name, const char *type,
	int64_t rows, int64_t columns, int64_t batch);
/* The mangled type of an element. */
const char *solver_type(cudaDataType type);

#endif
