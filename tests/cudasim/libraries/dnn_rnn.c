/* SPDX-License-Identifier: MIT
 * dnn_rnn.c: see dnn_rnn.h.
 */
#include "libraries/dnn_rnn.h"

#include <stdio.h>
#include <string.h>

#define KERNEL_NAME_BYTES 128
#define GEMM                                                                                       \
	"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_" \
	"alignc4_execute_kernel__cudnn"
#define GEMM_WEIGHTS                                                                               \
	"sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_" \
	"alignc4_execute_kernel__cudnn"
#define BIAS_WEIGHTS "_Z22RNN_biasGradientKernelIffEviiPKT_PT0_"

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

	return (size_t)gates(rnn) * (size_t)rnn->hidden * inputs +
	       (size_t)rnn->projection * (size_t)rnn->hidden;
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

size_t dnn_rnn_weights(const struct cudnnRNNStruct *rnn)
{
	int layers = pseudo_layers(rnn);

	return all_matrices(rnn, layers) + (size_t)layers * biases(rnn);
}

bool dnn_rnn_has(const struct cudnnRNNStruct *rnn, int pseudo_layer, int id)
{
	return pseudo_layer >= 0 && pseudo_layer < pseudo_layers(rnn) && id >= 0 &&
	       (id < 2 * gates(rnn) || (id == DNN_PROJECTION_ID && rnn->projection));
}

size_t dnn_rnn_matrix(
	const struct cudnnRNNStruct *rnn, int pseudo_layer, int id, int *rows, int *columns)
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

size_t dnn_rnn_bias(const struct cudnnRNNStruct *rnn, int pseudo_layer, int id)
{
	return all_matrices(rnn, pseudo_layers(rnn)) + (size_t)pseudo_layer * biases(rnn) +
	       (size_t)id * (size_t)rnn->hidden;
}

/* Elements of all gates of a layer over all steps. */
static uint64_t gate_elements(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	return (uint64_t)x->steps * (uint64_t)x->batch * (uint64_t)gates(rnn) *
	       (uint64_t)rnn->hidden;
}

size_t dnn_rnn_workspace(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	return (size_t)gate_elements(rnn, x) * dnn_bytes(rnn->type) * (size_t)rnn->directions;
}

size_t dnn_rnn_reserve(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	return (size_t)gate_elements(rnn, x) * dnn_bytes(rnn->type) * (size_t)pseudo_layers(rnn);
}

/* The kernel that goes through all steps of a layer. */
static cudnnStatus_t steps(cudnnHandle_t handle, const struct cudnnRNNStruct *rnn,
	const struct cudnnRNNDataStruct *x, const char *direction)
{
	const char *cell = rnn->mode == CUDNN_LSTM  ? "LSTM"
			   : rnn->mode == CUDNN_GRU ? "GRU"
						    : "RNN";
	char function[KERNEL_NAME_BYTES / 2], name[KERNEL_NAME_BYTES];
	char letter = dnn_bytes(rnn->type) == 8 ? 'd' : 'f';

	snprintf(function, sizeof(function), "RNN_blockPersist_%s_%s", direction, cell);
	snprintf(name, sizeof(name), "_Z%zu%sI%c%cLi128EEv25RNNBlockPersistenceParamsPT_PT0_",
		strlen(function), function, letter, letter);
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

	return status == CUDNN_STATUS_SUCCESS ? dnn_launch(handle, GEMM, gate_elements(rnn, x), 128)
					      : status;
}

static cudnnStatus_t layer_weights(
	cudnnHandle_t handle, const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x)
{
	cudnnStatus_t status = dnn_launch(handle, GEMM_WEIGHTS, gate_elements(rnn, x), 128);

	return status == CUDNN_STATUS_SUCCESS && rnn->biased
		       ? dnn_launch(handle, BIAS_WEIGHTS, gate_elements(rnn, x), 128)
		       : status;
}

static cudnnStatus_t each_layer(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
	cudnnRNNDataDescriptor_t x,
	cudnnStatus_t (*layer)(
		cudnnHandle_t, const struct cudnnRNNStruct *, const struct cudnnRNNDataStruct *))
{
	cudnnStatus_t status = rnn && x ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;

	for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < pseudo_layers(rnn); i++)
		status = layer(handle, rnn, x);
	return status;
}

cudnnStatus_t dnn_rnn_forward(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x)
{
	return each_layer(handle, rnn, x, layer_forward);
}

cudnnStatus_t dnn_rnn_backward(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x)
{
	return each_layer(handle, rnn, x, layer_backward);
}

cudnnStatus_t dnn_rnn_gradients(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x)
{
	return each_layer(handle, rnn, x, layer_weights);
}
