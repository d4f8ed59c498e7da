/* SPDX-License-Identifier: MIT
 * cuDNN: which kernels a graph of operations is.
 */
#include <stdio.h>

#include "libraries/dnn_graph.h"

#define NAME_MAX_BYTES 256
#define TO_CHANNELS_LAST \
	"_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EEEvPKT_PT0_iiii"
#define TO_CHANNELS_FIRST \
	"_ZN5cudnn19engines_precompiled16nhwcToNchwKernelIfffLb1ELb0EEEvPKT_PT0_iiii"

/* Those that name a graph whatever else is in it come last. */
static int rank(int operation)
{
	switch (operation) {
	case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
		return 4;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
		return 3;
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
		return 2;
	default:
		return operation ? 1 : 0;
	}
}

void dnn_graph_merge(struct dnn_graph *graph, const struct dnn_graph *part)
{
	if (rank(part->operation) > rank(graph->operation))
		graph->operation = part->operation;
	graph->matmuls += part->matmuls;
	if (part->is_virtual || part->elements <= graph->elements)
		return;
	graph->elements = part->elements;
	graph->type = part->type;
	graph->channels_first = part->channels_first;
}

static const char *precision(cudnnDataType_t type)
{
	switch ((int)type) {
	case CUDNN_DATA_HALF:
		return "f16f16_f16f32_f32";
	case CUDNN_DATA_BFLOAT16:
		return "bf16bf16_bf16f32_f32";
	case CUDNN_DATA_DOUBLE:
		return "f64f64_f64f64_f64";
	default:
		return "f32f32_tf32f32_f32";
	}
}

static void name_convolution(char *name, const struct dnn_graph *graph, const char *direction)
{
	snprintf(name, NAME_MAX_BYTES,
		"sm80_xmma_%s_implicit_gemm_indexed_%s_nhwckrsc_nhwc_tilesize128x128x32_stage3_"
		"warpsize2x2x1_g1_tensor16x8x8_"
		"kernel_cudnn",
		direction, precision(graph->type));
}

static void name_attention(char *name, const struct dnn_graph *graph, bool backward)
{
	snprintf(name, NAME_MAX_BYTES,
		"cudnn_generated_fort_native_sdpa_sm90_flash_%s_wgmma_%s_knob_%s_kernel0_0",
		backward ? "bprop" : "fprop",
		(int)graph->type == CUDNN_DATA_BFLOAT16 ? "bf16" : "f16",
		backward ? "26_64x128x128_1x4x1" : "7_64x128x128_4x1x1");
}

static void name_graph(char *name, const struct dnn_graph *graph)
{
	switch (graph->operation) {
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
		name_convolution(name, graph, "fprop");
		return;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
		name_convolution(name, graph, "wgrad");
		return;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
		name_convolution(name, graph, "dgrad");
		return;
	case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
		name_attention(name, graph,
			graph->operation == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
		return;
	}
	if (graph->matmuls >= 2)
		name_attention(name, graph, graph->matmuls > 2);
	else if (graph->operation == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR)
		snprintf(name, NAME_MAX_BYTES,
			"cudnn_generated_fort_native_norm_fwd_knob_1_kernel0_0");
	else if (graph->operation == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)
		snprintf(name, NAME_MAX_BYTES,
			"cudnn_generated_fort_native_norm_bwd_knob_1_kernel0_0");
	else
		snprintf(name, NAME_MAX_BYTES, "cudnn_generated_fort_native_%s_knob_0_kernel0_0",
			graph->matmuls ? "matmul" : "pointwise");
}

/* The engines want channels last; what lies otherwise is turned before and after. */
cudnnStatus_t dnn_graph_run(const struct dnn_graph *graph, cudnnHandle_t handle)
{
	bool turn = graph->channels_first && rank(graph->operation) == 3;
	char name[NAME_MAX_BYTES];
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	name_graph(name, graph);
	if (turn)
		status = dnn_launch(handle, TO_CHANNELS_LAST, graph->elements, 256);
	if (status == CUDNN_STATUS_SUCCESS)
		status = dnn_launch(handle, name, graph->elements, 128);
	if (turn && status == CUDNN_STATUS_SUCCESS)
		status = dnn_launch(handle, TO_CHANNELS_FIRST, graph->elements, 256);
	return status;
}
