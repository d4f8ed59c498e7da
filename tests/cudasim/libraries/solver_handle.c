/* SPDX-License-Identifier: MIT
 * cuSOLVER: handles, parameters, and what its parts share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries/solver_api.h"

#define THREADS 256

static cusolverStatus_t create(void *out, size_t bytes)
{
	void *made = library_new(bytes);

	if (!made)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	memcpy(out, &made, sizeof(made));
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t destroy(void *made)
{
	free(made);
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnCreate, (cusolverDnHandle_t * handle), (handle))
{
	return library_ready() == 0 ? create(handle, sizeof(**handle))
				    : CUSOLVER_STATUS_NOT_INITIALIZED;
}

SOLVER_API(cusolverDnDestroy, (cusolverDnHandle_t handle), (handle))
{
	return destroy(handle);
}

SOLVER_API(
	cusolverDnSetStream, (cusolverDnHandle_t handle, cudaStream_t streamId), (handle, streamId))
{
	if (!handle)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	handle->stream = streamId;
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnCreateParams, (cusolverDnParams_t * params), (params))
{
	return create(params, 1);
}

SOLVER_API(cusolverDnDestroyParams, (cusolverDnParams_t params), (params))
{
	return destroy(params);
}

SOLVER_API(cusolverDnCreateSyevjInfo, (syevjInfo_t * info), (info))
{
	return create(info, 1);
}

SOLVER_API(cusolverDnDestroySyevjInfo, (syevjInfo_t info), (info))
{
	return destroy(info);
}

SOLVER_API(cusolverDnXsyevjSetSortEig, (syevjInfo_t info, int sort_eig), (info, sort_eig))
{
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnCreateGesvdjInfo, (gesvdjInfo_t * info), (info))
{
	return create(info, 1);
}

SOLVER_API(cusolverDnDestroyGesvdjInfo, (gesvdjInfo_t info), (info))
{
	return destroy(info);
}

SOLVER_API(cusolverDnXgesvdjSetTolerance, (gesvdjInfo_t info, double tolerance), (info, tolerance))
{
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXgesvdjSetMaxSweeps, (gesvdjInfo_t info, int max_sweeps), (info, max_sweeps))
{
	return CUSOLVER_STATUS_SUCCESS;
}

SOLVER_API(cusolverDnXgesvdjSetSortEig, (gesvdjInfo_t info, int sort_svd), (info, sort_svd))
{
	return CUSOLVER_STATUS_SUCCESS;
}

const char *solver_type(cudaDataType type)
{
	switch (type) {
	case CUDA_R_64F:
		return "d";
	case CUDA_C_32F:
		return "6float2";
	case CUDA_C_64F:
		return "7double2";
	default:
		return "f";
	}
}

cusolverStatus_t solver_launch(cusolverDnHandle_t handle, const char *name, const char *type,
	int64_t rows, int64_t columns, int64_t batch)
{
	char mangled[128];
	struct library_kernel kernel = { .name = mangled, .block = { THREADS, 1, 1 } };

	if (!handle)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (rows < 0 || columns < 0 || batch < 0)
		return CUSOLVER_STATUS_INVALID_VALUE;
	snprintf(mangled, sizeof(mangled), "_Z%zu%sI%sLi32EEviiPT_iPi", strlen(name), name, type);
	kernel.grid = library_grid((uint64_t)(rows * columns * batch), THREADS, 4, 65535);
	return library_launch(&kernel, handle->stream) == 0 ? CUSOLVER_STATUS_SUCCESS
							    : CUSOLVER_STATUS_EXECUTION_FAILED;
}
