/* The simulated runtime's graphs: built and captured, instantiated, launched, updated. */
#include <string.h>

#include "tests/check_cuda.h"

KERNEL(work)

static cudaStream_t stream;
static char *device;

static void open_device(void)
{
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc((void **)&device, 4096));
}

static cudaGraph_t captured(int value)
{
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(LAUNCH(work, 1, 32, 0, stream, NULL, 0));
	OK(cudaMemsetAsync(device, value, 4096, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static int first_byte(void)
{
	char host;

	OK(cudaStreamSynchronize(stream));
	OK(cudaMemcpy(&host, device, 1, cudaMemcpyDeviceToHost));
	return host;
}

static cudaGraphExec_t instantiated(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

START_TEST(a_graph_does_its_work_at_each_launch)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	open_device();
	graph = captured(3);
	exec = instantiated(graph);
	OK(cudaGraphDestroy(graph));
	OK(cudaGraphUpload(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	ck_assert_int_eq(first_byte(), 3);
	OK(cudaMemset(device, 0, 4096));
	OK(cudaGraphLaunch(exec, stream));
	ck_assert_int_eq(first_byte(), 3);
	OK(cudaGraphExecDestroy(exec));
	FAILS(cudaGraphLaunch((cudaGraphExec_t)device, stream), cudaErrorInvalidValue);
}
END_TEST

static struct cudaKernelNodeParams kernel_params(void)
{
	struct cudaKernelNodeParams params;

	memset(&params, 0, sizeof(params));
	params.func = (void *)&work;
	params.gridDim = (dim3){ 4, 1, 1 };
	params.blockDim = (dim3){ 64, 1, 1 };
	return params;
}

static struct cudaMemsetParams memset_params(unsigned value)
{
	struct cudaMemsetParams params;

	memset(&params, 0, sizeof(params));
	params.dst = device;
	params.value = value;
	params.elementSize = 4;
	params.width = 16;
	params.height = 1;
	return params;
}

static void connect(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to)
{
#if SIM_MAJOR >= 13
	OK(cudaGraphAddDependencies(graph, &from, &to, NULL, 1));
#else
	cudaError_t add(cudaGraph_t, const cudaGraphNode_t *, const cudaGraphNode_t *,
		size_t) __asm__("cudaGraphAddDependencies");

	OK(add(graph, &from, &to, 1));
#endif
}

START_TEST(a_graph_can_be_built_node_by_node)
{
	struct cudaKernelNodeParams kernel = kernel_params();
	struct cudaMemsetParams set;
	cudaGraph_t graph;
	cudaGraphNode_t a, b, c, nodes[4];
	enum cudaGraphNodeType type;
	size_t count = 4;
	int out[16] = { 0 };

	open_device();
	set = memset_params(77);
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddKernelNode(&a, graph, NULL, 0, &kernel));
	OK(cudaGraphAddMemsetNode(&b, graph, &a, 1, &set));
	OK(cudaGraphAddMemcpyNode1D(
		&c, graph, NULL, 0, out, device, sizeof(out), cudaMemcpyDeviceToHost));
	OK(cudaGraphGetRootNodes(graph, NULL, &count));
	ck_assert_uint_eq(count, 2);
	connect(graph, b, c);
	count = 4;
	OK(cudaGraphGetNodes(graph, nodes, &count));
	ck_assert_uint_eq(count, 3);
	ck_assert_ptr_null(nodes[3]);
	OK(cudaGraphNodeGetType(nodes[1], &type));
	ck_assert_int_eq(type, cudaGraphNodeTypeMemset);
	OK(cudaGraphLaunch(instantiated(graph), stream));
	OK(cudaStreamSynchronize(stream));
	ck_assert_int_eq(out[15], 77);
}
END_TEST

START_TEST(the_order_is_that_of_the_edges_not_of_the_making)
{
	struct cudaMemsetParams first, second;
	cudaGraph_t graph;
	cudaGraphNode_t a, b;

	open_device();
	first = memset_params(1);
	second = memset_params(2);
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddMemsetNode(&a, graph, NULL, 0, &second));
	OK(cudaGraphAddMemsetNode(&b, graph, NULL, 0, &first));
	connect(graph, b, a);
	OK(cudaGraphLaunch(instantiated(graph), stream));
	ck_assert_int_eq(first_byte(), 2);
}
END_TEST

START_TEST(a_circle_cannot_be_instantiated)
{
	cudaGraph_t graph;
	cudaGraphNode_t a, b;
	cudaGraphExec_t exec;

	open_device();
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cudaGraphAddEmptyNode(&b, graph, &a, 1));
	connect(graph, b, a);
	FAILS(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaErrorInvalidValue);
}
END_TEST

START_TEST(bad_nodes_are_refused)
{
	struct cudaKernelNodeParams kernel = kernel_params();
	struct cudaMemsetParams set;
	cudaGraph_t graph;
	cudaGraphNode_t node;
	char host;

	open_device();
	OK(cudaGraphCreate(&graph, 0));
	kernel.blockDim.x = 2000;
	FAILS(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel), cudaErrorInvalidValue);
	kernel.func = &host;
	FAILS(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel),
		cudaErrorInvalidDeviceFunction);
	set = memset_params(0);
	set.width = 5000;
	FAILS(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set), cudaErrorInvalidValue);
}
END_TEST

static void count_calls(void *data)
{
	__atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
}

START_TEST(host_nodes_run_at_each_launch)
{
	struct cudaHostNodeParams host;
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int calls = 0;

	open_device();
	host.fn = count_calls;
	host.userData = &calls;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddHostNode(&node, graph, NULL, 0, &host));
	exec = instantiated(graph);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	ck_assert_int_eq(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 2);
}
END_TEST

START_TEST(an_executable_takes_over_a_graph_of_the_same_shape)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec;
	cudaGraph_t other;
	cudaGraphNode_t node;

	open_device();
	exec = instantiated(captured(3));
	OK(cudaGraphExecUpdate(exec, captured(4), &info));
	ck_assert_int_eq(info.result, cudaGraphExecUpdateSuccess);
	OK(cudaGraphLaunch(exec, stream));
	ck_assert_int_eq(first_byte(), 4);
	other = captured(5);
	OK(cudaGraphAddEmptyNode(&node, other, NULL, 0));
	FAILS(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
	ck_assert_int_eq(info.result, cudaGraphExecUpdateErrorTopologyChanged);
}
END_TEST

START_TEST(a_launch_in_a_capturing_stream_is_refused)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	open_device();
	exec = instantiated(captured(3));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	FAILS(cudaGraphLaunch(exec, stream), cudaErrorStreamCaptureUnsupported);
	FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}
END_TEST

SUITE("cudasim graphs", a_graph_does_its_work_at_each_launch, a_graph_can_be_built_node_by_node,
	the_order_is_that_of_the_edges_not_of_the_making, a_circle_cannot_be_instantiated,
	bad_nodes_are_refused, host_nodes_run_at_each_launch,
	an_executable_takes_over_a_graph_of_the_same_shape,
	a_launch_in_a_capturing_stream_is_refused)
