/* SPDX-License-Identifier: MIT
 * cuBLAS: handles and their settings.
 */
#include <stdlib.h>

#include "libraries/blas_api.h"

#define BLAS_VERSION (SIM_MAJOR == 12 ? 120805 : 130000)
/* What the real one takes of the device for its own use. */
#define DEFAULT_WORKSPACE ((size_t)32 << 20)

BLAS_API(cublasCreate_v2, (cublasHandle_t * handle), (handle))
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (library_ready() != 0)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = library_new(sizeof(**handle));
	if (!*handle)
		return CUBLAS_STATUS_ALLOC_FAILED;
	(*handle)->workspace_bytes = DEFAULT_WORKSPACE;
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasDestroy_v2, (cublasHandle_t handle), (handle))
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

/* A setting of the handle: `member` becomes `value`. */
#define SETTING(name, type, value, member)                                   \
	BLAS_API(name, (cublasHandle_t handle, type value), (handle, value)) \
	{                                                                    \
		if (!handle)                                                 \
			return CUBLAS_STATUS_NOT_INITIALIZED;                \
		handle->member = value;                                      \
		return CUBLAS_STATUS_SUCCESS;                                \
	}

#define QUESTION(name, type, answer, member)                                     \
	BLAS_API(name, (cublasHandle_t handle, type * answer), (handle, answer)) \
	{                                                                        \
		if (!handle)                                                     \
			return CUBLAS_STATUS_NOT_INITIALIZED;                    \
		*answer = handle->member;                                        \
		return CUBLAS_STATUS_SUCCESS;                                    \
	}

SETTING(cublasSetMathMode, cublasMath_t, mode, math)
QUESTION(cublasGetMathMode, cublasMath_t, mode, math)
SETTING(cublasSetPointerMode_v2, cublasPointerMode_t, mode, pointers)
QUESTION(cublasGetPointerMode_v2, cublasPointerMode_t, mode, pointers)
SETTING(cublasSetSmCountTarget, int, smCountTarget, multiprocessors)
QUESTION(cublasGetSmCountTarget, int, smCountTarget, multiprocessors)
QUESTION(cublasGetStream_v2, cudaStream_t, streamId, stream)

/* As the real one: a stream comes with the library's own workspace until it is given another. */
BLAS_API(cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t streamId), (handle, streamId))
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	handle->stream = streamId;
	handle->workspace = NULL;
	handle->workspace_bytes = DEFAULT_WORKSPACE;
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasSetWorkspace_v2,
	(cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes),
	(handle, workspace, workspaceSizeInBytes))
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if ((uintptr_t)workspace % 256 != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->workspace = workspace;
	handle->workspace_bytes = workspaceSizeInBytes;
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasGetVersion_v2, (cublasHandle_t handle, int *version), (handle, version))
{
	*version = BLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

BLAS_API(cublasGetProperty, (libraryPropertyType type, int *value), (type, value))
{
	const int properties[] = {
		[MAJOR_VERSION] = BLAS_VERSION / 10000,
		[MINOR_VERSION] = BLAS_VERSION / 100 % 100,
		[PATCH_LEVEL] = BLAS_VERSION % 100,
	};

	if (!value || type > PATCH_LEVEL)
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = properties[type];
	return CUBLAS_STATUS_SUCCESS;
}

LIBRARY_API(const char *, cublasGetStatusString, (cublasStatus_t status), (status), "forked")
{
	switch ((int)status) {
	case CUBLAS_STATUS_SUCCESS:
		return "the operation completed successfully";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "the library was not initialized";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "an unsupported value or parameter was passed to the function";
	case CUBLAS_STATUS_EXECUTION_FAILED:
		return "the function failed to launch on the GPU";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "the functionality requested is not supported";
	default:
		return "an internal operation failed";
	}
}
