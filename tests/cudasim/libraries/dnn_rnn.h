/* SPDX-License-Identifier: MIT
 * Recurrent networks of cuDNN, whichever interface describes them. Of the weights' buffer: the
 * matrices of all layers come first, of each layer (and direction) those on the input, then those
 * on the hidden state, each gate after gate, then the projection; after the last matrix come the
 * biases in the same order. A layer in a direction is a pseudo layer.
 */
#ifndef DNN_RNN_H
#define DNN_RNN_H

#include "libraries/dnn_api.h"

#define DNN_PROJECTION_ID 8 /* of the projection's matrix among an LSTM's */

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

/* Elements of all weights. */
size_t dnn_rnn_weights(const struct cudnnRNNStruct *rnn);
bool dnn_rnn_has(const struct cudnnRNNStruct *rnn, int pseudo_layer, int id);
/* Where the matrix `id` of a pseudo layer begins, in elements, and its shape; and the bias. */
size_t dnn_rnn_matrix(
	const struct cudnnRNNStruct *rnn, int pseudo_layer, int id, int *rows, int *columns);
size_t dnn_rnn_bias(const struct cudnnRNNStruct *rnn, int pseudo_layer, int id);
/* Bytes that are needed while it works, and from the way there to the way back. */
size_t dnn_rnn_workspace(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x);
size_t dnn_rnn_reserve(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *x);
/* Launch the kernels of all layers. */
cudnnStatus_t dnn_rnn_forward(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x);
cudnnStatus_t dnn_rnn_backward(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x);
cudnnStatus_t dnn_rnn_gradients(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x);

#endif
