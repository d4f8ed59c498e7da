/* SPDX-License-Identifier: MIT
 * cuDNN: recurrent networks. Of the weights' buffer: the matrices of all layers come first, of each layer (and direction)
 * those on the input, then those on the hidden state, each gate after gate, then the projection; after the last matrix
 * come the biases in the same order. A layer in a direction is a pseudo layer.
 */
#include <stdio.h>
#include <string.h>

#include "dnn_api.h"

#define KERNEL_NAME_BYTES 128
#define GEMM "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__cudnn"
#define GEMM_WEIGHTS "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__cudnn"
#define BIAS_WEIGHTS "_Z22RNN_biasGradientKernelIffEviiPKT_PT0_"
#define PROJECTION_ID 8 /* of the projection's matrix among an LSTM's */

struct cudnnRNNStruct {
	cudnnRNNMode_t mode;
	cudnnDataType_t type;
	bool biased;
	int directions;
	int input, hidden, projection; /* widths; no projection: 0 */
	int layers;
};

struct cudnnRNNDataStruct {
	int steps, batch, width;
};

DNN_API(cudnnCreateRNNDescriptor, (cudnnRNNDescriptor_t * rnnDesc), (rnnDesc))
{
	return dnn_create(rnnDesc, sizeof(**rnnDesc));
}

DNN_API(cudnnDestroyRNNDescriptor, (cudnnRNNDescriptor_t rnnDesc), (rnnDesc))
{
	return dnn_destroy(rnnDesc);
}

DNN_API(cudnnSetRNNDescriptor_v8,
	(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode,
		cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode, cudnnDataType_t dataType,
		cudnnDataType_t mathPrec, cudnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize,
		int32_t projSize, int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags),
	(rnnDesc, algo, cellMode, biasMode, dirMode, inputMode, dataType, mathPrec, mathType, inputSize, hiddenSize,
		projSize, numLayers, dropoutDesc, auxFlags))
{
	if (!rnnDesc || inputSize < 1 || hiddenSize < 1 || numLayers < 1 || projSize < 0 || projSize > hiddenSize)
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
	(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType, cudnnRNNDataLayout_t layout, int maxSeqLength,
		int batchSize, int vectorSize, const int seqLengthArray[], void *paddingFill),
	(rnnDataDesc, dataType, layout, maxSeqLength, batchSize, vectorSize, seqLengthArray, paddingFill))
{
	if (!rnnDataDesc || maxSeqLength < 1 || batchSize < 1 || vectorSize < 1)
		return CUDNN_STATUS_BAD_PARAM;
	*rnnDataDesc = (struct cudnnRNNDataStruct){ maxSeqLength, batchSize, vectorSize };
	return CUDNN_STATUS_SUCCESS;
}

static int gates(const struct cudnnRNNStruct *rnn)
{
	return rnn->mode == CUDNN_LSTM ? 4 : rnn->mode == CUDNN_GRU ? 3 : 1;
}

/* What a layer hands on, in one direction. */
static int state_width(const struct cudnnRNNStruct *rnn)
{
	return rnn->projection ? rnn->projection : rnn->hidden;
}

static int input_width(const struct cudnnRNNStruct *rnn, int pseudo_layer)
{
	return pseudo_layer < rnn->directions ? rnn->input : state_width(rnn) * rnn->directions;
}

/* Elements of the matrices of one pseudo layer. */
static size_t matrices(const struct cudnnRNNStruct *rnn, int pseudo_layer)
{
	size_t inputs = (size_t)input_width(rnn, pseudo_layer) + (size_t)state_width(rnn);

	return (size_t)gates(rnn) * (size_t)rnn->hidden * inputs + (size_t)rnn->projection * (size_t)rnn->hidden;
}

static size_t all_matrices(const struct cudnnRNNStruct *rnn, int pseudo_layers)
{
	size_t elements = 0;

	for (int i = 0; i < pseudo_layers; i++)
		elements += matrices(rnn, i);
	return elements;
}

/* Elements of the biases of one pseudo layer. */
static size_t biases(const struct cudnnRNNStruct *rnn)
{
	return rnn->biased ? 2 * (size_t)gates(rnn) * (size_t)rnn->hidden : 0;
}

static int pseudo_layers(const struct cudnnRNNStruct *rnn)
{
	return rnn->layers * rnn->directions;
}

DNN_API(cudnnGetRNNWeightSpaceSize, (cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, size_t *weightSpaceSize),
	(handle, rnnDesc, weightSpaceSize))
{
	int layers = pseudo_layers(rnnDesc);

	*weightSpaceSize = (all_matrices(rnnDesc, layers) + (size_t)layers * biases(rnnDesc)) * dnn_bytes(rnnDesc->type);
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

/* Where the matrix `id` of a pseudo layer begins, in elements, and its shape. */
static size_t find_matrix(const struct cudnnRNNStruct *rnn, int pseudo_layer, int id, int *rows, int *columns)
{
	size_t at = all_matrices(rnn, pseudo_layer), hidden = (size_t)rnn->hidden;
	int input = input_width(rnn, pseudo_layer), state = state_width(rnn), of_input = gates(rnn);

	*rows = rnn->hidden;
	*columns = id < of_input ? input : state;
	if (id < of_input)
		return at + (size_t)id * hidden * (size_t)input;
	at += (size_t)of_input * hidden * (size_t)input;
	if (id < 2 * of_input)
		return at + (size_t)(id - of_input) * hidden * (size_t)state;
	*rows = rnn->projection;
	*columns = rnn->hidden;
	return at + (size_t)of_input * hidden * (size_t)state;
}

static bool has_matrix(const struct cudnnRNNStruct *rnn, int id)
{
	return id >= 0 && (id < 2 * gates(rnn) || (id == PROJECTION_ID && rnn->projection));
}

DNN_API(cudnnGetRNNWeightParams,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer, size_t weightSpaceSize,
		const void *weightSpace, int32_t linLayerID, cudnnTensorDescriptor_t mDesc, void **mAddr,
		cudnnTensorDescriptor_t bDesc, void **bAddr),
	(handle, rnnDesc, pseudoLayer, weightSpaceSize, weightSpace, linLayerID, mDesc, mAddr, bDesc, bAddr))
{
	size_t bytes = dnn_bytes(rnnDesc->type), matrix, bias;
	int rows, columns, layers = pseudo_layers(rnnDesc);
	char *space = (char *)(uintptr_t)weightSpace;

	if (pseudoLayer < 0 || pseudoLayer >= layers || !has_matrix(rnnDesc, linLayerID))
		return CUDNN_STATUS_BAD_PARAM;
	matrix = find_matrix(rnnDesc, pseudoLayer, linLayerID, &rows, &columns);
	describe(mDesc, rnnDesc->type, rows, columns);
	if (mAddr)
		*mAddr = space + matrix * bytes;
	/* Who asks for the matrix alone gives no places for the bias. */
	if (bDesc)
		memset(bDesc, 0, sizeof(*bDesc));
	if (bAddr)
		*bAddr = NULL;
	if (!bAddr || !rnnDesc->biased || linLayerID == PROJECTION_ID)
		return CUDNN_STATUS_SUCCESS;
	bias = all_matrices(rnnDesc, layers) + (size_t)pseudoLayer * biases(rnnDesc);
	*bAddr = space + (bias + (size_t)linLayerID * (size_t)rnnDesc->hidden) * bytes;
	describe(bDesc, rnnDesc->type, rnnDesc->hidden, 1);
	return CUDNN_STATUS_SUCCESS;
}

/* Elements of all gates of a layer over all steps. */
static uint64_t gate_elements(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	return (uint64_t)x->steps * (uint64_t)x->batch * (uint64_t)gates(rnn) * (uint64_t)rnn->hidden;
}

DNN_API(cudnnGetRNNTempSpaceSizes,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode, cudnnRNNDataDescriptor_t xDesc,
		size_t *workSpaceSize, size_t *reserveSpaceSize),
	(handle, rnnDesc, fwdMode, xDesc, workSpaceSize, reserveSpaceSize))
{
	size_t bytes = (size_t)gate_elements(rnnDesc, xDesc) * dnn_bytes(rnnDesc->type);

	if (workSpaceSize)
		*workSpaceSize = bytes * (size_t)rnnDesc->directions;
	if (reserveSpaceSize)
		*reserveSpaceSize = fwdMode == CUDNN_FWD_MODE_TRAINING ? bytes * (size_t)pseudo_layers(rnnDesc) : 0;
	return CUDNN_STATUS_SUCCESS;
}

/* The kernel that goes through all steps of a layer. */
static cudnnStatus_t steps(
	cudnnHandle_t handle, const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x, const char *direction)
{
	const char *cell = rnn->mode == CUDNN_LSTM ? "LSTM" : rnn->mode == CUDNN_GRU ? "GRU" : "RNN";
	char function[KERNEL_NAME_BYTES / 2], name[KERNEL_NAME_BYTES];
	char letter = dnn_bytes(rnn->type) == 8 ? 'd' : 'f';

	snprintf(function, sizeof(function), "RNN_blockPersist_%s_%s", direction, cell);
	snprintf(name, sizeof(name), "_Z%zu%sI%c%cLi128EEv25RNNBlockPersistenceParamsPT_PT0_", strlen(function), function,
		letter, letter);
	return dnn_launch(handle, name, gate_elements(rnn, x), 128);
}

static cudnnStatus_t layer_forward(
	cudnnHandle_t handle, const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	cudnnStatus_t status = dnn_launch(handle, GEMM, gate_elements(rnn, x), 128);

	return status == CUDNN_STATUS_SUCCESS ? steps(handle, rnn, x, "fp") : status;
}

static cudnnStatus_t layer_backward(
	cudnnHandle_t handle, const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	cudnnStatus_t status = steps(handle, rnn, x, "bp");

	return status == CUDNN_STATUS_SUCCESS ? dnn_launch(handle, GEMM, gate_elements(rnn, x), 128) : status;
}

static cudnnStatus_t layer_weights(
	cudnnHandle_t handle, const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	cudnnStatus_t status = dnn_launch(handle, GEMM_WEIGHTS, gate_elements(rnn, x), 128);

	return status == CUDNN_STATUS_SUCCESS && rnn->biased
		       ? dnn_launch(handle, BIAS_WEIGHTS, gate_elements(rnn, x), 128)
		       : status;
}

static cudnnStatus_t each_layer(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x,
	cudnnStatus_t (*layer)(cudnnHandle_t, const struct cudnnRNNStruct *, const struct cudnnRNNDataStruct *))
{
	cudnnStatus_t status = rnn && x ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;

	for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < pseudo_layers(rnn); i++)
		status = layer(handle, rnn, x);
	return status;
}

DNN_API(cudnnRNNForward,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode, const int32_t devSeqLengths[],
		cudnnRNNDataDescriptor_t xDesc, const void *x, cudnnRNNDataDescriptor_t yDesc, void *y,
		cudnnTensorDescriptor_t hDesc, const void *hx, void *hy, cudnnTensorDescriptor_t cDesc, const void *cx,
		void *cy, size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize, void *workSpace,
		size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, fwdMode, devSeqLengths, xDesc, x, yDesc, y, hDesc, hx, hy, cDesc, cx, cy, weightSpaceSize,
		weightSpace, workSpaceSize, workSpace, reserveSpaceSize, reserveSpace))
{
	return each_layer(handle, rnnDesc, xDesc, layer_forward);
}

DNN_API(cudnnRNNBackwardData_v8,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t yDesc,
		const void *y, const void *dy, cudnnRNNDataDescriptor_t xDesc, void *dx, cudnnTensorDescriptor_t hDesc,
		const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t cDesc, const void *cx, const void *dcy,
		void *dcx, size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize, void *workSpace,
		size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, devSeqLengths, yDesc, y, dy, xDesc, dx, hDesc, hx, dhy, dhx, cDesc, cx, dcy, dcx, weightSpaceSize,
		weightSpace, workSpaceSize, workSpace, reserveSpaceSize, reserveSpace))
{
	return each_layer(handle, rnnDesc, xDesc, layer_backward);
}

DNN_API(cudnnRNNBackwardWeights_v8,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad, const int32_t devSeqLengths[],
		cudnnRNNDataDescriptor_t xDesc, const void *x, cudnnTensorDescriptor_t hDesc, const void *hx,
		cudnnRNNDataDescriptor_t yDesc, const void *y, size_t weightSpaceSize, void *dweightSpace,
		size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize, void *reserveSpace),
	(handle, rnnDesc, addGrad, devSeqLengths, xDesc, x, hDesc, hx, yDesc, y, weightSpaceSize, dweightSpace,
		workSpaceSize, workSpace, reserveSpaceSize, reserveSpace))
{
	return each_layer(handle, rnnDesc, xDesc, layer_weights);
}
