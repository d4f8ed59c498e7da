/* The runtime: graphs. */
#include "runtime/runtime.h"

RUNTIME_API(cudaGraphCreate, 10000, (cudaGraph_t * pGraph, unsigned int flags), (pGraph, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphCreate, pGraph, flags);
}

RUNTIME_API(cudaGraphDestroy, 10000, (cudaGraph_t graph), (graph))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphDestroy, graph);
}

RUNTIME_API(cudaGraphDestroyNode, 10000, (cudaGraphNode_t node), (node))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphDestroyNode, node);
}

static cudaError_t kernel_params(
	const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *out)
{
	*out = (CUDA_KERNEL_NODE_PARAMS){
		.func = registry_kernel(params->func),
		.gridDimX = params->gridDim.x,
		.gridDimY = params->gridDim.y,
		.gridDimZ = params->gridDim.z,
		.blockDimX = params->blockDim.x,
		.blockDimY = params->blockDim.y,
		.blockDimZ = params->blockDim.z,
		.sharedMemBytes = params->sharedMemBytes,
		.kernelParams = params->kernelParams,
		.extra = params->extra,
	};
	return out->func ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

RUNTIME_API(cudaGraphAddKernelNode, 10000,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies, const struct cudaKernelNodeParams *pNodeParams),
	(pGraphNode, graph, pDependencies, numDependencies, pNodeParams))
{
	CUDA_KERNEL_NODE_PARAMS params;

	CHECK(runtime_ready());
	CHECK(kernel_params(pNodeParams, &params));
	return DRIVER_CALL(cuGraphAddKernelNode_v2, pGraphNode, graph, pDependencies,
		numDependencies, &params);
}

RUNTIME_API(cudaGraphExecKernelNodeSetParams, 10010,
	(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
		const struct cudaKernelNodeParams *pNodeParams),
	(hGraphExec, node, pNodeParams))
{
	CUDA_KERNEL_NODE_PARAMS params;

	CHECK(runtime_ready());
	CHECK(kernel_params(pNodeParams, &params));
	return DRIVER_CALL(cuGraphExecKernelNodeSetParams_v2, hGraphExec, node, &params);
}

RUNTIME_API(cudaGraphAddMemcpyNode, 10000,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies, const struct cudaMemcpy3DParms *pCopyParams),
	(pGraphNode, graph, pDependencies, numDependencies, pCopyParams))
{
	CUDA_MEMCPY3D box;

	CHECK(runtime_ready());
	CHECK(runtime_box(pCopyParams, &box));
	return DRIVER_CALL(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies,
		&box, NULL);
}

RUNTIME_API(cudaGraphAddMemcpyNode1D, 11010,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies, void *dst, const void *src, size_t count,
		enum cudaMemcpyKind kind),
	(pGraphNode, graph, pDependencies, numDependencies, dst, src, count, kind))
{
	CUDA_MEMCPY3D box = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)src,
		.srcPitch = count,
		.srcHeight = 1,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)dst,
		.dstPitch = count,
		.dstHeight = 1,
		.WidthInBytes = count,
		.Height = 1,
		.Depth = 1,
	};

	(void)kind;
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies,
		&box, NULL);
}

RUNTIME_API(cudaGraphAddMemsetNode, 10000,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies, const struct cudaMemsetParams *pMemsetParams),
	(pGraphNode, graph, pDependencies, numDependencies, pMemsetParams))
{
	CUDA_MEMSET_NODE_PARAMS params = {
		.dst = (CUdeviceptr)pMemsetParams->dst,
		.pitch = pMemsetParams->pitch,
		.value = pMemsetParams->value,
		.elementSize = pMemsetParams->elementSize,
		.width = pMemsetParams->width,
		.height = pMemsetParams->height,
	};

	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphAddMemsetNode, pGraphNode, graph, pDependencies, numDependencies,
		&params, NULL);
}

RUNTIME_API(cudaGraphAddHostNode, 10000,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies, const struct cudaHostNodeParams *pNodeParams),
	(pGraphNode, graph, pDependencies, numDependencies, pNodeParams))
{
	CUDA_HOST_NODE_PARAMS params = { .fn = pNodeParams->fn, .userData = pNodeParams->userData };

	CHECK(runtime_ready());
	return DRIVER_CALL(
		cuGraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies, &params);
}

RUNTIME_API(cudaGraphAddEmptyNode, 10000,
	(cudaGraphNode_t * pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
		size_t numDependencies),
	(pGraphNode, graph, pDependencies, numDependencies))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies);
}

static cudaError_t add_dependencies(
	cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphAddDependencies, graph, from, to, count);
}

#if SIM_MAJOR >= 13

RUNTIME_API(cudaGraphAddDependencies, 12030,
	(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		const cudaGraphEdgeData *edgeData, size_t numDependencies),
	(graph, from, to, edgeData, numDependencies))
{
	(void)edgeData;
	return add_dependencies(graph, from, to, numDependencies);
}

#else

typedef struct {
	cudaGraph_t graph;
	const cudaGraphNode_t *from;
	const cudaGraphNode_t *to;
	size_t numDependencies;
} add_dependencies_plain_params;

RUNTIME_API_12(add_dependencies_plain, "cudaGraphAddDependencies", add_dependencies_plain_params,
	(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		size_t numDependencies),
	(graph, from, to, numDependencies))
{
	return add_dependencies(graph, from, to, numDependencies);
}

RUNTIME_API_12(add_dependencies_v2, "cudaGraphAddDependencies_v2",
	cudaGraphAddDependencies_v12030_params,
	(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		const cudaGraphEdgeData *edgeData, size_t numDependencies),
	(graph, from, to, edgeData, numDependencies))
{
	(void)edgeData;
	return add_dependencies(graph, from, to, numDependencies);
}

#endif

RUNTIME_API(cudaGraphGetNodes, 10000, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes),
	(graph, nodes, numNodes))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphGetNodes, graph, nodes, numNodes);
}

RUNTIME_API(cudaGraphGetRootNodes, 10000,
	(cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes),
	(graph, pRootNodes, pNumRootNodes))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphGetRootNodes, graph, pRootNodes, pNumRootNodes);
}

RUNTIME_API(cudaGraphNodeGetType, 10000, (cudaGraphNode_t node, enum cudaGraphNodeType *pType),
	(node, pType))
{
	CUgraphNodeType type;

	CHECK(runtime_ready());
	CHECK(DRIVER_CALL(cuGraphNodeGetType, node, &type));
	*pType = (enum cudaGraphNodeType)type;
	return cudaSuccess;
}

RUNTIME_API(cudaGraphInstantiate, 12000,
	(cudaGraphExec_t * pGraphExec, cudaGraph_t graph, unsigned long long flags),
	(pGraphExec, graph, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

RUNTIME_API(cudaGraphInstantiateWithFlags, 11040,
	(cudaGraphExec_t * pGraphExec, cudaGraph_t graph, unsigned long long flags),
	(pGraphExec, graph, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

RUNTIME_API(cudaGraphExecGetFlags, 12000, (cudaGraphExec_t graphExec, unsigned long long *flags),
	(graphExec, flags))
{
	cuuint64_t value;

	CHECK(runtime_ready());
	CHECK(DRIVER_CALL(cuGraphExecGetFlags, graphExec, &value));
	*flags = value;
	return cudaSuccess;
}

RUNTIME_API(cudaGraphExecUpdate, 10020,
	(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph, cudaGraphExecUpdateResultInfo *resultInfo),
	(hGraphExec, hGraph, resultInfo))
{
	CUgraphExecUpdateResultInfo info;
	cudaError_t result;

	CHECK(runtime_ready());
	result = DRIVER_CALL(cuGraphExecUpdate_v2, hGraphExec, hGraph, &info);
	resultInfo->result = (enum cudaGraphExecUpdateResult)info.result;
	resultInfo->errorNode = info.errorNode;
	resultInfo->errorFromNode = info.errorFromNode;
	return result;
}

RUNTIME_API(cudaGraphExecDestroy, 10000, (cudaGraphExec_t graphExec), (graphExec))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuGraphExecDestroy, graphExec);
}

RUNTIME_API_STREAM(cudaGraphUpload, 10000, 10000, (cudaGraphExec_t graphExec, cudaStream_t stream),
	(graphExec, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuGraphUpload, graphExec, stream);
}

RUNTIME_API_STREAM(cudaGraphLaunch, 10000, 10000, (cudaGraphExec_t graphExec, cudaStream_t stream),
	(graphExec, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuGraphLaunch, graphExec, stream);
}
