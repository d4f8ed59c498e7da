/* SPDX-License-Identifier: MIT
 * What a graph of cuDNN operations is, as far as its kernels are concerned: carried up from tensors
 * to operations, to the graph, to engines and plans, each taking over what it is given.
 */
#ifndef DNN_GRAPH_H
#define DNN_GRAPH_H

#include "libraries/dnn_api.h"

struct dnn_graph {
	/* descriptor type of the operation that gives the graph its name, 0: none */
	int operation;
	int matmuls;       /* two are attention, more its way back */
	uint64_t elements; /* of the largest tensor in memory */
	cudnnDataType_t type;
	bool channels_first; /* of that tensor: its channels lie together */
	bool is_virtual;     /* a tensor that is never in memory */
};

/* Takes over what the part has. */
void dnn_graph_merge(struct dnn_graph *graph, const struct dnn_graph *part);
/* Launches its kernels. */
cudnnStatus_t dnn_graph_run(const struct dnn_graph *graph, cudnnHandle_t handle);

#endif
