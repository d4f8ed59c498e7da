/* SPDX-License-Identifier: MIT
 * cuDNN: recurrent networks by the interface that cuDNN 8 brought and 9 has.
 */
#include <string.h>

#include "libraries/dnn_rnn.h"

DNN_API(cudnnCreateRNNDescriptor, (cudnnRNNDescriptor_t * rnnDesc), (rnnDesc))
{
	return dnn_create(rnnDesc, sizeof(**rnnDesc));
}

DNN_API(cudnnDestroyRNNDescriptor, (cudnnRNNDescriptor_t rnnDesc), (rnnDesc))
{
	return dnn_destroy(rnnDesc);
}

DNN_API(cudnnSetRNNDescriptor_v8,
	(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode,
		cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode,
		cudnnRNNInputMode_t inputMode, cudnnDataType_t dataType, cudnnDataType_t mathPrec,
		cudnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize, int32_t projSize,
		int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags),
	(rnnDesc, algo, cellMode, biasMode, dirMode, inputMode, dataType, mathPrec, mathType,
		inputSize, hiddenSize, projSize, numLayers, dropoutDesc, auxFlags))
{
	if (!rnnDesc || inputSize < 1 || hiddenSize < 1 || numLayers < 1 || projSize < 0 ||
		projSize > hiddenSize)
		return CUDNN_STATUS_BAD_PARAM;
	/* One kind of bias is as wide as half of both; nobody asks for it. */
	if (biasMode != CUDNN_RNN_NO_BIAS && biasMode != CUDNN_RNN_DOUBLE_BIAS)
		return CUDNN_STATUS_NOT_SUPPORTED;
	rnnDesc->mode = cellMode;
	rnnDesc->type = dataType;
	rnnDesc->biased = biasMode != CUDNN_RNN_NO_BIAS;
	rnnDesc->directions = dirMode == CUDNN_BIDIRECTIONAL ? 2 : 1;
	rnnDesc->input = inputSize;
	rnnDesc->hidden = hiddenSize;
	/* As wide as the hidden state is how "none" is said. */
	rnnDesc->projection = projSize == hiddenSize ? 0 : projSize;
	rnnDesc->layers = numLayers;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnCreateRNNDataDescriptor, (cudnnRNNDataDescriptor_t * rnnDataDesc), (rnnDataDesc))
{
	return dnn_create(rnnDataDesc, sizeof(**rnnDataDesc));
}

DNN_API(cudnnDestroyRNNDataDescriptor, (cudnnRNNDataDescriptor_t rnnDataDesc), (rnnDataDesc))
{
	return dnn_destroy(rnnDataDesc);
}

DNN_API(cudnnSetRNNDataDescriptor,
	(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType,
		cudnnRNNDataLayout_t layout, int maxSeqLength, int batchSize, int vectorSize,
		const int seqLengthArray[], void *paddingFill),
	(rnnDataDesc, dataType, layout, maxSeqLength, batchSize, vectorSize, seqLengthArray,
		paddingFill))
{
	if (!rnnDataDesc || maxSeqLength < 1 || batchSize < 1 || vectorSize < 1)
		return CUDNN_STATUS_BAD_PARAM;
	*rnnDataDesc = (struct cudnnRNNDataStruct){ maxSeqLength, batchSize, vectorSize };
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetRNNWeightSpaceSize,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, size_t *weightSpaceSize),
	(handle, rnnDesc, weightSpaceSize))
{
	*weightSpaceSize = dnn_rnn_weights(rnnDesc) * dnn_bytes(rnnDesc->type);
	return CUDNN_STATUS_SUCCESS;
}

/* Describes `rows` of `columns`, as cuDNN does: with a leading 1. */
static void describe(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rows, int columns)
{
	if (tensor)
		*tensor = (struct cudnnTensorStruct){
			.type = type,
			.count = 3,
			.dims = { 1, rows, columns },
			.strides = { rows * columns, columns, 1 },
		};
}

DNN_API(cudnnGetRNNWeightParams,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer,
		size_t weightSpaceSize, const void *weightSpace, int32_t linLayerID,
		cudnnTensorDescriptor_t mDesc, void **mAddr, cudnnTensorDescriptor_t bDesc,
		void **bAddr),
	(handle, rnnDesc, pseudoLayer, weightSpaceSize, weightSpace, linLayerID, mDesc, mAddr,
		bDesc, bAddr))
{
	size_t bytes = dnn_bytes(rnnDesc->type), matrix;
	int rows, columns;
	char *space = (char *)(uintptr_t)weightSpace;

	if (!dnn_rnn_has(rnnDesc, pseudoLayer, linLayerID))
		return CUDNN_STATUS_BAD_PARAM;
	matrix = dnn_rnn_matrix(rnnDesc, pseudoLayer, linLayerID, &rows, &columns);
	describe(mDesc, rnnDesc->type, rows, columns);
	if (mAddr)
		*mAddr = space + matrix * bytes;
	/* Who asks for the matrix alone gives no places for the bias. */
	if (bDesc)
		memset(bDesc, 0, sizeof(*bDesc));
	if (bAddr)
		*bAddr = NULL;
	if (!bAddr || !rnnDesc->biased || linLayerID == DNN_PROJECTION_ID)
		return CUDNN_STATUS_SUCCESS;
	*bAddr = space + dnn_rnn_bias(rnnDesc, pseudoLayer, linLayerID) * bytes;
	describe(bDesc, rnnDesc->type, rnnDesc->hidden, 1);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetRNNTempSpaceSizes,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
		cudnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize, size_t *reserveSpaceSize),
	(handle, rnnDesc, fwdMode, xDesc, workSpaceSize, reserveSpaceSize))
{
	if (workSpaceSize)
		*workSpaceSize = dnn_rnn_workspace(rnnDesc, xDesc);
	if (reserveSpaceSize)
		*reserveSpaceSize = fwdMode == CUDNN_FWD_MODE_TRAINING
					    ? dnn_rnn_reserve(rnnDesc, xDesc)
					    : 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnRNNForward,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
		const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
		cudnnRNNDataDescriptor_t yDesc, void *y, cudnnTensorDescriptor_t hDesc,
		const void *hx, void *hy, cudnnTensorDescriptor_t cDesc, const void *cx, void *cy,
		size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize,
		void *workSpace, size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, fwdMode, devSeqLengths, xDesc, x, yDesc, y, hDesc, hx, hy, cDesc, cx, cy,
		weightSpaceSize, weightSpace, workSpaceSize, workSpace, reserveSpaceSize,
		reserveSpace))
{
	return dnn_rnn_forward(handle, rnnDesc, xDesc);
}

DNN_API(cudnnRNNBackwardData_v8,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
		cudnnRNNDataDescriptor_t yDesc, const void *y, const void *dy,
		cudnnRNNDataDescriptor_t xDesc, void *dx, cudnnTensorDescriptor_t hDesc,
		const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t cDesc,
		const void *cx, const void *dcy, void *dcx, size_t weightSpaceSize,
		const void *weightSpace, size_t workSpaceSize, void *workSpace,
		size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, devSeqLengths, yDesc, y, dy, xDesc, dx, hDesc, hx, dhy, dhx, cDesc, cx,
		dcy, dcx, weightSpaceSize, weightSpace, workSpaceSize, workSpace, reserveSpaceSize,
		reserveSpace))
{
	return dnn_rnn_backward(handle, rnnDesc, xDesc);
}

DNN_API(cudnnRNNBackwardWeights_v8,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad,
		const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
		cudnnTensorDescriptor_t hDesc, const void *hx, cudnnRNNDataDescriptor_t yDesc,
		const void *y, size_t weightSpaceSize, void *dweightSpace, size_t workSpaceSize,
		void *workSpace, size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, addGrad, devSeqLengths, xDesc, x, hDesc, hx, yDesc, y, weightSpaceSize,
		dweightSpace, workSpaceSize, workSpace, reserveSpaceSize, reserveSpace))
{
	return dnn_rnn_gradients(handle, rnnDesc, xDesc);
}
