/* The driver API: stream-ordered memory and its pools. */
#include "driver/driver.h"

static CUresult alloc_from(CUdeviceptr *out, size_t bytes, struct pool *pool, CUstream handle)
{
	struct sim_stream *stream;
	void *address;

	TRY(stream_resolve(handle, &stream));
	if (!pool)
		TRY(pool_current(&pool, stream->context->device));
	TRY(pool_alloc(pool, &address, bytes, stream));
	*out = (CUdeviceptr)address;
	return CUDA_SUCCESS;
}

DRIVER_API_STREAM(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
	(dptr, bytesize, hStream))
{
	return alloc_from(dptr, bytesize, NULL, hStream);
}

DRIVER_API_STREAM(cuMemAllocFromPoolAsync,
	(CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
	(dptr, bytesize, pool, hStream))
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_from(dptr, bytesize, HANDLE(pool, pool), hStream);
}

DRIVER_API_STREAM(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return pool_free((void *)dptr, stream);
}

DRIVER_API(
	cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *poolProps), (pool, poolProps))
{
	struct pool *made;

	if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	TRY(pool_create(&made, poolProps->location.id));
	*pool = (CUmemoryPool)(void *)made;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolDestroy, (CUmemoryPool pool), (pool))
{
	return pool_destroy(HANDLE(pool, pool));
}

DRIVER_API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t minBytesToKeep), (pool, minBytesToKeep))
{
	return pool_trim(HANDLE(pool, pool), minBytesToKeep);
}

DRIVER_API(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
	(pool, attr, value))
{
	return pool_get(HANDLE(pool, pool), attr, value);
}

DRIVER_API(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value),
	(pool, attr, value))
{
	return pool_set(HANDLE(pool, pool), attr, value);
}

/* Every device of the simulation may touch every pool. */
DRIVER_API(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
	(pool, map, count))
{
	(void)map;
	(void)count;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool_out, CUdevice dev), (pool_out, dev))
{
	struct pool *pool;

	TRY(pool_default(&pool, dev));
	*pool_out = (CUmemoryPool)(void *)pool;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice dev), (pool, dev))
{
	struct pool *current;

	TRY(pool_current(&current, dev));
	*pool = (CUmemoryPool)(void *)current;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool), (dev, pool))
{
	return pool_set_current(HANDLE(pool, pool), dev);
}
