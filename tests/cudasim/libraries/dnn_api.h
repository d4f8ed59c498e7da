/* SPDX-License-Identifier: MIT
 * The part of cuDNN 9's interface that the stand-in has, in cuDNN's own names; the descriptors
 * behind its handles are ours. Written out here because few machines have cuDNN's headers. Where
 * they are, every file that includes this one is compiled a second time, with SIM_REAL_HEADERS,
 * against them: then the compiler compares each definition with the real prototype, and each number
 * in DNN_NUMBERS with the real one.
 */
#ifndef DNN_API_H
#define DNN_API_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

#include "libraries/library.h"

#define DNN_NUMBERS(X)                                                        \
	X(CUDNN_STATUS_SUCCESS, 0)                                            \
	X(CUDNN_STATUS_NOT_INITIALIZED, 1001)                                 \
	X(CUDNN_STATUS_BAD_PARAM, 2000)                                       \
	X(CUDNN_STATUS_NOT_SUPPORTED, 3000)                                   \
	X(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)           \
	X(CUDNN_STATUS_EXECUTION_FAILED, 5000)                                \
	X(CUDNN_DIM_MAX, 8)                                                   \
	X(CUDNN_DATA_FLOAT, 0)                                                \
	X(CUDNN_DATA_DOUBLE, 1)                                               \
	X(CUDNN_DATA_HALF, 2)                                                 \
	X(CUDNN_DATA_INT32, 4)                                                \
	X(CUDNN_DATA_BFLOAT16, 9)                                             \
	X(CUDNN_DATA_INT64, 10)                                               \
	X(CUDNN_TENSOR_NCHW, 0)                                               \
	X(CUDNN_DETERMINISTIC, 1)                                             \
	X(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1)                \
	X(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 1)                             \
	X(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 1)                               \
	X(CUDNN_FWD_MODE_TRAINING, 1)                                         \
	X(CUDNN_LSTM, 2)                                                      \
	X(CUDNN_GRU, 3)                                                       \
	X(CUDNN_RNN_NO_BIAS, 0)                                               \
	X(CUDNN_RNN_DOUBLE_BIAS, 2)                                           \
	X(CUDNN_BIDIRECTIONAL, 1)                                             \
	X(CUDNN_TYPE_HANDLE, 0)                                               \
	X(CUDNN_TYPE_DATA_TYPE, 1)                                            \
	X(CUDNN_TYPE_BOOLEAN, 2)                                              \
	X(CUDNN_TYPE_INT64, 3)                                                \
	X(CUDNN_TYPE_DOUBLE, 5)                                               \
	X(CUDNN_TYPE_VOID_PTR, 6)                                             \
	X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                  \
	X(CUDNN_TYPE_CHAR, 24)                                                \
	X(CUDNN_TYPE_FRACTION, 26)                                            \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)         \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)   \
	X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                \
	X(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                      \
	X(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, 29)                \
	X(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, 30)               \
	X(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, 41)                    \
	X(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, 43)                    \
	X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                 \
	X(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                   \
	X(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 303)                           \
	X(CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, 304)                       \
	X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                      \
	X(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)                 \
	X(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)                 \
	X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                   \
	X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                  \
	X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                     \
	X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                  \
	X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)

#ifdef SIM_REAL_HEADERS
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
#include <cudnn_backend.h>
#define DNN_NUMBER(name, value) _Static_assert((int)(name) == (value), #name);
DNN_NUMBERS(DNN_NUMBER)
#else
#define DNN_NUMBER(name, value) name = (value),
enum { DNN_NUMBERS(DNN_NUMBER) };

typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t;
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;
typedef struct cudnnCTCLossStruct *cudnnCTCLossDescriptor_t;
typedef struct cudnnSpatialTransformerStruct *cudnnSpatialTransformerDescriptor_t;
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;
/* Enumerations; their values are those of DNN_NUMBERS. */
typedef int cudnnStatus_t, cudnnDataType_t, cudnnTensorFormat_t, cudnnMathType_t,
	cudnnDeterminism_t, cudnnNanPropagation_t, cudnnActivationMode_t, cudnnConvolutionMode_t,
	cudnnPoolingMode_t, cudnnSamplerType_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t,
	cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdFilterAlgo_t,
	cudnnRNNAlgo_t, cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t,
	cudnnRNNInputMode_t, cudnnRNNDataLayout_t, cudnnForwardMode_t, cudnnWgradMode_t,
	cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
	cudnnLossNormalizationMode_t, cudnnCTCLossAlgo_t, cudnnCTCGradMode_t;

/* What the three searches for an algorithm answer; their structs differ in name only. */
struct dnn_algorithm {
	int algo;
	cudnnStatus_t status;
	float time; /* ms */
	size_t memory;
	cudnnDeterminism_t determinism;
	cudnnMathType_t mathType;
	int reserved[3];
};
typedef struct dnn_algorithm cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionBwdDataAlgoPerf_t,
	cudnnConvolutionBwdFilterAlgoPerf_t;
#endif

/* Kernels compute nothing, so most of what a call is given is not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* One entry point of cuDNN that answers a status. */
#define DNN_API(name, proto, args) \
	LIBRARY_API(cudnnStatus_t, name, proto, args, CUDNN_STATUS_NOT_INITIALIZED)

struct cudnnContext {
	cudaStream_t stream;
};

/* A tensor or a filter. */
struct cudnnTensorStruct {
	cudnnDataType_t type;
	int count;
	int dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
};

struct cudnnFilterStruct {
	cudnnDataType_t type;
	cudnnTensorFormat_t format;
	int count;
	int dims[CUDNN_DIM_MAX];
};

size_t dnn_bytes(cudnnDataType_t type);
uint64_t dnn_elements(const int *dims, int count);
/* Launches a kernel that treats so many elements in the handle's stream. */
cudnnStatus_t dnn_launch(cudnnHandle_t handle, const char *name, uint64_t elements, unsigned block);
/* Makes a descriptor of so many bytes in *descriptor. */
cudnnStatus_t dnn_create(void *descriptor, size_t bytes);
cudnnStatus_t dnn_destroy(void *descriptor);

#endif
