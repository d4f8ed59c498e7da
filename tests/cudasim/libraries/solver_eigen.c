/* SPDX-License-Identifier: MIT
 * cuSOLVER: singular values and eigenvalues.
 */
#include "libraries/solver_api.h"

#define SINGULAR(T, type, real, mangled)                                                           \
	SOLVER_API(cusolverDn##T##gesvd_bufferSize,                                                \
		(cusolverDnHandle_t handle, int m, int n, int *lwork), (handle, m, n, lwork))      \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvd,                                                           \
		(cusolverDnHandle_t handle, signed char jobu, signed char jobvt, int m, int n,     \
			type *A, int lda, real *S, type *U, int ldu, type *VT, int ldvt,           \
			type *work, int lwork, real *rwork, int *info),                            \
		(handle, jobu, jobvt, m, n, A, lda, S, U, ldu, VT, ldvt, work, lwork, rwork,       \
			info))                                                                     \
	{                                                                                          \
		return solver_launch(handle, "gesvdbj_kernel", mangled, m, n, 1);                  \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdj_bufferSize,                                               \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n,        \
			const type *A, int lda, const real *S, const type *U, int ldu,             \
			const type *V, int ldv, int *lwork, gesvdjInfo_t params),                  \
		(handle, jobz, econ, m, n, A, lda, S, U, ldu, V, ldv, lwork, params))              \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdj,                                                          \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n,        \
			type *A, int lda, real *S, type *U, int ldu, type *V, int ldv, type *work, \
			int lwork, int *info, gesvdjInfo_t params),                                \
		(handle, jobz, econ, m, n, A, lda, S, U, ldu, V, ldv, work, lwork, info, params))  \
	{                                                                                          \
		return solver_launch(handle, "gesvdj_kernel", mangled, m, n, 1);                   \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdjBatched_bufferSize,                                        \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, const type *A,   \
			int lda, const real *S, const type *U, int ldu, const type *V, int ldv,    \
			int *lwork, gesvdjInfo_t params, int batchSize),                           \
		(handle, jobz, m, n, A, lda, S, U, ldu, V, ldv, lwork, params, batchSize))         \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdjBatched,                                                   \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, type *A,         \
			int lda, real *S, type *U, int ldu, type *V, int ldv, type *work,          \
			int lwork, int *info, gesvdjInfo_t params, int batchSize),                 \
		(handle, jobz, m, n, A, lda, S, U, ldu, V, ldv, work, lwork, info, params,         \
			batchSize))                                                                \
	{                                                                                          \
		return solver_launch(handle, "gesvdj_batched", mangled, m, n, batchSize);          \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdaStridedBatched_bufferSize,                                 \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n,        \
			const type *d_A, int lda, long long int strideA, const real *d_S,          \
			long long int strideS, const type *d_U, int ldu, long long int strideU,    \
			const type *d_V, int ldv, long long int strideV, int *lwork,               \
			int batchSize),                                                            \
		(handle, jobz, rank, m, n, d_A, lda, strideA, d_S, strideS, d_U, ldu, strideU,     \
			d_V, ldv, strideV, lwork, batchSize))                                      \
	{                                                                                          \
		*lwork = SOLVER_WORK;                                                              \
		return CUSOLVER_STATUS_SUCCESS;                                                    \
	}                                                                                          \
	SOLVER_API(cusolverDn##T##gesvdaStridedBatched,                                            \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n,        \
			const type *d_A, int lda, long long int strideA, real *d_S,                \
			long long int strideS, type *d_U, int ldu, long long int strideU,          \
			type *d_V, int ldv, long long int strideV, type *d_work, int lwork,        \
			int *d_info, double *h_R_nrmF, int batchSize),                             \
		(handle, jobz, rank, m, n, d_A, lda, strideA, d_S, strideS, d_U, ldu, strideU,     \
			d_V, ldv, strideV, d_work, lwork, d_info, h_R_nrmF, batchSize))            \
	{                                                                                          \
		return solver_launch(handle, "gesvda_batched", mangled, m, n, batchSize);          \
	}
SOLVER_TYPES(SINGULAR)

/* Of symmetric and Hermitian matrices; the names differ. */
#define EIGEN(divide, jacobi, T, type, real, mangled)                                             \
	SOLVER_API(cusolverDn##T##divide##_bufferSize,                                            \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			const type *A, int lda, const real *W, int *lwork),                       \
		(handle, jobz, uplo, n, A, lda, W, lwork))                                        \
	{                                                                                         \
		*lwork = SOLVER_WORK;                                                             \
		return CUSOLVER_STATUS_SUCCESS;                                                   \
	}                                                                                         \
	SOLVER_API(cusolverDn##T##divide,                                                         \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			type *A, int lda, real *W, type *work, int lwork, int *info),             \
		(handle, jobz, uplo, n, A, lda, W, work, lwork, info))                            \
	{                                                                                         \
		return solver_launch(handle, "syevd_kernel", mangled, n, n, 1);                   \
	}                                                                                         \
	SOLVER_API(cusolverDn##T##jacobi##_bufferSize,                                            \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			const type *A, int lda, const real *W, int *lwork, syevjInfo_t params),   \
		(handle, jobz, uplo, n, A, lda, W, lwork, params))                                \
	{                                                                                         \
		*lwork = SOLVER_WORK;                                                             \
		return CUSOLVER_STATUS_SUCCESS;                                                   \
	}                                                                                         \
	SOLVER_API(cusolverDn##T##jacobi,                                                         \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			type *A, int lda, real *W, type *work, int lwork, int *info,              \
			syevjInfo_t params),                                                      \
		(handle, jobz, uplo, n, A, lda, W, work, lwork, info, params))                    \
	{                                                                                         \
		return solver_launch(handle, "syevj_kernel", mangled, n, n, 1);                   \
	}                                                                                         \
	SOLVER_API(cusolverDn##T##jacobi##Batched_bufferSize,                                     \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			const type *A, int lda, const real *W, int *lwork, syevjInfo_t params,    \
			int batchSize),                                                           \
		(handle, jobz, uplo, n, A, lda, W, lwork, params, batchSize))                     \
	{                                                                                         \
		*lwork = SOLVER_WORK;                                                             \
		return CUSOLVER_STATUS_SUCCESS;                                                   \
	}                                                                                         \
	SOLVER_API(cusolverDn##T##jacobi##Batched,                                                \
		(cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
			type *A, int lda, real *W, type *work, int lwork, int *info,              \
			syevjInfo_t params, int batchSize),                                       \
		(handle, jobz, uplo, n, A, lda, W, work, lwork, info, params, batchSize))         \
	{                                                                                         \
		return solver_launch(handle, "syevj_batched", mangled, n, n, batchSize);          \
	}
EIGEN(syevd, syevj, S, float, float, "f")
EIGEN(syevd, syevj, D, double, double, "d")
EIGEN(heevd, heevj, C, cuComplex, float, "6float2")
EIGEN(heevd, heevj, Z, cuDoubleComplex, double, "7double2")

SOLVER_API(cusolverDnXsyevd_bufferSize,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
		cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, const void *A,
		int64_t lda, cudaDataType dataTypeW, const void *W, cudaDataType computeType,
		size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost),
	(handle, params, jobz, uplo, n, dataTypeA, A, lda, dataTypeW, W, computeType,
		workspaceInBytesOnDevice, workspaceInBytesOnHost))
{
	*workspaceInBytesOnDevice = SOLVER_WORK;
	*workspaceInBytesOnHost = 0;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXsyevd,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
		cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, void *A, int64_t lda,
		cudaDataType dataTypeW, void *W, cudaDataType computeType, void *bufferOnDevice,
		size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost,
		int *info),
	(handle, params, jobz, uplo, n, dataTypeA, A, lda, dataTypeW, W, computeType,
		bufferOnDevice, workspaceInBytesOnDevice, bufferOnHost, workspaceInBytesOnHost,
		info))
{
	return solver_launch(handle, "syevd_kernel", solver_type(dataTypeA), n, n, 1);
}

SOLVER_API(cusolverDnXsyevBatched_bufferSize,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
		cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, const void *A,
		int64_t lda, cudaDataType dataTypeW, const void *W, cudaDataType computeType,
		size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost,
		int64_t batchSize),
	(handle, params, jobz, uplo, n, dataTypeA, A, lda, dataTypeW, W, computeType,
		workspaceInBytesOnDevice, workspaceInBytesOnHost, batchSize))
{
	*workspaceInBytesOnDevice = SOLVER_WORK;
	*workspaceInBytesOnHost = 0;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXsyevBatched,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
		cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, void *A, int64_t lda,
		cudaDataType dataTypeW, void *W, cudaDataType computeType, void *bufferOnDevice,
		size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost,
		int *info, int64_t batchSize),
	(handle, params, jobz, uplo, n, dataTypeA, A, lda, dataTypeW, W, computeType,
		bufferOnDevice, workspaceInBytesOnDevice, bufferOnHost, workspaceInBytesOnHost,
		info, batchSize))
{
	return solver_launch(handle, "syev_batched", solver_type(dataTypeA), n, n, batchSize);
}

SOLVER_API(cusolverDnXgeev_bufferSize,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
		cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, const void *A,
		int64_t lda, cudaDataType dataTypeW, const void *W, cudaDataType dataTypeVL,
		const void *VL, int64_t ldvl, cudaDataType dataTypeVR, const void *VR, int64_t ldvr,
		cudaDataType computeType, size_t *workspaceInBytesOnDevice,
		size_t *workspaceInBytesOnHost),
	(handle, params, jobvl, jobvr, n, dataTypeA, A, lda, dataTypeW, W, dataTypeVL, VL, ldvl,
		dataTypeVR, VR, ldvr, computeType, workspaceInBytesOnDevice,
		workspaceInBytesOnHost))
{
	*workspaceInBytesOnDevice = SOLVER_WORK;
	*workspaceInBytesOnHost = SOLVER_WORK;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXgeev,
	(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
		cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, void *A, int64_t lda,
		cudaDataType dataTypeW, void *W, cudaDataType dataTypeVL, void *VL, int64_t ldvl,
		cudaDataType dataTypeVR, void *VR, int64_t ldvr, cudaDataType computeType,
		void *bufferOnDevice, size_t workspaceInBytesOnDevice, void *bufferOnHost,
		size_t workspaceInBytesOnHost, int *info),
	(handle, params, jobvl, jobvr, n, dataTypeA, A, lda, dataTypeW, W, dataTypeVL, VL, ldvl,
		dataTypeVR, VR, ldvr, computeType, bufferOnDevice, workspaceInBytesOnDevice,
		bufferOnHost, workspaceInBytesOnHost, info))
{
	return solver_launch(handle, "geev_kernel", solver_type(dataTypeA), n, n, 1);
}
