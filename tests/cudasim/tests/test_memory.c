/* The simulated runtime's memory: capacity, kinds, errors, copies, pools, mappings. */
#include <string.h>

#include "tests/check_cuda.h"

static size_t free_memory(void)
{
	size_t left, total;

	OK(cudaMemGetInfo(&left, &total));
	return left;
}

START_TEST(an_allocation_takes_whole_units_of_capacity)
{
	size_t before = free_memory();
	void *memory;

	OK(cudaMalloc(&memory, 1));
	ck_assert_uint_eq(before - free_memory(), 2 * MIB);
	OK(cudaFree(memory));
	ck_assert_uint_eq(free_memory(), before);
}
END_TEST

START_TEST(capacity_ends_and_comes_back)
{
	void *first, *second;

	OK(cudaMalloc(&first, 15 * 1024 * MIB));
	FAILS(cudaMalloc(&second, 2 * 1024 * MIB), cudaErrorMemoryAllocation);
	ck_assert_ptr_null(second);
	FAILS(cudaGetLastError(), cudaErrorMemoryAllocation);
	FAILS(cudaGetLastError(), cudaSuccess);
	OK(cudaFree(first));
	OK(cudaMalloc(&second, 2 * 1024 * MIB));
}
END_TEST

START_TEST(a_request_for_nothing_gets_nothing)
{
	void *memory = &memory;

	OK(cudaMalloc(&memory, 0));
	ck_assert_ptr_null(memory);
	OK(cudaFree(NULL));
	OK(cudaFreeHost(NULL));
}
END_TEST

START_TEST(what_was_not_allocated_cannot_be_freed)
{
	int local = 0;
	char *memory;

	FAILS(cudaFree(&local), cudaErrorInvalidValue);
	OK(cudaMalloc((void **)&memory, 4096));
	FAILS(cudaFree(memory + 256), cudaErrorInvalidValue);
	OK(cudaFree(memory));
	FAILS(cudaFree(memory), cudaErrorInvalidValue);
	FAILS(cudaFreeHost(&local), cudaErrorInvalidValue);
	FAILS(cudaHostUnregister(&local), cudaErrorHostMemoryNotRegistered);
}
END_TEST

static enum cudaMemoryType type_of(const void *memory)
{
	struct cudaPointerAttributes attributes;

	OK(cudaPointerGetAttributes(&attributes, memory));
	return attributes.type;
}

START_TEST(pointers_know_their_kind)
{
	int local = 0;
	char buffer[8192];
	void *device, *managed, *pinned, *alloc;

	OK(cudaMalloc(&device, 4096));
	OK(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
	OK(cudaMallocHost(&pinned, 4096));
	OK(cudaHostAlloc(&alloc, 4096, cudaHostAllocMapped));
	OK(cudaHostRegister(buffer, sizeof(buffer), 0));
	ck_assert_int_eq(type_of(device), cudaMemoryTypeDevice);
	ck_assert_int_eq(type_of((char *)device + 4095), cudaMemoryTypeDevice);
	ck_assert_int_eq(type_of(managed), cudaMemoryTypeManaged);
	ck_assert_int_eq(type_of(pinned), cudaMemoryTypeHost);
	ck_assert_int_eq(type_of(alloc), cudaMemoryTypeHost);
	ck_assert_int_eq(type_of(buffer + 100), cudaMemoryTypeHost);
	ck_assert_int_eq(type_of(&local), cudaMemoryTypeUnregistered);
	FAILS(cudaHostRegister(buffer + 1, 1, 0), cudaErrorHostMemoryAlreadyRegistered);
	OK(cudaHostUnregister(buffer));
	ck_assert_int_eq(type_of(buffer), cudaMemoryTypeUnregistered);
}
END_TEST

START_TEST(pointer_attributes_stay_within_the_struct_of_cuda_12)
{
	struct {
		struct cudaPointerAttributes attributes;
		char behind[64];
	} guarded;
	char *old_end = (char *)&guarded + 24;
	int local = 0;

	memset(&guarded, 0x5a, sizeof(guarded));
	OK(cudaPointerGetAttributes(&guarded.attributes, &local));
	ck_assert_int_eq(*old_end, 0x5a);
}
END_TEST

START_TEST(copies_move_bytes_both_ways)
{
	char in[1000], out[1000] = "";
	char *a, *b;

	memset(in, 7, sizeof(in));
	OK(cudaMalloc((void **)&a, sizeof(in)));
	OK(cudaMalloc((void **)&b, sizeof(in)));
	OK(cudaMemcpy(a, in, sizeof(in), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(b, a, sizeof(in), cudaMemcpyDeviceToDevice));
	OK(cudaMemset(b, 9, 10));
	OK(cudaMemcpy(out, b, sizeof(out), cudaMemcpyDefault));
	ck_assert_int_eq(out[9], 9);
	ck_assert_int_eq(out[10], 7);
	ck_assert_int_eq(out[999], 7);
	OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
}
END_TEST

START_TEST(a_large_zero_is_a_zero_everywhere)
{
	size_t bytes = 8 * MIB, others = 0;
	char *device, *host = malloc(bytes);

	OK(cudaMalloc((void **)&device, bytes));
	OK(cudaMemset(device, 1, bytes));
	OK(cudaMemset(device + 1, 0, bytes - 2));
	OK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
	ck_assert_int_eq(host[0], 1);
	ck_assert_int_eq(host[bytes - 1], 1);
	for (size_t i = 1; i < bytes - 1; i++)
		others += host[i] != 0;
	ck_assert_uint_eq(others, 0);
	free(host);
}
END_TEST

START_TEST(wrong_directions_and_ranges_are_refused)
{
	char host[64];
	char *device;

	OK(cudaMalloc((void **)&device, 64));
	FAILS(cudaMemcpy(host, device, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	FAILS(cudaMemcpy(device, host, 64, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	FAILS(cudaMemcpy(device, host, 64, (enum cudaMemcpyKind)77),
		cudaErrorInvalidMemcpyDirection);
	FAILS(cudaMemcpy(device, host, 65, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	FAILS(cudaMemset(device, 0, 65), cudaErrorInvalidValue);
	FAILS(cudaMemset(host, 0, 64), cudaErrorInvalidValue);
}
END_TEST

START_TEST(rectangles_keep_what_is_between)
{
	char in[4][8], out[4][16];
	size_t pitch;
	char *device;

	memset(in, 3, sizeof(in));
	memset(out, 1, sizeof(out));
	OK(cudaMallocPitch((void **)&device, &pitch, 8, 4));
	ck_assert_uint_ge(pitch, 8);
	OK(cudaMemcpy2D(device, pitch, in, 8, 8, 4, cudaMemcpyHostToDevice));
	OK(cudaMemset2D(device, pitch, 5, 2, 4));
	OK(cudaMemcpy2D(out, 16, device, pitch, 8, 4, cudaMemcpyDeviceToHost));
	for (int y = 0; y < 4; y++) {
		ck_assert_int_eq(out[y][1], 5);
		ck_assert_int_eq(out[y][2], 3);
		ck_assert_int_eq(out[y][8], 1);
	}
	FAILS(cudaMemcpy2D(out, 4, device, pitch, 8, 4, cudaMemcpyDeviceToHost),
		cudaErrorInvalidPitchValue);
}
END_TEST

START_TEST(arrays_and_boxes_hold_what_is_put_in)
{
	struct cudaChannelFormatDesc floats = { 32, 0, 0, 0, cudaChannelFormatKindFloat };
	struct cudaExtent extent = { 8, 4, 2 };
	struct cudaMemcpy3DParms in, out;
	float from[2][4][8], to[2][4][8] = { { { 0 } } };
	cudaArray_t array;

	for (int i = 0; i < 64; i++)
		from[i / 32][i / 8 % 4][i % 8] = (float)i;
	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	OK(cudaMalloc3DArray(&array, &floats, extent, 0));
	in.srcPtr.ptr = from;
	in.srcPtr.pitch = sizeof(from[0][0]);
	in.srcPtr.ysize = 4;
	in.dstArray = array;
	in.extent = extent;
	in.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&in));
	out.srcArray = array;
	out.dstPtr = in.srcPtr;
	out.dstPtr.ptr = to;
	out.extent = extent;
	out.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&out));
	ck_assert_mem_eq(from, to, sizeof(from));
	OK(cudaFreeArray(array));
}
END_TEST

START_TEST(mipmapped_arrays_have_levels)
{
	struct cudaChannelFormatDesc bytes = { 8, 8, 8, 8, cudaChannelFormatKindUnsigned };
	struct cudaExtent extent = { 64, 64, 0 };
	cudaMipmappedArray_t mipmapped;
	cudaArray_t level;
	size_t before = free_memory();

	OK(cudaMallocMipmappedArray(&mipmapped, &bytes, extent, 3, 0));
	ck_assert_uint_eq(before - free_memory(), 3 * 2 * MIB);
	OK(cudaGetMipmappedArrayLevel(&level, mipmapped, 2));
	FAILS(cudaGetMipmappedArrayLevel(&level, mipmapped, 3), cudaErrorInvalidValue);
	OK(cudaFreeMipmappedArray(mipmapped));
	ck_assert_uint_eq(free_memory(), before);
}
END_TEST

static unsigned long long pool_value(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
	unsigned long long value;

	OK(cudaMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

START_TEST(pools_reserve_reuse_and_give_back)
{
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *a, *b;

	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaStreamCreate(&stream));
	OK(cudaMallocAsync(&a, MIB, stream));
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrUsedMemCurrent), MIB);
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrReservedMemCurrent), 32 * MIB);
	OK(cudaFreeAsync(a, stream));
	OK(cudaMallocAsync(&b, MIB, stream));
	ck_assert_ptr_eq(a, b);
	OK(cudaFreeAsync(b, stream));
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrUsedMemCurrent), 0);
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrUsedMemHigh), MIB);
	OK(cudaStreamSynchronize(stream));
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrReservedMemCurrent), 0);
	FAILS(cudaFreeAsync(b, stream), cudaErrorInvalidValue);
}
END_TEST

START_TEST(a_threshold_keeps_what_a_trim_gives_back)
{
	unsigned long long all = ~0ull;
	struct cudaMemPoolProps props;
	cudaMemPool_t pool;
	void *memory;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
	OK(cudaMallocFromPoolAsync(&memory, 100 * MIB, pool, 0));
	OK(cudaFreeAsync(memory, 0));
	OK(cudaDeviceSynchronize());
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrReservedMemCurrent), 128 * MIB);
	OK(cudaMemPoolTrimTo(pool, 0));
	ck_assert_uint_eq(pool_value(pool, cudaMemPoolAttrReservedMemCurrent), 0);
	OK(cudaMemPoolDestroy(pool));
}
END_TEST

START_TEST(pool_memory_can_be_freed_as_any_other)
{
	void *memory;

	OK(cudaMallocAsync(&memory, 4096, 0));
	OK(cudaFree(memory));
	FAILS(cudaFree(memory), cudaErrorInvalidValue);
}
END_TEST

START_TEST(mapped_memory_shows_the_same_bytes_twice)
{
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range, second;
	size_t before = free_memory();
	int value = 42, seen = 0;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	ck_assert_uint_eq(before - free_memory(), 2 * MIB);
	second = range + 4 * MIB;
	OK(cuMemMap(range, 2 * MIB, 0, handle, 0));
	OK(cuMemMap(second, 2 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(range, 2 * MIB, &access, 1));
	OK(cuMemSetAccess(second, 2 * MIB, &access, 1));
	OK(cuMemcpyHtoD(range, &value, sizeof(value)));
	OK(cuMemcpyDtoH(&seen, second, sizeof(seen)));
	ck_assert_int_eq(seen, 42);
	OK(cuMemUnmap(range, 2 * MIB));
	OK(cuMemRelease(handle));
	ck_assert_uint_eq(before - free_memory(), 2 * MIB);
	OK(cuMemUnmap(second, 2 * MIB));
	ck_assert_uint_eq(free_memory(), before);
	OK(cuMemAddressFree(range, 8 * MIB));
	FAILS(cuMemCreate(&handle, MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static CUmemAllocationProp device_memory(void)
{
	CUmemAllocationProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

START_TEST(a_mapping_needs_a_reserved_range_that_is_free)
{
	const CUmemAllocationProp prop = device_memory();
	CUmemGenericAllocationHandle handle, other;
	CUdeviceptr range, none;

	ck_assert_uint_gt(free_memory(), 0); /* initialises CUDA */
	FAILS(cuMemAddressReserve(&range, 1000, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemAddressReserve(&range, 8 * MIB, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressReserve(&none, 4096, 0, 0, 0));
	OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
	OK(cuMemCreate(&other, 2 * MIB, &prop, 0));
	FAILS(cuMemMap(range, MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemMap(range + MIB, 2 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemMap(range, 2 * MIB, 2 * MIB, handle, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemMap(range, 6 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemMap(range + 6 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemMap(none, 2 * MIB, 0, other, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(range + 2 * MIB, 4 * MIB, 0, handle, 0));
	FAILS(cuMemMap(range + 4 * MIB, 2 * MIB, 0, other, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(range, 2 * MIB, 0, other, 0));
	OK(cuMemUnmap(range, 6 * MIB));
	FAILS(cuMemUnmap(range, 6 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(handle));
	OK(cuMemRelease(other));
	OK(cuMemAddressFree(none, 4096));
	OK(cuMemAddressFree(range, 8 * MIB));
}
END_TEST

START_TEST(mappings_end_as_a_whole_and_before_their_range)
{
	const CUmemAllocationProp prop = device_memory();
	const CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle, same;
	size_t before = free_memory();
	CUdeviceptr range;

	OK(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
	OK(cuMemMap(range, 4 * MIB, 0, handle, 0));
	FAILS(cuMemSetAccess(range, 8 * MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(range, 4 * MIB, &access, 1));
	FAILS(cuMemUnmap(range, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemUnmap(range + 2 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemUnmap(range, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemAddressFree(range, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuMemRetainAllocationHandle(&same, (void *)(range + 6 * MIB)),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRetainAllocationHandle(&same, (void *)(range + 3 * MIB)));
	ck_assert(same == handle);
	OK(cuMemRelease(handle));
	OK(cuMemUnmap(range, 4 * MIB));
	ck_assert_uint_eq(before - free_memory(), 4 * MIB); /* a reference is left */
	OK(cuMemRelease(same));
	ck_assert_uint_eq(free_memory(), before);
	FAILS(cuMemAddressFree(range, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(range, 8 * MIB));
	FAILS(cuMemAddressFree(range, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

SUITE("cudasim memory", an_allocation_takes_whole_units_of_capacity, capacity_ends_and_comes_back,
	a_request_for_nothing_gets_nothing, what_was_not_allocated_cannot_be_freed,
	pointers_know_their_kind, pointer_attributes_stay_within_the_struct_of_cuda_12,
	copies_move_bytes_both_ways, a_large_zero_is_a_zero_everywhere,
	wrong_directions_and_ranges_are_refused, rectangles_keep_what_is_between,
	arrays_and_boxes_hold_what_is_put_in, mipmapped_arrays_have_levels,
	pools_reserve_reuse_and_give_back, a_threshold_keeps_what_a_trim_gives_back,
	pool_memory_can_be_freed_as_any_other, mapped_memory_shows_the_same_bytes_twice,
	a_mapping_needs_a_reserved_range_that_is_free,
	mappings_end_as_a_whole_and_before_their_range)
