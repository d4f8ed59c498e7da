/* SPDX-License-Identifier: MIT
 * cuDNN 8: recurrent networks by the interface before, which 9 has no more and whose header is not
 * at hand. What is read of a sequence is a row of tensor descriptors, one a step, each of a batch
 * of vectors.
 */
#include <string.h>

#include "libraries/dnn_rnn.h"

typedef const cudnnTensorDescriptor_t *steps_t;

DNN_API(cudnnSetRNNDescriptor_v6,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int hidden, const int layers,
		cudnnDropoutDescriptor_t dropout, cudnnRNNInputMode_t input,
		cudnnDirectionMode_t direction, cudnnRNNMode_t mode, cudnnRNNAlgo_t algorithm,
		cudnnDataType_t precision),
	(handle, rnn, hidden, layers, dropout, input, direction, mode, algorithm, precision))
{
	if (!rnn || hidden < 1 || layers < 1)
		return CUDNN_STATUS_BAD_PARAM;
	*rnn = (struct cudnnRNNStruct){
		.mode = mode,
		.type = precision,
		.biased = true,
		.directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
		.input = hidden,
		.hidden = hidden,
		.layers = layers,
	};
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetRNNMatrixMathType, (cudnnRNNDescriptor_t rnn, cudnnMathType_t type), (rnn, type))
{
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnSetRNNProjectionLayers,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int recurrent, const int output),
	(handle, rnn, recurrent, output))
{
	if (output != 0)
		return CUDNN_STATUS_NOT_SUPPORTED;
	rnn->projection = recurrent == rnn->hidden ? 0 : recurrent;
	return CUDNN_STATUS_SUCCESS;
}

/* The width of the input is known only from what goes in. */
static void take_input(cudnnRNNDescriptor_t rnn, cudnnTensorDescriptor_t x)
{
	rnn->input = x->dims[1];
	rnn->type = x->type;
}

static struct cudnnRNNDataStruct sequence(cudnnRNNDescriptor_t rnn, int steps, steps_t x)
{
	take_input(rnn, x[0]);
	return (struct cudnnRNNDataStruct){ steps, x[0]->dims[0], x[0]->dims[1] };
}

DNN_API(cudnnGetRNNParamsSize,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnTensorDescriptor_t x, size_t *bytes,
		cudnnDataType_t type),
	(handle, rnn, x, bytes, type))
{
	take_input(rnn, x);
	*bytes = dnn_rnn_weights(rnn) * dnn_bytes(type);
	return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnFilterDescriptor_t filter, cudnnDataType_t type, int rows, int columns)
{
	*filter = (struct cudnnFilterStruct){
		.type = type,
		.format = CUDNN_TENSOR_NCHW,
		.count = 3,
		.dims = { 1, rows, columns },
	};
}

DNN_API(cudnnGetRNNLinLayerMatrixParams,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int layer, cudnnTensorDescriptor_t x,
		cudnnFilterDescriptor_t weights_of, const void *weights, const int id,
		cudnnFilterDescriptor_t matrix_of, void **matrix),
	(handle, rnn, layer, x, weights_of, weights, id, matrix_of, matrix))
{
	int rows, columns;

	take_input(rnn, x);
	if (!dnn_rnn_has(rnn, layer, id))
		return CUDNN_STATUS_BAD_PARAM;
	*matrix = (char *)(uintptr_t)weights +
		  dnn_rnn_matrix(rnn, layer, id, &rows, &columns) * dnn_bytes(rnn->type);
	describe(matrix_of, rnn->type, rows, columns);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetRNNLinLayerBiasParams,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int layer, cudnnTensorDescriptor_t x,
		cudnnFilterDescriptor_t weights_of, const void *weights, const int id,
		cudnnFilterDescriptor_t bias_of, void **bias),
	(handle, rnn, layer, x, weights_of, weights, id, bias_of, bias))
{
	take_input(rnn, x);
	if (!dnn_rnn_has(rnn, layer, id))
		return CUDNN_STATUS_BAD_PARAM;
	*bias = (char *)(uintptr_t)weights + dnn_rnn_bias(rnn, layer, id) * dnn_bytes(rnn->type);
	describe(bias_of, rnn->type, rnn->hidden, 1);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetRNNWorkspaceSize,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t x, size_t *bytes),
	(handle, rnn, steps, x, bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, x);

	*bytes = dnn_rnn_workspace(rnn, &data);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetRNNTrainingReserveSize,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t x, size_t *bytes),
	(handle, rnn, steps, x, bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, x);

	*bytes = dnn_rnn_reserve(rnn, &data);
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnRNNForwardInference,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t x_of,
		const void *x, cudnnTensorDescriptor_t hx_of, const void *hx,
		cudnnTensorDescriptor_t cx_of, const void *cx, cudnnFilterDescriptor_t weights_of,
		const void *weights, steps_t y_of, void *y, cudnnTensorDescriptor_t hy_of, void *hy,
		cudnnTensorDescriptor_t cy_of, void *cy, void *workspace, size_t workspace_bytes),
	(handle, rnn, steps, x_of, x, hx_of, hx, cx_of, cx, weights_of, weights, y_of, y, hy_of, hy,
		cy_of, cy, workspace, workspace_bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, x_of);

	return dnn_rnn_forward(handle, rnn, &data);
}

DNN_API(cudnnRNNForwardTraining,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t x_of,
		const void *x, cudnnTensorDescriptor_t hx_of, const void *hx,
		cudnnTensorDescriptor_t cx_of, const void *cx, cudnnFilterDescriptor_t weights_of,
		const void *weights, steps_t y_of, void *y, cudnnTensorDescriptor_t hy_of, void *hy,
		cudnnTensorDescriptor_t cy_of, void *cy, void *workspace, size_t workspace_bytes,
		void *reserve, size_t reserve_bytes),
	(handle, rnn, steps, x_of, x, hx_of, hx, cx_of, cx, weights_of, weights, y_of, y, hy_of, hy,
		cy_of, cy, workspace, workspace_bytes, reserve, reserve_bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, x_of);

	return dnn_rnn_forward(handle, rnn, &data);
}

DNN_API(cudnnRNNBackwardData,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t y_of,
		const void *y, steps_t dy_of, const void *dy, cudnnTensorDescriptor_t dhy_of,
		const void *dhy, cudnnTensorDescriptor_t dcy_of, const void *dcy,
		cudnnFilterDescriptor_t weights_of, const void *weights,
		cudnnTensorDescriptor_t hx_of, const void *hx, cudnnTensorDescriptor_t cx_of,
		const void *cx, steps_t dx_of, void *dx, cudnnTensorDescriptor_t dhx_of, void *dhx,
		cudnnTensorDescriptor_t dcx_of, void *dcx, void *workspace, size_t workspace_bytes,
		void *reserve, size_t reserve_bytes),
	(handle, rnn, steps, y_of, y, dy_of, dy, dhy_of, dhy, dcy_of, dcy, weights_of, weights,
		hx_of, hx, cx_of, cx, dx_of, dx, dhx_of, dhx, dcx_of, dcx, workspace,
		workspace_bytes, reserve, reserve_bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, dx_of);

	return dnn_rnn_backward(handle, rnn, &data);
}

DNN_API(cudnnRNNBackwardWeights,
	(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int steps, steps_t x_of,
		const void *x, cudnnTensorDescriptor_t hx_of, const void *hx, steps_t y_of,
		const void *y, const void *workspace, size_t workspace_bytes,
		cudnnFilterDescriptor_t dw_of, void *dw, const void *reserve, size_t reserve_bytes),
	(handle, rnn, steps, x_of, x, hx_of, hx, y_of, y, workspace, workspace_bytes, dw_of, dw,
		reserve, reserve_bytes))
{
	struct cudnnRNNDataStruct data = sequence(rnn, steps, x_of);

	return dnn_rnn_gradients(handle, rnn, &data);
}
