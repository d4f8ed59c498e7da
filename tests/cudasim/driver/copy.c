/* The driver API: copies and sets. */
#include <string.h>

#include "driver/driver.h"

struct op copy_op(void *target, const void *source, size_t bytes, bool async)
{
	return (struct op){
		.kind = SIM_COPY,
		.node_kind = SIM_NODE_COPY,
		.copy = {
			.target = target,
			.source = source,
			.width = bytes,
			.rows = 1,
			.slices = 1,
			.async = async,
		},
	};
}

CUresult copy_submit(const struct op *op, CUstream handle)
{
	struct op complete = *op;
	struct sim_stream *stream;

	TRY(stream_resolve(handle, &stream));
	if (!op->copy.async)
		TRY(capture_forbids_stream(stream));
	TRY(copy_classify(&complete.copy));
	TRY(submit(stream, &complete));
	if (!stream->capture &&
		(!op->copy.async || complete.copy.target_memory == SIM_MEMORY_PAGEABLE))
		stream_wait(stream);
	return CUDA_SUCCESS;
}

static CUresult copy_now(void *target, const void *source, size_t bytes)
{
	struct op op = copy_op(target, source, bytes, false);

	return copy_submit(&op, NULL);
}

static CUresult copy_later(void *target, const void *source, size_t bytes, CUstream stream)
{
	struct op op = copy_op(target, source, bytes, true);

	return copy_submit(&op, stream);
}

DRIVER_API_DEFAULT(
	cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), (dst, src, ByteCount))
{
	return copy_now((void *)dst, (const void *)src, ByteCount);
}

DRIVER_API_DEFAULT(cuMemcpyHtoD_v2, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
	(dstDevice, srcHost, ByteCount))
{
	return copy_now((void *)dstDevice, srcHost, ByteCount);
}

DRIVER_API_DEFAULT(cuMemcpyDtoH_v2, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
	(dstHost, srcDevice, ByteCount))
{
	return copy_now(dstHost, (const void *)srcDevice, ByteCount);
}

DRIVER_API_DEFAULT(cuMemcpyDtoD_v2,
	(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
	(dstDevice, srcDevice, ByteCount))
{
	return copy_now((void *)dstDevice, (const void *)srcDevice, ByteCount);
}

DRIVER_API_DEFAULT(cuMemcpyPeer,
	(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
		size_t ByteCount),
	(dstDevice, dstContext, srcDevice, srcContext, ByteCount))
{
	(void)dstContext; /* addresses are unified */
	(void)srcContext;
	return copy_now((void *)dstDevice, (const void *)srcDevice, ByteCount);
}

DRIVER_API_STREAM(cuMemcpyAsync,
	(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
	(dst, src, ByteCount, hStream))
{
	return copy_later((void *)dst, (const void *)src, ByteCount, hStream);
}

DRIVER_API_STREAM(cuMemcpyHtoDAsync_v2,
	(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
	(dstDevice, srcHost, ByteCount, hStream))
{
	return copy_later((void *)dstDevice, srcHost, ByteCount, hStream);
}

DRIVER_API_STREAM(cuMemcpyDtoHAsync_v2,
	(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
	(dstHost, srcDevice, ByteCount, hStream))
{
	return copy_later(dstHost, (const void *)srcDevice, ByteCount, hStream);
}

DRIVER_API_STREAM(cuMemcpyDtoDAsync_v2,
	(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
	(dstDevice, srcDevice, ByteCount, hStream))
{
	return copy_later((void *)dstDevice, (const void *)srcDevice, ByteCount, hStream);
}

DRIVER_API_STREAM(cuMemcpyPeerAsync,
	(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
		size_t ByteCount, CUstream hStream),
	(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream))
{
	(void)dstContext;
	(void)srcContext;
	return copy_later((void *)dstDevice, (const void *)srcDevice, ByteCount, hStream);
}

/* One end of a box copy: where it begins and its strides. */
struct end {
	char *address;
	size_t pitch, slice;
	bool array;
};

static CUresult array_end(CUarray handle, size_t x_bytes, size_t y, size_t z, struct end *end)
{
	const struct array *array = HANDLE(array, handle);

	if (!array_valid(array))
		return CUDA_ERROR_INVALID_HANDLE;
	end->pitch = array->pitch;
	end->slice = array->pitch * (array->height ? array->height : 1);
	end->address = (char *)array->memory + z * end->slice + y * end->pitch + x_bytes;
	end->array = true;
	return CUDA_SUCCESS;
}

static CUresult linear_end(const void *base, size_t pitch, size_t height, size_t x_bytes, size_t y,
	size_t z, struct end *end)
{
	end->pitch = pitch;
	end->slice = pitch * height;
	end->address = (char *)(uintptr_t)base + z * end->slice + y * end->pitch + x_bytes;
	end->array = false;
	return CUDA_SUCCESS;
}

static const void *linear_base(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? host : (const void *)device;
}

static CUresult source_end(const CUDA_MEMCPY3D *box, struct end *end)
{
	if (box->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		return array_end(box->srcArray, box->srcXInBytes, box->srcY, box->srcZ, end);
	return linear_end(linear_base(box->srcMemoryType, box->srcHost, box->srcDevice),
		box->srcPitch, box->srcHeight, box->srcXInBytes, box->srcY, box->srcZ, end);
}

static CUresult target_end(const CUDA_MEMCPY3D *box, struct end *end)
{
	if (box->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return array_end(box->dstArray, box->dstXInBytes, box->dstY, box->dstZ, end);
	return linear_end(linear_base(box->dstMemoryType, box->dstHost, box->dstDevice),
		box->dstPitch, box->dstHeight, box->dstXInBytes, box->dstY, box->dstZ, end);
}

CUresult box_op(const CUDA_MEMCPY3D *box, bool async, struct op *op)
{
	struct end source, target;

	TRY(source_end(box, &source));
	TRY(target_end(box, &target));
	*op = copy_op(target.address, source.address, box->WidthInBytes, async);
	op->copy.rows = box->Height;
	op->copy.slices = box->Depth;
	op->copy.target_pitch = target.pitch;
	op->copy.source_pitch = source.pitch;
	op->copy.target_slice = target.slice;
	op->copy.source_slice = source.slice;
	op->copy.target_array = target.array;
	op->copy.source_array = source.array;
	return CUDA_SUCCESS;
}

static CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D *rectangle)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = rectangle->srcXInBytes,
		.srcY = rectangle->srcY,
		.srcMemoryType = rectangle->srcMemoryType,
		.srcHost = rectangle->srcHost,
		.srcDevice = rectangle->srcDevice,
		.srcArray = rectangle->srcArray,
		.srcPitch = rectangle->srcPitch,
		.dstXInBytes = rectangle->dstXInBytes,
		.dstY = rectangle->dstY,
		.dstMemoryType = rectangle->dstMemoryType,
		.dstHost = rectangle->dstHost,
		.dstDevice = rectangle->dstDevice,
		.dstArray = rectangle->dstArray,
		.dstPitch = rectangle->dstPitch,
		.WidthInBytes = rectangle->WidthInBytes,
		.Height = rectangle->Height,
		.Depth = 1,
	};
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, bool async, CUstream stream)
{
	struct op op;

	TRY(box_op(box, async, &op));
	return copy_submit(&op, stream);
}

DRIVER_API_DEFAULT(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *pCopy), (pCopy))
{
	CUDA_MEMCPY3D box = box_of(pCopy);

	return copy_box(&box, false, NULL);
}

DRIVER_API_DEFAULT(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *pCopy), (pCopy))
{
	CUDA_MEMCPY3D box = box_of(pCopy);

	return copy_box(&box, false, NULL);
}

DRIVER_API_STREAM(
	cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), (pCopy, hStream))
{
	CUDA_MEMCPY3D box = box_of(pCopy);

	return copy_box(&box, true, hStream);
}

DRIVER_API_DEFAULT(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *pCopy), (pCopy))
{
	return copy_box(pCopy, false, NULL);
}

DRIVER_API_STREAM(
	cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), (pCopy, hStream))
{
	return copy_box(pCopy, true, hStream);
}

struct op set_op(CUdeviceptr target, size_t pitch, uint32_t value, unsigned element, size_t width,
	size_t rows)
{
	return (struct op){
		.kind = SIM_SET,
		.node_kind = SIM_NODE_SET,
		.set = {
			.target = (char *)target,
			.pitch = pitch,
			.value = value,
			.element = element,
			.width = width,
			.rows = rows,
		},
	};
}

static CUresult set_submit(struct op op, bool async, CUstream handle)
{
	struct sim_stream *stream;

	TRY(stream_resolve(handle, &stream));
	op.set.async = async;
	if (!async)
		TRY(capture_forbids_stream(stream));
	TRY(set_classify(&op.set));
	return submit(stream, &op);
}

#define SET_API(bits, type)                                                                        \
	DRIVER_API_DEFAULT(cuMemsetD##bits##_v2, (CUdeviceptr dstDevice, type value, size_t N),    \
		(dstDevice, value, N))                                                             \
	{                                                                                          \
		return set_submit(set_op(dstDevice, 0, value, bits / 8, N, 1), false, NULL);       \
	}                                                                                          \
	DRIVER_API_STREAM(cuMemsetD##bits##Async,                                                  \
		(CUdeviceptr dstDevice, type value, size_t N, CUstream hStream),                   \
		(dstDevice, value, N, hStream))                                                    \
	{                                                                                          \
		return set_submit(set_op(dstDevice, 0, value, bits / 8, N, 1), true, hStream);     \
	}                                                                                          \
	DRIVER_API_DEFAULT(cuMemsetD2D##bits##_v2,                                                 \
		(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height), \
		(dstDevice, dstPitch, value, Width, Height))                                       \
	{                                                                                          \
		return set_submit(                                                                 \
			set_op(dstDevice, dstPitch, value, bits / 8, Width, Height), false, NULL); \
	}                                                                                          \
	DRIVER_API_STREAM(cuMemsetD2D##bits##Async,                                                \
		(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height,  \
			CUstream hStream),                                                         \
		(dstDevice, dstPitch, value, Width, Height, hStream))                              \
	{                                                                                          \
		return set_submit(set_op(dstDevice, dstPitch, value, bits / 8, Width, Height),     \
			true, hStream);                                                            \
	}

/* The generated structs call the value uc, us and ui; its place is what counts. */
SET_API(8, unsigned char)
SET_API(16, unsigned short)
SET_API(32, unsigned int)
