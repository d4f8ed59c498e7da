/* SPDX-License-Identifier: MIT
 * Declares those of CUDA's types that the interposed functions take by value or read through a
 * pointer. They are declared here so that pperf builds without CUDA.
 * tests/preload/test_array_bytes.c compares them with NVIDIA's headers where those are installed.
 * Handles (streams, graphs, pools, arrays) are void *. Results and enumerations are int.
 */
#ifndef PPERF_PRELOAD_CUDA_CUDA_ABI_H
#define PPERF_PRELOAD_CUDA_CUDA_ABI_H

#include <stddef.h>

enum {
	/* cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED */
	CUDA_ERROR_INITIALIZATION = 3,
	CUDA_ERROR_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_CAPTURE_UNJOINED = 904,
	CUDA_HOST_ALLOC_MAPPED = 2, /* cudaHostAllocMapped, cudaHostRegisterMapped */
	CUDA_ARRAY_LAYERED = 1,     /* cudaArrayLayered */
	CUDA_ARRAY_CUBEMAP = 4,     /* cudaArrayCubemap */
	CUDA_FORMAT_NV12 = 4,       /* cudaChannelFormatKindNV12 */
	/* cudaChannelFormatKindUnsignedBlockCompressed1, the first format that encodes 4 x 4 texels
	 * together */
	CUDA_FORMAT_BLOCKS_FIRST = 17,
	CUDA_FORMAT_BLOCKS_LAST = 30, /* ...UnsignedBlockCompressed7SRGB */
	/* A block of the following four formats has 8 bytes, one of the other formats 16. */
	CUDA_FORMAT_BC1 = 17,
	CUDA_FORMAT_BC1_SRGB = 18,
	CUDA_FORMAT_BC4 = 23,
	CUDA_FORMAT_BC4_SIGNED = 24,
	CUDA_FORMAT_1010102 = 31, /* ...UnsignedNormalized1010102: 4 bytes per texel */
};

struct cuda_dim3 {
	unsigned x, y, z;
};
struct cuda_extent {
	size_t width, height, depth; /* width: in texels for arrays, else in bytes */
};
struct cuda_pitched_pointer {
	void *pointer;
	size_t pitch, width, height;
};
struct cuda_channels {  /* cudaChannelFormatDesc */
	int x, y, z, w; /* bits of each channel */
	int kind;
};
struct cuda_launch_config { /* cudaLaunchConfig_t */
	struct cuda_dim3 grid, block;
	size_t shared_bytes;
	void *stream;
	void *attributes;
	unsigned attribute_count;
};
struct cuda_launch_params { /* cudaLaunchParams; CUDA 12 and older */
	void *function;
	struct cuda_dim3 grid, block;
	void **arguments;
	size_t shared_bytes;
	void *stream;
};

#endif
