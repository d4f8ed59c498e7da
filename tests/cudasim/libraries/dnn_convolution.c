/* SPDX-License-Identifier: MIT
 * cuDNN: convolutions by the older interface. One algorithm each, which the searches find and the
 * heuristics name.
 */
#include <string.h>

#include "libraries/dnn_api.h"

#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define BACKWARD_DATA CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define BACKWARD_FILTER CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1
#define WORKSPACE_BYTES ((size_t)1 << 20)
#define SEARCH_MS 0.01f /* what the search says the algorithm took */

#define FORWARD_KERNEL "implicit_convolve_sgemm_128x128x8"
#define BACKWARD_DATA_KERNEL "dgrad_engine_128x128x8"
#define BACKWARD_FILTER_KERNEL "wgrad_alg1_engine_128x128x8"
#define BIAS_KERNEL "_ZN5cudnn3ops20addBiasActivationKernelIffEEv17cudnnTensorStructPKT_PT0_"

static cudnnStatus_t convolve(
	cudnnHandle_t handle, const char *name, const struct cudnnTensorStruct *tensor)
{
	return tensor ? dnn_launch(handle, name, dnn_elements(tensor->dims, tensor->count), 256)
		      : CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnConvolutionForward,
	(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc,
		const void *x, const cudnnFilterDescriptor_t wDesc, const void *w,
		const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
		void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
		const cudnnTensorDescriptor_t yDesc, void *y),
	(handle, alpha, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
		yDesc, y))
{
	return convolve(handle, FORWARD_KERNEL, yDesc);
}

DNN_API(cudnnConvolutionBiasActivationForward,
	(cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t xDesc,
		const void *x, const cudnnFilterDescriptor_t wDesc, const void *w,
		const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
		void *workSpace, size_t workSpaceSizeInBytes, const void *alpha2,
		const cudnnTensorDescriptor_t zDesc, const void *z,
		const cudnnTensorDescriptor_t biasDesc, const void *bias,
		const cudnnActivationDescriptor_t activationDesc,
		const cudnnTensorDescriptor_t yDesc, void *y),
	(handle, alpha1, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes,
		alpha2, zDesc, z, biasDesc, bias, activationDesc, yDesc, y))
{
	cudnnStatus_t status = convolve(handle, FORWARD_KERNEL, yDesc);

	return status == CUDNN_STATUS_SUCCESS ? convolve(handle, BIAS_KERNEL, yDesc) : status;
}

DNN_API(cudnnConvolutionBackwardData,
	(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wDesc,
		const void *w, const cudnnTensorDescriptor_t dyDesc, const void *dy,
		const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionBwdDataAlgo_t algo,
		void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
		const cudnnTensorDescriptor_t dxDesc, void *dx),
	(handle, alpha, wDesc, w, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
		dxDesc, dx))
{
	return convolve(handle, BACKWARD_DATA_KERNEL, dxDesc);
}

DNN_API(cudnnConvolutionBackwardFilter,
	(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xDesc,
		const void *x, const cudnnTensorDescriptor_t dyDesc, const void *dy,
		const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionBwdFilterAlgo_t algo,
		void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
		const cudnnFilterDescriptor_t dwDesc, void *dw),
	(handle, alpha, xDesc, x, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
		dwDesc, dw))
{
	return convolve(handle, BACKWARD_FILTER_KERNEL, xDesc);
}

/* Fills the one result that there is. */
#define ANSWER(results, requested, returned, algorithm)       \
	do {                                                  \
		if ((requested) < 1)                          \
			return CUDNN_STATUS_BAD_PARAM;        \
		memset(results, 0, sizeof(*(results)));       \
		(results)->algo = algorithm;                  \
		(results)->status = CUDNN_STATUS_SUCCESS;     \
		(results)->time = SEARCH_MS;                  \
		(results)->memory = WORKSPACE_BYTES;          \
		(results)->determinism = CUDNN_DETERMINISTIC; \
		*(returned) = 1;                              \
	} while (0)

DNN_API(cudnnGetConvolutionForwardAlgorithm_v7,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
		const cudnnFilterDescriptor_t filterDesc,
		const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t destDesc,
		const int requestedAlgoCount, int *returnedAlgoCount,
		cudnnConvolutionFwdAlgoPerf_t *perfResults),
	(handle, srcDesc, filterDesc, convDesc, destDesc, requestedAlgoCount, returnedAlgoCount,
		perfResults))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, FORWARD);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetConvolutionBackwardDataAlgorithm_v7,
	(cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
		const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
		const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount,
		int *returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t *perfResults),
	(handle, filterDesc, diffDesc, convDesc, gradDesc, requestedAlgoCount, returnedAlgoCount,
		perfResults))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, BACKWARD_DATA);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetConvolutionBackwardFilterAlgorithm_v7,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
		const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
		const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount,
		int *returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t *perfResults),
	(handle, srcDesc, diffDesc, convDesc, gradDesc, requestedAlgoCount, returnedAlgoCount,
		perfResults))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, BACKWARD_FILTER);
	return CUDNN_STATUS_SUCCESS;
}

/* The searches run what they measure. */
DNN_API(cudnnFindConvolutionForwardAlgorithmEx,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
		const cudnnFilterDescriptor_t wDesc, const void *w,
		const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
		void *y, const int requestedAlgoCount, int *returnedAlgoCount,
		cudnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace,
		size_t workSpaceSizeInBytes),
	(handle, xDesc, x, wDesc, w, convDesc, yDesc, y, requestedAlgoCount, returnedAlgoCount,
		perfResults, workSpace, workSpaceSizeInBytes))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, FORWARD);
	return convolve(handle, FORWARD_KERNEL, yDesc);
}

DNN_API(cudnnFindConvolutionBackwardDataAlgorithmEx,
	(cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void *w,
		const cudnnTensorDescriptor_t dyDesc, const void *dy,
		const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
		void *dx, const int requestedAlgoCount, int *returnedAlgoCount,
		cudnnConvolutionBwdDataAlgoPerf_t *perfResults, void *workSpace,
		size_t workSpaceSizeInBytes),
	(handle, wDesc, w, dyDesc, dy, convDesc, dxDesc, dx, requestedAlgoCount, returnedAlgoCount,
		perfResults, workSpace, workSpaceSizeInBytes))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, BACKWARD_DATA);
	return convolve(handle, BACKWARD_DATA_KERNEL, dxDesc);
}

DNN_API(cudnnFindConvolutionBackwardFilterAlgorithmEx,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void *x,
		const cudnnTensorDescriptor_t dyDesc, const void *y,
		const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc,
		void *dw, const int requestedAlgoCount, int *returnedAlgoCount,
		cudnnConvolutionBwdFilterAlgoPerf_t *perfResults, void *workSpace,
		size_t workSpaceSizeInBytes),
	(handle, xDesc, x, dyDesc, y, convDesc, dwDesc, dw, requestedAlgoCount, returnedAlgoCount,
		perfResults, workSpace, workSpaceSizeInBytes))
{
	ANSWER(perfResults, requestedAlgoCount, returnedAlgoCount, BACKWARD_FILTER);
	return convolve(handle, BACKWARD_FILTER_KERNEL, xDesc);
}

DNN_API(cudnnGetConvolutionForwardWorkspaceSize,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
		const cudnnFilterDescriptor_t wDesc, const cudnnConvolutionDescriptor_t convDesc,
		const cudnnTensorDescriptor_t yDesc, cudnnConvolutionFwdAlgo_t algo,
		size_t *sizeInBytes),
	(handle, xDesc, wDesc, convDesc, yDesc, algo, sizeInBytes))
{
	*sizeInBytes = WORKSPACE_BYTES;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetConvolutionBackwardDataWorkspaceSize,
	(cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc,
		const cudnnTensorDescriptor_t dyDesc, const cudnnConvolutionDescriptor_t convDesc,
		const cudnnTensorDescriptor_t dxDesc, cudnnConvolutionBwdDataAlgo_t algo,
		size_t *sizeInBytes),
	(handle, wDesc, dyDesc, convDesc, dxDesc, algo, sizeInBytes))
{
	*sizeInBytes = WORKSPACE_BYTES;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetConvolutionBackwardFilterWorkspaceSize,
	(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
		const cudnnTensorDescriptor_t dyDesc, const cudnnConvolutionDescriptor_t convDesc,
		const cudnnFilterDescriptor_t gradDesc, cudnnConvolutionBwdFilterAlgo_t algo,
		size_t *sizeInBytes),
	(handle, xDesc, dyDesc, convDesc, gradDesc, algo, sizeInBytes))
{
	*sizeInBytes = WORKSPACE_BYTES;
	return CUDNN_STATUS_SUCCESS;
}
