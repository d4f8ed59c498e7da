// SPDX-License-Identifier: MIT
// probe_cupti WHAT: asks CUPTI itself, without pperf, what its documentation leaves open. Prints one
// JSON object.
//
//	ids driver|runtime|both [calls]
//	          which call's correlation id the records carry when callbacks of these domains are on
//	          (calls: and records of the calls), and what a launch by <<<>>> and its nested driver
//	          call are called
//	kineto alone|driver|both
//	          the same for a client like Kineto (records of runtime and driver calls and of external
//	          ids), with callbacks of these domains on beside it
//	nodes     the resource callbacks of graphs, in their order, with the ids that records carry
//	busy BYTES [SECONDS]
//	          when buffers of BYTES come while kernels of 200 us keep the GPU busy
//	queries default|0|1
//	          synchronisation and event records of queries, by type and result; 0 and 1: argument
//	          of cuptiActivityEnableAllSyncRecords
//	threads inherit|blocked
//	          the threads of this process and the signals that they block, after each step;
//	          blocked: signals are blocked during CUPTI's calls and the first context
//	replay none|nodes|whole
//	          GPU time of 100 replays of a graph of 500 kernels without CUPTI, with a record per
//	          node, and with one per graph
//	faults bare|cupti|flush
//	          a kernel writes out of bounds, then the program exits; cupti: with records of kernels
//	          on; flush: and with a forced flush before the exit
//	endless bare|cupti|flush [SECONDS]
//	          exit(0) while a kernel of 30 s runs; the same variants
//	lengths   from record to record in a buffer, by kind
//	flush     whether a flush of complete buffers waits for a kernel that runs
//	memory    memory records when the program itself allocates nothing
//	dump      whether cuptiActivityEnableAndDump gives a record of the context each time, and
//	          whether a flush brings it while a kernel runs
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <signal.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

typedef std::chrono::steady_clock::time_point Time;

static const int launches = 100;
static const long long ticks_per_second = 1800000000; // of an SM, roughly
static size_t buffer_bytes = 1 << 20;
static Time begin;

static std::mutex lock;               // of what follows; never held while CUPTI is called
static std::set<unsigned> entered[3]; // ids of enters, by domain
static std::map<std::string, std::pair<int, std::string>>
	callbacks;            // "domain.id name": how often, with which symbol
static int same_id, other_id; // of driver calls inside runtime calls
static thread_local unsigned inside;
static std::vector<unsigned> kernels; // ids of records
static std::map<int, std::set<long>> distances;
static std::vector<std::string> memory;
static int contexts; // records of them
static std::atomic<int> buffers;
static std::atomic<bool> ending;          // CUPTI may deliver buffers when the above is destroyed
static std::map<std::string, int> counts; // of records, by what they say
static std::map<unsigned, unsigned long long> external; // ids of records, and the client's ids
static std::set<unsigned> called[2]; // ids of records of runtime and driver calls
static std::vector<std::string> node_records;
static std::vector<std::pair<std::string, std::vector<std::string>>> phases; // resource callbacks
static std::vector<std::pair<double, int>> arrivals; // ms and records of each buffer

static void check(int result, const char *what)
{
	if (result == 0)
		return;
	printf("{\"failed\": \"%s\", \"code\": %d}\n", what, result);
	exit(1);
}
#define CHECK(call) check((int)(call), #call)

__global__ void some_kernel(float *data)
{
	if (data)
		data[threadIdx.x] += 1.0f;
}

__global__ void long_kernel(long long ticks)
{
	for (long long start = clock64(); clock64() - start < ticks;)
		;
}

static double ms_since(Time start)
{
	return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
		.count();
}

static std::string quoted(const std::vector<std::string> &texts)
{
	std::string all;

	for (const auto &text : texts)
		all += (all.empty() ? "\"" : ", \"") + text + "\"";
	return "[" + all + "]";
}

static std::string node_name(CUgraphNode node)
{
	uint64_t id = 0;

	return cuptiGetGraphNodeId(node, &id) == CUPTI_SUCCESS ? "node " + std::to_string(id)
							       : "node ?";
}

static std::string graph_name(CUgraph graph)
{
	uint32_t id = 0;

	return cuptiGetGraphId(graph, &id) == CUPTI_SUCCESS ? "graph " + std::to_string(id)
							    : "graph ?";
}

static std::string exec_name(CUgraphExec exec)
{
	uint32_t id = 0;

	return cuptiGetGraphExecId(exec, &id) == CUPTI_SUCCESS ? "exec " + std::to_string(id)
							       : "exec ?";
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
	const CUpti_GraphData *data = (const CUpti_GraphData *)resource->resourceDescriptor;
	std::string text;

	if (id == CUPTI_CBID_RESOURCE_GRAPH_CREATED)
		text = "GRAPH_CREATED " + graph_name(data->graph);
	else if (id == CUPTI_CBID_RESOURCE_GRAPH_CLONED)
		text = "GRAPH_CLONED " + graph_name(data->graph) + " of " +
		       graph_name(data->originalGraph);
	else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)
		text = "GRAPHNODE_CREATED " + node_name(data->node) + " in " +
		       graph_name(data->graph) + ", type " + std::to_string((int)data->nodeType);
	else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)
		text = "GRAPHNODE_CLONED " + node_name(data->node) + " in " +
		       graph_name(data->graph) + " of " + node_name(data->originalNode) + " in " +
		       graph_name(data->originalGraph);
	else if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED)
		text = "GRAPHEXEC_CREATED " + exec_name(data->graphExec) + " of " +
		       graph_name(data->graph);
	else
		text = "callback " + std::to_string(id);
	std::lock_guard<std::mutex> guard(lock);
	if (!phases.empty())
		phases.back().second.push_back(text);
}

// Of the probe `nodes`: what happens inside which call. Returns false for the other probes. The
// calls are no launches of kernels, so that their symbolName may be invalid.
static bool note_call(const CUpti_CallbackData *call)
{
	std::lock_guard<std::mutex> guard(lock);

	if (phases.empty())
		return false;
	phases.back().second.push_back(
		(call->callbackSite == CUPTI_API_EXIT ? "exit of " : "enter ") +
		std::string(call->functionName) + ", id " + std::to_string(call->correlationId));
	return true;
}

static void CUPTIAPI on_call(
	void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
	bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;

	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		on_resource(id, (const CUpti_ResourceData *)data);
		return;
	}
	if (note_call(call))
		return;
	if (call->callbackSite == CUPTI_API_EXIT) {
		if (!driver)
			inside = 0;
		return;
	}
	std::lock_guard<std::mutex> guard(lock);
	entered[domain].insert(call->correlationId);
	auto &seen = callbacks[std::to_string(domain) + "." + std::to_string(id) + " " +
			       call->functionName];
	seen.first++;
	if (call->symbolName && call->context && strstr(call->functionName, "LaunchKernel"))
		seen.second = call->symbolName;
	if (driver && inside)
		(inside == call->correlationId ? same_id : other_id)++;
	if (!driver)
		inside = call->correlationId;
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*buffer = (uint8_t *)aligned_alloc(8, *bytes = buffer_bytes);
	*most = 0;
}

static void take_node(const CUpti_ActivityKernel9 *kernel)
{
	if (kernel->graphNodeId)
		node_records.push_back("kernel of node " + std::to_string(kernel->graphNodeId) +
				       " in graph " + std::to_string(kernel->graphId) + ", id " +
				       std::to_string(kernel->correlationId));
}

static void take_memory(const CUpti_ActivityMemory3 *m)
{
	char text[128];

	snprintf(text, sizeof text, "%s %llu bytes of kind %d, id %u",
		m->memoryOperationType == 1 ? "+" : "-", (unsigned long long)m->bytes,
		(int)m->memoryKind, m->correlationId);
	memory.push_back(text);
}

// Synchronisation records have a result in CUDA 13's headers.
static void take_synchronization(const CUpti_Activity *record)
{
#if CUPTI_API_VERSION >= 130000
	const CUpti_ActivitySynchronization2 *wait = (const CUpti_ActivitySynchronization2 *)record;

	counts["synchronisation, type " + std::to_string((int)wait->type) + ", result " +
		std::to_string(wait->returnValue)]++;
#else
	counts["synchronisation"] += record != NULL;
#endif
}

static void take_other(const CUpti_Activity *record)
{
	counts["kind " + std::to_string((int)record->kind)]++;
	contexts += record->kind == CUPTI_ACTIVITY_KIND_CONTEXT;
	if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
		take_synchronization(record);
	if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME ||
		record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
		const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
		bool driver = record->kind == CUPTI_ACTIVITY_KIND_DRIVER;

		called[driver].insert(call->correlationId);
		counts[(driver ? "driver call " : "runtime call ") + std::to_string(call->cbid)]++;
	}
	if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
		const CUpti_ActivityExternalCorrelation *both =
			(const CUpti_ActivityExternalCorrelation *)record;

		external[both->correlationId] = both->externalId;
	}
}

static void take(const CUpti_Activity *record)
{
	if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		kernels.push_back(((const CUpti_ActivityKernel9 *)record)->correlationId);
		take_node((const CUpti_ActivityKernel9 *)record);
	} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
		take_memory((const CUpti_ActivityMemory3 *)record);
	} else {
		take_other(record);
	}
}

static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
	CUpti_Activity *record = NULL, *before = NULL;
	int records = 0;

	if (ending)
		return;
	buffers++;
	for (; cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS; records++) {
		std::lock_guard<std::mutex> guard(lock);

		if (before)
			distances[before->kind].insert((const char *)record - (const char *)before);
		take(record);
		before = record;
	}
	free(buffer);
	std::lock_guard<std::mutex> guard(lock);
	arrivals.push_back({ ms_since(begin), records });
}

static void enable(const char *domains)
{
	CUpti_SubscriberHandle subscriber;

	CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL));
	if (strcmp(domains, "runtime"))
		for (unsigned id : { CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
			     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx })
			CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id));
	if (strcmp(domains, "driver"))
		for (unsigned id : { 211u, 430u,
			     505u }) // cudaLaunchKernel, cudaLaunchKernelExC, __cudaLaunchKernel (13; an error before)
			if (cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id) !=
					CUPTI_SUCCESS &&
				id != 505)
				check(1, "enabling callbacks of the runtime");
}

static void launch(int count)
{
	float *data;

	CHECK(cudaMalloc(&data, 4096));
	for (int i = 0; i < count; i++)
		some_kernel<<<1, 32>>>(data);
	CHECK(cudaDeviceSynchronize());
	CHECK(cuptiActivityFlushAll(1));
}

static void ids(const char *domains, bool calls)
{
	int of[4] = { 0, 0, 0,
		0 }; // records with an id of no callback, the driver's, the runtime's, both
	const char *comma = "";

	enable(domains);
	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	if (calls) {
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
	}
	launch(launches);
	for (unsigned id : kernels)
		of[(int)entered[1].count(id) + 2 * (int)entered[2].count(id)]++;
	printf("{\"kernels\": %zu, \"id of no callback\": %d, \"of a driver call\": %d, \"of a "
	       "runtime call\": %d, \"of both\": %d, \"driver calls inside runtime "
	       "calls\": {\"same id\": %d, \"another\": %d}, \"callbacks\": {",
		kernels.size(), of[0], of[1], of[2], of[3], same_id, other_id);
	for (const auto &c : callbacks) {
		printf("%s\"%s\": [%d, \"%s\"]", comma, c.first.c_str(), c.second.first,
			c.second.second.c_str());
		comma = ", ";
	}
	printf("}}\n");
}

static void lengths()
{
	const char *comma = "";
	void *data, *host;

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	for (CUpti_ActivityKind kind : { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		     CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
		     CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		     CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_DRIVER })
		CHECK(cuptiActivityEnable(kind));
	CHECK(cudaMallocHost(&host, 4096));
	CHECK(cudaMalloc(&data, 4096));
	for (int i = 0; i < 20; i++) {
		some_kernel<<<1, 32>>>((float *)data);
		CHECK(cudaMemcpyAsync(data, host, 4096, cudaMemcpyHostToDevice, 0));
		CHECK(cudaMemsetAsync(data, 0, 4096, 0));
		CHECK(cudaDeviceSynchronize());
	}
	launch(20);
	printf("{");
	for (const auto &kind : distances) {
		printf("%s\"%d\": [", comma, kind.first);
		comma = "";
		for (long distance : kind.second) {
			printf("%s%ld", comma, distance);
			comma = ", ";
		}
		printf("]");
		comma = ", ";
	}
	printf("}\n");
}

static void flush()
{
	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	launch(launches);
	size_t before = kernels.size();
	long_kernel<<<1, 1>>>(1000000000LL); // more than half a second
	auto start = std::chrono::steady_clock::now();
	CHECK(cuptiActivityFlushAll(0));
	double took = ms_since(start);
	bool runs = cudaStreamQuery(0) == cudaErrorNotReady;
	CHECK(cudaDeviceSynchronize());
	double until = ms_since(start);
	CHECK(cuptiActivityFlushAll(0));
	printf("{\"flush_ms\": %.3f, \"kernel still runs\": %s, \"kernel ended after ms\": %.1f, "
	       "\"its record came with the next flush\": %s}\n",
		took, runs ? "true" : "false", until,
		kernels.size() == before + 1 ? "true" : "false");
}

static void dump()
{
	int before[4];

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	launch(launches);
	for (int i = 0; i < 2; i++) {
		CHECK(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT));
		CHECK(cuptiActivityFlushAll(0));
		before[i] = contexts;
	}
	long_kernel<<<1, 1>>>(1000000000LL);
	CHECK(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT));
	CHECK(cuptiActivityFlushAll(0));
	before[2] = contexts;
	bool runs = cudaStreamQuery(0) == cudaErrorNotReady;
	CHECK(cudaDeviceSynchronize());
	CHECK(cuptiActivityFlushAll(0));
	before[3] = contexts;
	printf("{\"records after the first, the second, one while a kernel runs, and its end\": "
	       "[%d, %d, %d, %d], \"kernel still ran\": %s}\n",
		before[0], before[1], before[2], before[3], runs ? "true" : "false");
}

static void own_memory()
{
	size_t all, before, after;

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2));
	CHECK(cudaFree(0));
	CHECK(cudaMemGetInfo(&before, &all));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	some_kernel<<<1, 32>>>(NULL);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemGetInfo(&after, &all));
	CHECK(cuptiActivityFlushAll(1));
	printf("{\"device memory that went with the first kernel\": %lld, \"memory records\": "
	       "%s}\n",
		(long long)before - (long long)after, quoted(memory).c_str());
}

static std::string counted()
{
	std::string all;

	for (const auto &c : counts)
		all += (all.empty() ? "\"" : ", \"") + c.first + "\": " + std::to_string(c.second);
	return "{" + all + "}";
}

// Like Kineto: each launch has an id of the client's on top.
static void launch_with_external_ids(int count)
{
	uint64_t id;

	for (int i = 1; i <= count; i++) {
		CHECK(cuptiActivityPushExternalCorrelationId(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, i));
		some_kernel<<<1, 32>>>(NULL);
		CHECK(cuptiActivityPopExternalCorrelationId(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cuptiActivityFlushAll(1));
}

static void kineto(const char *domains)
{
	int of[3] = { 0, 0, 0 }, linked = 0, of_callback[2] = { 0, 0 };
	std::vector<std::string> first;

	if (strcmp(domains, "alone"))
		enable(domains);
	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	for (CUpti_ActivityKind kind :
		{ CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
			CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER })
		CHECK(cuptiActivityEnable(kind));
	launch_with_external_ids(20);
	std::lock_guard<std::mutex> guard(lock);
	for (unsigned id : kernels) {
		for (int driver = 0; driver < 2; driver++)
			of[driver] += (int)called[driver].count(id);
		of[2] += !called[0].count(id) && !called[1].count(id);
		linked += (int)external.count(id);
		of_callback[0] += (int)entered[CUPTI_CB_DOMAIN_RUNTIME_API].count(id);
		of_callback[1] += (int)entered[CUPTI_CB_DOMAIN_DRIVER_API].count(id);
		if (first.size() < 3)
			first.push_back(
				std::to_string(id) + " external " +
				(external.count(id) ? std::to_string(external[id]) : "none"));
	}
	printf("{\"kernels\": %zu, \"id of a runtime record\": %d, \"of a driver record\": %d, "
	       "\"of no "
	       "record of a call\": %d, \"with an external id\": %d, \"id of a runtime callback\": "
	       "%d, "
	       "\"of a driver callback\": %d, \"first kernels\": %s, \"records\": %s}\n",
		kernels.size(), of[0], of[1], of[2], linked, of_callback[0], of_callback[1],
		quoted(first).c_str(), counted().c_str());
}

static void phase(const char *name)
{
	std::lock_guard<std::mutex> guard(lock);

	phases.push_back({ name, {} });
}

static cudaGraph_t captured(cudaStream_t stream, int count, void *data)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < count; i++)
		some_kernel<<<1, 32, 0, stream>>>((float *)data);
	if (data)
		CHECK(cudaMemsetAsync(data, 0, 4096, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static void add_nodes(cudaGraph_t graph, void *data)
{
	cudaKernelNodeParams kernel = {};
	cudaGraphNode_t first, second;
	void *arguments[] = { &data };

	kernel.func = (void *)some_kernel;
	kernel.gridDim = dim3(1);
	kernel.blockDim = dim3(32);
	kernel.kernelParams = arguments;
	CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &kernel));
	CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
}

static void print_nodes()
{
	std::lock_guard<std::mutex> guard(lock);

	printf("{");
	for (const auto &p : phases)
		printf("\"%s\": %s, ", p.first.c_str(), quoted(p.second).c_str());
	printf("\"records\": %s, \"others\": %s}\n", quoted(node_records).c_str(),
		counted().c_str());
}

static void enable_resources()
{
	CUpti_SubscriberHandle subscriber;

	CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL));
	for (CUpti_CallbackId id : { CUPTI_CBID_RESOURCE_GRAPH_CREATED,
		     CUPTI_CBID_RESOURCE_GRAPH_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
		     CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED })
		CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
	for (CUpti_CallbackId id : { CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
		     CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
		     CUPTI_DRIVER_TRACE_CBID_cuGraphClone })
		CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id));
	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
}

// Adds nodes one by one, clones the graph, and launches the clone.
static void add_and_clone(cudaStream_t stream, void *data)
{
	cudaGraph_t added, clone;
	cudaGraphExec_t exec;

	phase("2 kernel nodes added");
	CHECK(cudaGraphCreate(&added, 0));
	add_nodes(added, data);
	phase("their clone");
	if (cudaGraphClone(&clone, added) != cudaSuccess) {
		phase("the clone was refused");
		return;
	}
	phase("instantiation of the clone");
	CHECK(cudaGraphInstantiateWithFlags(&exec, clone, 0));
	CHECK(cudaGraphLaunch(exec, stream));
}

static void nodes()
{
	cudaGraph_t graph, changed;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo result = {};
	cudaStream_t stream;
	void *data, *other;

	enable_resources();
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&data, 4096));
	CHECK(cudaMalloc(&other, 4096));
	phase("capture of 2 kernels and a memset");
	graph = captured(stream, 2, data);
	phase("its instantiation");
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	phase("launch");
	CHECK(cudaGraphLaunch(exec, stream));
	add_and_clone(stream, data);
	phase("capture with another address");
	changed = captured(stream, 2, other);
	phase("update of the first executable graph");
	if (cudaGraphExecUpdate(exec, changed, &result) != cudaSuccess)
		phase("the update was refused");
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cuptiActivityFlushAll(1));
	print_nodes();
}

static const int kernels_most = 40000; // the simulated device takes no time

// Keeps the GPU busy with kernels of 200 us: a batch runs while the next is launched.
static int launch_for(double seconds, cudaEvent_t *done)
{
	int count = 0;

	for (; ms_since(begin) < seconds * 1000 && count < kernels_most; count += 50) {
		for (int i = 0; i < 50; i++)
			long_kernel<<<1, 1>>>(ticks_per_second / 5000);
		CHECK(cudaEventRecord(done[count / 50 % 2], 0));
		if (count)
			CHECK(cudaEventSynchronize(done[(count / 50 + 1) % 2]));
	}
	return count;
}

static void busy(const char *bytes, const char *seconds)
{
	double slowest = 0, took;
	int flushes = 0, launched, arrived;
	std::atomic<bool> ends(false);
	std::string all;
	cudaEvent_t done[2];

	buffer_bytes = strtoul(bytes, NULL, 10);
	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	CHECK(cudaEventCreate(&done[0]));
	CHECK(cudaEventCreate(&done[1]));
	begin = std::chrono::steady_clock::now();
	std::thread flusher([&] {
		for (; !ends; flushes++) {
			std::this_thread::sleep_for(std::chrono::milliseconds(100));
			auto start = std::chrono::steady_clock::now();
			CHECK(cuptiActivityFlushAll(0));
			slowest = std::max(slowest, ms_since(start));
		}
	});
	launched = launch_for(atof(seconds), done);
	ends = true;
	flusher.join();
	took = ms_since(begin);
	lock.lock();
	arrived = (int)kernels.size();
	for (const auto &a : arrivals)
		all += (all.empty() ? "[" : ", [") + std::to_string((int)a.first) + ", " +
		       std::to_string(a.second) + "]";
	lock.unlock();
	CHECK(cudaDeviceSynchronize());
	CHECK(cuptiActivityFlushAll(1));
	printf("{\"bytes of a buffer\": %zu, \"ms\": %.0f, \"kernels launched\": %d, \"records "
	       "while busy\": "
	       "%d, \"in the end\": %zu, \"flushes\": %d, \"slowest flush ms\": %.3f, \"buffers "
	       "while busy: ms, "
	       "records\": [%s]}\n",
		buffer_bytes, took, launched, arrived, kernels.size(), flushes, slowest,
		all.c_str());
}

// CUPTI 12.8 has it. Returns its result, or -1 without it.
static int enable_all_synchronizations(int on)
{
	CUptiResult (*enable_all)(uint8_t) = (CUptiResult(*)(uint8_t))dlsym(
		RTLD_DEFAULT, "cuptiActivityEnableAllSyncRecords");

	return enable_all ? (int)enable_all((uint8_t)on) : -1;
}

static void queries(const char *setting)
{
	int told = 0, not_ready[2] = { 0, 0 };
	cudaEvent_t event;

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CUDA_EVENT));
	if (strcmp(setting, "default"))
		told = enable_all_synchronizations(atoi(setting));
	CHECK(cudaEventCreate(&event));
	for (int round = 0; round < 2; round++) { // the kernel runs, and has ended
		if (!round)
			long_kernel<<<1, 1>>>(ticks_per_second / 2);
		if (!round)
			CHECK(cudaEventRecord(event, 0));
		for (int i = 0; i < 100; i++)
			not_ready[round] += cudaEventQuery(event) == cudaErrorNotReady;
		for (int i = 0; i < 50; i++)
			cudaStreamQuery(0);
		cudaGetLastError();
		if (!round)
			CHECK(cudaEventSynchronize(event));
	}
	CHECK(cuptiActivityFlushAll(1));
	printf("{\"setting\": \"%s\", \"result of the setting\": %d, \"event queries: 100 beside a "
	       "kernel and "
	       "100 after it, of them not ready\": [%d, %d], \"stream queries\": [50, 50], \"event "
	       "waits\": 1, "
	       "\"records\": %s}\n",
		setting, told, not_ready[0], not_ready[1], counted().c_str());
}

static std::string threads_now()
{
	std::vector<std::string> all;
	DIR *folder = opendir("/proc/self/task");

	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		std::string name, line, blocked,
			path = std::string("/proc/self/task/") + entry->d_name;
		if (entry->d_name[0] == '.')
			continue;
		std::ifstream status(path + "/status");
		while (std::getline(status, line)) {
			if (line.compare(0, 6, "Name:\t") == 0)
				name = line.substr(6);
			if (line.compare(0, 8, "SigBlk:\t") == 0)
				blocked = line.substr(8);
		}
		all.push_back(name + " " + blocked);
	}
	if (folder)
		closedir(folder);
	return quoted(all);
}

static std::string steps;

// Runs a step, with all signals blocked if so asked, and notes the threads after it.
template <class Step> static void thread_step(const char *name, bool blocked, Step step)
{
	sigset_t every, before;

	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	if (blocked)
		pthread_sigmask(SIG_BLOCK, &every, NULL);
	step();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	steps += (steps.empty() ? "\"" : ", \"") + std::string(name) + "\": " + threads_now();
}

static void threads(bool blocked)
{
	CUpti_SubscriberHandle subscriber;

	thread_step("start", blocked, [] {});
	thread_step("cudaGetDeviceCount", false, [] {
		int devices;
		CHECK(cudaGetDeviceCount(&devices));
	});
	thread_step("cuptiSubscribe", blocked,
		[&] { CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL)); });
	thread_step("cuptiActivityEnable", blocked, [] {
		CHECK(cuptiActivityRegisterCallbacks(requested, completed));
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	});
	thread_step("first context", blocked, [] { CHECK(cudaFree(0)); });
	thread_step("first kernel", blocked, [] {
		some_kernel<<<1, 32>>>(NULL);
		CHECK(cudaDeviceSynchronize());
	});
	thread_step("cuptiActivityFlushAll", blocked, [] { CHECK(cuptiActivityFlushAll(1)); });
	printf("{%s}\n", steps.c_str());
}

static void replay(const char *records)
{
	cudaEvent_t from, to;
	cudaStream_t stream;
	cudaGraphExec_t exec;
	float gpu_ms = 0;

	if (strcmp(records, "none")) {
		CHECK(cuptiActivityRegisterCallbacks(requested, completed));
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	}
	if (!strcmp(records, "whole"))
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	CHECK(cudaGraphInstantiateWithFlags(&exec, captured(stream, 500, NULL), 0));
	for (int i = 0; i < 10; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	auto start = std::chrono::steady_clock::now();
	CHECK(cudaEventRecord(from, stream));
	for (int i = 0; i < 100; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	double launched = ms_since(start);
	CHECK(cudaEventRecord(to, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventElapsedTime(&gpu_ms, from, to));
	if (strcmp(records, "none"))
		CHECK(cuptiActivityFlushAll(1));
	printf("{\"gpu ms of 100 replays of 500 kernels\": %.3f, \"ms of their launches\": %.3f, "
	       "\"records "
	       "of kernels\": %zu, \"others\": %s}\n",
		gpu_ms, launched, kernels.size(), counted().c_str());
}

__global__ void out_of_bounds_kernel(float *data)
{
	data[1ull << 40] = 1.0f;
}

// What a program does before it ends badly. Prints as it goes, because the next step may not end.
static void prepare_end(const char *variant)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (strcmp(variant, "bare")) {
		CHECK(cuptiActivityRegisterCallbacks(requested, completed));
		CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	}
	for (int i = 0; i < launches; i++)
		some_kernel<<<1, 32>>>(NULL);
	CHECK(cudaDeviceSynchronize());
	begin = std::chrono::steady_clock::now();
}

static void end(const char *variant)
{
	int result;

	if (!strcmp(variant, "flush")) {
		result = (int)cuptiActivityFlushAll(1);
		printf("\"result of the forced flush\": %d, \"flushed after ms\": %.1f, ", result,
			ms_since(begin));
		result = (int)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
		printf("\"result of disabling\": %d, \"disabled after ms\": %.1f, ", result,
			ms_since(begin));
	}
	lock.lock();
	printf("\"records before the exit\": %zu}\n", kernels.size());
	lock.unlock();
	ending = true;
	exit(0);
}

static void faults(const char *variant)
{
	float *data;

	CHECK(cudaMalloc(&data, 4096));
	prepare_end(variant);
	out_of_bounds_kernel<<<1, 1>>>(data);
	printf("{\"error\": %d, ", (int)cudaDeviceSynchronize());
	end(variant);
}

static void endless(const char *variant, const char *seconds)
{
	prepare_end(variant);
	long_kernel<<<1, 1>>>(ticks_per_second * atoll(seconds));
	printf("{\"kernel runs\": %s, ",
		cudaStreamQuery(0) == cudaErrorNotReady ? "true" : "false");
	end(variant);
}

static void usage()
{
	fprintf(stderr,
		"usage: probe_cupti ids|kineto|nodes|busy|queries|threads|replay|faults|endless|"
		"lengths|flush|memory|dump [ARGUMENT...]; the source says which\n");
	exit(64);
}

int main(int argc, char **argv)
{
	const std::string what = argc > 1 ? argv[1] : "";
	const char *how = argc > 2 ? argv[2] : NULL;

	begin = std::chrono::steady_clock::now();
	if (what == "ids")
		ids(how ? how : "driver", argc > 3);
	else if (what == "kineto")
		kineto(how ? how : "alone");
	else if (what == "nodes")
		nodes();
	else if (what == "busy")
		busy(how ? how : "1048576", argc > 3 ? argv[3] : "5");
	else if (what == "queries")
		queries(how ? how : "default");
	else if (what == "threads")
		threads(how && !strcmp(how, "blocked"));
	else if (what == "replay")
		replay(how ? how : "none");
	else if (what == "faults")
		faults(how ? how : "bare");
	else if (what == "endless")
		endless(how ? how : "bare", argc > 3 ? argv[3] : "30");
	else if (what == "lengths")
		lengths();
	else if (what == "flush")
		flush();
	else if (what == "memory")
		own_memory();
	else if (what == "dump")
		dump();
	else
		usage();
	ending = true;
	return 0;
}
