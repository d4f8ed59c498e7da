/* SPDX-License-Identifier: MIT
 * cuSOLVER: LU, Cholesky, QR, and what is solved with them.
 */
#include "libraries/solver_api.h"

/* LU and its solution. */
#define LU(T, type, real, mangled)                                                           \
	SOLVER_API(cusolverDn##T##getrf_bufferSize,                                          \
		(cusolverDnHandle_t handle, int m, int n, type *A, int lda, int *Lwork),     \
		(handle, m, n, A, lda, Lwork))                                               \
	{                                                                                    \
		*Lwork = SOLVER_WORK;                                                        \
		return CUSOLVER_STATUS_SUCCESS;                                              \
	}                                                                                    \
	SOLVER_API(cusolverDn##T##getrf,                                                     \
		(cusolverDnHandle_t handle, int m, int n, type *A, int lda, type *Workspace, \
			int *devIpiv, int *devInfo),                                         \
		(handle, m, n, A, lda, Workspace, devIpiv, devInfo))                         \
	{                                                                                    \
		return solver_launch(handle, "getrf_pivot", mangled, m, n, 1);               \
	}                                                                                    \
	SOLVER_API(cusolverDn##T##getrs,                                                     \
		(cusolverDnHandle_t handle, cublasOperation_t trans, int n, int nrhs,        \
			const type *A, int lda, const int *devIpiv, type *B, int ldb,        \
			int *devInfo),                                                       \
		(handle, trans, n, nrhs, A, lda, devIpiv, B, ldb, devInfo))                  \
	{                                                                                    \
		cusolverStatus_t status = solver_launch(                                     \
			handle, "laswp_kernel", mangled, n, nrhs, 1);                        \
		return status == CUSOLVER_STATUS_SUCCESS                                     \
			       ? solver_launch(handle, "trsm_left", mangled, n, nrhs, 1)     \
			       : status;                                                     \
	}
SOLVER_TYPES(LU)

#define CHOLESKY(T, type, real, mangled)                                                           \
	SOLVER_API(cusolverDn##T##potrf_bufferSize,                                                \
		(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *A, int lda,        \
			int *Lwork),                                                               \
		(handle, uplo, n, A, lda, Lwork))                                                  \
	{                                                                                          \
		*Lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##potrf,                                                           \
		(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *A, int lda,        \
			type *Workspace, int Lwork, int *devInfo),                                 \
		(handle, uplo, n, A, lda, Workspace, Lwork, devInfo))                              \
	{                                                                                          \
		return solver_launch(handle, "potrf_alg2_cta", mangled, n, n, 1);                  \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##potrs,                                                           \
		(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, const type *A, \
			int lda, type *B, int ldb, int *devInfo),                                  \
		(handle, uplo, n, nrhs, A, lda, B, ldb, devInfo))                                  \
	{                                                                                          \
		return solver_launch(handle, "potrs_kernel", mangled, n, nrhs, 1);                 \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##potrfBatched,                                                    \
		(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, type *Aarray[], int lda, \
			int *infoArray, int batchSize),                                            \
		(handle, uplo, n, Aarray, lda, infoArray, batchSize))                              \
	{                                                                                          \
		return solver_launch(handle, "potrf_batched", mangled, n, n, batchSize);           \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##potrsBatched,                                                    \
		(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, type *A[],     \
			int lda, type *B[], int ldb, int *d_info, int batchSize),                  \
		(handle, uplo, n, nrhs, A, lda, B, ldb, d_info, batchSize))                        \
	{                                                                                          \
		return solver_launch(handle, "potrs_batched", mangled, n, nrhs, batchSize);        \
	}
SOLVER_TYPES(CHOLESKY)

SOLVER_API(cusolverDnXpotrf_bufferSize,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
		cudaDataType dataTypeA, const void *A, int64_t lda, cudaDataType computeType,
		size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost),
	(handle, params, uplo, n, dataTypeA, A, lda, computeType, workspaceInBytesOnDevice,
		workspaceInBytesOnHost))
{
	*workspaceInBytesOnDevice = SOLVER_WORK;
	*workspaceInBytesOnHost = 0;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXpotrf,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
		cudaDataType dataTypeA, void *A, int64_t lda, cudaDataType computeType,
		void *bufferOnDevice, size_t workspaceInBytesOnDevice, void *bufferOnHost,
		size_t workspaceInBytesOnHost, int *info),
	(handle, params, uplo, n, dataTypeA, A, lda, computeType, bufferOnDevice,
		workspaceInBytesOnDevice, bufferOnHost, workspaceInBytesOnHost, info))
{
	return solver_launch(handle, "potrf_alg2_cta", solver_type(dataTypeA), n, n, 1);
}

SOLVER_API(cusolverDnXpotrs,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
		int64_t nrhs, cudaDataType dataTypeA, const void *A, int64_t lda,
		cudaDataType dataTypeB, void *B, int64_t ldb, int *info),
	(handle, params, uplo, n, nrhs, dataTypeA, A, lda, dataTypeB, B, ldb, info))
{
	return solver_launch(handle, "potrs_kernel", solver_type(dataTypeA), n, nrhs, 1);
}

#define QR(T, type, real, mangled)                                                       \
	SOLVER_API(cusolverDn##T##geqrf_bufferSize,                                      \
		(cusolverDnHandle_t handle, int m, int n, type *A, int lda, int *lwork), \
		(handle, m, n, A, lda, lwork))                                           \
	{                                                                                \
		*lwork = SOLVER_WORK;                                                    \
		return CUSOLVER_STATUS_SUCCESS;                                          \
	}                                                                                \
	SOLVER_API(cusolverDn##T##geqrf,                                                 \
		(cusolverDnHandle_t handle, int m, int n, type *A, int lda, type *TAU,   \
			type *Workspace, int Lwork, int *devInfo),                       \
		(handle, m, n, A, lda, TAU, Workspace, Lwork, devInfo))                  \
	{                                                                                \
		return solver_launch(handle, "geqr2_smem", mangled, m, n, 1);            \
	}
SOLVER_TYPES(QR)

/* What QR's reflectors make, and are applied to; the complex ones have other names. */
#define REFLECTORS(name_of, multiply, T, type, mangled)                                            \
	SOLVER_API(cusolverDn##T##name_of##_bufferSize,                                            \
		(cusolverDnHandle_t handle, int m, int n, int k, const type *A, int lda,           \
			const type *tau, int *lwork),                                              \
		(handle, m, n, k, A, lda, tau, lwork))                                             \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##name_of,                                                         \
		(cusolverDnHandle_t handle, int m, int n, int k, type *A, int lda,                 \
			const type *tau, type *work, int lwork, int *info),                        \
		(handle, m, n, k, A, lda, tau, work, lwork, info))                                 \
	{                                                                                          \
		return solver_launch(handle, "orgqr_larfb", mangled, m, n, 1);                     \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##multiply##_bufferSize,                                           \
		(cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, \
			int n, int k, const type *A, int lda, const type *tau, const type *C,      \
			int ldc, int *lwork),                                                      \
		(handle, side, trans, m, n, k, A, lda, tau, C, ldc, lwork))                        \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##multiply,                                                        \
		(cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, \
			int n, int k, const type *A, int lda, const type *tau, type *C, int ldc,   \
			type *work, int lwork, int *devInfo),                                      \
		(handle, side, trans, m, n, k, A, lda, tau, C, ldc, work, lwork, devInfo))         \
	{                                                                                          \
		return solver_launch(handle, "ormqr_larfb", mangled, m, n, 1);                     \
	}
REFLECTORS(orgqr, ormqr, S, float, "f")
REFLECTORS(orgqr, ormqr, D, double, "d")
REFLECTORS(ungqr, unmqr, C, cuComplex, "6float2")
REFLECTORS(ungqr, unmqr, Z, cuDoubleComplex, "7double2")

SOLVER_API(cusolverDnXgeqrf_bufferSize,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
		cudaDataType dataTypeA, const void *A, int64_t lda, cudaDataType dataTypeTau,
		const void *tau, cudaDataType computeType, size_t *workspaceInBytesOnDevice,
		size_t *workspaceInBytesOnHost),
	(handle, params, m, n, dataTypeA, A, lda, dataTypeTau, tau, computeType,
		workspaceInBytesOnDevice, workspaceInBytesOnHost))
{
	*workspaceInBytesOnDevice = SOLVER_WORK;
	*workspaceInBytesOnHost = 0;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXgeqrf,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
		cudaDataType dataTypeA, void *A, int64_t lda, cudaDataType dataTypeTau, void *tau,
		cudaDataType computeType, void *bufferOnDevice, size_t workspaceInBytesOnDevice,
		void *bufferOnHost, size_t workspaceInBytesOnHost, int *info),
	(handle, params, m, n, dataTypeA, A, lda, dataTypeTau, tau, computeType, bufferOnDevice,
		workspaceInBytesOnDevice, bufferOnHost, workspaceInBytesOnHost, info))
{
	return solver_launch(handle, "geqr2_smem", solver_type(dataTypeA), m, n, 1);
}
