/* SPDX-License-Identifier: MIT
 * Interposes the runtime's functions that allocate and free memory.
 *
 * A size is what was requested. For pitched memory it is the pitch that the runtime returned times
 * the rows. If a required output pointer is NULL, the runtime's function fails, so the wrappers
 * read output pointers only after success.
 */
#include "preload/cuda/traced_call.h"
#include "preload/cuda/array_bytes.h"
#include "preload/cuda/driver_query.h"
#include "preload/cuda/real.h"

struct memory_call {
	const void *address;
	uint64_t bytes;
	const void *stream;
	enum trace_memory_kind kind;
	uint32_t flags;         /* enum trace_memory_flag */
	const void *for_stream; /* TRACE_MEMORY_FOR_STREAM */
};

#define CUDA_SUCCESS 0
#define CUDA_OUT_OF_MEMORY 2

/* Follows the record of an allocation of device memory. */
static void after_device_alloc(int result, const struct memory_call *memory_call)
{
	if (result == CUDA_SUCCESS)
		call_hook_device_memory(call_tls.caller, memory_call->flags & TRACE_MEMORY_POOL);
	if (result == CUDA_SUCCESS || result == CUDA_OUT_OF_MEMORY)
		call_write_device_memory(result != CUDA_SUCCESS);
}

/* Records a call if it is the outermost one, and ends it. Returns `result`, that of the call. */
static inline int end_memory_call(struct traced_function *traced, uint32_t outer,
	enum trace_kind kind, int result, const struct memory_call *memory_call)
{
	const uint64_t rest[CALL_WORDS(trace_memory)] = {
		(uintptr_t)memory_call->address,
		memory_call->bytes,
		memory_call->stream == CALL_NO_STREAM ? (uintptr_t)memory_call->for_stream
						      : call_stream(traced, memory_call->stream),
		call_pair(memory_call->kind,
			memory_call->flags | (kind == TRACE_ALLOC ? call_context_flags() : 0)),
	};

	if (outer == 0) {
		call_write_memory(traced, kind, result, memory_call->stream, rest);
		if (kind == TRACE_ALLOC && memory_call->kind == TRACE_MEMORY_DEVICE)
			after_device_alloc(result, memory_call);
	}
	call_end(outer);
	return result;
}

static const void *allocated_address(int result, void *const *address)
{
	return result == 0 && address ? *address : NULL;
}

/* Ends an allocation that is not ordered by a CUDA stream. */
static inline int end_alloc(struct traced_function *traced, uint32_t outer, int result,
	const void *address, uint64_t bytes, enum trace_memory_kind kind, uint32_t flags)
{
	return end_memory_call(traced, outer, TRACE_ALLOC, result,
		&(struct memory_call){ address, bytes, CALL_NO_STREAM, kind, flags, NULL });
}

static int end_free(struct traced_function *traced, uint32_t outer, int result, const void *address,
	enum trace_memory_kind kind, uint32_t flags)
{
	return end_memory_call(traced, outer, TRACE_FREE, result,
		&(struct memory_call){ address, 0, CALL_NO_STREAM, kind, flags, NULL });
}

/* PyTorch's caching allocator uses no other function for its segments. */
int cudaMalloc(void **address, size_t bytes)
{
	static struct traced_function traced = { .name = "cudaMalloc", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMalloc(address, bytes);
	struct memory_call call = { allocated_address(result, address), bytes, CALL_NO_STREAM,
		TRACE_MEMORY_DEVICE, 0, NULL };
	void *stream = NULL;

	if (outer == 0 && result == CUDA_SUCCESS && call_enabled) {
		call_returned();
		call.flags = call_allocation_stream(CALLER, &stream);
		call.for_stream = stream;
	}
	return end_memory_call(&traced, outer, TRACE_ALLOC, result, &call);
}

int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
	static struct traced_function traced = { .name = "cudaMallocPitch", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocPitch(address, pitch, width, height);
	uint64_t row = result == 0 && pitch ? *pitch : width;

	return end_alloc(&traced, outer, result, allocated_address(result, address),
		volume_bytes(row, height, 1), TRACE_MEMORY_DEVICE, 0);
}

int cudaMalloc3D(struct cuda_pitched_pointer *address, struct cuda_extent extent)
{
	static struct traced_function traced = { .name = "cudaMalloc3D", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMalloc3D(address, extent);
	const bool allocated = result == 0 && address;
	uint64_t bytes = volume_bytes(
		allocated ? address->pitch : extent.width, extent.height, extent.depth);

	return end_alloc(&traced, outer, result, allocated ? address->pointer : NULL, bytes,
		TRACE_MEMORY_DEVICE, 0);
}

int cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaMallocManaged", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocManaged(address, bytes, flags);

	return end_alloc(&traced, outer, result, allocated_address(result, address), bytes,
		TRACE_MEMORY_MANAGED, 0);
}

int cudaFree(void *address)
{
	static struct traced_function traced = { .name = "cudaFree", .type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFree(address);

	/* also frees managed memory */
	return end_free(&traced, outer, result, address, TRACE_MEMORY_UNKNOWN, 0);
}

static int end_array_alloc(struct traced_function *traced, uint32_t outer, int result,
	void *const *array, const struct cuda_channels *texel, struct cuda_extent extent,
	unsigned levels, unsigned flags)
{
	uint64_t bytes = texel ? array_bytes(texel, extent, levels, flags) : 0;

	return end_alloc(traced, outer, result, allocated_address(result, array), bytes,
		TRACE_MEMORY_ARRAY, 0);
}

int cudaMallocArray(void **array, const struct cuda_channels *texel, size_t width, size_t height,
	unsigned flags)
{
	static struct traced_function traced = { .name = "cudaMallocArray", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocArray(array, texel, width, height, flags);

	return end_array_alloc(&traced, outer, result, array, texel,
		(struct cuda_extent){ width, height, 0 }, 1, flags);
}

int cudaMalloc3DArray(
	void **array, const struct cuda_channels *texel, struct cuda_extent extent, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaMalloc3DArray", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMalloc3DArray(array, texel, extent, flags);

	return end_array_alloc(&traced, outer, result, array, texel, extent, 1, flags);
}

int cudaMallocMipmappedArray(void **array, const struct cuda_channels *texel,
	struct cuda_extent extent, unsigned levels, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaMallocMipmappedArray",
		.type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocMipmappedArray(array, texel, extent, levels, flags);

	return end_array_alloc(&traced, outer, result, array, texel, extent, levels, flags);
}

int cudaFreeArray(void *array)
{
	static struct traced_function traced = { .name = "cudaFreeArray", .type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFreeArray(array);

	return end_free(&traced, outer, result, array, TRACE_MEMORY_ARRAY, 0);
}

int cudaFreeMipmappedArray(void *array)
{
	static struct traced_function traced = { .name = "cudaFreeMipmappedArray",
		.type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFreeMipmappedArray(array);

	return end_free(&traced, outer, result, array, TRACE_MEMORY_ARRAY, 0);
}

static uint32_t host_memory_flags(unsigned flags)
{
	return flags & CUDA_HOST_ALLOC_MAPPED ? TRACE_MEMORY_MAPPED : 0;
}

int cudaMallocHost(void **address, size_t bytes)
{
	static struct traced_function traced = { .name = "cudaMallocHost", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocHost(address, bytes);

	return end_alloc(&traced, outer, result, allocated_address(result, address), bytes,
		TRACE_MEMORY_PINNED, 0);
}

int cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaHostAlloc", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaHostAlloc(address, bytes, flags);

	return end_alloc(&traced, outer, result, allocated_address(result, address), bytes,
		TRACE_MEMORY_PINNED, host_memory_flags(flags));
}

int cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaHostRegister", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaHostRegister(address, bytes, flags);

	return end_alloc(&traced, outer, result, result ? NULL : address, bytes,
		TRACE_MEMORY_PINNED, TRACE_MEMORY_REGISTERED | host_memory_flags(flags));
}

int cudaHostUnregister(void *address)
{
	static struct traced_function traced = { .name = "cudaHostUnregister", .type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaHostUnregister(address);

	return end_free(
		&traced, outer, result, address, TRACE_MEMORY_PINNED, TRACE_MEMORY_REGISTERED);
}

int cudaFreeHost(void *address)
{
	static struct traced_function traced = { .name = "cudaFreeHost", .type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFreeHost(address);

	return end_free(&traced, outer, result, address, TRACE_MEMORY_PINNED, 0);
}

static int end_pool_alloc(struct traced_function *traced, uint32_t outer, int result,
	void *const *address, uint64_t bytes, const void *stream)
{
	return end_memory_call(traced, outer, TRACE_ALLOC, result,
		&(struct memory_call){ allocated_address(result, address), bytes, stream,
			TRACE_MEMORY_DEVICE, TRACE_MEMORY_POOL, NULL });
}

static int end_pool_free(struct traced_function *traced, uint32_t outer, int result,
	const void *address, const void *stream)
{
	return end_memory_call(traced, outer, TRACE_FREE, result,
		&(struct memory_call){
			address, 0, stream, TRACE_MEMORY_DEVICE, TRACE_MEMORY_POOL, NULL });
}

int cudaMallocAsync(void **address, size_t bytes, void *stream)
{
	static struct traced_function traced = { .name = "cudaMallocAsync", .type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocAsync(address, bytes, stream);

	return end_pool_alloc(&traced, outer, result, address, bytes, stream);
}

int cudaMallocAsync_ptsz(void **address, size_t bytes, void *stream)
{
	static struct traced_function traced = {
		.name = "cudaMallocAsync_ptsz", .type = CALL_ALLOC, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocAsync_ptsz(address, bytes, stream);

	return end_pool_alloc(&traced, outer, result, address, bytes, stream);
}

int cudaMallocFromPoolAsync(void **address, size_t bytes, void *pool, void *stream)
{
	static struct traced_function traced = { .name = "cudaMallocFromPoolAsync",
		.type = CALL_ALLOC };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocFromPoolAsync(address, bytes, pool, stream);

	return end_pool_alloc(&traced, outer, result, address, bytes, stream);
}

int cudaMallocFromPoolAsync_ptsz(void **address, size_t bytes, void *pool, void *stream)
{
	static struct traced_function traced = {
		.name = "cudaMallocFromPoolAsync_ptsz", .type = CALL_ALLOC, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaMallocFromPoolAsync_ptsz(address, bytes, pool, stream);

	return end_pool_alloc(&traced, outer, result, address, bytes, stream);
}

int cudaFreeAsync(void *address, void *stream)
{
	static struct traced_function traced = { .name = "cudaFreeAsync", .type = CALL_FREE };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFreeAsync(address, stream);

	return end_pool_free(&traced, outer, result, address, stream);
}

int cudaFreeAsync_ptsz(void *address, void *stream)
{
	static struct traced_function traced = {
		.name = "cudaFreeAsync_ptsz", .type = CALL_FREE, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaFreeAsync_ptsz(address, stream);

	return end_pool_free(&traced, outer, result, address, stream);
}

/* Records that all memory of the device is freed. The device is queried first, because it cannot be
 * known afterwards. With CUPTI, callbacks say which context ends; without it, all of the device's
 * memory counts as freed. */
int cudaDeviceReset(void)
{
	static struct traced_function traced = { .name = "cudaDeviceReset", .type = CALL_RESET };
	const struct real *real = real_of(CALLER);
	const uint32_t device = driver_device();
	uint32_t outer = call_begin(CALLER);
	int result;

	if (outer == 0) {
		call_tls.resets = true;
		call_set_context(device, 0);
	}
	result = real->cudaDeviceReset();
	if (outer == 0)
		call_write_reset(&traced, result);
	call_end(outer);
	return result;
}
