/* SPDX-License-Identifier: MIT
 * A stand-in for the CUDA runtime that does next to nothing, so that what the preload adds shows:
 * built as libcudart.so.12, as libcudart.so.13 and as a renamed copy. Its addresses tell which of
 * them gave them (RUNTIME in the high bits); sizes beyond 1 GiB are refused with
 * cudaErrorMemoryAllocation; every call leaves its own errno. cudaMallocHost goes through
 * cudaHostAlloc, as one exported function may call another.
 */
#include "preload/cuda/real.h"

#include <dlfcn.h>
#include <errno.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST ((size_t)1 << 30)

EXPORT int cudaRuntimeGetVersion(int *version);
EXPORT int cudaGetLastError(void);
EXPORT int cudaPeekAtLastError(void);
EXPORT int cudaSetDevice(int device);

static _Thread_local int last_error;
static _Atomic uint64_t taken;
static struct {
	void (*use)(int);
	int (*capture)(void *, int);
} driver;

__attribute__((constructor)) static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	*(void **)&driver.use = dlsym(library, "driver_use");
	*(void **)&driver.capture = dlsym(library, "driver_capture");
}

static int end(int error)
{
	errno = 10 + error;
	if (error)
		last_error = error;
	return error;
}

static int give(void **address, size_t bytes)
{
	uint64_t next;

	if (!address || !bytes)
		return end(1);
	if (bytes > MOST)
		return end(2);
	next = atomic_load_explicit(
		/* threads may be given the same: what matters is that it is cheap */
		&taken, memory_order_relaxed);
	atomic_store_explicit(&taken, next + 4096, memory_order_relaxed);
	*address = (void *)(uintptr_t)((uint64_t)RUNTIME << 40 | next);
	return end(0);
}

static int take(const void *address)
{
	return end((uintptr_t)address == 1 ? 1 : 0);
}

int cudaRuntimeGetVersion(int *version)
{
	*version = VERSION;
	return 0;
}

int cudaGetLastError(void)
{
	int error = last_error;

	last_error = 0;
	return error;
}

int cudaPeekAtLastError(void)
{
	return last_error;
}

int cudaSetDevice(int device)
{
	if (driver.use)
		driver.use(device);
	return end(0);
}

int cudaMalloc(void **address, size_t bytes)
{
	return give(address, bytes);
}

int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
	*pitch = (width + 511) & ~(size_t)511;
	return give(address, *pitch * height);
}

int cudaMalloc3D(struct cuda_pitched_pointer *address, struct cuda_extent extent)
{
	address->pitch = (extent.width + 511) & ~(size_t)511;
	address->width = extent.width;
	address->height = extent.height;
	return give(&address->pointer, address->pitch * extent.height * extent.depth);
}

int cudaMallocArray(void **array, const struct cuda_channels *texel, size_t width, size_t height,
	unsigned flags)
{
	(void)flags;
	return give(array, (size_t)texel->x * width * (height ? height : 1));
}

int cudaMalloc3DArray(
	void **array, const struct cuda_channels *texel, struct cuda_extent extent, unsigned flags)
{
	(void)flags;
	return give(array, (size_t)texel->x * extent.width);
}

int cudaMallocMipmappedArray(void **array, const struct cuda_channels *texel,
	struct cuda_extent extent, unsigned levels, unsigned flags)
{
	(void)flags;
	return give(array, (size_t)texel->x * extent.width * levels);
}

int cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
	(void)flags;
	return give(address, bytes);
}

int cudaMallocHost(void **address, size_t bytes)
{
	int result = cudaHostAlloc(address, bytes, 0);

	return end(result); /* no tail call: it would seem to come from the caller */
}

int cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	(void)flags;
	return give(address, bytes);
}

int cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	(void)flags;
	return end(address && bytes ? 0 : 1);
}

int cudaHostUnregister(void *address)
{
	return take(address);
}

int cudaMallocAsync(void **address, size_t bytes, void *stream)
{
	(void)stream;
	return give(address, bytes);
}

int cudaMallocAsync_ptsz(void **address, size_t bytes, void *stream)
{
	(void)stream;
	return give(address, bytes);
}

int cudaMallocFromPoolAsync(void **address, size_t bytes, void *pool, void *stream)
{
	(void)pool;
	(void)stream;
	return give(address, bytes);
}

int cudaMallocFromPoolAsync_ptsz(void **address, size_t bytes, void *pool, void *stream)
{
	(void)pool;
	(void)stream;
	return give(address, bytes);
}

#define FREE(name)                    \
	int name(void *address)       \
	{                             \
		return take(address); \
	}
FREE(cudaFree)
FREE(cudaFreeArray)
FREE(cudaFreeMipmappedArray)
FREE(cudaFreeHost)

int cudaDeviceReset(void)
{
	return end(0);
}

#define FREE_ASYNC(name)                      \
	int name(void *address, void *stream) \
	{                                     \
		(void)stream;                 \
		return take(address);         \
	}
FREE_ASYNC(cudaFreeAsync)
FREE_ASYNC(cudaFreeAsync_ptsz)

/* Blocks of more than 1024 threads are cudaErrorInvalidConfiguration. */
static int launch(const void *function, struct cuda_dim3 block)
{
	return end(!function ? 98 : block.x * block.y * block.z > 1024 ? 9 : 0);
}

#define LAUNCH(name)                                       \
	int name REAL_LAUNCH_PARAMETERS                    \
	{                                                  \
		(void)grid, (void)arguments, (void)stream; \
		(void)shared_bytes;                        \
		return launch(function, block);            \
	}
LAUNCH(cudaLaunchKernel)
LAUNCH(cudaLaunchKernel_ptsz)
LAUNCH(cudaLaunchCooperativeKernel)
LAUNCH(cudaLaunchCooperativeKernel_ptsz)
LAUNCH(__cudaLaunchKernel)
LAUNCH(__cudaLaunchKernel_ptsz)

/* A kernel's handle is the address of its name's pointer: so is a stub, here. */
int __cudaGetKernel(const void **kernel, const void *function)
{
	*kernel = function;
	return end(function ? 0 : 98);
}

#define LAUNCH_BY_CONFIG(name)                                                                    \
	int name(const struct cuda_launch_config *config, const void *function, void **arguments) \
	{                                                                                         \
		(void)arguments;                                                                  \
		return config ? launch(function, config->block) : end(1);                         \
	}
LAUNCH_BY_CONFIG(cudaLaunchKernelExC)
LAUNCH_BY_CONFIG(cudaLaunchKernelExC_ptsz)

#if RUNTIME == 12
int cudaLaunchCooperativeKernelMultiDevice(
	struct cuda_launch_params *launches, unsigned count, unsigned flags)
{
	(void)flags;
	return count ? launch(launches[0].function, launches[0].block) : end(1);
}
#endif

#define GRAPH_LAUNCH(name)                  \
	int name(void *exec, void *stream)  \
	{                                   \
		(void)stream;               \
		return end(exec ? 0 : 400); \
	}
GRAPH_LAUNCH(cudaGraphLaunch)
GRAPH_LAUNCH(cudaGraphLaunch_ptsz)

static int capture(void *stream, int begin)
{
	return end(driver.capture ? driver.capture(stream, begin) : 3);
}

int cudaStreamBeginCapture(void *stream, int mode)
{
	(void)mode;
	return capture(stream, 1);
}

int cudaStreamBeginCapture_ptsz(void *stream, int mode)
{
	(void)mode;
	return capture(stream ? stream : (void *)2, 1);
}

#define BEGIN_TO_GRAPH(name)                                                             \
	int name(void *stream, void *graph, const void *dependencies, const void *edges, \
		size_t count, int mode)                                                  \
	{                                                                                \
		(void)graph, (void)dependencies, (void)edges, (void)count, (void)mode;   \
		return capture(stream, 1);                                               \
	}
BEGIN_TO_GRAPH(cudaStreamBeginCaptureToGraph)
BEGIN_TO_GRAPH(cudaStreamBeginCaptureToGraph_ptsz)

#define BEGIN_AGAIN(name)                                             \
	int name(void *stream, int mode, void *graph, void *callback) \
	{                                                             \
		(void)mode, (void)graph, (void)callback;              \
		return capture(stream ? stream : (void *)2, 1);       \
	}
BEGIN_AGAIN(cudaStreamBeginRecaptureToGraph)
BEGIN_AGAIN(cudaStreamBeginRecaptureToGraph_ptsz)

int cudaStreamEndCapture(void *stream, void **graph)
{
	*graph = (void *)0x77;
	return capture(stream, 0);
}

int cudaStreamEndCapture_ptsz(void *stream, void **graph)
{
	return cudaStreamEndCapture(stream ? stream : (void *)2, graph);
}
