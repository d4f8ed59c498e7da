/* The runtime: memory of every kind. */
#include <string.h>

#include "runtime/runtime.h"

RUNTIME_API(cudaMalloc, 3020, (void **devPtr, size_t size), (devPtr, size))
{
	CHECK(runtime_ready());
	*devPtr = NULL;
	if (size == 0)
		return cudaSuccess;
	return DRIVER_CALL(cuMemAlloc_v2, (CUdeviceptr *)devPtr, size);
}

RUNTIME_API(cudaMallocPitch, 3020, (void **devPtr, size_t *pitch, size_t width, size_t height),
	(devPtr, pitch, width, height))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemAllocPitch_v2, (CUdeviceptr *)devPtr, pitch, width, height, 4);
}

RUNTIME_API(cudaMalloc3D, 3020, (struct cudaPitchedPtr * pitchedDevPtr, struct cudaExtent extent),
	(pitchedDevPtr, extent))
{
	CUdeviceptr address = 0;

	CHECK(runtime_ready());
	CHECK(DRIVER_CALL(cuMemAllocPitch_v2, &address, &pitchedDevPtr->pitch, extent.width,
		extent.height * extent.depth, 4));
	pitchedDevPtr->ptr = (void *)address;
	pitchedDevPtr->xsize = extent.width;
	pitchedDevPtr->ysize = extent.height;
	return cudaSuccess;
}

RUNTIME_API(cudaMallocManaged, 6000, (void **devPtr, size_t size, unsigned int flags),
	(devPtr, size, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemAllocManaged, (CUdeviceptr *)devPtr, size, flags);
}

RUNTIME_API(cudaMallocHost, 3020, (void **ptr, size_t size), (ptr, size))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemHostAlloc, ptr, size, 0);
}

RUNTIME_API(
	cudaHostAlloc, 3020, (void **pHost, size_t size, unsigned int flags), (pHost, size, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemHostAlloc, pHost, size, flags);
}

RUNTIME_API(
	cudaHostRegister, 4000, (void *ptr, size_t size, unsigned int flags), (ptr, size, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemHostRegister_v2, ptr, size, flags);
}

RUNTIME_API(cudaHostUnregister, 4000, (void *ptr), (ptr))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemHostUnregister, ptr);
}

static cudaError_t pinned(const void *host, unsigned *flags)
{
	enum sim_memory_kind kind;
	int device;

	return sim_pointer(host, &kind, &device, flags) && kind == SIM_MEMORY_PINNED
		       ? cudaSuccess
		       : cudaErrorInvalidValue;
}

RUNTIME_API(cudaHostGetDevicePointer, 3020, (void **pDevice, void *pHost, unsigned int flags),
	(pDevice, pHost, flags))
{
	unsigned kept;

	CHECK(runtime_ready());
	CHECK(flags ? cudaErrorInvalidValue : pinned(pHost, &kept));
	*pDevice = pHost;
	return cudaSuccess;
}

RUNTIME_API(cudaHostGetFlags, 3020, (unsigned int *pFlags, void *pHost), (pFlags, pHost))
{
	CHECK(runtime_ready());
	return pinned(pHost, pFlags);
}

RUNTIME_API(cudaFree, 3020, (void *devPtr), (devPtr))
{
	CHECK(runtime_ready());
	if (!devPtr)
		return cudaSuccess;
	return DRIVER_CALL(cuMemFree_v2, (CUdeviceptr)devPtr);
}

RUNTIME_API(cudaFreeHost, 3020, (void *ptr), (ptr))
{
	CHECK(runtime_ready());
	return ptr ? DRIVER_CALL(cuMemFreeHost, ptr) : cudaSuccess;
}

static cudaError_t format_of(
	const struct cudaChannelFormatDesc *desc, CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	int bits[] = { desc->x, desc->y, desc->z, desc->w };

	shape->NumChannels = 0;
	for (int i = 0; i < 4 && bits[i]; i++)
		shape->NumChannels++;
	if (desc->f == cudaChannelFormatKindFloat && desc->x == 32)
		shape->Format = CU_AD_FORMAT_FLOAT;
	else if (desc->f == cudaChannelFormatKindFloat && desc->x == 16)
		shape->Format = CU_AD_FORMAT_HALF;
	else if (desc->x == 32)
		shape->Format = CU_AD_FORMAT_UNSIGNED_INT32;
	else if (desc->x == 16)
		shape->Format = CU_AD_FORMAT_UNSIGNED_INT16;
	else if (desc->x == 8)
		shape->Format = CU_AD_FORMAT_UNSIGNED_INT8;
	else
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static cudaError_t shape_of(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	*shape = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Flags = flags,
	};
	return format_of(desc, shape);
}

static cudaError_t make_array(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR shape;

	CHECK(runtime_ready());
	CHECK(shape_of(desc, extent, flags, &shape));
	return DRIVER_CALL(cuArray3DCreate_v2, (CUarray *)(void *)array, &shape);
}

RUNTIME_API(cudaMallocArray, 3020,
	(cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
		unsigned int flags),
	(array, desc, width, height, flags))
{
	return make_array(array, desc, (struct cudaExtent){ width, height, 0 }, flags);
}

RUNTIME_API(cudaMalloc3DArray, 3020,
	(cudaArray_t * array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
		unsigned int flags),
	(array, desc, extent, flags))
{
	return make_array(array, desc, extent, flags);
}

RUNTIME_API(cudaMallocMipmappedArray, 5000,
	(cudaMipmappedArray_t * mipmappedArray, const struct cudaChannelFormatDesc *desc,
		struct cudaExtent extent, unsigned int numLevels, unsigned int flags),
	(mipmappedArray, desc, extent, numLevels, flags))
{
	CUDA_ARRAY3D_DESCRIPTOR shape;

	CHECK(runtime_ready());
	CHECK(shape_of(desc, extent, flags, &shape));
	return DRIVER_CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)(void *)mipmappedArray,
		&shape, numLevels);
}

RUNTIME_API(cudaGetMipmappedArrayLevel, 5000,
	(cudaArray_t * levelArray, cudaMipmappedArray_const_t mipmappedArray, unsigned int level),
	(levelArray, mipmappedArray, level))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMipmappedArrayGetLevel, (CUarray *)(void *)levelArray,
		(CUmipmappedArray)(uintptr_t)mipmappedArray, level);
}

RUNTIME_API(cudaFreeArray, 3020, (cudaArray_t array), (array))
{
	CHECK(runtime_ready());
	return array ? DRIVER_CALL(cuArrayDestroy, (CUarray)(void *)array) : cudaSuccess;
}

RUNTIME_API(cudaFreeMipmappedArray, 5000, (cudaMipmappedArray_t mipmappedArray), (mipmappedArray))
{
	CHECK(runtime_ready());
	return mipmappedArray ? DRIVER_CALL(cuMipmappedArrayDestroy,
					(CUmipmappedArray)(void *)mipmappedArray)
			      : cudaSuccess;
}

RUNTIME_API_STREAM(cudaMallocAsync, 11020, 11020,
	(void **devPtr, size_t size, cudaStream_t hStream), (devPtr, size, hStream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuMemAllocAsync, (CUdeviceptr *)devPtr, size, hStream);
}

RUNTIME_API_STREAM(cudaMallocFromPoolAsync, 11020, 11020,
	(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
	(ptr, size, memPool, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)ptr, size, memPool, stream);
}

RUNTIME_API_STREAM(
	cudaFreeAsync, 11020, 11020, (void *devPtr, cudaStream_t hStream), (devPtr, hStream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuMemFreeAsync, (CUdeviceptr)devPtr, hStream);
}

RUNTIME_API(cudaMemPoolCreate, 11020,
	(cudaMemPool_t * memPool, const struct cudaMemPoolProps *poolProps), (memPool, poolProps))
{
	CUmemPoolProps props = {
		.allocType = (CUmemAllocationType)poolProps->allocType,
		.handleTypes = (CUmemAllocationHandleType)poolProps->handleTypes,
		.location = {
			.type = (CUmemLocationType)poolProps->location.type,
			.id = poolProps->location.id,
		},
		.maxSize = poolProps->maxSize,
	};

	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolCreate, memPool, &props);
}

RUNTIME_API(cudaMemPoolDestroy, 11020, (cudaMemPool_t memPool), (memPool))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolDestroy, memPool);
}

RUNTIME_API(cudaMemPoolTrimTo, 11020, (cudaMemPool_t memPool, size_t minBytesToKeep),
	(memPool, minBytesToKeep))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolTrimTo, memPool, minBytesToKeep);
}

RUNTIME_API(cudaMemPoolSetAttribute, 11020,
	(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value), (memPool, attr, value))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolSetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

RUNTIME_API(cudaMemPoolGetAttribute, 11020,
	(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value), (memPool, attr, value))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolGetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

RUNTIME_API(cudaMemPoolSetAccess, 11020,
	(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count),
	(memPool, descList, count))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemPoolSetAccess, memPool,
		(const CUmemAccessDesc *)(const void *)descList, count);
}

RUNTIME_API(cudaDeviceGetDefaultMemPool, 11020, (cudaMemPool_t * memPool, int device),
	(memPool, device))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuDeviceGetDefaultMemPool, memPool, device);
}

RUNTIME_API(cudaDeviceGetMemPool, 11020, (cudaMemPool_t * memPool, int device), (memPool, device))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuDeviceGetMemPool, memPool, device);
}

RUNTIME_API(cudaDeviceSetMemPool, 11020, (int device, cudaMemPool_t memPool), (device, memPool))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuDeviceSetMemPool, device, memPool);
}

/* `free` is the library's name of the parameter. */
RUNTIME_API(cudaMemGetInfo, 3020, (size_t * free, size_t *total), (free, total))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemGetInfo_v2, free, total);
}

static enum cudaMemoryType type_of(enum sim_memory_kind kind)
{
	switch (kind) {
	case SIM_MEMORY_PINNED:
		return cudaMemoryTypeHost;
	case SIM_MEMORY_MANAGED:
		return cudaMemoryTypeManaged;
	default:
		return cudaMemoryTypeDevice;
	}
}

/* Memory that CUDA does not know is no error. CUDA 13 appended reserved members: they are left
 * alone. */
RUNTIME_API(cudaPointerGetAttributes, 4000,
	(struct cudaPointerAttributes * attributes, const void *ptr), (attributes, ptr))
{
	enum sim_memory_kind kind;
	unsigned flags;
	int device;

	CHECK(runtime_ready());
	memset(attributes, 0, offsetof(struct cudaPointerAttributes, hostPointer) + sizeof(void *));
	attributes->type = cudaMemoryTypeUnregistered;
	attributes->device = -2;
	if (!sim_pointer(ptr, &kind, &device, &flags))
		return cudaSuccess;
	attributes->type = type_of(kind);
	attributes->device = device;
	attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (kind == SIM_MEMORY_PINNED || kind == SIM_MEMORY_MANAGED)
		attributes->hostPointer = (void *)(uintptr_t)ptr;
	return cudaSuccess;
}
