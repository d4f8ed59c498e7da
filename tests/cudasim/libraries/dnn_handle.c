/* SPDX-License-Identifier: MIT
 * cuDNN: handles, versions, texts, and what its parts share.
 */
#include <stdlib.h>
#include <string.h>

#include "libraries/dnn_api.h"

/* As new as what PyTorch's newest wheels for that CUDA, and that cuDNN, were built with. */
#ifndef DNN_MAJOR
#define DNN_MAJOR 9
#endif
#define DNN_MINOR (DNN_MAJOR == 8 ? 9 : SIM_MAJOR == 12 ? 10 : 26)
#define DNN_VERSION (DNN_MAJOR == 8 ? 8902 : DNN_MAJOR * 10000 + DNN_MINOR * 100)

LIBRARY_API(size_t, cudnnGetVersion, (void), (), DNN_VERSION)
{
	return DNN_VERSION;
}

LIBRARY_API(size_t, cudnnGetCudartVersion, (void), (), SIM_CUDA_VERSION)
{
	return SIM_CUDA_VERSION;
}

DNN_API(cudnnGetProperty, (libraryPropertyType type, int *value), (type, value))
{
	*value = type == MAJOR_VERSION ? DNN_MAJOR : type == MINOR_VERSION ? DNN_MINOR : 0;
	return CUDNN_STATUS_SUCCESS;
}

static const char *text(cudnnStatus_t status)
{
	switch ((int)status) {
	case CUDNN_STATUS_SUCCESS:
		return "CUDNN_STATUS_SUCCESS";
	case CUDNN_STATUS_NOT_INITIALIZED:
		return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_BAD_PARAM:
		return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_STATUS_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_STATUS_EXECUTION_FAILED:
		return "CUDNN_STATUS_EXECUTION_FAILED";
	default:
		return "CUDNN_UNKNOWN_STATUS";
	}
}

LIBRARY_API(const char *, cudnnGetErrorString, (cudnnStatus_t status), (status), text(status))
{
	return text(status);
}

SIM_EXPORT void cudnnGetLastErrorString(char *message, size_t max_size);
SIM_EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
	if (max_size)
		message[0] = '\0';
}

DNN_API(cudnnCreate, (cudnnHandle_t * handle), (handle))
{
	if (library_ready() != 0)
		return CUDNN_STATUS_NOT_INITIALIZED;
	return dnn_create(handle, sizeof(**handle));
}

DNN_API(cudnnDestroy, (cudnnHandle_t handle), (handle))
{
	return dnn_destroy(handle);
}

DNN_API(cudnnSetStream, (cudnnHandle_t handle, cudaStream_t streamId), (handle, streamId))
{
	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	handle->stream = streamId;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetStream, (cudnnHandle_t handle, cudaStream_t *streamId), (handle, streamId))
{
	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	*streamId = handle->stream;
	return CUDNN_STATUS_SUCCESS;
}

size_t dnn_bytes(cudnnDataType_t type)
{
	switch ((int)type) {
	case CUDNN_DATA_DOUBLE:
	case CUDNN_DATA_INT64:
		return 8;
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32:
		return 4;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16:
		return 2;
	default:
		return 1;
	}
}

uint64_t dnn_elements(const int *dims, int count)
{
	uint64_t elements = 1;

	for (int i = 0; i < count; i++)
		elements *= dims[i] > 0 ? (uint64_t)dims[i] : 1;
	return elements;
}

cudnnStatus_t dnn_launch(cudnnHandle_t handle, const char *name, uint64_t elements, unsigned block)
{
	struct library_kernel kernel = {
		.name = name,
		.grid = library_grid(elements, block, 4, 65535),
		.block = { block, 1, 1 },
	};

	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	return library_launch(&kernel, handle->stream) == 0 ? CUDNN_STATUS_SUCCESS
							    : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t dnn_create(void *descriptor, size_t bytes)
{
	void *made = library_new(bytes);

	if (!made)
		return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	memcpy(descriptor, &made, sizeof(made));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t dnn_destroy(void *descriptor)
{
	free(descriptor);
	return CUDNN_STATUS_SUCCESS;
}
