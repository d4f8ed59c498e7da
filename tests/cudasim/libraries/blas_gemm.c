/* SPDX-License-Identifier: MIT
 * cuBLAS: products of matrices.
 */
#include "libraries/blas_api.h"

static cublasStatus_t product(cublasHandle_t handle, const struct blas_product *asked)
{
	struct blas_product p = *asked;

	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	p.tf32 = p.tf32 ||
		 (p.type == CUDA_R_32F && ((int)handle->math & CUBLAS_TF32_TENSOR_OP_MATH) ==
						  CUBLAS_TF32_TENSOR_OP_MATH);
	p.epilogue = "";
	p.splits = handle->workspace_bytes > 0;
	return blas_product(&p, handle->stream);
}

#define GEMM(letter, real, number)                                                                 \
	BLAS_API(cublas##letter##gemm_v2,                                                          \
		(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, \
			int n, int k, const real *alpha, const real *A, int lda, const real *B,    \
			int ldb, const real *beta, real *C, int ldc),                              \
		(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc))            \
	{                                                                                          \
		return product(handle, &(struct blas_product){ .m = m,                             \
					       .n = n,                                             \
					       .k = k,                                             \
					       .batch = 1,                                         \
					       .left = transa,                                     \
					       .right = transb,                                    \
					       .type = number,                                     \
					       .result = C });                                     \
	}                                                                                          \
	BLAS_API(cublas##letter##gemmStridedBatched,                                               \
		(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, \
			int n, int k, const real *alpha, const real *A, int lda,                   \
			long long int strideA, const real *B, int ldb, long long int strideB,      \
			const real *beta, real *C, int ldc, long long int strideC,                 \
			int batchCount),                                                           \
		(handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta,   \
			C, ldc, strideC, batchCount))                                              \
	{                                                                                          \
		return product(handle, &(struct blas_product){ .m = m,                             \
					       .n = n,                                             \
					       .k = k,                                             \
					       .batch = batchCount,                                \
					       .left = transa,                                     \
					       .right = transb,                                    \
					       .type = number,                                     \
					       .result = C });                                     \
	}                                                                                          \
	BLAS_API(cublas##letter##gemmBatched,                                                      \
		(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, \
			int n, int k, const real *alpha, const real *const Aarray[], int lda,      \
			const real *const Barray[], int ldb, const real *beta,                     \
			real *const Carray[], int ldc, int batchCount),                            \
		(handle, transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray,   \
			ldc, batchCount))                                                          \
	{                                                                                          \
		return product(handle, &(struct blas_product){ .m = m,                             \
					       .n = n,                                             \
					       .k = k,                                             \
					       .batch = batchCount,                                \
					       .left = transa,                                     \
					       .right = transb,                                    \
					       .type = number });                                  \
	}

BLAS_REAL(GEMM)
BLAS_COMPLEX(GEMM)

BLAS_API(cublasSgemmEx,
	(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
		int k, const float *alpha, const void *A, cudaDataType Atype, int lda,
		const void *B, cudaDataType Btype, int ldb, const float *beta, void *C,
		cudaDataType Ctype, int ldc),
	(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc))
{
	return product(handle, &(struct blas_product){ .m = m,
				       .n = n,
				       .k = k,
				       .batch = 1,
				       .left = transa,
				       .right = transb,
				       .type = Atype,
				       .result = C });
}

BLAS_API(cublasGemmEx,
	(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
		int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
		cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
		cublasComputeType_t computeType, cublasGemmAlgo_t algo),
	(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
		computeType, algo))
{
	return product(handle, &(struct blas_product){ .m = m,
				       .n = n,
				       .k = k,
				       .batch = 1,
				       .left = transa,
				       .right = transb,
				       .type = Atype,
				       .tf32 = (int)computeType == CUBLAS_COMPUTE_32F_FAST_TF32,
				       .result = C });
}

BLAS_API(cublasGemmStridedBatchedEx,
	(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
		int k, const void *alpha, const void *A, cudaDataType Atype, int lda,
		long long int strideA, const void *B, cudaDataType Btype, int ldb,
		long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
		long long int strideC, int batchCount, cublasComputeType_t computeType,
		cublasGemmAlgo_t algo),
	(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB,
		beta, C, Ctype, ldc, strideC, batchCount, computeType, algo))
{
	return product(handle, &(struct blas_product){ .m = m,
				       .n = n,
				       .k = k,
				       .batch = batchCount,
				       .left = transa,
				       .right = transb,
				       .type = Atype,
				       .tf32 = (int)computeType == CUBLAS_COMPUTE_32F_FAST_TF32,
				       .result = C });
}
