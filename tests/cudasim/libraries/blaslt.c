/* SPDX-License-Identifier: MIT
 * cuBLASLt: descriptors that remember what names the kernel, one algorithm, and the product itself.
 */
#include <stdlib.h>
#include <string.h>

#include "libraries/blas_api.h"

#define LT_WORKSPACE ((size_t)1 << 20) /* what the one algorithm asks for, where it may */

/* What lies in the opaque descriptors. */
struct layout {
	cudaDataType_t type;
	int batch;
	uint64_t rows, columns;
};

struct description {
	cublasOperation_t left, right;
	uint32_t epilogue;
	cublasComputeType_t compute;
};

struct preference {
	uint64_t workspace;
};

_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "fits");
_Static_assert(sizeof(struct description) <= sizeof(cublasLtMatmulDescOpaque_t), "fits");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "as the real one");

struct cublasLtContext {
	int unused;
};

#define INSIDE(type, opaque) ((struct type *)(void *)(opaque))

BLAS_API(cublasLtCreate, (cublasLtHandle_t * lightHandle), (lightHandle))
{
	*lightHandle = library_new(sizeof(struct cublasLtContext));
	return *lightHandle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

BLAS_API(cublasLtDestroy, (cublasLtHandle_t lightHandle), (lightHandle))
{
	free(lightHandle);
	return CUBLAS_STATUS_SUCCESS;
}

LIBRARY_API(size_t, cublasLtGetVersion, (void), (), 0)
{
	return SIM_MAJOR == 12 ? 120805 : 130000;
}

BLAS_API(cublasLtMatrixLayoutCreate,
	(cublasLtMatrixLayout_t * matLayout, cudaDataType type, uint64_t rows, uint64_t cols,
		int64_t ld),
	(matLayout, type, rows, cols, ld))
{
	*matLayout = library_new(sizeof(**matLayout));
	if (!*matLayout)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*INSIDE(layout, *matLayout) = (struct layout){
		.type = type, .batch = 1, .rows = rows, .columns = cols
	};
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasLtMatmulDescCreate,
	(cublasLtMatmulDesc_t * matmulDesc, cublasComputeType_t computeType,
		cudaDataType_t scaleType),
	(matmulDesc, computeType, scaleType))
{
	*matmulDesc = library_new(sizeof(**matmulDesc));
	if (!*matmulDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	INSIDE(description, *matmulDesc)->compute = computeType;
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * pref), (pref))
{
	*pref = library_new(sizeof(**pref));
	return *pref ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

#define DESTROY(name, type, what)             \
	BLAS_API(name, (type what), (what))   \
	{                                     \
		free(what);                   \
		return CUBLAS_STATUS_SUCCESS; \
	}

DESTROY(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t, matLayout)
DESTROY(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t, matmulDesc)
DESTROY(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t, pref)

static cublasStatus_t take(void *member, size_t room, const void *buf, size_t bytes)
{
	if (!buf || bytes != room)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(member, buf, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

#define TAKE(member) take(&(member), sizeof(member), buf, sizeInBytes)

BLAS_API(cublasLtMatrixLayoutSetAttribute,
	(cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr, const void *buf,
		size_t sizeInBytes),
	(matLayout, attr, buf, sizeInBytes))
{
	return (int)attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
		       ? TAKE(INSIDE(layout, matLayout)->batch)
		       : CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasLtMatmulDescSetAttribute,
	(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr, const void *buf,
		size_t sizeInBytes),
	(matmulDesc, attr, buf, sizeInBytes))
{
	struct description *description = INSIDE(description, matmulDesc);

	switch ((int)attr) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return TAKE(description->left);
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return TAKE(description->right);
	case CUBLASLT_MATMUL_DESC_EPILOGUE:
		return TAKE(description->epilogue);
	default:
		return CUBLAS_STATUS_SUCCESS;
	}
}

BLAS_API(cublasLtMatmulPreferenceSetAttribute,
	(cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr,
		const void *buf, size_t sizeInBytes),
	(pref, attr, buf, sizeInBytes))
{
	return (int)attr == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
		       ? TAKE(INSIDE(preference, pref)->workspace)
		       : CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasLtMatmulAlgoGetHeuristic,
	(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
		cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
		cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
		cublasLtMatmulPreference_t preference, int requestedAlgoCount,
		cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount),
	(lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc, preference, requestedAlgoCount,
		heuristicResultsArray, returnAlgoCount))
{
	size_t room = preference ? INSIDE(preference, preference)->workspace : 0;

	if (requestedAlgoCount < 1 || !heuristicResultsArray || !returnAlgoCount)
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(heuristicResultsArray, 0, sizeof(*heuristicResultsArray));
	heuristicResultsArray->workspaceSize = room < LT_WORKSPACE ? room : LT_WORKSPACE;
	heuristicResultsArray->wavesCount = 1;
	*returnAlgoCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* The bits of an epilogue, as they come in names. */
static const char *epilogue_name(uint32_t epilogue)
{
	static const struct {
		uint32_t bits;
		const char *name;
	} names[] = {
		{ 8, "_drelu" },
		{ 64, "_dgelu" },
		{ 32 | CUBLASLT_EPILOGUE_BIAS, "_gelu_bias" },
		{ 32, "_gelu" },
		{ 2 | CUBLASLT_EPILOGUE_BIAS, "_relu_bias" },
		{ 2, "_relu" },
		{ CUBLASLT_EPILOGUE_BIAS, "_bias" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((epilogue & names[i].bits) == names[i].bits)
			return names[i].name;
	return "";
}

BLAS_API(cublasLtMatmul,
	(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void *alpha,
		const void *A, cublasLtMatrixLayout_t Adesc, const void *B,
		cublasLtMatrixLayout_t Bdesc, const void *beta, const void *C,
		cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
		const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceSizeInBytes,
		cudaStream_t stream),
	(lightHandle, computeDesc, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc, algo,
		workspace, workspaceSizeInBytes, stream))
{
	const struct description *description = INSIDE(description, computeDesc);
	const struct layout *left, *result;
	struct blas_product product;

	if (!lightHandle || !computeDesc || !Adesc || !Ddesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	left = INSIDE(layout, Adesc);
	result = INSIDE(layout, Ddesc);
	product = (struct blas_product){
		.m = (int64_t)result->rows,
		.n = (int64_t)result->columns,
		.k = (int64_t)((int)description->left == CUBLAS_OP_N ? left->columns : left->rows),
		.batch = result->batch,
		.left = description->left,
		.right = description->right,
		.type = left->type,
		.tf32 = (int)description->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
		.epilogue = epilogue_name(description->epilogue),
		.result = D,
		.splits = workspaceSizeInBytes > 0,
	};
	return blas_product(&product, stream);
}
