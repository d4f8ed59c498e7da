/* SPDX-License-Identifier: MIT
 * ring_state ITERATIONS: leaves state of every kind that outlives the records that made it: names,
 * values of counters, start/end ranges, ranges of threads that wait, CUDA memory of all kinds,
 * mapped memory. Most of it is made once at the begin, the rest changes with the iterations.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define EXPECT(condition) expect(condition, #condition)
#define KEPT 8

static sem_t waiting, ended;

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "failed: %s\n", what);
	exit(1);
}

/* A thread that has recorded a range at the begin, and then nothing until the end. */
static void *wait_in_range(void *unused)
{
	nvtxRangePushA("waiter");
	nvtxRangePushA("waiter: inside");
	sem_post(&waiting);
	sem_wait(&ended);
	nvtxRangePop();
	nvtxRangePop();
	return unused;
}

static uint64_t counter(const char *name)
{
	nvtxCounterAttr_t attributes = { .structSize = sizeof attributes,
		.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64,
		.name = name };

	return nvtxCounterRegister(nvtxDomainCreateA("ring"), &attributes);
}

static void set(uint64_t id, int64_t value)
{
	nvtxCounterSampleInt64(nvtxDomainCreateA("ring"), id, value);
}

static CUmemGenericAllocationHandle create(void)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle handle;

	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	EXPECT(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_SUCCESS);
	return handle;
}

/* Maps 4 MiB: the handle of the first half is released at once, the other one is kept. Returns the
 * address of the second mapping. */
static CUdeviceptr map_memory(CUmemGenericAllocationHandle *kept)
{
	CUmemGenericAllocationHandle released = create();
	CUdeviceptr range;

	*kept = create();
	EXPECT(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0) == CUDA_SUCCESS);
	EXPECT(cuMemMap(range, 2 * MIB, 0, released, 0) == CUDA_SUCCESS);
	EXPECT(cuMemMap(range + 4 * MIB, 2 * MIB, 0, *kept, 0) == CUDA_SUCCESS);
	EXPECT(cuMemRelease(released) == CUDA_SUCCESS);
	return range + 4 * MIB;
}

static void name_objects(cudaStream_t stream, int number)
{
	char name[32];

	snprintf(name, sizeof name, "stream, name %d", number);
	nvtxNameCudaStreamA(stream, name);
	snprintf(name, sizeof name, "category, name %d", number);
	nvtxNameCategoryA(7, name);
}

/* Memory that is mapped for four iterations. Of each third one the handle is released at once, and
 * each fifth one has two references meanwhile. */
static void remap(int i, CUdeviceptr range, CUmemGenericAllocationHandle mapped[4])
{
	const CUdeviceptr address = range + (CUdeviceptr)(i % 4) * 2 * MIB;
	const int before = i - 4;
	CUmemGenericAllocationHandle again;

	if (before >= 0) {
		EXPECT(cuMemUnmap(address, 2 * MIB) == CUDA_SUCCESS);
		if (before % 3)
			EXPECT(cuMemRelease(mapped[i % 4]) == CUDA_SUCCESS);
		if (before % 5 == 0)
			EXPECT(cuMemRelease(mapped[i % 4]) == CUDA_SUCCESS);
	}
	mapped[i % 4] = create();
	EXPECT(cuMemMap(address, 2 * MIB, 0, mapped[i % 4], 0) == CUDA_SUCCESS);
	if (i % 5 == 0)
		EXPECT(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address) ==
			CUDA_SUCCESS);
	if (i % 3 == 0)
		EXPECT(cuMemRelease(mapped[i % 4]) == CUDA_SUCCESS);
}

/* One iteration: each start/end range lasts three of them, each allocation eight. */
static void iterate(int i, uint64_t changing, nvtxRangeId_t open[3], void *kept[KEPT],
	CUdeviceptr range, CUmemGenericAllocationHandle mapped[4])
{
	char name[32];

	snprintf(name, sizeof name, "iteration %d", i);
	nvtxRangePushA(name);
	set(changing, i);
	if (open[i % 3])
		nvtxRangeEnd(open[i % 3]);
	snprintf(name, sizeof name, "request %d", i % 50);
	open[i % 3] = nvtxRangeStartA(name);
	if (kept[i % KEPT])
		EXPECT(cudaFree(kept[i % KEPT]) == cudaSuccess);
	EXPECT(cudaMalloc(&kept[i % KEPT], MIB + (size_t)(i % 5) * 4096) == cudaSuccess);
	for (int j = 0; j < 20; j++) {
		snprintf(name, sizeof name, "part %c", 'a' + j);
		nvtxRangePushA(name);
		nvtxRangePop();
	}
	remap(i, range, mapped);
	nvtxRangePop();
}

int main(int argc, char **argv)
{
	const int iterations = argc > 1 ? atoi(argv[1]) : 100;
	const uint64_t constant = counter("batch size"), changing = counter("iteration");
	nvtxRangeId_t whole, open[3] = { 0 };
	CUmemGenericAllocationHandle handle, changed[4];
	CUdeviceptr range;
	void *memory[3], *kept[KEPT] = { NULL };
	CUdeviceptr mapped;
	cudaStream_t stream;
	pthread_t thread;

	sem_init(&waiting, 0, 0);
	sem_init(&ended, 0, 0);
	EXPECT(cudaMalloc(&memory[0], 64 * MIB) == cudaSuccess);
	EXPECT(cudaMallocHost(&memory[1], 3 * MIB) == cudaSuccess);
	EXPECT(cudaMallocManaged(&memory[2], 5 * MIB, cudaMemAttachGlobal) == cudaSuccess);
	EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
	mapped = map_memory(&handle);
	EXPECT(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0) == CUDA_SUCCESS);
	name_objects(stream, 0);
	set(constant, 64);
	whole = nvtxRangeStartA("whole run");
	pthread_create(&thread, NULL, wait_in_range, NULL);
	sem_wait(&waiting);
	nvtxRangePushA("main loop");
	for (int i = 0; i < iterations; i++) {
		iterate(i, changing, open, kept, range, changed);
		if (i == 5)
			name_objects(stream, 1);
	}
	nvtxRangePop();
	EXPECT(cuMemUnmap(mapped, 2 * MIB) == CUDA_SUCCESS);
	EXPECT(cuMemRelease(handle) == CUDA_SUCCESS);
	nvtxRangeEnd(whole);
	sem_post(&ended);
	pthread_join(thread, NULL);
	return 0;
}
