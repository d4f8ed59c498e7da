/* SPDX-License-Identifier: MIT
 * Finds the real functions behind the interposed functions of the CUDA runtime, and has the one
 * list of these functions.
 *
 * A process may have several runtimes: CUDA 12 and 13 at once, or copies that a wheel renamed
 * (libcudart-d0da41ae.so.12), each loaded globally or with RTLD_LOCAL. A call goes to the runtime
 * that the dynamic linker would have given its caller without pperf
 * (preload/cuda/interposed_library.h).
 *
 * The caller is the object that the call returns to; a tail call hides its caller. The result is
 * cached by the return address, so that a runtime that is loaded later is found by its own callers.
 *
 * These symbols exist in every process with the preload. dlsym(RTLD_DEFAULT, "cudaMalloc") finds
 * them also without CUDA, where a call returns cudaErrorInitializationError. No setting can remove
 * them.
 */
#ifndef PPERF_PRELOAD_CUDA_REAL_H
#define PPERF_PRELOAD_CUDA_REAL_H

#include "preload/cuda/cuda_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define REAL_LAUNCH_PARAMETERS                                                                  \
	(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments, \
		size_t shared_bytes, void *stream)

#define REAL_FUNCTIONS(X)                                                                          \
	X(cudaMalloc, (void **address, size_t bytes))                                              \
	X(cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height))           \
	X(cudaMalloc3D, (struct cuda_pitched_pointer * address, struct cuda_extent extent))        \
	X(cudaMallocArray, (void **array, const struct cuda_channels *texel, size_t width,         \
				   size_t height, unsigned flags))                                 \
	X(cudaMalloc3DArray, (void **array, const struct cuda_channels *texel,                     \
				     struct cuda_extent extent, unsigned flags))                   \
	X(cudaMallocMipmappedArray,                                                                \
		(void **array, const struct cuda_channels *texel, struct cuda_extent extent,       \
			unsigned levels, unsigned flags))                                          \
	X(cudaMallocManaged, (void **address, size_t bytes, unsigned flags))                       \
	X(cudaMallocHost, (void **address, size_t bytes))                                          \
	X(cudaHostAlloc, (void **address, size_t bytes, unsigned flags))                           \
	X(cudaHostRegister, (void *address, size_t bytes, unsigned flags))                         \
	X(cudaHostUnregister, (void *address))                                                     \
	X(cudaMallocAsync, (void **address, size_t bytes, void *stream))                           \
	X(cudaMallocAsync_ptsz, (void **address, size_t bytes, void *stream))                      \
	X(cudaMallocFromPoolAsync, (void **address, size_t bytes, void *pool, void *stream))       \
	X(cudaMallocFromPoolAsync_ptsz, (void **address, size_t bytes, void *pool, void *stream))  \
	X(cudaFree, (void *address))                                                               \
	X(cudaFreeArray, (void *array))                                                            \
	X(cudaFreeMipmappedArray, (void *array))                                                   \
	X(cudaFreeHost, (void *address))                                                           \
	X(cudaFreeAsync, (void *address, void *stream))                                            \
	X(cudaFreeAsync_ptsz, (void *address, void *stream))                                       \
	X(cudaDeviceReset, (void))                                                                 \
	X(cudaLaunchKernel, REAL_LAUNCH_PARAMETERS)                                                \
	X(cudaLaunchKernel_ptsz, REAL_LAUNCH_PARAMETERS)                                           \
	X(cudaLaunchCooperativeKernel, REAL_LAUNCH_PARAMETERS)                                     \
	X(cudaLaunchCooperativeKernel_ptsz, REAL_LAUNCH_PARAMETERS)                                \
	X(__cudaGetKernel, (const void **kernel, const void *function))                            \
	X(__cudaLaunchKernel, REAL_LAUNCH_PARAMETERS)                                              \
	X(__cudaLaunchKernel_ptsz, REAL_LAUNCH_PARAMETERS)                                         \
	X(cudaLaunchKernelExC,                                                                     \
		(const struct cuda_launch_config *config, const void *function, void **arguments)) \
	X(cudaLaunchKernelExC_ptsz,                                                                \
		(const struct cuda_launch_config *config, const void *function, void **arguments)) \
	X(cudaLaunchCooperativeKernelMultiDevice,                                                  \
		(struct cuda_launch_params * launches, unsigned count, unsigned flags))            \
	X(cudaGraphLaunch, (void *exec, void *stream))                                             \
	X(cudaGraphLaunch_ptsz, (void *exec, void *stream))                                        \
	X(cudaStreamBeginCapture, (void *stream, int mode))                                        \
	X(cudaStreamBeginCapture_ptsz, (void *stream, int mode))                                   \
	X(cudaStreamBeginCaptureToGraph, (void *stream, void *graph, const void *dependencies,     \
						 const void *edges, size_t count, int mode))       \
	X(cudaStreamBeginCaptureToGraph_ptsz,                                                      \
		(void *stream, void *graph, const void *dependencies, const void *edges,           \
			size_t count, int mode))                                                   \
	X(cudaStreamBeginRecaptureToGraph, (void *stream, int mode, void *graph, void *callback))  \
	X(cudaStreamBeginRecaptureToGraph_ptsz,                                                    \
		(void *stream, int mode, void *graph, void *callback))                             \
	X(cudaStreamEndCapture, (void *stream, void **graph))                                      \
	X(cudaStreamEndCapture_ptsz, (void *stream, void **graph))

/* The functions that this library defines. */
#define X(name, parameters) __attribute__((visibility("default"))) int name parameters;
REAL_FUNCTIONS(X)
#undef X

/* The addresses of the real functions of one runtime, in members of the same names. No member is
 * NULL. In place of a function that the runtime lacks there is one that returns
 * CUDA_ERROR_INITIALIZATION. */
struct real {
#define X(name, parameters) int(*name) parameters;
	REAL_FUNCTIONS(X)
#undef X
};

#define REAL_SITES 8192u  /* callers in the cache; a power of two */
#define REAL_WAYS 8u      /* slots where a caller may be, those of one cache line */
#define REAL_RUNTIMES 16u /* index 0: none was found */
#define REAL_INDEX_BITS 4

extern struct real real_runtimes[REAL_RUNTIMES];
/* Entries: the caller's address << REAL_INDEX_BITS | the index of its runtime. */
extern _Atomic uint64_t real_sites[REAL_SITES];

/* Returns the first slot of a caller. Each kernel of a program is launched from a call site of its
 * own, so that two callers often share a slot. */
static inline _Atomic uint64_t *real_site(const void *caller)
{
	return &real_sites[((uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15)) >>
			   (64 - __builtin_ctz(REAL_SITES))];
}

/* Slow path of real_of: searches the runtime of a caller that is not cached, and records the result
 * in the trace. Keeps errno. */
const struct real *real_find(const void *caller);

/* Finds and queries the runtime of `caller` before its first call. For a CUPTI client, which then
 * does not see the queries. Keeps errno. */
void real_prepare(const void *caller);

/* Returns the runtime of a call that returns to `caller`. Any thread, no lock. Takes a few
 * instructions once the caller is cached. */
static inline const struct real *real_of(const void *caller)
{
	uint64_t site = atomic_load_explicit(real_site(caller), memory_order_acquire);

	if (__builtin_expect(site >> REAL_INDEX_BITS == (uintptr_t)caller, 1))
		return &real_runtimes[site & (REAL_RUNTIMES - 1)];
	return real_find(caller);
}

#endif
