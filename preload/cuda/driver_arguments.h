/* SPDX-License-Identifier: MIT
 * The argument structs of the driver's functions, as CUPTI passes them to a callback. Functions
 * whose arguments have the same layout share a struct. Only for driver_decode.c, cupti_callbacks.c
 * and the test.
 */
#ifndef PPERF_PRELOAD_CUDA_DRIVER_ARGUMENTS_H
#define PPERF_PRELOAD_CUDA_DRIVER_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

struct arguments_launch { /* cuLaunchKernel, cuLaunchCooperativeKernel */
	uint64_t function;
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t stream;
};
struct arguments_launch_config { /* CUlaunchConfig */
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t stream;
};
struct arguments_launch_ex { /* cuLaunchKernelEx */
	const struct arguments_launch_config *config;
	uint64_t function;
};
struct arguments_graph_launch {
	uint64_t exec, stream;
};

struct arguments_copy { /* cuMemcpy, HtoD, DtoH, DtoD and their Async forms */
	uint64_t target, source, bytes, stream;
};
/* cuMemcpyDtoA, HtoA, AtoD, AtoH: an array with an offset, and an address, in either order */
struct arguments_copy_array {
	uint64_t first, second, third, bytes, stream;
};
struct arguments_copy_arrays { /* AtoA */
	uint64_t target, target_offset, source, source_offset, bytes;
};
struct arguments_copy_peer { /* cuMemcpyPeer, PeerAsync */
	uint64_t target, target_context, source, source_context, bytes, stream;
};
struct arguments_copy_shape { /* cuMemcpy2D, 3D, 3DPeer and their Async forms */
	const void *shape;
	uint64_t stream;
};
struct copy_2d { /* CUDA_MEMCPY2D */
	uint64_t source_x, source_y;
	uint32_t source_type;
	uint64_t source_host, source_device, source_array, source_pitch;
	uint64_t target_x, target_y;
	uint32_t target_type;
	uint64_t target_host, target_device, target_array, target_pitch;
	uint64_t width_bytes, height;
};
struct copy_3d { /* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
	uint64_t source_x, source_y, source_z, source_lod;
	uint32_t source_type;
	uint64_t source_host, source_device, source_array, source_context, source_pitch,
		source_height;
	uint64_t target_x, target_y, target_z, target_lod;
	uint32_t target_type;
	uint64_t target_host, target_device, target_array, target_context, target_pitch,
		target_height;
	uint64_t width_bytes, height, depth;
};
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3 }; /* CUmemorytype; 4 is any */
struct arguments_copy_batch {                                  /* cuMemcpyBatchAsync_v2 */
	const void *targets, *sources;
	const size_t *bytes;
	uint64_t count;
	const void *attributes, *indices;
	uint64_t attribute_count, stream;
};
struct arguments_copy_batch_1 { /* cuMemcpyBatchAsync */
	const void *targets, *sources;
	const size_t *bytes;
	uint64_t count;
	const void *attributes, *indices;
	uint64_t attribute_count;
	const void *failed;
	uint64_t stream;
};
struct arguments_copy_3d_batch { /* cuMemcpy3DBatchAsync_v2 */
	uint64_t count;
	const void *list;
	uint64_t flags, stream;
};
struct arguments_copy_3d_batch_1 { /* cuMemcpy3DBatchAsync */
	uint64_t count;
	const void *list, *failed;
	uint64_t flags, stream;
};

struct arguments_copy_attributes { /* cuMemcpyWithAttributesAsync */
	uint64_t target, source, bytes;
	const void *attributes;
	uint64_t stream;
};
struct arguments_copy_3d_attributes { /* cuMemcpy3DWithAttributesAsync */
	const void *copy;
	uint64_t flags, stream;
};

/* `value` is 1, 2 or 4 bytes wide. */
struct arguments_memset { /* cuMemsetD8, D16, D32 and Async */
	uint64_t target;
	uint32_t value;
	uint64_t count, stream;
};
struct arguments_memset_2d { /* cuMemsetD2D* */
	uint64_t target, pitch;
	uint32_t value;
	uint64_t width, height, stream;
};

/* cuMemAlloc, AllocHost, HostAlloc, AllocManaged; AllocAsync has the stream */
struct arguments_alloc {
	const uint64_t *address;
	uint64_t bytes, stream;
};
struct arguments_alloc_pitch {
	const uint64_t *address;
	const uint64_t *pitch;
	uint64_t width_bytes, height;
};
struct arguments_alloc_pool { /* cuMemAllocFromPoolAsync */
	const uint64_t *address;
	uint64_t bytes, pool, stream;
};
struct arguments_register { /* cuMemHostRegister */
	uint64_t address, bytes;
};
/* cuMemFree, FreeHost, HostUnregister, ArrayDestroy, MipmappedArrayDestroy, MemRelease; FreeAsync
 * has the stream */
struct arguments_free {
	uint64_t address, stream;
};
struct arguments_array { /* cuArrayCreate, Array3DCreate, MipmappedArrayCreate */
	const uint64_t *array;
	const void *shape;
	uint32_t levels; /* of MipmappedArrayCreate only */
};
struct array_2d { /* CUDA_ARRAY_DESCRIPTOR */
	uint64_t width, height;
	uint32_t format, channels;
};
struct array_3d { /* CUDA_ARRAY3D_DESCRIPTOR */
	uint64_t width, height, depth;
	uint32_t format, channels, flags;
};
struct arguments_physical { /* cuMemCreate */
	const uint64_t *handle;
	uint64_t bytes;
	const struct physical_properties {
		uint32_t type, shared_types, location_type,
			/* location_type 1 is a device, a greater one the host */
			location;
	} * properties;
};

struct arguments_memory_query { /* cuMemGetInfo */
	const size_t *free_bytes, *total_bytes;
};
struct arguments_reserve { /* cuMemAddressReserve */
	const uint64_t *address;
	uint64_t bytes;
};
struct arguments_range { /* cuMemAddressFree, cuMemUnmap */
	uint64_t address, bytes;
};
struct arguments_map { /* cuMemMap */
	uint64_t address, bytes, offset, handle;
};
/* cuMemRetainAllocationHandle; cuMemImportFromShareableHandle has a handle of the operating system
 * in place of the address */
struct arguments_handle {
	const uint64_t *handle;
	uint64_t address;
};

struct arguments_stream { /* cuStreamSynchronize, cuStreamBeginCapture..., cuStreamEndCapture */
	uint64_t stream;
};
struct arguments_event { /* cuEventSynchronize; cuEventRecord has the stream */
	uint64_t event, stream;
};
struct arguments_wait { /* cuStreamWaitEvent */
	uint64_t stream, event;
};

#endif
