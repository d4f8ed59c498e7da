/* The runtime: copies and sets. */
#include "runtime/runtime.h"

enum side {
	SIDE_HOST,
	SIDE_DEVICE,
	SIDE_BOTH, /* managed memory */
};

static enum side side_of(const void *address)
{
	enum sim_memory_kind kind;
	unsigned flags;
	int device;

	if (!sim_pointer(address, &kind, &device, &flags) || kind == SIM_MEMORY_PINNED)
		return SIDE_HOST;
	return kind == SIM_MEMORY_MANAGED ? SIDE_BOTH : SIDE_DEVICE;
}

static bool fits(enum side side, bool device)
{
	return side == SIDE_BOTH || (side == SIDE_DEVICE) == device;
}

static bool to_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

static bool from_device(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

/* The direction, found out where it is left to the pointers; a wrong one is refused. */
static cudaError_t settle(enum cudaMemcpyKind *kind, const void *target, const void *source)
{
	enum side to = side_of(target), from = side_of(source);

	if ((unsigned)*kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (*kind != cudaMemcpyDefault)
		return fits(to, to_device(*kind)) && fits(from, from_device(*kind))
			       ? cudaSuccess
			       : cudaErrorInvalidValue;
	if (to == SIDE_HOST)
		*kind = from == SIDE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
	else
		*kind = from == SIDE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
	return cudaSuccess;
}

static cudaError_t copy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind)
{
	CHECK(runtime_ready());
	if (bytes == 0)
		return cudaSuccess;
	CHECK(settle(&kind, target, source));
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return DEFAULT_CALL(cuMemcpyHtoD_v2, (CUdeviceptr)target, source, bytes);
	case cudaMemcpyDeviceToHost:
		return DEFAULT_CALL(cuMemcpyDtoH_v2, target, (CUdeviceptr)source, bytes);
	case cudaMemcpyDeviceToDevice:
		return DEFAULT_CALL(
			cuMemcpyDtoD_v2, (CUdeviceptr)target, (CUdeviceptr)source, bytes);
	default:
		return DEFAULT_CALL(cuMemcpy, (CUdeviceptr)target, (CUdeviceptr)source, bytes);
	}
}

static cudaError_t copy_async(void *target, const void *source, size_t bytes,
	enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CHECK(runtime_ready());
	if (bytes == 0)
		return cudaSuccess;
	CHECK(settle(&kind, target, source));
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return STREAM_CALL(
			cuMemcpyHtoDAsync_v2, (CUdeviceptr)target, source, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return STREAM_CALL(
			cuMemcpyDtoHAsync_v2, target, (CUdeviceptr)source, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return STREAM_CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr)target, (CUdeviceptr)source,
			bytes, stream);
	default:
		return STREAM_CALL(
			cuMemcpyAsync, (CUdeviceptr)target, (CUdeviceptr)source, bytes, stream);
	}
}

RUNTIME_API_DEFAULT(cudaMemcpy, 3020, 7000,
	(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
	(dst, src, count, kind))
{
	return copy(dst, src, count, kind);
}

RUNTIME_API_STREAM(cudaMemcpyAsync, 3020, 7000,
	(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
	(dst, src, count, kind, stream))
{
	return copy_async(dst, src, count, kind, stream);
}

RUNTIME_API(cudaMemcpyPeer, 4000,
	(void *dst, int dstDevice, const void *src, int srcDevice, size_t count),
	(dst, dstDevice, src, srcDevice, count))
{
	(void)dstDevice; /* addresses are unified */
	(void)srcDevice;
	CHECK(runtime_ready());
	return DRIVER_CALL(cuMemcpyPeer, (CUdeviceptr)dst, NULL, (CUdeviceptr)src, NULL, count);
}

RUNTIME_API(cudaMemcpyPeerAsync, 4000,
	(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
		cudaStream_t stream),
	(dst, dstDevice, src, srcDevice, count, stream))
{
	(void)dstDevice;
	(void)srcDevice;
	CHECK(runtime_ready());
	return DRIVER_CALL(
		cuMemcpyPeerAsync, (CUdeviceptr)dst, NULL, (CUdeviceptr)src, NULL, count, stream);
}

/* The place in a variable; an error where the range leaves it. */
static cudaError_t place_in(const void *symbol, size_t offset, size_t count, char **address)
{
	size_t bytes;

	CHECK(runtime_ready());
	*address = registry_variable(symbol, &bytes);
	if (!*address)
		return cudaErrorInvalidSymbol;
	*address += offset;
	return offset <= bytes && count <= bytes - offset ? cudaSuccess : cudaErrorInvalidValue;
}

RUNTIME_API_DEFAULT(cudaMemcpyToSymbol, 3020, 7000,
	(const void *symbol, const void *src, size_t count, size_t offset,
		enum cudaMemcpyKind kind),
	(symbol, src, count, offset, kind))
{
	char *address;

	CHECK(place_in(symbol, offset, count, &address));
	return copy(address, src, count, kind);
}

RUNTIME_API_DEFAULT(cudaMemcpyFromSymbol, 3020, 7000,
	(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
	(dst, symbol, count, offset, kind))
{
	char *address;

	CHECK(place_in(symbol, offset, count, &address));
	return copy(dst, address, count, kind);
}

RUNTIME_API_STREAM(cudaMemcpyToSymbolAsync, 3020, 7000,
	(const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
		cudaStream_t stream),
	(symbol, src, count, offset, kind, stream))
{
	char *address;

	CHECK(place_in(symbol, offset, count, &address));
	return copy_async(address, src, count, kind, stream);
}

RUNTIME_API_STREAM(cudaMemcpyFromSymbolAsync, 3020, 7000,
	(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
		cudaStream_t stream),
	(dst, symbol, count, offset, kind, stream))
{
	char *address;

	CHECK(place_in(symbol, offset, count, &address));
	return copy_async(dst, address, count, kind, stream);
}

RUNTIME_API(cudaGetSymbolAddress, 3020, (void **devPtr, const void *symbol), (devPtr, symbol))
{
	size_t bytes;

	CHECK(runtime_ready());
	*devPtr = registry_variable(symbol, &bytes);
	return *devPtr ? cudaSuccess : cudaErrorInvalidSymbol;
}

RUNTIME_API(cudaGetSymbolSize, 3020, (size_t * size, const void *symbol), (size, symbol))
{
	CHECK(runtime_ready());
	return registry_variable(symbol, size) ? cudaSuccess : cudaErrorInvalidSymbol;
}

static CUDA_MEMCPY2D rectangle(void *target, size_t target_pitch, const void *source,
	size_t source_pitch, size_t width, size_t height)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)source,
		.srcPitch = source_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)target,
		.dstPitch = target_pitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

static cudaError_t check_rectangle(size_t target_pitch, size_t source_pitch, size_t width)
{
	CHECK(runtime_ready());
	return width <= target_pitch && width <= source_pitch ? cudaSuccess
							      : cudaErrorInvalidPitchValue;
}

RUNTIME_API_DEFAULT(cudaMemcpy2D, 3020, 7000,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		enum cudaMemcpyKind kind),
	(dst, dpitch, src, spitch, width, height, kind))
{
	CUDA_MEMCPY2D box = rectangle(dst, dpitch, src, spitch, width, height);

	CHECK(check_rectangle(dpitch, spitch, width));
	CHECK(settle(&kind, dst, src));
	return DEFAULT_CALL(cuMemcpy2DUnaligned_v2, &box);
}

RUNTIME_API_STREAM(cudaMemcpy2DAsync, 3020, 7000,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		enum cudaMemcpyKind kind, cudaStream_t stream),
	(dst, dpitch, src, spitch, width, height, kind, stream))
{
	CUDA_MEMCPY2D box = rectangle(dst, dpitch, src, spitch, width, height);

	CHECK(check_rectangle(dpitch, spitch, width));
	CHECK(settle(&kind, dst, src));
	return STREAM_CALL(cuMemcpy2DAsync_v2, &box, stream);
}

/* To an array at (w, h), w in bytes; `width` x `height` bytes. */
static cudaError_t into_array(cudaArray_t array, size_t w, size_t h, const void *source,
	size_t pitch, size_t width, size_t height, CUDA_MEMCPY2D *box)
{
	CHECK(runtime_ready());
	*box = rectangle(NULL, width, source, pitch, width, height);
	box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	box->dstArray = (CUarray)(void *)array;
	box->dstXInBytes = w;
	box->dstY = h;
	return sim_array_element(array) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t out_of_array(void *target, size_t pitch, cudaArray_const_t array, size_t w,
	size_t h, size_t width, size_t height, CUDA_MEMCPY2D *box)
{
	CHECK(runtime_ready());
	*box = rectangle(target, pitch, NULL, width, width, height);
	box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	box->srcArray = (CUarray)(uintptr_t)array;
	box->srcXInBytes = w;
	box->srcY = h;
	return sim_array_element(array) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

RUNTIME_API_DEFAULT(cudaMemcpy2DToArray, 3020, 7000,
	(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
		size_t width, size_t height, enum cudaMemcpyKind kind),
	(dst, wOffset, hOffset, src, spitch, width, height, kind))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(into_array(dst, wOffset, hOffset, src, spitch, width, height, &box));
	return DEFAULT_CALL(cuMemcpy2DUnaligned_v2, &box);
}

RUNTIME_API_DEFAULT(cudaMemcpy2DFromArray, 3020, 7000,
	(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
		size_t width, size_t height, enum cudaMemcpyKind kind),
	(dst, dpitch, src, wOffset, hOffset, width, height, kind))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(out_of_array(dst, dpitch, src, wOffset, hOffset, width, height, &box));
	return DEFAULT_CALL(cuMemcpy2DUnaligned_v2, &box);
}

RUNTIME_API_STREAM(cudaMemcpy2DToArrayAsync, 3020, 7000,
	(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
		size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
	(dst, wOffset, hOffset, src, spitch, width, height, kind, stream))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(into_array(dst, wOffset, hOffset, src, spitch, width, height, &box));
	return STREAM_CALL(cuMemcpy2DAsync_v2, &box, stream);
}

RUNTIME_API_STREAM(cudaMemcpy2DFromArrayAsync, 3020, 7000,
	(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
		size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
	(dst, dpitch, src, wOffset, hOffset, width, height, kind, stream))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(out_of_array(dst, dpitch, src, wOffset, hOffset, width, height, &box));
	return STREAM_CALL(cuMemcpy2DAsync_v2, &box, stream);
}

/* The old forms copy `count` bytes of one row. */
RUNTIME_API_DEFAULT(cudaMemcpyToArray, 3020, 7000,
	(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
		enum cudaMemcpyKind kind),
	(dst, wOffset, hOffset, src, count, kind))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(into_array(dst, wOffset, hOffset, src, count, count, 1, &box));
	return DEFAULT_CALL(cuMemcpy2DUnaligned_v2, &box);
}

RUNTIME_API_DEFAULT(cudaMemcpyFromArray, 3020, 7000,
	(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
		enum cudaMemcpyKind kind),
	(dst, src, wOffset, hOffset, count, kind))
{
	CUDA_MEMCPY2D box;

	(void)kind;
	CHECK(out_of_array(dst, count, src, wOffset, hOffset, count, 1, &box));
	return DEFAULT_CALL(cuMemcpy2DUnaligned_v2, &box);
}

cudaError_t runtime_box(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *box)
{
	const void *array = p->srcArray ? (const void *)p->srcArray : (const void *)p->dstArray;
	size_t element = array ? sim_array_element(array) : 1;

	if (element == 0)
		return cudaErrorInvalidResourceHandle;
	*box = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcPos.x * (p->srcArray ? element : 1),
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)p->srcPtr.ptr,
		.srcArray = (CUarray)(void *)p->srcArray,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x * (p->dstArray ? element : 1),
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)p->dstPtr.ptr,
		.dstArray = (CUarray)(void *)p->dstArray,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width * element,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
	return cudaSuccess;
}

RUNTIME_API_DEFAULT(cudaMemcpy3D, 3020, 7000, (const struct cudaMemcpy3DParms *p), (p))
{
	CUDA_MEMCPY3D box;

	CHECK(runtime_ready());
	CHECK(runtime_box(p, &box));
	return DEFAULT_CALL(cuMemcpy3D_v2, &box);
}

RUNTIME_API_STREAM(cudaMemcpy3DAsync, 3020, 7000,
	(const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, stream))
{
	CUDA_MEMCPY3D box;

	CHECK(runtime_ready());
	CHECK(runtime_box(p, &box));
	return STREAM_CALL(cuMemcpy3DAsync_v2, &box, stream);
}

RUNTIME_API_DEFAULT(
	cudaMemset, 3020, 7000, (void *devPtr, int value, size_t count), (devPtr, value, count))
{
	CHECK(runtime_ready());
	return DEFAULT_CALL(cuMemsetD8_v2, (CUdeviceptr)devPtr, (unsigned char)value, count);
}

RUNTIME_API_STREAM(cudaMemsetAsync, 3020, 7000,
	(void *devPtr, int value, size_t count, cudaStream_t stream),
	(devPtr, value, count, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(
		cuMemsetD8Async, (CUdeviceptr)devPtr, (unsigned char)value, count, stream);
}

RUNTIME_API_DEFAULT(cudaMemset2D, 3020, 7000,
	(void *devPtr, size_t pitch, int value, size_t width, size_t height),
	(devPtr, pitch, value, width, height))
{
	CHECK(runtime_ready());
	return DEFAULT_CALL(
		cuMemsetD2D8_v2, (CUdeviceptr)devPtr, pitch, (unsigned char)value, width, height);
}

RUNTIME_API_STREAM(cudaMemset2DAsync, 3020, 7000,
	(void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
	(devPtr, pitch, value, width, height, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuMemsetD2D8Async, (CUdeviceptr)devPtr, pitch, (unsigned char)value,
		width, height, stream);
}

/* A box is set slice by slice. */
static CUdeviceptr slice(struct cudaPitchedPtr pointer, size_t z)
{
	return (CUdeviceptr)pointer.ptr + z * pointer.pitch * pointer.ysize;
}

RUNTIME_API_DEFAULT(cudaMemset3D, 3020, 7000,
	(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent),
	(pitchedDevPtr, value, extent))
{
	CHECK(runtime_ready());
	for (size_t z = 0; z < extent.depth; z++)
		CHECK(DEFAULT_CALL(cuMemsetD2D8_v2, slice(pitchedDevPtr, z), pitchedDevPtr.pitch,
			(unsigned char)value, extent.width, extent.height));
	return cudaSuccess;
}

RUNTIME_API_STREAM(cudaMemset3DAsync, 3020, 7000,
	(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
		cudaStream_t stream),
	(pitchedDevPtr, value, extent, stream))
{
	CHECK(runtime_ready());
	for (size_t z = 0; z < extent.depth; z++)
		CHECK(STREAM_CALL(cuMemsetD2D8Async, slice(pitchedDevPtr, z), pitchedDevPtr.pitch,
			(unsigned char)value, extent.width, extent.height, stream));
	return cudaSuccess;
}
