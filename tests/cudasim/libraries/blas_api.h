/* SPDX-License-Identifier: MIT
 * The part of cuBLAS's and cuBLASLt's interfaces that the stand-ins have, in their own names; what
 * is behind the handles is ours. Written out here because few machines have the headers. Where they
 * are, every file that includes this one is compiled a second time, with SIM_REAL_HEADERS, against
 * them: then the compiler compares each definition with the real prototype, and each number in
 * BLAS_NUMBERS with the real one.
 */
#ifndef BLAS_API_H
#define BLAS_API_H

#include <cuComplex.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

#include "libraries/library.h"

#define BLAS_NUMBERS(X)                                \
	X(CUBLAS_STATUS_SUCCESS, 0)                    \
	X(CUBLAS_STATUS_NOT_INITIALIZED, 1)            \
	X(CUBLAS_STATUS_ALLOC_FAILED, 3)               \
	X(CUBLAS_STATUS_INVALID_VALUE, 7)              \
	X(CUBLAS_STATUS_EXECUTION_FAILED, 13)          \
	X(CUBLAS_STATUS_NOT_SUPPORTED, 15)             \
	X(CUBLAS_OP_N, 0)                              \
	X(CUBLAS_POINTER_MODE_HOST, 0)                 \
	X(CUBLAS_TF32_TENSOR_OP_MATH, 3)               \
	X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)            \
	X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)       \
	X(CUBLASLT_MATMUL_DESC_TRANSA, 3)              \
	X(CUBLASLT_MATMUL_DESC_TRANSB, 4)              \
	X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)            \
	X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
	X(CUBLASLT_EPILOGUE_BIAS, 4)

#ifdef SIM_REAL_HEADERS
#include <cublasLt.h>
#include <cublas_v2.h>
#define BLAS_NUMBER(name, value) _Static_assert((int)(name) == (value), #name);
BLAS_NUMBERS(BLAS_NUMBER)
#else
#define BLAS_NUMBER(name, value) name = (value),
enum { BLAS_NUMBERS(BLAS_NUMBER) };

typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
/* Enumerations; their values are those of BLAS_NUMBERS. */
typedef int cublasStatus_t, cublasOperation_t, cublasMath_t, cublasPointerMode_t, cublasFillMode_t,
	cublasSideMode_t, cublasDiagType_t, cublasComputeType_t, cublasGemmAlgo_t,
	cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t,
	cublasLtMatmulPreferenceAttributes_t;

typedef struct {
	uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t, *cublasLtMatrixLayout_t, cublasLtMatmulAlgo_t;
typedef struct {
	uint64_t data[32];
} cublasLtMatmulDescOpaque_t, *cublasLtMatmulDesc_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatmulPreferenceOpaque_t, *cublasLtMatmulPreference_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

/* Kernels compute nothing, so most of what a call is given is not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* One entry point that answers a status. */
#define BLAS_API(name, proto, args) \
	LIBRARY_API(cublasStatus_t, name, proto, args, CUBLAS_STATUS_NOT_INITIALIZED)

/* One for each of the four types: S, D, C and Z; `proto` says `type` for the element. */
#define BLAS_COMPLEX(each) each(C, cuComplex, CUDA_C_32F) each(Z, cuDoubleComplex, CUDA_C_64F)
#define BLAS_REAL(each) each(S, float, CUDA_R_32F) each(D, double, CUDA_R_64F)

struct cublasContext {
	cudaStream_t stream;
	cublasMath_t math;
	cublasPointerMode_t pointers;
	void *workspace;
	size_t workspace_bytes;
	int multiprocessors; /* asked for, 0: all */
};

/* A product of matrices, as cuBLAS names its sides: column-major, m rows and n columns. */
struct blas_product {
	int64_t m, n, k, batch;
	cublasOperation_t left, right;
	cudaDataType_t type; /* of A and B */
	bool tf32;
	const char *epilogue; /* in the kernel's name, "": none */
	void *result;
	bool splits; /* there is a workspace in which a long k can be summed in parts */
};

/* Launches the kernels of the product; nothing is launched for an empty one. */
cublasStatus_t blas_product(const struct blas_product *product, cudaStream_t stream);
/* Launches one kernel that has a thread for each of `elements`, and writes `result`. */
cublasStatus_t blas_simple(
	const char *kernel, uint64_t elements, void *result, cudaStream_t stream);

#endif
