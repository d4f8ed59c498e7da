// SPDX-License-Identifier: MIT
// probe_cupti WHAT: asks CUPTI itself what its documentation leaves open, without pperf. One JSON object.
//
//	ids driver|runtime|both [calls]   whose id the records carry when callbacks of these domains are on (calls: and records of the calls), and what a launch by <<<>>> and its nested
//	                          driver call are called
//	lengths                   from record to record in a buffer, by kind
//	flush                     whether asking for what is complete waits for a kernel that runs
//	memory                    memory records when the program itself allocates nothing
//	dump                      whether cuptiActivityEnableAndDump gives a record of the context each time, and whether a flush brings it while a kernel runs
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

static const int launches = 100;
static const size_t buffer_bytes = 1 << 20;

static std::mutex lock; // of what follows; never held while CUPTI is called
static std::set<unsigned> entered[3]; // ids of enters, by domain
static std::map<std::string, std::pair<int, std::string>> callbacks; // "domain.id name": how often, with which symbol
static int same_id, other_id; // of driver calls inside runtime calls
static thread_local unsigned inside;
static std::vector<unsigned> kernels; // ids of records
static std::map<int, std::set<long>> distances;
static std::vector<std::string> memory;
static int contexts; // records of them
static std::atomic<int> buffers;

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

static void CUPTIAPI on_call(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
	bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;

	if (call->callbackSite == CUPTI_API_EXIT) {
		if (!driver)
			inside = 0;
		return;
	}
	std::lock_guard<std::mutex> guard(lock);
	entered[domain].insert(call->correlationId);
	auto &seen = callbacks[std::to_string(domain) + "." + std::to_string(id) + " " + call->functionName];
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

static void take(const CUpti_Activity *record)
{
	char text[128];

	if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
		kernels.push_back(((const CUpti_ActivityKernel9 *)record)->correlationId);
	contexts += record->kind == CUPTI_ACTIVITY_KIND_CONTEXT;
	if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
		const CUpti_ActivityMemory3 *m = (const CUpti_ActivityMemory3 *)record;

		snprintf(text, sizeof text, "\"%s %llu bytes of kind %d, id %u\"", m->memoryOperationType == 1 ? "+" : "-", (unsigned long long)m->bytes,
			 (int)m->memoryKind, m->correlationId);
		memory.push_back(text);
	}
}

static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
	CUpti_Activity *record = NULL, *before = NULL;

	buffers++;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		std::lock_guard<std::mutex> guard(lock);

		if (before)
			distances[before->kind].insert((const char *)record - (const char *)before);
		take(record);
		before = record;
	}
} // buffers are few and stay

static void enable(const char *domains)
{
	CUpti_SubscriberHandle subscriber;

	CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL));
	if (strcmp(domains, "runtime"))
		for (unsigned id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx})
			CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id));
	if (strcmp(domains, "driver"))
		for (unsigned id : {211u, 430u, 505u}) // cudaLaunchKernel, cudaLaunchKernelExC, __cudaLaunchKernel (13; an error before)
			if (cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id) != CUPTI_SUCCESS && id != 505)
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
	int of[4] = {0, 0, 0, 0}; // records with an id of no callback, the driver's, the runtime's, both
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
	printf("{\"kernels\": %zu, \"id of no callback\": %d, \"of a driver call\": %d, \"of a runtime call\": %d, \"of both\": %d, \"driver calls inside runtime "
	       "calls\": {\"same id\": %d, \"another\": %d}, \"callbacks\": {",
	       kernels.size(), of[0], of[1], of[2], of[3], same_id, other_id);
	for (const auto &c : callbacks) {
		printf("%s\"%s\": [%d, \"%s\"]", comma, c.first.c_str(), c.second.first, c.second.second.c_str());
		comma = ", ";
	}
	printf("}}\n");
}

static void lengths()
{
	const char *comma = "";
	void *data, *host;

	CHECK(cuptiActivityRegisterCallbacks(requested, completed));
	for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMORY2,
					CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_DRIVER})
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

static double ms_since(std::chrono::steady_clock::time_point start)
{
	return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
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
	printf("{\"flush_ms\": %.3f, \"kernel still runs\": %s, \"kernel ended after ms\": %.1f, \"its record came with the next flush\": %s}\n", took,
	       runs ? "true" : "false", until, kernels.size() == before + 1 ? "true" : "false");
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
	printf("{\"records after the first, the second, one while a kernel runs, and its end\": [%d, %d, %d, %d], \"kernel still ran\": %s}\n", before[0],
	       before[1], before[2], before[3], runs ? "true" : "false");
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
	printf("{\"device memory that went with the first kernel\": %lld, \"memory records\": [", (long long)before - (long long)after);
	for (size_t i = 0; i < memory.size(); i++)
		printf("%s%s", i ? ", " : "", memory[i].c_str());
	printf("]}\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "ids"))
		ids(argc > 2 ? argv[2] : "driver", argc > 3);
	else if (!strcmp(what, "lengths"))
		lengths();
	else if (!strcmp(what, "flush"))
		flush();
	else if (!strcmp(what, "memory"))
		own_memory();
	else if (!strcmp(what, "dump"))
		dump();
	else
		return fprintf(stderr, "usage: probe_cupti ids driver|runtime|both [calls], lengths, flush, memory, dump\n"), 64;
	return 0;
}
