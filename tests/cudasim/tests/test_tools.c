/* What a tool is told of the simulated device: calls of both domains, work, memory, resources,
 * waits. */
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <generated_cuda_runtime_api_meta.h>
#include <string.h>

#include "tests/check_cuda.h"
#include "core/sim.h"

KERNEL(work)

#define MOST 256

struct call {
	const char *name, *outer, *symbol;
	int cbid, result;
	uint32_t correlation;
	bool ended;
};

static struct call calls[MOST];
static struct sim_work works[MOST];
static struct sim_memory memories[MOST];
static struct sim_sync syncs[MOST];
static struct sim_event_record events[MOST];
static struct sim_resource resources[MOST];
static size_t call_count, work_count, memory_count, sync_count, event_count, resource_count;
static bool own_ids;    /* give nested calls ids of their own */
static void *allocated; /* what cudaMalloc's parameters point at when it ends */
static cudaStream_t stream;

static void api_enter(struct sim_scope *scope)
{
	struct call *call = &calls[call_count];

	if (own_ids && scope->outer)
		scope->correlation = sim_next_correlation();
	call->name = scope->function->name;
	call->cbid = scope->function->cbid;
	call->outer = scope->outer ? scope->outer->function->name : NULL;
	call->symbol = scope->symbol;
	call->correlation = scope->correlation;
	scope->correlation_data = call_count++;
}

static void api_exit(struct sim_scope *scope)
{
	struct call *call = &calls[scope->correlation_data];
	const cudaMalloc_v3020_params *params = scope->params;

	call->ended = true;
	call->result = *scope->result;
	ck_assert_str_eq(call->name, scope->function->name);
	if (strcmp(scope->function->name, "cudaMalloc") == 0)
		allocated = *params->devPtr;
}

#define TAKE(list, count, value)               \
	do {                                   \
		if (count < MOST)              \
			list[count++] = value; \
	} while (0)

static void on_work(const struct sim_work *w)
{
	TAKE(works, work_count, *w);
}

static void on_memory(const struct sim_memory *m)
{
	TAKE(memories, memory_count, *m);
}

static void on_sync(const struct sim_sync *s)
{
	TAKE(syncs, sync_count, *s);
}

static void on_event(const struct sim_event_record *e)
{
	TAKE(events, event_count, *e);
}

static void on_resource(const struct sim_resource *r)
{
	TAKE(resources, resource_count, *r);
}

static const struct sim_tools tools = {
	.api_enter = api_enter,
	.api_exit = api_exit,
	.work = on_work,
	.memory = on_memory,
	.sync = on_sync,
	.event = on_event,
	.resource = on_resource,
};

/* Listens from now on, with a context and a stream that are there already. */
static void listen(void)
{
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	sim_tools_set(&tools);
}

static const struct call *called(const char *name)
{
	for (size_t i = 0; i < call_count; i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	ck_abort_msg("%s was not called", name);
}

static const struct sim_resource *resource(enum sim_resource_kind kind, size_t nth)
{
	for (size_t i = 0; i < resource_count; i++)
		if (resources[i].kind == kind && nth-- == 0)
			return &resources[i];
	ck_abort_msg("no resource of kind %d", (int)kind);
}

/* The runtime's call made the driver's, and both ended well. */
static void nested(const char *runtime, const char *driver)
{
	const struct call *inner = called(driver), *outer = called(runtime);

	ck_assert_str_eq(inner->outer, runtime);
	ck_assert_ptr_null(outer->outer);
	ck_assert(inner->ended && outer->ended);
	ck_assert_int_eq(inner->result, 0);
	ck_assert_int_eq(outer->result, 0);
	ck_assert_uint_eq(inner->correlation, outer->correlation);
}

START_TEST(runtime_calls_nest_driver_calls)
{
	void *device, *host;

	listen();
	OK(cudaMalloc(&device, 4096));
	OK(cudaMallocHost(&host, 4096));
	OK(cudaMemcpyAsync(device, host, 64, cudaMemcpyHostToDevice, stream));
	OK(cudaMemcpyAsync(host, device, 64, cudaMemcpyDeviceToHost, stream));
	OK(cudaMemsetAsync(device, 0, 64, stream));
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaFree(device));
	nested("cudaMalloc", "cuMemAlloc_v2");
	nested("cudaMallocHost", "cuMemHostAlloc");
	nested("cudaMemsetAsync", "cuMemsetD8Async");
	nested("cudaLaunchKernel", "cuLaunchKernel");
	nested("cudaStreamSynchronize", "cuStreamSynchronize");
	nested("cudaFree", "cuMemFree_v2");
	ck_assert_str_eq(called("cuMemcpyHtoDAsync_v2")->outer, "cudaMemcpyAsync");
	ck_assert_str_eq(called("cuMemcpyDtoHAsync_v2")->outer, "cudaMemcpyAsync");
}
END_TEST

START_TEST(calls_have_cupti_ids)
{
	void *device;

	listen();
	OK(cudaMalloc(&device, 4096));
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	ck_assert_int_eq(called("cudaMalloc")->cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
	ck_assert_int_eq(called("cuMemAlloc_v2")->cbid, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
	ck_assert_int_eq(
		called("cudaLaunchKernel")->cbid, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
	ck_assert_int_eq(called("cuLaunchKernel")->cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
	ck_assert_str_eq(
		sim_cbid_name(SIM_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch), "cuGraphLaunch");
}
END_TEST

START_TEST(each_major_has_its_own_ids)
{
	bool old = SIM_MAJOR == 12;

	ck_assert_int_eq(sim_cbid(SIM_RUNTIME, "cudaGetDeviceProperties_v2"), old ? 440 : 0);
	ck_assert_int_eq(sim_cbid(SIM_RUNTIME, "cudaGetDeviceProperties"), old ? 4 : 440);
	ck_assert_int_eq(sim_cbid(SIM_RUNTIME, "__cudaLaunchKernel"), old ? 0 : 505);
	ck_assert_int_eq(sim_cbid(SIM_RUNTIME, "cudaStreamGetCaptureInfo_v2"), 409);
	ck_assert_int_eq(sim_cbid(SIM_DRIVER, "cuMemGetDefaultMemPool"), old ? 0 : 801);
	ck_assert_int_eq(sim_cbid(SIM_DRIVER, "cuNothing"), 0);
}
END_TEST

START_TEST(calls_that_cupti_does_not_know_are_not_reported)
{
	cudaKernel_t kernel;

	listen();
	OK(__cudaGetKernel(&kernel, &work));
	OK(__cudaLaunchKernel(kernel, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	if (SIM_MAJOR == 12) {
		ck_assert_uint_eq(call_count, 1);
		ck_assert_str_eq(calls[0].name, "cuLaunchKernel");
		ck_assert_uint_ne(calls[0].correlation, 0);
	} else {
		nested("__cudaLaunchKernel", "cuLaunchKernel");
	}
	ck_assert_uint_eq(works[0].correlation, called("cuLaunchKernel")->correlation);
}
END_TEST

START_TEST(twins_nest_twins)
{
	cudaError_t launch(const void *, dim3, dim3, void **, size_t, cudaStream_t) __asm__(
		"cudaLaunchKernel_ptsz");
	cudaError_t set(void *, int, size_t) __asm__("cudaMemset_ptds");
	void *device;

	OK(cudaMalloc(&device, 64));
	listen();
	OK(launch(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, 0));
	OK(set(device, 0, 64));
	nested("cudaLaunchKernel_ptsz", "cuLaunchKernel_ptsz");
	nested("cudaMemset_ptds", "cuMemsetD8_v2_ptds");
	ck_assert_uint_eq(works[0].stream, works[1].stream);
	ck_assert_uint_ne(works[0].stream, sim_context_null_stream(sim_context_current()));
}
END_TEST

START_TEST(a_call_has_its_parameters_result_and_symbol)
{
	void *device;

	listen();
	OK(cudaMalloc(&device, 64));
	ck_assert_ptr_eq(allocated, device);
	FAILS(cudaMalloc(&device, (size_t)1 << 50), cudaErrorMemoryAllocation);
	ck_assert_int_eq(calls[call_count - 1].result, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(calls[call_count - 2].result, cudaErrorMemoryAllocation);
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	ck_assert_str_eq(called("cudaLaunchKernel")->symbol, "_Z4workPfm");
	ck_assert_str_eq(called("cuLaunchKernel")->symbol, "_Z4workPfm");
	ck_assert_ptr_null(called("cudaMalloc")->symbol);
}
END_TEST

START_TEST(correlation_ids_count_outermost_calls_unless_the_tool_gives_more)
{
	void *device;
	uint32_t first;

	listen();
	OK(cudaMalloc(&device, 64));
	first = called("cudaMalloc")->correlation;
	OK(cudaMemsetAsync(device, 0, 64, stream));
	ck_assert_uint_eq(called("cudaMemsetAsync")->correlation, first + 1);
	ck_assert_uint_eq(works[0].correlation, first + 1);
	own_ids = true;
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	ck_assert_uint_eq(called("cudaLaunchKernel")->correlation, first + 2);
	ck_assert_uint_eq(called("cuLaunchKernel")->correlation, first + 3);
	ck_assert_uint_eq(works[1].correlation, first + 3);
	sim_restart_correlation();
	ck_assert_uint_eq(sim_next_correlation(), 1);
}
END_TEST

START_TEST(kernels_are_reported_with_what_they_need)
{
	cudaLaunchConfig_t config;
	struct cudaFuncAttributes attributes;
	uint64_t before;

	OK(cudaFuncGetAttributes(&attributes, &work));
	listen();
	memset(&config, 0, sizeof(config));
	config.gridDim = (dim3){ 10, 2, 3 };
	config.blockDim = (dim3){ 64, 4, 1 };
	config.dynamicSmemBytes = 512;
	config.stream = stream;
	before = sim_time_ns();
	OK(cudaLaunchKernelExC(&config, &work, NULL));
	OK(cudaLaunchKernelExC(&config, &work, NULL));
	ck_assert_uint_eq(work_count, 2);
	ck_assert_int_eq(works[0].kind, SIM_KERNEL);
	ck_assert_str_eq(works[0].name, "_Z4workPfm");
	ck_assert_uint_eq(works[0].grid.z, 3);
	ck_assert_uint_eq(works[0].block.y, 4);
	ck_assert_uint_eq(works[0].dynamic_shared, 512);
	ck_assert_uint_eq(works[0].static_shared, attributes.sharedSizeBytes);
	ck_assert_uint_eq(works[0].registers, (unsigned)attributes.numRegs);
	ck_assert_uint_ge(works[0].start_ns, before);
	ck_assert_uint_lt(works[0].start_ns, works[0].end_ns);
	ck_assert_uint_ge(works[1].start_ns, works[0].end_ns);
	ck_assert_uint_eq(works[1].end_ns - works[1].start_ns, works[0].end_ns - works[0].start_ns);
	ck_assert_uint_eq(works[0].graph_exec, 0);
}
END_TEST

START_TEST(copies_and_memsets_are_reported_with_kinds_and_bytes)
{
	char pageable[256];
	void *a, *b, *pinned;

	OK(cudaMalloc(&a, 256));
	OK(cudaMallocManaged(&b, 256, cudaMemAttachGlobal));
	OK(cudaMallocHost(&pinned, 256));
	listen();
	OK(cudaMemcpy(a, pageable, 256, cudaMemcpyHostToDevice));
	OK(cudaMemcpyAsync(pinned, a, 128, cudaMemcpyDeviceToHost, stream));
	OK(cudaMemcpyAsync(b, a, 64, cudaMemcpyDeviceToDevice, stream));
	OK(cudaMemset2D(a, 64, 7, 10, 3));
	OK(cudaMemcpyAsync(a, pinned, 0, cudaMemcpyHostToDevice, stream));
	ck_assert_uint_eq(work_count, 4);
	ck_assert_int_eq(works[0].copy_kind, SIM_COPY_HTOD);
	ck_assert_int_eq(works[0].source_memory, SIM_MEMORY_PAGEABLE);
	ck_assert_int_eq(works[0].target_memory, SIM_MEMORY_DEVICE);
	ck_assert(!works[0].async);
	ck_assert_int_eq(works[1].copy_kind, SIM_COPY_DTOH);
	ck_assert_int_eq(works[1].target_memory, SIM_MEMORY_PINNED);
	ck_assert(works[1].async);
	ck_assert_int_eq(works[2].copy_kind, SIM_COPY_DTOD);
	ck_assert_int_eq(works[2].target_memory, SIM_MEMORY_MANAGED);
	ck_assert_uint_eq(works[2].bytes, 64);
	ck_assert_int_eq(works[3].kind, SIM_SET);
	ck_assert_uint_eq(works[3].bytes, 30);
	ck_assert_uint_eq(works[3].value, 7);
}
END_TEST

START_TEST(memory_is_reported_when_it_is_allocated_and_freed)
{
	void *device, *pooled;

	listen();
	OK(cudaMalloc(&device, 1000));
	OK(cudaFree(device));
	OK(cudaMallocAsync(&pooled, 2000, stream));
	OK(cudaFreeAsync(pooled, stream));
	ck_assert_uint_eq(memory_count, 4);
	ck_assert_uint_eq(memories[0].bytes, 1000);
	ck_assert_uint_eq(memories[0].address, (uint64_t)(uintptr_t)device);
	ck_assert_int_eq(memories[0].kind, SIM_MEMORY_DEVICE);
	ck_assert_uint_eq(memories[0].stream, SIM_NO_STREAM);
	ck_assert_uint_eq(memories[0].correlation, called("cudaMalloc")->correlation);
	ck_assert(memories[1].release);
	ck_assert_uint_eq(memories[1].bytes, 1000);
	ck_assert(memories[2].async);
	ck_assert_uint_ne(memories[2].pool, 0);
	ck_assert_uint_eq(memories[2].pool_used, 2048);
	ck_assert_uint_eq(memories[2].pool_reserved, 32 * MIB);
	ck_assert_uint_eq(memories[3].pool_used, 0);
}
END_TEST

START_TEST(the_start_is_reported)
{
	CUmodule module;

	sim_tools_set(&tools);
	OK(cudaFree(NULL));
	OK(cudaStreamCreate(&stream));
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	OK(cuModuleLoadData(&module, ".version 9.0\n"));
	OK(cudaStreamDestroy(stream));
	ck_assert_int_eq(resources[0].kind, SIM_CU_INIT_FINISHED);
	ck_assert_uint_eq(sim_context_id(resource(SIM_CONTEXT_CREATED, 0)->context), 1);
	ck_assert_uint_eq(sim_stream_id(resource(SIM_STREAM_CREATED, 0)->stream), 7);
	ck_assert_ptr_eq(resource(SIM_STREAM_CREATED, 1)->stream, (struct sim_stream *)stream);
	ck_assert_uint_ne(resource(SIM_MODULE_LOADED, 0)->image_bytes, 0);
	ck_assert_uint_eq(resource(SIM_MODULE_LOADED, 1)->image_bytes, 14);
	ck_assert_ptr_eq(
		resource(SIM_STREAM_DESTROY_STARTING, 0)->stream, (struct sim_stream *)stream);
	ck_assert_uint_eq(resource_count, 7);
}
END_TEST

START_TEST(waits_and_events_are_reported)
{
	cudaEvent_t event;

	OK(cudaEventCreate(&event));
	listen();
	OK(cudaEventRecord(event, stream));
	OK(cudaStreamWaitEvent(stream, event, 0));
	OK(cudaEventSynchronize(event));
	OK(cudaStreamSynchronize(stream));
	OK(cudaDeviceSynchronize());
	ck_assert_uint_eq(event_count, 1);
	ck_assert_uint_eq(events[0].event, sim_event_id((struct sim_event *)event));
	ck_assert_uint_eq(sync_count, 4);
	ck_assert_int_eq(syncs[0].kind, SIM_SYNC_STREAM_WAIT_EVENT);
	ck_assert_int_eq(syncs[1].kind, SIM_SYNC_EVENT);
	ck_assert_int_eq(syncs[2].kind, SIM_SYNC_STREAM);
	ck_assert_int_eq(syncs[3].kind, SIM_SYNC_CONTEXT);
	ck_assert_uint_eq(syncs[2].stream, sim_stream_id((struct sim_stream *)stream));
	ck_assert_uint_eq(syncs[3].stream, SIM_NO_STREAM);
	ck_assert_uint_ge(syncs[3].end_ns, syncs[3].start_ns);
}
END_TEST

/* Two branches between a first and a last kernel. */
static cudaGraph_t diamond(void)
{
	struct cudaKernelNodeParams params;
	cudaGraph_t graph;
	cudaGraphNode_t first, sides[2], last;

	memset(&params, 0, sizeof(params));
	params.func = (void *)&work;
	params.gridDim = params.blockDim = (dim3){ 1, 1, 1 };
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &params));
	OK(cudaGraphAddKernelNode(&sides[0], graph, &first, 1, &params));
	OK(cudaGraphAddKernelNode(&sides[1], graph, &first, 1, &params));
	OK(cudaGraphAddKernelNode(&last, graph, sides, 2, &params));
	return graph;
}

START_TEST(nodes_are_cloned_and_work_names_the_clone)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	listen();
	graph = diamond();
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	nested("cudaGraphLaunch", "cuGraphLaunch");
	ck_assert_uint_eq(work_count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct sim_resource *clone = resource(SIM_NODE_CLONED, i);

		ck_assert_ptr_eq(clone->original_node, resource(SIM_NODE_CREATED, i)->node);
		ck_assert_ptr_eq(clone->original_graph, (struct sim_graph *)graph);
		ck_assert_int_eq(clone->node_kind, SIM_NODE_KERNEL);
		ck_assert_uint_eq(works[i].node, sim_node_id(clone->node));
		ck_assert_uint_eq(
			works[i].graph_exec, sim_graph_exec_id((struct sim_graph_exec *)exec));
		ck_assert_uint_eq(works[i].correlation, called("cudaGraphLaunch")->correlation);
	}
	ck_assert_ptr_eq(
		resource(SIM_GRAPH_EXEC_CREATED, 0)->graph_exec, (struct sim_graph_exec *)exec);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	ck_assert_ptr_nonnull(resource(SIM_GRAPH_EXEC_DESTROY_STARTING, 0));
	ck_assert_ptr_nonnull(resource(SIM_NODE_DESTROY_STARTING, 3));
	ck_assert_ptr_nonnull(resource(SIM_GRAPH_DESTROY_STARTING, 0));
}
END_TEST

START_TEST(branches_of_a_graph_run_side_by_side)
{
	cudaGraphExec_t exec;

	listen();
	OK(cudaGraphInstantiateWithFlags(&exec, diamond(), 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	ck_assert_uint_eq(works[1].start_ns, works[2].start_ns);
	ck_assert_uint_ge(works[1].start_ns, works[0].end_ns);
	ck_assert_uint_ge(works[3].start_ns, works[2].end_ns);
	ck_assert_uint_eq(works[0].stream, works[1].stream);
	ck_assert_uint_eq(works[0].stream, works[3].stream);
	ck_assert_uint_ne(works[2].stream, works[1].stream);
	ck_assert_uint_ge(works[4].start_ns, works[3].end_ns);
}
END_TEST

START_TEST(capture_creates_nodes_inside_the_launch)
{
	cudaGraph_t graph;

	listen();
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaLaunchKernel(&work, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, stream));
	ck_assert_uint_eq(work_count, 0);
	ck_assert_int_eq(resource(SIM_NODE_CREATED, 0)->node_kind, SIM_NODE_KERNEL);
	OK(cudaStreamEndCapture(stream, &graph));
	ck_assert_ptr_eq(resource(SIM_NODE_CREATED, 0)->graph, (struct sim_graph *)graph);
}
END_TEST

static void leave(struct sim_scope *scope)
{
	api_enter(scope);
	sim_tools_set(NULL);
}

START_TEST(who_was_notified_of_the_begin_is_notified_of_the_end)
{
	static struct sim_tools leaving;
	void *device;

	listen();
	leaving = tools;
	leaving.api_enter = leave;
	sim_tools_set(&leaving);
	OK(cudaMalloc(&device, 64));
	ck_assert_uint_eq(call_count, 1);
	ck_assert(calls[0].ended);
	ck_assert_uint_eq(memory_count, 0);
}
END_TEST

static void count(const struct sim_resource *r, void *data)
{
	size_t *counts = data;

	counts[r->kind == SIM_CONTEXT_CREATED]++;
}

START_TEST(late_tools_can_see_what_is_there)
{
	size_t counts[2] = { 0, 0 };

	listen();
	sim_visit_resources(count, counts);
	ck_assert_uint_eq(counts[1], 1);
	ck_assert_uint_eq(counts[0], 2);
}
END_TEST

SUITE("cudasim tools", runtime_calls_nest_driver_calls, calls_have_cupti_ids,
	each_major_has_its_own_ids, calls_that_cupti_does_not_know_are_not_reported,
	twins_nest_twins, a_call_has_its_parameters_result_and_symbol,
	correlation_ids_count_outermost_calls_unless_the_tool_gives_more,
	kernels_are_reported_with_what_they_need,
	copies_and_memsets_are_reported_with_kinds_and_bytes,
	memory_is_reported_when_it_is_allocated_and_freed, the_start_is_reported,
	waits_and_events_are_reported, nodes_are_cloned_and_work_names_the_clone,
	branches_of_a_graph_run_side_by_side, capture_creates_nodes_inside_the_launch,
	who_was_notified_of_the_begin_is_notified_of_the_end, late_tools_can_see_what_is_there)
