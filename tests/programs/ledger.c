/* SPDX-License-Identifier: MIT
 * ledger.c: ledger LIBRARY [NVML]: allocates device memory in several ways, by itself and by the
 * library (lib_workspace.c), and prints what CUDA says is free. With the path of NVML, that is
 * initialised, and the program lasts long enough for a sample.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define EXPECT(condition) expect(condition, #condition)

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "failed: %s\n", what);
	exit(1);
}

static void init_nvml(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*init)(void) = NULL;

	EXPECT(library != NULL);
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	EXPECT(init && init() == 0);
}

/* Memory that this program maps itself. Its handle is released at once. */
static void map_memory(size_t bytes)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;

	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	EXPECT(cuMemAddressReserve(&range, 2 * bytes, 0, 0, 0) == CUDA_SUCCESS);
	EXPECT(cuMemCreate(&handle, bytes, &prop, 0) == CUDA_SUCCESS);
	EXPECT(cuMemMap(range + bytes, bytes, 0, handle, 0) == CUDA_SUCCESS);
	EXPECT(cuMemRelease(handle) == CUDA_SUCCESS);
}

/* Memory that the library allocates. */
static void allocate_in_library(const char *path, size_t bytes)
{
	void *library = dlopen(path, RTLD_NOW), *memory;
	int (*allocate)(cudaError_t(*)(void **, size_t), void **, size_t) = NULL;

	EXPECT(library != NULL);
	*(void **)&allocate = dlsym(library, "allocate_workspace");
	EXPECT(allocate && allocate(cudaMalloc, &memory, bytes) == 0);
}

int main(int argc, char **argv)
{
	size_t left, total;
	void *memory[3];

	if (argc > 2)
		init_nvml(argv[2]);
	EXPECT(cudaMalloc(&memory[0], 64 * MIB) == cudaSuccess);
	EXPECT(cudaMallocAsync(&memory[1], 32 * MIB, NULL) == cudaSuccess);
	map_memory(16 * MIB);
	EXPECT(cudaMalloc(&memory[2], 8 * MIB) == cudaSuccess);
	EXPECT(cudaFree(memory[2]) == cudaSuccess);
	allocate_in_library(argv[1], 4 * MIB);
	if (argc > 2)
		usleep(1500000);
	EXPECT(cudaMemGetInfo(&left, &total) == cudaSuccess);
	printf("%zu of %zu\n", left, total);
	return 0;
}
