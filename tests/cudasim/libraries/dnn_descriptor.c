/* SPDX-License-Identifier: MIT
 * cuDNN: the descriptors of its older interface. Only what is asked back, or decides about a
 * kernel, is kept.
 */
#include <string.h>

#include "libraries/dnn_api.h"

struct cudnnDropoutStruct {
	void *states;
};

/* Made, set and forgotten. */
struct cudnnActivationStruct {
	cudnnActivationMode_t mode;
};

struct cudnnPoolingStruct {
	cudnnPoolingMode_t mode;
};

struct cudnnSpatialTransformerStruct {
	int count;
	int dims[CUDNN_DIM_MAX];
};

struct cudnnConvolutionStruct {
	int groups;
};

struct cudnnCTCLossStruct {
	cudnnDataType_t type;
};

#define MADE_AND_DESTROYED(noun)                                                           \
	DNN_API(cudnnCreate##noun##Descriptor, (cudnn##noun##Descriptor_t * made), (made)) \
	{                                                                                  \
		return dnn_create(made, sizeof(**made));                                   \
	}                                                                                  \
	DNN_API(cudnnDestroy##noun##Descriptor, (cudnn##noun##Descriptor_t descriptor),    \
		(descriptor))                                                              \
	{                                                                                  \
		return dnn_destroy(descriptor);                                            \
	}

MADE_AND_DESTROYED(Tensor)
MADE_AND_DESTROYED(Filter)
MADE_AND_DESTROYED(Activation)
MADE_AND_DESTROYED(Pooling)
MADE_AND_DESTROYED(Dropout)
MADE_AND_DESTROYED(Convolution)
MADE_AND_DESTROYED(SpatialTransformer)
MADE_AND_DESTROYED(CTCLoss)

static int shorter(int a, int b)
{
	return a < b ? a : b;
}

DNN_API(cudnnSetTensorNdDescriptor,
	(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int nbDims, const int dimA[],
		const int strideA[]),
	(tensorDesc, dataType, nbDims, dimA, strideA))
{
	if (!tensorDesc || nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return CUDNN_STATUS_BAD_PARAM;
	tensorDesc->type = dataType;
	tensorDesc->count = nbDims;
	memcpy(tensorDesc->dims, dimA, (size_t)nbDims * sizeof(*dimA));
	memcpy(tensorDesc->strides, strideA, (size_t)nbDims * sizeof(*strideA));
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetTensorNdDescriptor,
	(const cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested, cudnnDataType_t *dataType,
		int *nbDims, int dimA[], int strideA[]),
	(tensorDesc, nbDimsRequested, dataType, nbDims, dimA, strideA))
{
	size_t bytes = (size_t)shorter(nbDimsRequested, tensorDesc->count) * sizeof(int);

	*dataType = tensorDesc->type;
	*nbDims = tensorDesc->count;
	memcpy(dimA, tensorDesc->dims, bytes);
	memcpy(strideA, tensorDesc->strides, bytes);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetFilterNdDescriptor,
	(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType, cudnnTensorFormat_t format,
		int nbDims, const int filterDimA[]),
	(filterDesc, dataType, format, nbDims, filterDimA))
{
	if (!filterDesc || nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return CUDNN_STATUS_BAD_PARAM;
	filterDesc->type = dataType;
	filterDesc->format = format;
	filterDesc->count = nbDims;
	memcpy(filterDesc->dims, filterDimA, (size_t)nbDims * sizeof(*filterDimA));
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetFilterNdDescriptor,
	(const cudnnFilterDescriptor_t filterDesc, int nbDimsRequested, cudnnDataType_t *dataType,
		cudnnTensorFormat_t *format, int *nbDims, int filterDimA[]),
	(filterDesc, nbDimsRequested, dataType, format, nbDims, filterDimA))
{
	*dataType = filterDesc->type;
	*format = filterDesc->format;
	*nbDims = filterDesc->count;
	memcpy(filterDimA, filterDesc->dims,
		(size_t)shorter(nbDimsRequested, filterDesc->count) * sizeof(int));
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetActivationDescriptor,
	(cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t mode,
		cudnnNanPropagation_t reluNanOpt, double coef),
	(activationDesc, mode, reluNanOpt, coef))
{
	activationDesc->mode = mode;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetConvolutionNdDescriptor,
	(cudnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[],
		const int filterStrideA[], const int dilationA[], cudnnConvolutionMode_t mode,
		cudnnDataType_t computeType),
	(convDesc, arrayLength, padA, filterStrideA, dilationA, mode, computeType))
{
	return convDesc && arrayLength <= CUDNN_DIM_MAX ? CUDNN_STATUS_SUCCESS
							: CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnSetConvolutionGroupCount, (cudnnConvolutionDescriptor_t convDesc, int groupCount),
	(convDesc, groupCount))
{
	convDesc->groups = groupCount;
	return groupCount > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnSetConvolutionMathType,
	(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType), (convDesc, mathType))
{
	return convDesc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnSetPooling2dDescriptor,
	(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
		cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
		int verticalPadding, int horizontalPadding, int verticalStride,
		int horizontalStride),
	(poolingDesc, mode, maxpoolingNanOpt, windowHeight, windowWidth, verticalPadding,
		horizontalPadding, verticalStride, horizontalStride))
{
	poolingDesc->mode = mode;
	return windowHeight > 0 && windowWidth > 0 && verticalStride > 0 && horizontalStride > 0
		       ? CUDNN_STATUS_SUCCESS
		       : CUDNN_STATUS_BAD_PARAM;
}

/* The states of dropout: a generator for each thread that the device can run at once. */
#define STATES_BYTES ((size_t)132 * 2048 * 16)

DNN_API(cudnnDropoutGetStatesSize, (cudnnHandle_t handle, size_t *sizeInBytes),
	(handle, sizeInBytes))
{
	*sizeInBytes = STATES_BYTES;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetDropoutDescriptor,
	(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle, float dropout, void *states,
		size_t stateSizeInBytes, unsigned long long seed),
	(dropoutDesc, handle, dropout, states, stateSizeInBytes, seed))
{
	dropoutDesc->states = states;
	if (!states)
		return CUDNN_STATUS_SUCCESS;
	if (stateSizeInBytes < STATES_BYTES)
		return CUDNN_STATUS_BAD_PARAM;
	return dnn_launch(handle, "_ZN5cudnn7dropout18init_dropout_stateEyP17curandStateXORWOWi",
		STATES_BYTES / 16, 256);
}

DNN_API(cudnnRestoreDropoutDescriptor,
	(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle, float dropout, void *states,
		size_t stateSizeInBytes, unsigned long long seed),
	(dropoutDesc, handle, dropout, states, stateSizeInBytes, seed))
{
	dropoutDesc->states = states;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetSpatialTransformerNdDescriptor,
	(cudnnSpatialTransformerDescriptor_t stDesc, cudnnSamplerType_t samplerType,
		cudnnDataType_t dataType, const int nbDims, const int dimA[]),
	(stDesc, samplerType, dataType, nbDims, dimA))
{
	if (nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return CUDNN_STATUS_BAD_PARAM;
	stDesc->count = nbDims;
	memcpy(stDesc->dims, dimA, (size_t)nbDims * sizeof(*dimA));
	return CUDNN_STATUS_SUCCESS;
}

/* Grids are made from affine matrices, so their size is known from the descriptor alone. */
DNN_API(cudnnSpatialTfGridGeneratorForward,
	(cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *theta,
		void *grid),
	(handle, stDesc, theta, grid))
{
	return dnn_launch(handle, "_ZN5cudnn24grid_generator_fw_kernelIfEEviiiPKT_PS1_",
		dnn_elements(stDesc->dims, stDesc->count), 256);
}

DNN_API(cudnnSpatialTfGridGeneratorBackward,
	(cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
		void *dtheta),
	(handle, stDesc, dgrid, dtheta))
{
	return dnn_launch(handle, "_ZN5cudnn24grid_generator_bw_kernelIfEEviiiPKT_PS1_",
		dnn_elements(stDesc->dims, stDesc->count), 256);
}
