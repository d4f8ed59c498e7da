/*
 * Kernels for test programs, the same source for two compilers:
 *
 *	KERNEL(forward)                                             at file level
 *	LAUNCH(forward, blocks, threads, shared, stream, data, count);
 *
 * Under nvcc (-x cu) a kernel is a __global__ function that does a little arithmetic on `count`
 * floats. Under a C or C++ compiler it is what nvcc would have left on the host's side, a stub that is
 * registered with the runtime under the same mangled name, and only the simulated device can launch
 * it. Like nvcc 13, and unlike nvcc 12, the stubs for CUDA 13 launch through __cudaLaunchKernel.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __CUDACC__

#define KERNEL(name)                                                                        \
	__global__ void name(float *data, unsigned long count)                              \
	{                                                                                   \
		unsigned long stride = (unsigned long)gridDim.x * blockDim.x;               \
		unsigned long first = (unsigned long)blockIdx.x * blockDim.x + threadIdx.x; \
		for (unsigned long i = first; i < count; i += stride)                       \
			data[i] = data[i] * 0.5f + 1.0f;                                    \
	}
#define LAUNCH(name, blocks, threads, shared, stream, data, count) \
	(name<<<(blocks), (threads), (shared), (stream)>>>((data), (count)), cudaGetLastError())

#else

#include <stdio.h>
#include <string.h>

#ifndef SIM_MAJOR
#define SIM_MAJOR 13
#endif

#ifdef __cplusplus
extern "C" {
#endif
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

/* An empty fat binary: a header that says so. */
static struct {
	unsigned magic;
	unsigned short version, header_bytes;
	unsigned long long body_bytes;
} kernels_image = { 0xba55ed50u, 1, 16, 0 };

static struct {
	int magic, version;
	const void *data;
	void *file;
} kernels_wrapper = { 0x466243b1, 1, &kernels_image, NULL };

static inline void kernels_register(const char *stub, const char *name)
{
	static void **binary;
	char mangled[128];

	if (!binary) {
		binary = __cudaRegisterFatBinary(&kernels_wrapper);
		__cudaRegisterFatBinaryEnd(binary);
	}
	snprintf(mangled, sizeof(mangled), "_Z%zu%sPfm", strlen(name), name);
	__cudaRegisterFunction(binary, stub, NULL, mangled, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline cudaError_t kernels_launch(const char *stub, unsigned blocks, unsigned threads,
	size_t shared, cudaStream_t stream, float *data, unsigned long count)
{
	void *args[] = { &data, &count };
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };

#if SIM_MAJOR >= 13
	cudaKernel_t kernel;
	cudaError_t error = __cudaGetKernel(&kernel, stub);

	return error ? error : __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
#else
	return cudaLaunchKernel(stub, grid, block, args, shared, stream);
#endif
}

#define KERNEL(name)                                                   \
	static const char name = 0;                                    \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		kernels_register(&name, #name);                        \
	}
#define LAUNCH(name, blocks, threads, shared, stream, data, count) \
	kernels_launch(&name, blocks, threads, shared, stream, data, count)

#endif
#endif
