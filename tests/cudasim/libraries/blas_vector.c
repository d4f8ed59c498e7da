/* SPDX-License-Identifier: MIT
 * cuBLAS: products with vectors, triangular systems, and batches of small factorisations.
 */
#include <string.h>

#include "libraries/blas_api.h"

/* A result on the host is there when the call returns; nothing was computed, so it is 0. */
static cublasStatus_t dot(
	cublasHandle_t handle, const char *kernel, int n, void *result, size_t bytes)
{
	cublasStatus_t status;

	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((int)handle->pointers == CUBLAS_POINTER_MODE_HOST)
		memset(result, 0, bytes);
	if (n <= 0)
		return CUBLAS_STATUS_SUCCESS;
	status = blas_simple(kernel, (uint64_t)n, NULL, handle->stream);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	return blas_simple("_Z20reduce_1Block_kernelIfLi128ELi7EEvPKT_PS0_i", 1,
		(int)handle->pointers == CUBLAS_POINTER_MODE_HOST ? NULL : result, handle->stream);
}

#define DOT(letter, suffix, real)                                                                \
	BLAS_API(cublas##letter##dot##suffix##_v2,                                               \
		(cublasHandle_t handle, int n, const real *x, int incx, const real *y, int incy, \
			real *result),                                                           \
		(handle, n, x, incx, y, incy, result))                                           \
	{                                                                                        \
		return dot(handle, "_Z10dot_kernelIfLi128ELi0EEviPKT_S2_PS0_", n, result,        \
			sizeof(*result));                                                        \
	}

DOT(S, , float)
DOT(D, , double)
DOT(C, c, cuComplex)
DOT(C, u, cuComplex)
DOT(Z, c, cuDoubleComplex)
DOT(Z, u, cuDoubleComplex)

static size_t element_bytes(cudaDataType_t type)
{
	switch (type) {
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_64F:
	case CUDA_C_32F:
		return 8;
	case CUDA_C_64F:
		return 16;
	default:
		return 4;
	}
}

BLAS_API(cublasDotEx,
	(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx, const void *y,
		cudaDataType yType, int incy, void *result, cudaDataType resultType,
		cudaDataType executionType),
	(handle, n, x, xType, incx, y, yType, incy, result, resultType, executionType))
{
	return dot(handle, "_Z10dot_kernelI6__halfLi128ELi0EEviPKT_S3_PS1_", n, result,
		element_bytes(resultType));
}

static cublasStatus_t simple(
	cublasHandle_t handle, const char *kernel, int64_t elements, void *written)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (elements < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	return elements ? blas_simple(kernel, (uint64_t)elements, written, handle->stream)
			: CUBLAS_STATUS_SUCCESS;
}

#define VECTOR(letter, real, number)                                                               \
	BLAS_API(cublas##letter##gemv_v2,                                                          \
		(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const real *alpha,  \
			const real *A, int lda, const real *x, int incx, const real *beta,         \
			real *y, int incy),                                                        \
		(handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy))                      \
	{                                                                                          \
		return (int)trans == CUBLAS_OP_N                                                   \
			       ? simple(handle, "_Z12gemvNSP_kernelIfLi128EEviiPKT_S2_PS0_", m, y) \
			       : simple(handle, "_Z13gemv2T_kernelIfLi128EEviiPKT_S2_PS0_", n, y); \
	}                                                                                          \
	BLAS_API(cublas##letter##trsm_v2,                                                          \
		(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,              \
			cublasOperation_t trans, cublasDiagType_t diag, int m, int n,              \
			const real *alpha, const real *A, int lda, real *B, int ldb),              \
		(handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb))                    \
	{                                                                                          \
		return simple(                                                                     \
			handle, "_Z16trsm_left_kernelIfLi32EEviiPKT_iPS0_i", (int64_t)m * n, B);   \
	}                                                                                          \
	BLAS_API(cublas##letter##trsmBatched,                                                      \
		(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,              \
			cublasOperation_t trans, cublasDiagType_t diag, int m, int n,              \
			const real *alpha, const real *const A[], int lda, real *const B[],        \
			int ldb, int batchCount),                                                  \
		(handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb, batchCount))        \
	{                                                                                          \
		return simple(handle, "_Z19trsm_batched_kernelIfLi32EEviiPKPKT_iPKPS0_i",          \
			(int64_t)m * n * batchCount, NULL);                                        \
	}                                                                                          \
	BLAS_API(cublas##letter##getrfBatched,                                                     \
		(cublasHandle_t handle, int n, real *const A[], int lda, int *P, int *info,        \
			int batchSize),                                                            \
		(handle, n, A, lda, P, info, batchSize))                                           \
	{                                                                                          \
		return simple(handle, "_Z13getrf_batchedIfLi32EEviPKPT_iPiS3_",                    \
			(int64_t)n * n * batchSize, P);                                            \
	}                                                                                          \
	BLAS_API(cublas##letter##getrsBatched,                                                     \
		(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs,                  \
			const real *const Aarray[], int lda, const int *devIpiv,                   \
			real *const Barray[], int ldb, int *info, int batchSize),                  \
		(handle, trans, n, nrhs, Aarray, lda, devIpiv, Barray, ldb, info, batchSize))      \
	{                                                                                          \
		*info = 0;                                                                         \
		return simple(handle, "_Z13getrs_batchedIfLi32EEviPKPKT_iPKiPKPS0_",               \
			(int64_t)n * nrhs * batchSize, NULL);                                      \
	}                                                                                          \
	BLAS_API(cublas##letter##geqrfBatched,                                                     \
		(cublasHandle_t handle, int m, int n, real *const Aarray[], int lda,               \
			real *const TauArray[], int *info, int batchSize),                         \
		(handle, m, n, Aarray, lda, TauArray, info, batchSize))                            \
	{                                                                                          \
		*info = 0;                                                                         \
		return simple(handle, "_Z13geqrf_batchedIfLi32EEviiPKPT_iS3_",                     \
			(int64_t)m * n * batchSize, NULL);                                         \
	}                                                                                          \
	BLAS_API(cublas##letter##gelsBatched,                                                      \
		(cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs,           \
			real *const Aarray[], int lda, real *const Carray[], int ldc, int *info,   \
			int *devInfoArray, int batchSize),                                         \
		(handle, trans, m, n, nrhs, Aarray, lda, Carray, ldc, info, devInfoArray,          \
			batchSize))                                                                \
	{                                                                                          \
		*info = 0;                                                                         \
		return simple(handle, "_Z12gels_batchedIfLi32EEviiiPKPT_iS3_i",                    \
			(int64_t)m * n * batchSize, devInfoArray);                                 \
	}

BLAS_REAL(VECTOR)
BLAS_COMPLEX(VECTOR)
