/* The driver API: graphs. */
#include "driver/driver.h"

#define GRAPH(handle) ((struct sim_graph *)(handle))
#define NODE(handle) ((struct sim_node *)(handle))
#define EXEC(handle) ((struct sim_graph_exec *)(handle))

DRIVER_API(cuGraphCreate, (CUgraph * phGraph, unsigned int flags), (phGraph, flags))
{
	struct sim_graph *graph;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(require_init());
	TRY(graph_create(&graph));
	*phGraph = (CUgraph)graph;
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphDestroy, (CUgraph hGraph), (hGraph))
{
	return graph_destroy(GRAPH(hGraph));
}

DRIVER_API(cuGraphDestroyNode, (CUgraphNode hNode), (hNode))
{
	return node_destroy(NODE(hNode));
}

static CUresult add(CUgraphNode *out, CUgraph graph, const CUgraphNode *needs, size_t count,
	const struct op *op)
{
	struct sim_node *node;

	TRY(graph_add(
		GRAPH(graph), &node, (struct sim_node *const *)(const void *)needs, count, op));
	*out = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

static struct op kernel_op(const CUDA_KERNEL_NODE_PARAMS *params)
{
	return (struct op){
		.kind = SIM_KERNEL,
		.node_kind = SIM_NODE_KERNEL,
		.kernel = {
			.kernel = HANDLE(kernel, params->func),
			.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
			.block = {params->blockDimX, params->blockDimY, params->blockDimZ},
			.dynamic_shared = params->sharedMemBytes,
			.arguments = params->kernelParams,
		},
	};
}

DRIVER_API(cuGraphAddKernelNode_v2,
	(CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
	(phGraphNode, hGraph, dependencies, numDependencies, nodeParams))
{
	struct op op = kernel_op(nodeParams);

	TRY(kernel_check(&op.kernel));
	return add(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

DRIVER_API(cuGraphAddMemcpyNode,
	(CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx),
	(phGraphNode, hGraph, dependencies, numDependencies, copyParams, ctx))
{
	struct op op;

	(void)ctx;
	TRY(box_op(copyParams, true, &op));
	TRY(copy_classify(&op.copy));
	return add(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

DRIVER_API(cuGraphAddMemsetNode,
	(CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx),
	(phGraphNode, hGraph, dependencies, numDependencies, memsetParams, ctx))
{
	struct op op = set_op(memsetParams->dst, memsetParams->pitch, memsetParams->value,
		memsetParams->elementSize, memsetParams->width, memsetParams->height);

	(void)ctx;
	if (memsetParams->elementSize != 1 && memsetParams->elementSize != 2 &&
		memsetParams->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(set_classify(&op.set));
	return add(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

DRIVER_API(cuGraphAddHostNode,
	(CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams),
	(phGraphNode, hGraph, dependencies, numDependencies, nodeParams))
{
	struct op op = {
		.kind = SIM_HOST_FUNCTION,
		.node_kind = SIM_NODE_HOST,
		.host = { nodeParams->fn, nodeParams->userData },
	};

	if (!nodeParams->fn)
		return CUDA_ERROR_INVALID_VALUE;
	return add(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

DRIVER_API(cuGraphAddEmptyNode,
	(CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		size_t numDependencies),
	(phGraphNode, hGraph, dependencies, numDependencies))
{
	struct op op = { .kind = SIM_EMPTY, .node_kind = SIM_NODE_EMPTY };

	return add(phGraphNode, hGraph, dependencies, numDependencies, &op);
}

static CUresult connect_all(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		TRY(graph_connect(GRAPH(graph), NODE(from[i]), NODE(to[i])));
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphAddDependencies,
	(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies),
	(hGraph, from, to, numDependencies))
{
	return connect_all(hGraph, from, to, numDependencies);
}

DRIVER_API(cuGraphAddDependencies_v2,
	(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
		const CUgraphEdgeData *edgeData, size_t numDependencies),
	(hGraph, from, to, edgeData, numDependencies))
{
	(void)edgeData;
	return connect_all(hGraph, from, to, numDependencies);
}

/* Gives the nodes that `wanted` picks, as the API has it: without a place for them only their
 * number. */
static CUresult list_nodes(const struct sim_graph *graph, CUgraphNode *nodes, size_t *count,
	bool (*wanted)(const struct sim_node *))
{
	size_t found = 0;

	if (!graph_valid(graph) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->count; i++) {
		if (!wanted(graph->nodes[i]))
			continue;
		if (nodes && found < *count)
			nodes[found] = (CUgraphNode)graph->nodes[i];
		found++;
	}
	for (size_t i = found; nodes && i < *count; i++)
		nodes[i] = NULL;
	if (!nodes || found < *count)
		*count = found;
	return CUDA_SUCCESS;
}

static bool is_any(const struct sim_node *node)
{
	(void)node;
	return true;
}

static bool is_root(const struct sim_node *node)
{
	return node->needs.count == 0;
}

DRIVER_API(cuGraphGetNodes, (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes),
	(hGraph, nodes, numNodes))
{
	return list_nodes(GRAPH(hGraph), nodes, numNodes, is_any);
}

DRIVER_API(cuGraphGetRootNodes, (CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes),
	(hGraph, rootNodes, numRootNodes))
{
	return list_nodes(GRAPH(hGraph), rootNodes, numRootNodes, is_root);
}

DRIVER_API(cuGraphNodeGetType, (CUgraphNode hNode, CUgraphNodeType *type), (hNode, type))
{
	if (!node_valid(NODE(hNode)))
		return CUDA_ERROR_INVALID_VALUE;
	*type = (CUgraphNodeType)NODE(hNode)->op.node_kind;
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphInstantiateWithFlags,
	(CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags),
	(phGraphExec, hGraph, flags))
{
	struct sim_graph_exec *exec;

	TRY(require_init());
	TRY(exec_create(&exec, GRAPH(hGraph), flags));
	*phGraphExec = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphExecDestroy, (CUgraphExec hGraphExec), (hGraphExec))
{
	return exec_destroy(EXEC(hGraphExec));
}

DRIVER_API(cuGraphExecGetFlags, (CUgraphExec hGraphExec, cuuint64_t *flags), (hGraphExec, flags))
{
	if (!exec_valid(EXEC(hGraphExec)))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec_flags(EXEC(hGraphExec));
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphExecKernelNodeSetParams_v2,
	(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
	(hGraphExec, hNode, nodeParams))
{
	struct op op = kernel_op(nodeParams);

	TRY(kernel_check(&op.kernel));
	return exec_set_op(EXEC(hGraphExec), NODE(hNode), &op);
}

DRIVER_API(cuGraphExecUpdate_v2,
	(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo),
	(hGraphExec, hGraph, resultInfo))
{
	struct sim_node *bad;
	CUresult result = exec_update(EXEC(hGraphExec), GRAPH(hGraph), &bad);

	resultInfo->result = result == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
						    : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	resultInfo->errorNode = (CUgraphNode)bad;
	resultInfo->errorFromNode = NULL;
	return result;
}

DRIVER_API_STREAM(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return exec_valid(EXEC(hGraphExec)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API_STREAM(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return exec_launch(EXEC(hGraphExec), stream);
}
