/* The driver API: memory of every kind, and what lies behind a pointer. */
#include <string.h>
#include <sys/mman.h>

#include "driver/driver.h"

#define PITCH_UNIT 512 /* bytes */

DRIVER_API(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize), (dptr, bytesize))
{
	void *address;

	TRY(memory_alloc(&address, bytesize, BLOCK_MALLOC));
	*dptr = (CUdeviceptr)address;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocPitch_v2,
	(CUdeviceptr * dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
		unsigned int ElementSizeBytes),
	(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes))
{
	size_t pitch = (WidthInBytes + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
	void *address;

	if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (Height && pitch > SIZE_MAX / Height)
		return CUDA_ERROR_OUT_OF_MEMORY;
	TRY(memory_alloc(&address, pitch * Height, BLOCK_MALLOC));
	*dptr = (CUdeviceptr)address;
	*pPitch = pitch;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags),
	(dptr, bytesize, flags))
{
	void *address;

	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(memory_alloc(&address, bytesize, BLOCK_MANAGED));
	*dptr = (CUdeviceptr)address;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
{
	return memory_free((void *)dptr, BLOCK_MALLOC);
}

DRIVER_API(cuMemAllocHost_v2, (void **pp, size_t bytesize), (pp, bytesize))
{
	return host_alloc(pp, bytesize, 0);
}

DRIVER_API(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags))
{
	return host_alloc(pp, bytesize, Flags);
}

DRIVER_API(cuMemFreeHost, (void *p), (p))
{
	return host_free(p);
}

DRIVER_API(
	cuMemHostRegister_v2, (void *p, size_t bytesize, unsigned int Flags), (p, bytesize, Flags))
{
	return host_register(p, bytesize, Flags);
}

DRIVER_API(cuMemHostUnregister, (void *p), (p))
{
	TRY(require_init());
	return host_unregister(p);
}

DRIVER_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * pdptr, void *p, unsigned int Flags),
	(pdptr, p, Flags))
{
	struct block block;

	TRY(require_init());
	if (Flags || !block_find(p, &block) || block.kind != SIM_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostGetFlags, (unsigned int *pFlags, void *p), (pFlags, p))
{
	struct block block;

	TRY(require_init());
	if (!block_find(p, &block) || block.kind != SIM_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = block.flags;
	return CUDA_SUCCESS;
}

/* `free` is the library's name of the parameter. */
DRIVER_API(cuMemGetInfo_v2, (size_t * free, size_t *total), (free, total))
{
	struct sim_context *context;

	TRY(require_context(&context));
	memory_info(context->device, free, total);
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetAddressRange_v2, (CUdeviceptr * pbase, size_t *psize, CUdeviceptr dptr),
	(pbase, psize, dptr))
{
	struct block block;

	TRY(require_init());
	if (!block_find((void *)dptr, &block))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = block.address;
	if (psize)
		*psize = block.bytes;
	return CUDA_SUCCESS;
}

SIM_EXPORT bool sim_pointer(
	const void *address, enum sim_memory_kind *kind, int *device, unsigned *flags)
{
	struct block block;

	if (!block_find(address, &block))
		return false;
	*kind = block.kind;
	*device = block.device;
	*flags = block.flags;
	return true;
}

SIM_EXPORT void *sim_variable(size_t bytes)
{
	return memory_static(bytes);
}

SIM_EXPORT size_t sim_array_element(const void *handle)
{
	const struct array *array = handle;

	return array_valid(array) ? array_element(array->format, array->channels) : 0;
}

static CUmemorytype type_of(const struct block *block)
{
	return block->kind == SIM_MEMORY_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

DRIVER_API(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr),
	(data, attribute, ptr))
{
	struct block block;

	TRY(require_init());
	if (!block_find((void *)ptr, &block))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)block.context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(CUmemorytype *)data = type_of(&block);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = block.kind == SIM_MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = block.device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = block.address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = block.bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

DRIVER_API(cuArray3DCreate_v2, (CUarray * pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray),
	(pHandle, pAllocateArray))
{
	struct array *array;

	TRY(array_create(&array, pAllocateArray, 0));
	*pHandle = (CUarray)(void *)array;
	return CUDA_SUCCESS;
}

DRIVER_API(cuArrayCreate_v2, (CUarray * pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray),
	(pHandle, pAllocateArray))
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = pAllocateArray->Width,
		.Height = pAllocateArray->Height,
		.Format = pAllocateArray->Format,
		.NumChannels = pAllocateArray->NumChannels,
	};
	struct array *array;

	TRY(array_create(&array, &shape, 0));
	*pHandle = (CUarray)(void *)array;
	return CUDA_SUCCESS;
}

DRIVER_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * pArrayDescriptor, CUarray hArray),
	(pArrayDescriptor, hArray))
{
	const struct array *array = HANDLE(array, hArray);

	if (!array_valid(array))
		return CUDA_ERROR_INVALID_HANDLE;
	*pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = array->width,
		.Height = array->height,
		.Depth = array->depth,
		.Format = array->format,
		.NumChannels = array->channels,
		.Flags = array->flags,
	};
	return CUDA_SUCCESS;
}

DRIVER_API(cuArrayDestroy, (CUarray hArray), (hArray))
{
	return array_destroy(HANDLE(array, hArray));
}

DRIVER_API(cuMipmappedArrayCreate,
	(CUmipmappedArray * pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
		unsigned int numMipmapLevels),
	(pHandle, pMipmappedArrayDesc, numMipmapLevels))
{
	struct array *array;

	if (numMipmapLevels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(array_create(&array, pMipmappedArrayDesc, numMipmapLevels));
	*pHandle = (CUmipmappedArray)(void *)array;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMipmappedArrayGetLevel,
	(CUarray * pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level),
	(pLevelArray, hMipmappedArray, level))
{
	struct array *array = HANDLE(array, hMipmappedArray);

	if (!array_valid(array) || level >= array->level_count)
		return CUDA_ERROR_INVALID_VALUE;
	*pLevelArray = (CUarray)(void *)&array->levels[level];
	return CUDA_SUCCESS;
}

DRIVER_API(cuMipmappedArrayDestroy, (CUmipmappedArray hMipmappedArray), (hMipmappedArray))
{
	return array_destroy(HANDLE(array, hMipmappedArray));
}

DRIVER_API(cuMemAddressReserve,
	(CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr addr,
		unsigned long long flags),
	(ptr, size, alignment, addr, flags))
{
	void *address;

	(void)addr; /* only a wish */
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(address_reserve(&address, size, alignment));
	*ptr = (CUdeviceptr)address;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemAddressFree, (CUdeviceptr ptr, size_t size), (ptr, size))
{
	return address_free((void *)ptr, size);
}

DRIVER_API(cuMemGetAllocationGranularity,
	(size_t * granularity, const CUmemAllocationProp *prop,
		CUmemAllocationGranularity_flags option),
	(granularity, prop, option))
{
	(void)prop;
	(void)option;
	TRY(require_init());
	*granularity = GRANULARITY;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemCreate,
	(CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
		unsigned long long flags),
	(handle, size, prop, flags))
{
	struct physical *physical;

	if (flags || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(physical_create(&physical, size, prop->location.id));
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
{
	return physical_release((struct physical *)(uintptr_t)handle);
}

DRIVER_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *addr),
	(handle, addr))
{
	struct physical *physical;

	TRY(physical_retain(&physical, addr));
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemMap,
	(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		unsigned long long flags),
	(ptr, size, offset, handle, flags))
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return physical_map((struct physical *)(uintptr_t)handle, (void *)ptr, size, offset);
}

DRIVER_API(cuMemUnmap, (CUdeviceptr ptr, size_t size), (ptr, size))
{
	return physical_unmap((void *)ptr, size);
}

DRIVER_API(cuMemSetAccess,
	(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
	(ptr, size, desc, count))
{
	int prot = PROT_NONE;

	for (size_t i = 0; i < count; i++)
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			prot = PROT_READ | PROT_WRITE;
	return physical_access((void *)ptr, size, prot);
}
