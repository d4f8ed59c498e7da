/* SPDX-License-Identifier: MIT
 * Holds the callback ids and argument structs of preload/cuda/driver_functions.c against the real
 * headers, and reads arguments that are filled in through the real structs.
 */
#include "collector/trace_format.h"
#include "preload/cuda/driver_arguments.h"
#include "preload/cuda/driver_functions.h"

#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <string.h>

#if __has_include(<generated_cuda_meta.h>) && __has_include(<cupti.h>)
#define HAVE_CUPTI 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cupti.h>
#pragma GCC diagnostic pop

#define AT(ours, member, function, field)                                                  \
	static_assert(offsetof(struct ours, member) == offsetof(function##_params, field), \
		#function "." #field " lies elsewhere")
#define TWINS(MACRO, name, suffix) \
	MACRO(name);               \
	MACRO(name##suffix)

#define LAUNCH(call)                                              \
	AT(arguments_launch, function, call, f);                  \
	AT(arguments_launch, grid[0], call, gridDimX);            \
	AT(arguments_launch, block[0], call, blockDimX);          \
	AT(arguments_launch, shared_bytes, call, sharedMemBytes); \
	AT(arguments_launch, stream, call, hStream)
TWINS(LAUNCH, cuLaunchKernel, _ptsz);
TWINS(LAUNCH, cuLaunchCooperativeKernel, _ptsz);
#define LAUNCH_EX(call)                                \
	AT(arguments_launch_ex, config, call, config); \
	AT(arguments_launch_ex, function, call, f)
TWINS(LAUNCH_EX, cuLaunchKernelEx, _ptsz);
static_assert(
	offsetof(struct arguments_launch_config, block[2]) == offsetof(CUlaunchConfig, blockDimZ),
	"CUlaunchConfig");
static_assert(offsetof(struct arguments_launch_config, shared_bytes) ==
		      offsetof(CUlaunchConfig, sharedMemBytes),
	"CUlaunchConfig");
static_assert(offsetof(struct arguments_launch_config, stream) == offsetof(CUlaunchConfig, hStream),
	"CUlaunchConfig");
#define GRAPH(call) AT(arguments_graph_launch, stream, call, hStream)
TWINS(GRAPH, cuGraphLaunch, _ptsz);

#define COPY(call) AT(arguments_copy, bytes, call, ByteCount)
#define COPY_ASYNC(call) \
	COPY(call);      \
	AT(arguments_copy, stream, call, hStream)
TWINS(COPY, cuMemcpyHtoD_v2, _ptds);
TWINS(COPY, cuMemcpyDtoH_v2, _ptds);
TWINS(COPY, cuMemcpyDtoD_v2, _ptds);
TWINS(COPY, cuMemcpy, _ptds);
TWINS(COPY_ASYNC, cuMemcpyHtoDAsync_v2, _ptsz);
TWINS(COPY_ASYNC, cuMemcpyDtoHAsync_v2, _ptsz);
TWINS(COPY_ASYNC, cuMemcpyDtoDAsync_v2, _ptsz);
TWINS(COPY_ASYNC, cuMemcpyAsync, _ptsz);
#define COPY_ARRAY(call) AT(arguments_copy_array, bytes, call, ByteCount)
#define COPY_ARRAY_ASYNC(call) \
	COPY_ARRAY(call);      \
	AT(arguments_copy_array, stream, call, hStream)
TWINS(COPY_ARRAY, cuMemcpyDtoA_v2, _ptds);
TWINS(COPY_ARRAY, cuMemcpyAtoD_v2, _ptds);
TWINS(COPY_ARRAY, cuMemcpyHtoA_v2, _ptds);
TWINS(COPY_ARRAY, cuMemcpyAtoH_v2, _ptds);
TWINS(COPY_ARRAY_ASYNC, cuMemcpyHtoAAsync_v2, _ptsz);
TWINS(COPY_ARRAY_ASYNC, cuMemcpyAtoHAsync_v2, _ptsz);
#define COPY_ARRAYS(call) AT(arguments_copy_arrays, bytes, call, ByteCount)
TWINS(COPY_ARRAYS, cuMemcpyAtoA_v2, _ptds);
#define COPY_PEER(call) AT(arguments_copy_peer, bytes, call, ByteCount)
#define COPY_PEER_ASYNC(call) \
	COPY_PEER(call);      \
	AT(arguments_copy_peer, stream, call, hStream)
TWINS(COPY_PEER, cuMemcpyPeer, _ptds);
TWINS(COPY_PEER_ASYNC, cuMemcpyPeerAsync, _ptsz);
#define COPY_SHAPE(call) AT(arguments_copy_shape, shape, call, pCopy)
#define COPY_SHAPE_ASYNC(call) \
	COPY_SHAPE(call);      \
	AT(arguments_copy_shape, stream, call, hStream)
TWINS(COPY_SHAPE, cuMemcpy2D_v2, _ptds);
TWINS(COPY_SHAPE, cuMemcpy2DUnaligned_v2, _ptds);
TWINS(COPY_SHAPE, cuMemcpy3D_v2, _ptds);
TWINS(COPY_SHAPE, cuMemcpy3DPeer, _ptds);
TWINS(COPY_SHAPE_ASYNC, cuMemcpy2DAsync_v2, _ptsz);
TWINS(COPY_SHAPE_ASYNC, cuMemcpy3DAsync_v2, _ptsz);
TWINS(COPY_SHAPE_ASYNC, cuMemcpy3DPeerAsync, _ptsz);
static_assert(sizeof(struct copy_2d) == sizeof(CUDA_MEMCPY2D) &&
		      sizeof(struct copy_3d) == sizeof(CUDA_MEMCPY3D),
	"copies");
static_assert(sizeof(struct copy_3d) == sizeof(CUDA_MEMCPY3D_PEER), "copies");
static_assert(offsetof(struct copy_2d, source_type) == offsetof(CUDA_MEMCPY2D, srcMemoryType),
	"CUDA_MEMCPY2D");
static_assert(offsetof(struct copy_2d, target_type) == offsetof(CUDA_MEMCPY2D, dstMemoryType),
	"CUDA_MEMCPY2D");
static_assert(offsetof(struct copy_2d, width_bytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes),
	"CUDA_MEMCPY2D");
static_assert(offsetof(struct copy_3d, source_type) == offsetof(CUDA_MEMCPY3D, srcMemoryType),
	"CUDA_MEMCPY3D");
static_assert(offsetof(struct copy_3d, target_type) == offsetof(CUDA_MEMCPY3D, dstMemoryType),
	"CUDA_MEMCPY3D");
static_assert(offsetof(struct copy_3d, width_bytes) == offsetof(CUDA_MEMCPY3D, WidthInBytes),
	"CUDA_MEMCPY3D");
static_assert(offsetof(struct copy_3d, width_bytes) == offsetof(CUDA_MEMCPY3D_PEER, WidthInBytes),
	"CUDA_MEMCPY3D_PEER");
static_assert((int)MEMORY_HOST == (int)CU_MEMORYTYPE_HOST &&
		      (int)MEMORY_DEVICE == (int)CU_MEMORYTYPE_DEVICE &&
		      (int)MEMORY_ARRAY == (int)CU_MEMORYTYPE_ARRAY,
	"CUmemorytype");

#define SET(call) AT(arguments_memset, count, call, N)
#define SET_ASYNC(call) \
	SET(call);      \
	AT(arguments_memset, stream, call, hStream)
TWINS(SET, cuMemsetD8_v2, _ptds);
TWINS(SET, cuMemsetD16_v2, _ptds);
TWINS(SET, cuMemsetD32_v2, _ptds);
TWINS(SET_ASYNC, cuMemsetD8Async, _ptsz);
TWINS(SET_ASYNC, cuMemsetD16Async, _ptsz);
TWINS(SET_ASYNC, cuMemsetD32Async, _ptsz);
AT(arguments_memset, value, cuMemsetD8_v2, uc);
AT(arguments_memset, value, cuMemsetD16_v2, us);
AT(arguments_memset, value, cuMemsetD32_v2, ui);
#define SET_2D(call)                                 \
	AT(arguments_memset_2d, width, call, Width); \
	AT(arguments_memset_2d, height, call, Height)
#define SET_2D_ASYNC(call) \
	SET_2D(call);      \
	AT(arguments_memset_2d, stream, call, hStream)
TWINS(SET_2D, cuMemsetD2D8_v2, _ptds);
TWINS(SET_2D, cuMemsetD2D16_v2, _ptds);
TWINS(SET_2D, cuMemsetD2D32_v2, _ptds);
TWINS(SET_2D_ASYNC, cuMemsetD2D8Async, _ptsz);
TWINS(SET_2D_ASYNC, cuMemsetD2D16Async, _ptsz);
TWINS(SET_2D_ASYNC, cuMemsetD2D32Async, _ptsz);
AT(arguments_memset_2d, value, cuMemsetD2D8_v2, uc);
AT(arguments_memset_2d, value, cuMemsetD2D16_v2, us);
AT(arguments_memset_2d, value, cuMemsetD2D32_v2, ui);

#define ALLOC(call)                               \
	AT(arguments_alloc, address, call, dptr); \
	AT(arguments_alloc, bytes, call, bytesize)
#define ALLOC_HOST(call)                        \
	AT(arguments_alloc, address, call, pp); \
	AT(arguments_alloc, bytes, call, bytesize)
#define ALLOC_ASYNC(call) \
	ALLOC(call);      \
	AT(arguments_alloc, stream, call, hStream)
ALLOC(cuMemAlloc_v2);
ALLOC(cuMemAllocManaged);
ALLOC_HOST(cuMemAllocHost_v2);
ALLOC_HOST(cuMemHostAlloc);
TWINS(ALLOC_ASYNC, cuMemAllocAsync, _ptsz);
#define ALLOC_POOL(call)                                 \
	AT(arguments_alloc_pool, bytes, call, bytesize); \
	AT(arguments_alloc_pool, stream, call, hStream)
TWINS(ALLOC_POOL, cuMemAllocFromPoolAsync, _ptsz);
AT(arguments_alloc_pitch, pitch, cuMemAllocPitch_v2, pPitch);
AT(arguments_alloc_pitch, width_bytes, cuMemAllocPitch_v2, WidthInBytes);
AT(arguments_alloc_pitch, height, cuMemAllocPitch_v2, Height);
AT(arguments_register, address, cuMemHostRegister_v2, p);
AT(arguments_register, bytes, cuMemHostRegister_v2, bytesize);
AT(arguments_free, address, cuMemFree_v2, dptr);
AT(arguments_free, address, cuMemFreeHost, p);
AT(arguments_free, address, cuMemHostUnregister, p);
AT(arguments_free, address, cuMemRelease, handle);
AT(arguments_free, address, cuArrayDestroy, hArray);
AT(arguments_free, address, cuMipmappedArrayDestroy, hMipmappedArray);
AT(arguments_free, stream, cuMemFreeAsync, hStream);
AT(arguments_array, shape, cuArrayCreate_v2, pAllocateArray);
AT(arguments_array, shape, cuArray3DCreate_v2, pAllocateArray);
AT(arguments_array, shape, cuMipmappedArrayCreate, pMipmappedArrayDesc);
AT(arguments_array, levels, cuMipmappedArrayCreate, numMipmapLevels);
static_assert(offsetof(struct array_2d, channels) == offsetof(CUDA_ARRAY_DESCRIPTOR, NumChannels),
	"CUDA_ARRAY_DESCRIPTOR");
static_assert(offsetof(struct array_3d, format) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format),
	"CUDA_ARRAY3D_DESCRIPTOR");
static_assert(offsetof(struct array_3d, flags) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags),
	"CUDA_ARRAY3D_DESCRIPTOR");
AT(arguments_physical, bytes, cuMemCreate, size);
AT(arguments_physical, properties, cuMemCreate, prop);
static_assert(offsetof(struct physical_properties, location_type) ==
		      offsetof(CUmemAllocationProp, location.type),
	"CUmemAllocationProp");

AT(arguments_memory_query, free_bytes, cuMemGetInfo_v2, free);
AT(arguments_memory_query, total_bytes, cuMemGetInfo_v2, total);
AT(arguments_reserve, address, cuMemAddressReserve, ptr);
AT(arguments_reserve, bytes, cuMemAddressReserve, size);
AT(arguments_range, address, cuMemAddressFree, ptr);
AT(arguments_range, bytes, cuMemAddressFree, size);
AT(arguments_range, address, cuMemUnmap, ptr);
AT(arguments_range, bytes, cuMemUnmap, size);
AT(arguments_map, address, cuMemMap, ptr);
AT(arguments_map, bytes, cuMemMap, size);
AT(arguments_map, offset, cuMemMap, offset);
AT(arguments_map, handle, cuMemMap, handle);
AT(arguments_handle, handle, cuMemRetainAllocationHandle, handle);
AT(arguments_handle, address, cuMemRetainAllocationHandle, addr);
AT(arguments_handle, handle, cuMemImportFromShareableHandle, handle);

#define STREAM(call) AT(arguments_stream, stream, call, hStream)
TWINS(STREAM, cuStreamSynchronize, _ptsz);
TWINS(STREAM, cuStreamEndCapture, _ptsz);
TWINS(STREAM, cuStreamBeginCapture_v2, _ptsz);
#define RECORD(call)                              \
	AT(arguments_event, event, call, hEvent); \
	AT(arguments_event, stream, call, hStream)
TWINS(RECORD, cuEventRecord, _ptsz);
TWINS(RECORD, cuEventRecordWithFlags, _ptsz);
AT(arguments_event, event, cuEventSynchronize, hEvent);
#define WAIT(call)                                 \
	AT(arguments_wait, stream, call, hStream); \
	AT(arguments_wait, event, call, hEvent)
TWINS(WAIT, cuStreamWaitEvent, _ptsz);

#if CUPTI_API_VERSION >= 130000
#define BATCH(call)                                   \
	AT(arguments_copy_batch, bytes, call, sizes); \
	AT(arguments_copy_batch, count, call, count); \
	AT(arguments_copy_batch, stream, call, hStream)
TWINS(BATCH, cuMemcpyBatchAsync_v2, _ptsz);
AT(arguments_copy_batch_1, bytes, cuMemcpyBatchAsync, sizes);
AT(arguments_copy_batch_1, stream, cuMemcpyBatchAsync, hStream);
AT(arguments_copy_3d_batch, stream, cuMemcpy3DBatchAsync_v2, hStream);
AT(arguments_copy_3d_batch_1, stream, cuMemcpy3DBatchAsync, hStream);
#if CUPTI_API_VERSION >= 130500
AT(arguments_copy_attributes, bytes, cuMemcpyWithAttributesAsync, size);
AT(arguments_copy_attributes, stream, cuMemcpyWithAttributesAsync, hStream);
AT(arguments_copy_3d_attributes, stream, cuMemcpy3DWithAttributesAsync, hStream);
AT(arguments_stream, stream, cuStreamBeginRecaptureToGraph, hStream);
#endif
#endif

#define CALLS(X)                                \
	X(cuLaunchKernel)                       \
	X(cuLaunchKernel_ptsz)                  \
	X(cuLaunchKernelEx)                     \
	X(cuLaunchKernelEx_ptsz)                \
	X(cuLaunchCooperativeKernel)            \
	X(cuLaunchCooperativeKernel_ptsz)       \
	X(cuLaunchCooperativeKernelMultiDevice) \
	X(cuLaunch)                             \
	X(cuLaunchGrid)                         \
	X(cuLaunchGridAsync)                    \
	X(cuGraphLaunch)                        \
	X(cuGraphLaunch_ptsz)                   \
	X(cuMemcpyHtoD_v2)                      \
	X(cuMemcpyHtoD_v2_ptds)                 \
	X(cuMemcpyHtoDAsync_v2)                 \
	X(cuMemcpyHtoDAsync_v2_ptsz)            \
	X(cuMemcpyDtoH_v2)                      \
	X(cuMemcpyDtoH_v2_ptds)                 \
	X(cuMemcpyDtoHAsync_v2)                 \
	X(cuMemcpyDtoHAsync_v2_ptsz)            \
	X(cuMemcpyDtoD_v2)                      \
	X(cuMemcpyDtoD_v2_ptds)                 \
	X(cuMemcpyDtoDAsync_v2)                 \
	X(cuMemcpyDtoDAsync_v2_ptsz)            \
	X(cuMemcpy)                             \
	X(cuMemcpy_ptds)                        \
	X(cuMemcpyAsync)                        \
	X(cuMemcpyAsync_ptsz)                   \
	X(cuMemcpyDtoA_v2)                      \
	X(cuMemcpyDtoA_v2_ptds)                 \
	X(cuMemcpyAtoD_v2)                      \
	X(cuMemcpyAtoD_v2_ptds)                 \
	X(cuMemcpyHtoA_v2)                      \
	X(cuMemcpyHtoA_v2_ptds)                 \
	X(cuMemcpyHtoAAsync_v2)                 \
	X(cuMemcpyHtoAAsync_v2_ptsz)            \
	X(cuMemcpyAtoH_v2)                      \
	X(cuMemcpyAtoH_v2_ptds)                 \
	X(cuMemcpyAtoHAsync_v2)                 \
	X(cuMemcpyAtoHAsync_v2_ptsz)            \
	X(cuMemcpyAtoA_v2)                      \
	X(cuMemcpyAtoA_v2_ptds)                 \
	X(cuMemcpyPeer)                         \
	X(cuMemcpyPeer_ptds)                    \
	X(cuMemcpyPeerAsync)                    \
	X(cuMemcpyPeerAsync_ptsz)               \
	X(cuMemcpy2D_v2)                        \
	X(cuMemcpy2D_v2_ptds)                   \
	X(cuMemcpy2DUnaligned_v2)               \
	X(cuMemcpy2DUnaligned_v2_ptds)          \
	X(cuMemcpy2DAsync_v2)                   \
	X(cuMemcpy2DAsync_v2_ptsz)              \
	X(cuMemcpy3D_v2)                        \
	X(cuMemcpy3D_v2_ptds)                   \
	X(cuMemcpy3DAsync_v2)                   \
	X(cuMemcpy3DAsync_v2_ptsz)              \
	X(cuMemcpy3DPeer)                       \
	X(cuMemcpy3DPeer_ptds)                  \
	X(cuMemcpy3DPeerAsync)                  \
	X(cuMemcpy3DPeerAsync_ptsz)             \
	X(cuMemsetD8_v2)                        \
	X(cuMemsetD8_v2_ptds)                   \
	X(cuMemsetD8Async)                      \
	X(cuMemsetD8Async_ptsz)                 \
	X(cuMemsetD16_v2)                       \
	X(cuMemsetD16_v2_ptds)                  \
	X(cuMemsetD16Async)                     \
	X(cuMemsetD16Async_ptsz)                \
	X(cuMemsetD32_v2)                       \
	X(cuMemsetD32_v2_ptds)                  \
	X(cuMemsetD32Async)                     \
	X(cuMemsetD32Async_ptsz)                \
	X(cuMemsetD2D8_v2)                      \
	X(cuMemsetD2D8_v2_ptds)                 \
	X(cuMemsetD2D8Async)                    \
	X(cuMemsetD2D8Async_ptsz)               \
	X(cuMemsetD2D16_v2)                     \
	X(cuMemsetD2D16_v2_ptds)                \
	X(cuMemsetD2D16Async)                   \
	X(cuMemsetD2D16Async_ptsz)              \
	X(cuMemsetD2D32_v2)                     \
	X(cuMemsetD2D32_v2_ptds)                \
	X(cuMemsetD2D32Async)                   \
	X(cuMemsetD2D32Async_ptsz)              \
	X(cuMemAlloc_v2)                        \
	X(cuMemAllocPitch_v2)                   \
	X(cuMemAllocHost_v2)                    \
	X(cuMemHostAlloc)                       \
	X(cuMemAllocManaged)                    \
	X(cuMemAllocAsync)                      \
	X(cuMemAllocAsync_ptsz)                 \
	X(cuMemAllocFromPoolAsync)              \
	X(cuMemAllocFromPoolAsync_ptsz)         \
	X(cuMemHostRegister)                    \
	X(cuMemHostRegister_v2)                 \
	X(cuArrayCreate_v2)                     \
	X(cuArray3DCreate_v2)                   \
	X(cuMipmappedArrayCreate)               \
	X(cuMemCreate)                          \
	X(cuMemFree_v2)                         \
	X(cuMemFreeHost)                        \
	X(cuMemHostUnregister)                  \
	X(cuMemFreeAsync)                       \
	X(cuMemFreeAsync_ptsz)                  \
	X(cuArrayDestroy)                       \
	X(cuMipmappedArrayDestroy)              \
	X(cuMemRelease)                         \
	X(cuMemGetInfo_v2)                      \
	X(cuMemAddressReserve)                  \
	X(cuMemAddressFree)                     \
	X(cuMemMap)                             \
	X(cuMemUnmap)                           \
	X(cuMemRetainAllocationHandle)          \
	X(cuMemImportFromShareableHandle)       \
	X(cuCtxSynchronize)                     \
	X(cuStreamSynchronize)                  \
	X(cuStreamSynchronize_ptsz)             \
	X(cuEventSynchronize)                   \
	X(cuStreamWaitEvent)                    \
	X(cuStreamWaitEvent_ptsz)               \
	X(cuEventRecord)                        \
	X(cuEventRecord_ptsz)                   \
	X(cuEventRecordWithFlags)               \
	X(cuEventRecordWithFlags_ptsz)          \
	X(cuStreamBeginCapture)                 \
	X(cuStreamBeginCapture_ptsz)            \
	X(cuStreamBeginCapture_v2)              \
	X(cuStreamBeginCapture_v2_ptsz)         \
	X(cuStreamEndCapture)                   \
	X(cuStreamEndCapture_ptsz)
#if CUPTI_API_VERSION >= 22
#define CALLS_12_4(X)                  \
	X(cuStreamBeginCaptureToGraph) \
	X(cuStreamBeginCaptureToGraph_ptsz)
#else
#define CALLS_12_4(X)
#endif
#if CUPTI_API_VERSION >= 130000
#define CALLS_13(X)                     \
	X(cuMemcpyBatchAsync)           \
	X(cuMemcpyBatchAsync_ptsz)      \
	X(cuMemcpyBatchAsync_v2)        \
	X(cuMemcpyBatchAsync_v2_ptsz)   \
	X(cuMemcpy3DBatchAsync)         \
	X(cuMemcpy3DBatchAsync_ptsz)    \
	X(cuMemcpy3DBatchAsync_v2)      \
	X(cuMemcpy3DBatchAsync_v2_ptsz) \
	X(cuCtxSynchronize_v2)
#else
#define CALLS_13(X)
#endif
#define LATER_CALLS 6 /* than CUDA 13.0 */
#if CUPTI_API_VERSION >= 130500
#define CALLS_13_5(X)                         \
	X(cuMemcpyWithAttributesAsync)        \
	X(cuMemcpyWithAttributesAsync_ptsz)   \
	X(cuMemcpy3DWithAttributesAsync)      \
	X(cuMemcpy3DWithAttributesAsync_ptsz) \
	X(cuStreamBeginRecaptureToGraph)      \
	X(cuStreamBeginRecaptureToGraph_ptsz)
#else
#define CALLS_13_5(X)
#endif

static const struct {
	uint32_t id;
	const char *name;
} real_calls[] = {
#define X(name) { CUPTI_DRIVER_TRACE_CBID_##name, #name },
	CALLS(X) CALLS_12_4(X) CALLS_13(X) CALLS_13_5(X)
#undef X
		{ 271, "cuMemHostAlloc_v2" }, /* newer headers have only the number */
};

START_TEST(every_call_has_the_id_that_cupti_gives_it)
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof real_calls / sizeof *real_calls; i++) {
		struct driver_function *call = driver_function(real_calls[i].id);
		const char *name = real_calls[i].name;
		size_t length = strlen(name);
		bool twin = !strcmp(name + length - 5, "_ptsz") ||
			    !strcmp(name + length - 5, "_ptds");

		ck_assert_msg(call != NULL, "%s is not listened to", name);
		ck_assert_str_eq(call->traced.name, name);
		ck_assert_int_eq(call->traced.per_thread, twin);
		ck_assert_int_eq(call->traced.flags, TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK);
	}
	for (const uint16_t *id = driver_function_ids(); *id; id++)
		count++;
	if (CUPTI_API_VERSION >= 130000)
		ck_assert_uint_eq(count, sizeof real_calls / sizeof *real_calls +
						 (CUPTI_API_VERSION < 130500 ? LATER_CALLS : 0));
}
END_TEST

static struct driver_event read_call(uint32_t id, const void *arguments, bool done)
{
	struct driver_function *call = driver_function(id);
	struct driver_event event = { .detail = call->detail, .flags = call->flags };

	call->read(&event, call, arguments, done);
	return event;
}

START_TEST(a_launch_says_its_shape)
{
	cuLaunchKernel_params launch = { (CUfunction)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9, NULL,
		NULL };
	CUlaunchConfig config = { 2, 3, 4, 5, 6, 7, 8, (CUstream)9, NULL, 0 };
	cuLaunchKernelEx_params ex = { &config, (CUfunction)1, NULL, NULL };

	for (int i = 0; i < 2; i++) {
		struct driver_event event = i ? read_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
							&ex, true)
					      : read_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
							&launch, true);

		ck_assert_uint_eq(event.object, 1);
		ck_assert_uint_eq(event.grid[2], 4);
		ck_assert_uint_eq(event.block[0], 5);
		ck_assert_uint_eq(event.shared_bytes, 8);
		ck_assert_uint_eq(event.stream, 9);
	}
}
END_TEST

START_TEST(a_copy_says_its_bytes_and_its_path)
{
	cuMemcpyDtoHAsync_v2_params flat = { NULL, 0, 4096, (CUstream)5 };
	CUDA_MEMCPY3D shape = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.WidthInBytes = 10,
		.Height = 20,
		.Depth = 3 };
	cuMemcpy3DAsync_v2_params cube = { &shape, (CUstream)6 };
	struct driver_event event = read_call(
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, &flat, true);

	ck_assert_uint_eq(event.bytes, 4096);
	ck_assert_uint_eq(event.detail, TRACE_COPY_DTOH);
	ck_assert_uint_eq(event.stream, 5);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2, &cube, true);
	ck_assert_uint_eq(event.bytes, 600);
	ck_assert_uint_eq(event.detail, TRACE_COPY_ATOH);
	shape.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2, &cube, true);
	ck_assert_uint_eq(event.detail, TRACE_COPY_UNKNOWN);
}
END_TEST

START_TEST(a_memset_says_its_bytes_and_value)
{
	cuMemsetD16Async_params row = { 0, 0xabcd, 100, (CUstream)3 };
	cuMemsetD2D8_v2_params plane = { 0, 512, 0x7f, 100, 30 };
	struct driver_event event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async, &row, true);

	ck_assert_uint_eq(event.bytes, 200);
	ck_assert_uint_eq(event.detail, 0xabcd);
	ck_assert_uint_eq(event.stream, 3);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8_v2, &plane, true);
	ck_assert_uint_eq(event.bytes, 3000);
	ck_assert_uint_eq(event.detail, 0x7f);
}
END_TEST

START_TEST(memory_is_known_by_its_address_once_it_is_there)
{
	CUdeviceptr address = 0x7000;
	cuMemAlloc_v2_params alloc = { &address, 1 << 20 };
	CUmemAllocationProp place = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemGenericAllocationHandle handle = 0x55;
	cuMemCreate_params create = { &handle, 2 << 20, &place, 0 };
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = 8, .Height = 4, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2
	};
	CUmipmappedArray mipmaps = (CUmipmappedArray)0x66;
	cuMipmappedArrayCreate_params array = { &mipmaps, &shape, 2 };
	struct driver_event event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &alloc, true);

	ck_assert_uint_eq(event.object, 0x7000);
	ck_assert_uint_eq(event.bytes, 1 << 20);
	ck_assert_uint_eq(event.detail, TRACE_MEMORY_DEVICE);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &alloc, false);
	ck_assert_uint_eq(event.object, 0);
	ck_assert_uint_eq(event.bytes, 1 << 20);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemCreate, &create, true);
	ck_assert_uint_eq(event.object, 0x55);
	ck_assert_uint_eq(event.flags, TRACE_MEMORY_MAPPED);
	ck_assert_uint_eq(event.detail, TRACE_MEMORY_DEVICE);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMipmappedArrayCreate, &array, true);
	ck_assert_uint_eq(event.object, 0x66);
	ck_assert_uint_eq(event.bytes, 8 * 4 * 8 + 4 * 2 * 8);
}
END_TEST

START_TEST(mappings_say_where_and_of_what)
{
	CUdeviceptr address = 0x7000;
	CUmemGenericAllocationHandle handle = 0x55;
	cuMemAddressReserve_params reserve = { &address, 8 << 20, 0, 0, 0 };
	cuMemMap_params map = { 0x7000, 2 << 20, 0, 0x55, 0 };
	cuMemUnmap_params unmap = { 0x7000, 4 << 20 };
	cuMemRetainAllocationHandle_params retain = { &handle, (void *)0x7008 };
	struct driver_event event = read_call(
		CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve, &reserve, true);

	ck_assert_uint_eq(event.object, 0x7000);
	ck_assert_uint_eq(event.bytes, 8 << 20);
	ck_assert_uint_eq(event.detail, TRACE_MAPPING_RESERVE);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve, &reserve, false);
	ck_assert_uint_eq(event.object, 0);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemMap, &map, true);
	ck_assert_uint_eq(event.object, 0x7000);
	ck_assert_uint_eq(event.bytes, 2 << 20);
	ck_assert_uint_eq(event.handle, 0x55);
	ck_assert_uint_eq(event.detail, TRACE_MAPPING_MAP);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemUnmap, &unmap, true);
	ck_assert_uint_eq(event.bytes, 4 << 20);
	ck_assert_uint_eq(event.handle, 0);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle, &retain, true);
	ck_assert_uint_eq(event.object, 0x7008);
	ck_assert_uint_eq(event.handle, 0x55);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuMemRetainAllocationHandle, &retain, false);
	ck_assert_uint_eq(event.handle, 0);
}
END_TEST

START_TEST(waits_say_for_what)
{
	cuStreamWaitEvent_params wait = { (CUstream)7, (CUevent)8, 0 };
	cuEventRecord_params record = { (CUevent)9, (CUstream)10 };
	struct driver_event event = read_call(
		CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &wait, true);

	ck_assert_uint_eq(event.stream, 7);
	ck_assert_uint_eq(event.object, 8);
	ck_assert_uint_eq(event.detail, TRACE_SYNC_STREAM_WAIT);
	event = read_call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &record, true);
	ck_assert_uint_eq(event.object, 9);
	ck_assert_uint_eq(event.stream, 10);
	ck_assert_uint_eq(event.detail, TRACE_EVENT_RECORD);
}
END_TEST
#endif

START_TEST(other_ids_are_not_ours)
{
	ck_assert_ptr_null(driver_function(0));
	ck_assert_ptr_null(driver_function(5000));
	ck_assert_ptr_null(driver_function(driver_timed_ids[0]));
}
END_TEST

static void fill(void)
{
	driver_function_ids();
}

int main(void)
{
	Suite *suite = suite_create("driver calls");
	TCase *cases = tcase_create("driver calls");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, fill, NULL);
	tcase_add_test(cases, other_ids_are_not_ours);
#ifdef HAVE_CUPTI
	tcase_add_test(cases, every_call_has_the_id_that_cupti_gives_it);
	tcase_add_test(cases, a_launch_says_its_shape);
	tcase_add_test(cases, a_copy_says_its_bytes_and_its_path);
	tcase_add_test(cases, a_memset_says_its_bytes_and_value);
	tcase_add_test(cases, memory_is_known_by_its_address_once_it_is_there);
	tcase_add_test(cases, mappings_say_where_and_of_what);
	tcase_add_test(cases, waits_say_for_what);
#else
	fputs("SKIP: no CUPTI headers; the ids and arguments of driver calls were not checked\n",
		stderr);
#endif
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
