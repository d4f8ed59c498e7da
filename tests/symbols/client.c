/* SPDX-License-Identifier: MIT
 * A library that uses the CUDA runtime it was linked with: makes every call of the interposed
 * family once, some of them so that they fail, and prints all that can be seen of each: result,
 * errno, last error, what was given. The same with and without the preload.
 */
#include "preload/cuda/real.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

extern int cudaGetLastError(void);
extern int cudaPeekAtLastError(void);
extern int cudaSetDevice(int device);

__attribute__((visibility("default"))) int client_calls(void);
__attribute__((visibility("default"))) int client_allocate(unsigned count);

static const char *kernel_name; /* its address is the kernel's handle */

static void show(const char *name, int result, const void *given)
{
	int error = errno, peeked = cudaPeekAtLastError();

	printf("%s: %d, errno %d, last error %d %d, %p\n", name, result, error, peeked,
		cudaGetLastError(), given);
}

/* CALL(name, arguments, what it gives) */
#define CALL(name, arguments, given)         \
	do {                                 \
		errno = 99;                  \
		int result = name arguments; \
		show(#name, result, given);  \
	} while (0)

static const struct cuda_channels float2 = { 32, 32, 0, 0, 2 };
static const struct cuda_dim3 grid = { 4, 3, 2 }, block = { 64, 2, 1 }, too_large = { 2048, 1, 1 };
static void *const stream = (void *)0x5000;

static void device_memory(void)
{
	struct cuda_pitched_pointer pitched = { 0 };
	void *p = NULL;
	size_t pitch = 0;

	CALL(cudaMalloc, (&p, 1000), p);
	CALL(cudaFree, (p), NULL);
	CALL(cudaMalloc, (&p, (size_t)3 << 30), NULL);
	CALL(cudaMalloc, (NULL, 8), NULL);
	CALL(cudaFree, (NULL), NULL);
	CALL(cudaFree, ((void *)1), NULL);
	CALL(cudaMallocPitch, (&p, &pitch, 100, 20), p);
	CALL(cudaFree, (p), NULL);
	CALL(cudaMalloc3D, (&pitched, (struct cuda_extent){ 100, 10, 5 }), pitched.pointer);
	CALL(cudaFree, (pitched.pointer), NULL);
	CALL(cudaMallocManaged, (&p, 5000, 1), p);
	CALL(cudaFree, (p), NULL);
}

static void arrays(void)
{
	void *p = NULL;

	CALL(cudaMallocArray, (&p, &float2, 16, 8, 0), p);
	CALL(cudaFreeArray, (p), NULL);
	CALL(cudaMalloc3DArray, (&p, &float2, (struct cuda_extent){ 16, 8, 4 }, 0), p);
	CALL(cudaFreeArray, (p), NULL);
	CALL(cudaMallocMipmappedArray, (&p, &float2, (struct cuda_extent){ 16, 8, 0 }, 3, 0), p);
	CALL(cudaFreeMipmappedArray, (p), NULL);
}

static void host_memory(void)
{
	static char own[64];
	void *p = NULL;

	CALL(cudaMallocHost, (&p, 777), p);
	CALL(cudaFreeHost, (p), NULL);
	CALL(cudaHostAlloc, (&p, 888, 2), p);
	CALL(cudaFreeHost, (p), NULL);
	CALL(cudaHostRegister, (own, sizeof own, 0), NULL);
	CALL(cudaHostUnregister, (own), NULL);
}

static void pool_memory(void)
{
	void *p = NULL;

	CALL(cudaMallocAsync, (&p, 4001, stream), p);
	CALL(cudaFreeAsync, (p, stream), NULL);
	CALL(cudaMallocAsync_ptsz, (&p, 4002, NULL), p);
	CALL(cudaFreeAsync_ptsz, (p, NULL), NULL);
	CALL(cudaMallocFromPoolAsync, (&p, 4003, (void *)0x90, stream), p);
	CALL(cudaFreeAsync, (p, stream), NULL);
	CALL(cudaMallocFromPoolAsync_ptsz, (&p, 4004, (void *)0x90, NULL), p);
	CALL(cudaFreeAsync_ptsz, (p, NULL), NULL);
	CALL(cudaDeviceReset, (), NULL);
}

static void launches(void)
{
	struct cuda_launch_config config = {
		.grid = grid, .block = block, .shared_bytes = 48, .stream = stream
	};
	const void *stub = (const void *)(uintptr_t)client_calls, *handle = NULL;

	CALL(cudaLaunchKernel, (stub, grid, block, NULL, 16, stream), NULL);
	CALL(cudaLaunchKernel_ptsz, (stub, grid, block, NULL, 16, NULL), NULL);
	CALL(cudaLaunchKernel, (stub, grid, too_large, NULL, 0, NULL), NULL);
	CALL(cudaLaunchCooperativeKernel, (stub, grid, block, NULL, 32, stream), NULL);
	CALL(cudaLaunchCooperativeKernel_ptsz, (stub, grid, block, NULL, 32, NULL), NULL);
	CALL(cudaLaunchKernelExC, (&config, stub, NULL), NULL);
	CALL(cudaLaunchKernelExC, (NULL, stub, NULL), NULL);
	CALL(cudaLaunchKernelExC_ptsz, (&config, stub, NULL), NULL);
	kernel_name = "_Z7nvcc_13Pf";
	CALL(__cudaGetKernel, (&handle, &kernel_name), NULL);
	CALL(__cudaLaunchKernel, (handle, grid, block, NULL, 0, stream), NULL);
	CALL(__cudaLaunchKernel, (handle, grid, block, NULL, 0, stream), NULL);
	CALL(__cudaLaunchKernel_ptsz, (handle, grid, block, NULL, 0, NULL), NULL);
	kernel_name =
		"_Z5laterPf"; /* the library is another one by now, whose kernel has got the same handle */
	CALL(__cudaGetKernel, (&handle, &kernel_name), NULL);
	CALL(__cudaLaunchKernel, (handle, grid, block, NULL, 1, stream), NULL);
#if RUNTIME == 12
	struct cuda_launch_params two[2] = { { (void *)(uintptr_t)client_calls, grid, block, NULL,
						     8, stream },
		{ (void *)(uintptr_t)client_calls, block, grid, NULL, 9, stream } };

	CALL(cudaLaunchCooperativeKernelMultiDevice, (two, 2, 0), NULL);
#endif
	CALL(cudaGraphLaunch, ((void *)0x88, stream), NULL);
	CALL(cudaGraphLaunch_ptsz, ((void *)0x88, NULL), NULL);
	CALL(cudaGraphLaunch, (NULL, stream), NULL);
}

static void captures(void)
{
	const void *stub = (const void *)(uintptr_t)client_calls;
	void *graph = NULL, *p = NULL;

	CALL(cudaStreamBeginCapture, (stream, 0), NULL);
	CALL(cudaLaunchKernel, (stub, grid, block, NULL, 0, stream), NULL);
	CALL(cudaLaunchKernel, (stub, grid, block, NULL, 0, (void *)0x6000), NULL);
	CALL(cudaMallocAsync, (&p, 4005, stream), p);
	CALL(cudaStreamEndCapture, ((void *)0x6000, &graph), NULL);
	CALL(cudaLaunchKernel, (stub, grid, block, NULL, 0, stream), NULL);
	CALL(cudaStreamEndCapture, (stream, &graph), graph);
	CALL(cudaLaunchKernel, (stub, grid, block, NULL, 0, stream), NULL);
	CALL(cudaStreamBeginCapture_ptsz, (NULL, 0), NULL);
	CALL(cudaLaunchKernel_ptsz, (stub, grid, block, NULL, 0, NULL), NULL);
	CALL(cudaStreamEndCapture_ptsz, (NULL, &graph), graph);
	CALL(cudaStreamBeginCaptureToGraph, (stream, graph, NULL, NULL, 0, 0), NULL);
	CALL(cudaGraphLaunch, ((void *)0x88, stream), NULL);
	CALL(cudaStreamEndCapture, (stream, &graph), graph);
	CALL(cudaStreamBeginRecaptureToGraph, (stream, 0, graph, NULL), NULL);
	CALL(cudaLaunchCooperativeKernel, (stub, grid, block, NULL, 0, stream), NULL);
	CALL(cudaStreamEndCapture, (stream, &graph), graph);
	CALL(cudaStreamBeginRecaptureToGraph_ptsz, (NULL, 0, graph, NULL), NULL);
	CALL(cudaStreamEndCapture_ptsz, (NULL, &graph), graph);
}

int client_calls(void)
{
	CALL(cudaSetDevice, (1), NULL);
	device_memory();
	arrays();
	host_memory();
	pool_memory();
	launches();
	captures();
	return 0;
}

int client_allocate(unsigned count)
{
	void *p;

	for (unsigned i = 0; i < count; i++)
		if (cudaMalloc(&p, 256 + i) || cudaFree(p))
			return 1;
	return 0;
}
