/* SPDX-License-Identifier: MIT
 * driver_calls.c: see driver_calls.h. A table with a line for each function, and a reader for each shape of arguments.
 */
#include "driver_calls.h"

#include "cuda_array.h"
#include "driver_arguments.h"

#include <string.h>

#define CALLS 1024u /* callback ids are below that */

#define READER(name) static void name(struct driver_event *event, const struct driver_call *call, const void *arguments, bool done)
#define UNUSED (void)event, (void)call, (void)arguments, (void)done

/* ---- launches ---- */

static void set_shape(struct driver_event *event, const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes)
{
	memcpy(event->grid, grid, sizeof event->grid);
	memcpy(event->block, block, sizeof event->block);
	event->shared_bytes = shared_bytes;
}

READER(read_launch)
{
	const struct arguments_launch *launch = arguments;

	UNUSED;
	set_shape(event, launch->grid, launch->block, launch->shared_bytes);
	event->object = launch->function;
	event->stream = launch->stream;
}

READER(read_launch_ex)
{
	const struct arguments_launch_ex *launch = arguments;

	UNUSED;
	event->object = launch->function;
	if (!launch->config)
		return;
	set_shape(event, launch->config->grid, launch->config->block, launch->config->shared_bytes);
	event->stream = launch->config->stream;
}

/* cuLaunch of old, and the launch on several devices: what they launch is in the records of the GPU. */
READER(read_nothing)
{
	UNUSED;
}

READER(read_graph_launch)
{
	const struct arguments_graph_launch *launch = arguments;

	UNUSED;
	event->object = launch->exec;
	event->stream = launch->stream;
}

/* ---- copies ---- */

READER(read_copy)
{
	const struct arguments_copy *copy = arguments;

	UNUSED;
	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

READER(read_copy_array)
{
	const struct arguments_copy_array *copy = arguments;

	UNUSED;
	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

READER(read_copy_arrays)
{
	const struct arguments_copy_arrays *copy = arguments;

	UNUSED;
	event->bytes = copy->bytes;
}

READER(read_copy_peer)
{
	const struct arguments_copy_peer *copy = arguments;

	UNUSED;
	event->bytes = copy->bytes;
	if (call->streamed)
		event->stream = copy->stream;
}

/* Of memory types; unknown where either may be anything. */
static uint32_t copy_kind(uint32_t source, uint32_t target)
{
	static const uint8_t kinds[4][4] = {
		[MEMORY_HOST] = {[MEMORY_HOST] = TRACE_COPY_HTOH, [MEMORY_DEVICE] = TRACE_COPY_HTOD, [MEMORY_ARRAY] = TRACE_COPY_HTOA},
		[MEMORY_DEVICE] = {[MEMORY_HOST] = TRACE_COPY_DTOH, [MEMORY_DEVICE] = TRACE_COPY_DTOD, [MEMORY_ARRAY] = TRACE_COPY_DTOA},
		[MEMORY_ARRAY] = {[MEMORY_HOST] = TRACE_COPY_ATOH, [MEMORY_DEVICE] = TRACE_COPY_ATOD, [MEMORY_ARRAY] = TRACE_COPY_ATOA},
	};

	return source < 4 && target < 4 ? kinds[source][target] : (uint32_t)TRACE_COPY_UNKNOWN;
}

READER(read_copy_2d)
{
	const struct arguments_copy_shape *copy = arguments;
	const struct copy_2d *shape = copy->shape;

	UNUSED;
	if (call->streamed)
		event->stream = copy->stream;
	if (!shape)
		return;
	event->bytes = volume_bytes(shape->width_bytes, shape->height, 1);
	event->detail = copy_kind(shape->source_type, shape->target_type);
}

READER(read_copy_3d)
{
	const struct arguments_copy_shape *copy = arguments;
	const struct copy_3d *shape = copy->shape;

	UNUSED;
	if (call->streamed)
		event->stream = copy->stream;
	if (!shape)
		return;
	event->bytes = volume_bytes(shape->width_bytes, shape->height, shape->depth);
	if (call->detail == TRACE_COPY_UNKNOWN)
		event->detail = copy_kind(shape->source_type, shape->target_type);
}

static uint64_t sum(const size_t *bytes, uint64_t count)
{
	uint64_t all = 0;

	for (uint64_t i = 0; bytes && i < count; i++)
		all += bytes[i];
	return all;
}

READER(read_copy_batch)
{
	const struct arguments_copy_batch *copy = arguments;

	UNUSED;
	event->bytes = sum(copy->bytes, copy->count);
	event->stream = copy->stream;
}

READER(read_copy_batch_1)
{
	const struct arguments_copy_batch_1 *copy = arguments;

	UNUSED;
	event->bytes = sum(copy->bytes, copy->count);
	event->stream = copy->stream;
}

READER(read_copy_3d_batch)
{
	UNUSED;
	event->stream = ((const struct arguments_copy_3d_batch *)arguments)->stream;
}

READER(read_copy_3d_batch_1)
{
	UNUSED;
	event->stream = ((const struct arguments_copy_3d_batch_1 *)arguments)->stream;
}

/* ---- memsets ---- */

READER(read_set_8)
{
	const struct arguments_set_8 *set = arguments;

	UNUSED;
	event->detail = set->value;
	event->bytes = set->count;
	if (call->streamed)
		event->stream = set->stream;
}

READER(read_set_16)
{
	const struct arguments_set_16 *set = arguments;

	UNUSED;
	event->detail = set->value;
	event->bytes = volume_bytes(set->count, 2, 1);
	if (call->streamed)
		event->stream = set->stream;
}

READER(read_set_32)
{
	const struct arguments_set_32 *set = arguments;

	UNUSED;
	event->detail = set->value;
	event->bytes = volume_bytes(set->count, 4, 1);
	if (call->streamed)
		event->stream = set->stream;
}

/* call->flags: bytes of a value. Little-endian, so the narrow ones are the low bytes. */
READER(read_set_2d)
{
	const struct arguments_set_2d *set = arguments;

	UNUSED;
	event->detail = call->flags == 4 ? set->value : set->value & ((1u << 8 * call->flags) - 1);
	event->bytes = volume_bytes(set->width, set->height, call->flags);
	if (call->streamed)
		event->stream = set->stream;
}

/* ---- memory ---- */

READER(read_alloc)
{
	const struct arguments_alloc *alloc = arguments;

	UNUSED;
	event->bytes = alloc->bytes;
	event->object = done ? *alloc->address : 0;
	if (call->streamed)
		event->stream = alloc->stream;
}

READER(read_alloc_pitch)
{
	const struct arguments_alloc_pitch *alloc = arguments;

	UNUSED;
	event->bytes = volume_bytes(done ? *alloc->pitch : alloc->width_bytes, alloc->height, 1);
	event->object = done ? *alloc->address : 0;
}

READER(read_alloc_pool)
{
	const struct arguments_alloc_pool *alloc = arguments;

	UNUSED;
	event->bytes = alloc->bytes;
	event->object = done ? *alloc->address : 0;
	event->stream = alloc->stream;
}

READER(read_register)
{
	const struct arguments_register *memory = arguments;

	UNUSED;
	event->bytes = memory->bytes;
	event->object = done ? memory->address : 0;
}

READER(read_free)
{
	const struct arguments_free *memory = arguments;

	UNUSED;
	event->object = memory->address;
	if (call->streamed)
		event->stream = memory->stream;
}

/* CUarray_format as the runtime would say it. All zero: not known. */
static struct cuda_channels texel_of(uint32_t format, uint32_t channels)
{
	static const uint8_t normalized[] = {8, 16, 32, 16, 32, 64}; /* bits of UNORM_INT8X1, 8X2, 8X4, 16X1 ... */
	struct cuda_channels texel = {0, 0, 0, 0, 0};

	if (format == 0x01 || format == 0x08) /* CU_AD_FORMAT_UNSIGNED_INT8, SIGNED_INT8 */
		texel.x = (int)(8 * channels);
	else if (format == 0x02 || format == 0x09 || format == 0x10) /* ..._INT16, HALF */
		texel.x = (int)(16 * channels);
	else if (format == 0x03 || format == 0x0a || format == 0x20) /* ..._INT32, FLOAT */
		texel.x = (int)(32 * channels);
	else if (format >= 0xc0 && format <= 0xcb) /* UNORM..., SNORM... */
		texel.x = normalized[(format - 0xc0) % 6];
	else if (format >= 0x91 && format <= 0x9e) /* BC1 to BC7, in the runtime's order */
		texel.kind = CUDA_FORMAT_BLOCKS_FIRST + (int)(format - 0x91);
	else if (format == 0xb0)
		texel.kind = CUDA_FORMAT_NV12;
	else if (format == 0x50)
		texel.kind = CUDA_FORMAT_1010102;
	return texel;
}

READER(read_array)
{
	const struct arguments_array *array = arguments;
	const struct array_2d *shape = array->shape;

	UNUSED;
	event->object = done ? *array->array : 0;
	if (shape) {
		struct cuda_channels texel = texel_of(shape->format, shape->channels);

		event->bytes = array_bytes(&texel, (struct cuda_extent){shape->width, shape->height, 0}, 1, 0);
	}
}

static void read_array_levels(struct driver_event *event, const struct arguments_array *array, bool done, uint32_t levels)
{
	const struct array_3d *shape = array->shape;

	event->object = done ? *array->array : 0;
	if (shape) {
		struct cuda_channels texel = texel_of(shape->format, shape->channels);

		event->bytes = array_bytes(&texel, (struct cuda_extent){shape->width, shape->height, shape->depth}, levels, shape->flags);
	}
}

READER(read_array_3d)
{
	UNUSED;
	read_array_levels(event, arguments, done, 1);
}

READER(read_array_mipmapped)
{
	const struct arguments_array *array = arguments;

	UNUSED;
	read_array_levels(event, array, done, array->levels);
}

/* Physical memory, known by its handle; that it is mapped somewhere takes no more. */
READER(read_physical)
{
	const struct arguments_physical *memory = arguments;

	UNUSED;
	event->bytes = memory->bytes;
	event->object = done ? *memory->handle : 0;
	if (memory->properties && memory->properties->location_type > 1)
		event->detail = TRACE_MEMORY_PINNED;
}

/* ---- waiting, capturing ---- */

READER(read_stream)
{
	UNUSED;
	event->stream = ((const struct arguments_stream *)arguments)->stream;
}

READER(read_event)
{
	const struct arguments_event *wait = arguments;

	UNUSED;
	event->object = wait->event;
	if (call->streamed)
		event->stream = wait->stream;
}

READER(read_wait)
{
	const struct arguments_wait *wait = arguments;

	UNUSED;
	event->stream = wait->stream;
	event->object = wait->event;
}

/* ---- the table ---- */

#define ENTRY(function, type_, twin, kind_, detail_, flags_, streamed_, reader)                                                       \
	{                                                                                                                             \
		.site = {.name = function, .type = type_, .flags = TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK, .per_thread = twin},      \
		.kind = kind_, .detail = detail_, .flags = flags_, .streamed = streamed_, .read = reader                              \
	}
#define LAUNCH(id, name, twin, reader) [id] = ENTRY(name, CALL_LAUNCH, twin, DRIVER_LAUNCH, 0, 0, 1, reader)
#define GRAPH(id, name, twin) [id] = ENTRY(name, CALL_LAUNCH, twin, DRIVER_GRAPH_LAUNCH, 0, 0, 1, read_graph_launch)
#define COPY(id, name, twin, kind, streamed, reader) [id] = ENTRY(name, CALL_PLAIN, twin, DRIVER_COPY, TRACE_COPY_##kind, 0, streamed, reader)
#define SET(id, name, twin, width, streamed, reader) [id] = ENTRY(name, CALL_PLAIN, twin, DRIVER_SET, 0, width, streamed, reader)
#define ALLOC(id, name, twin, kind, flags, streamed, reader) \
	[id] = ENTRY(name, CALL_ALLOC, twin, DRIVER_ALLOC, TRACE_MEMORY_##kind, flags, streamed, reader)
#define FREE(id, name, twin, kind, flags, streamed) [id] = ENTRY(name, CALL_RELEASE, twin, DRIVER_FREE, TRACE_MEMORY_##kind, flags, streamed, read_free)
#define SYNC(id, name, twin, type, streamed, reader) [id] = ENTRY(name, CALL_PLAIN, twin, DRIVER_SYNC, type, 0, streamed, reader)
#define BEGIN(id, name, twin) [id] = ENTRY(name, CALL_PLAIN, twin, DRIVER_CAPTURE_BEGIN, 0, 0, 1, read_stream)
#define END(id, name, twin) [id] = ENTRY(name, CALL_PLAIN, twin, DRIVER_CAPTURE_END, 0, 0, 1, read_stream)

static struct driver_call calls[CALLS] = {
	LAUNCH(115, "cuLaunch", 0, read_nothing),
	LAUNCH(116, "cuLaunchGrid", 0, read_nothing),
	LAUNCH(117, "cuLaunchGridAsync", 0, read_nothing),
	LAUNCH(307, "cuLaunchKernel", 0, read_launch),
	LAUNCH(442, "cuLaunchKernel_ptsz", 1, read_launch),
	LAUNCH(477, "cuLaunchCooperativeKernel", 0, read_launch),
	LAUNCH(478, "cuLaunchCooperativeKernel_ptsz", 1, read_launch),
	LAUNCH(480, "cuLaunchCooperativeKernelMultiDevice", 0, read_nothing),
	LAUNCH(652, "cuLaunchKernelEx", 0, read_launch_ex),
	LAUNCH(653, "cuLaunchKernelEx_ptsz", 1, read_launch_ex),
	GRAPH(514, "cuGraphLaunch", 0),
	GRAPH(515, "cuGraphLaunch_ptsz", 1),

	COPY(276, "cuMemcpyHtoD_v2", 0, HTOD, 0, read_copy),
	COPY(397, "cuMemcpyHtoD_v2_ptds", 1, HTOD, 0, read_copy),
	COPY(277, "cuMemcpyHtoDAsync_v2", 0, HTOD, 1, read_copy),
	COPY(421, "cuMemcpyHtoDAsync_v2_ptsz", 1, HTOD, 1, read_copy),
	COPY(278, "cuMemcpyDtoH_v2", 0, DTOH, 0, read_copy),
	COPY(398, "cuMemcpyDtoH_v2_ptds", 1, DTOH, 0, read_copy),
	COPY(279, "cuMemcpyDtoHAsync_v2", 0, DTOH, 1, read_copy),
	COPY(422, "cuMemcpyDtoHAsync_v2_ptsz", 1, DTOH, 1, read_copy),
	COPY(280, "cuMemcpyDtoD_v2", 0, DTOD, 0, read_copy),
	COPY(399, "cuMemcpyDtoD_v2_ptds", 1, DTOD, 0, read_copy),
	COPY(281, "cuMemcpyDtoDAsync_v2", 0, DTOD, 1, read_copy),
	COPY(423, "cuMemcpyDtoDAsync_v2_ptsz", 1, DTOD, 1, read_copy),
	COPY(305, "cuMemcpy", 0, UNKNOWN, 0, read_copy),
	COPY(408, "cuMemcpy_ptds", 1, UNKNOWN, 0, read_copy),
	COPY(306, "cuMemcpyAsync", 0, UNKNOWN, 1, read_copy),
	COPY(418, "cuMemcpyAsync_ptsz", 1, UNKNOWN, 1, read_copy),
	COPY(285, "cuMemcpyDtoA_v2", 0, DTOA, 0, read_copy_array),
	COPY(400, "cuMemcpyDtoA_v2_ptds", 1, DTOA, 0, read_copy_array),
	COPY(284, "cuMemcpyAtoD_v2", 0, ATOD, 0, read_copy_array),
	COPY(401, "cuMemcpyAtoD_v2_ptds", 1, ATOD, 0, read_copy_array),
	COPY(292, "cuMemcpyHtoA_v2", 0, HTOA, 0, read_copy_array),
	COPY(402, "cuMemcpyHtoA_v2_ptds", 1, HTOA, 0, read_copy_array),
	COPY(293, "cuMemcpyHtoAAsync_v2", 0, HTOA, 1, read_copy_array),
	COPY(419, "cuMemcpyHtoAAsync_v2_ptsz", 1, HTOA, 1, read_copy_array),
	COPY(282, "cuMemcpyAtoH_v2", 0, ATOH, 0, read_copy_array),
	COPY(403, "cuMemcpyAtoH_v2_ptds", 1, ATOH, 0, read_copy_array),
	COPY(283, "cuMemcpyAtoHAsync_v2", 0, ATOH, 1, read_copy_array),
	COPY(420, "cuMemcpyAtoHAsync_v2_ptsz", 1, ATOH, 1, read_copy_array),
	COPY(286, "cuMemcpyAtoA_v2", 0, ATOA, 0, read_copy_arrays),
	COPY(404, "cuMemcpyAtoA_v2_ptds", 1, ATOA, 0, read_copy_arrays),
	COPY(318, "cuMemcpyPeer", 0, PTOP, 0, read_copy_peer),
	COPY(409, "cuMemcpyPeer_ptds", 1, PTOP, 0, read_copy_peer),
	COPY(319, "cuMemcpyPeerAsync", 0, PTOP, 1, read_copy_peer),
	COPY(426, "cuMemcpyPeerAsync_ptsz", 1, PTOP, 1, read_copy_peer),
	COPY(287, "cuMemcpy2D_v2", 0, UNKNOWN, 0, read_copy_2d),
	COPY(405, "cuMemcpy2D_v2_ptds", 1, UNKNOWN, 0, read_copy_2d),
	COPY(288, "cuMemcpy2DUnaligned_v2", 0, UNKNOWN, 0, read_copy_2d),
	COPY(406, "cuMemcpy2DUnaligned_v2_ptds", 1, UNKNOWN, 0, read_copy_2d),
	COPY(289, "cuMemcpy2DAsync_v2", 0, UNKNOWN, 1, read_copy_2d),
	COPY(424, "cuMemcpy2DAsync_v2_ptsz", 1, UNKNOWN, 1, read_copy_2d),
	COPY(290, "cuMemcpy3D_v2", 0, UNKNOWN, 0, read_copy_3d),
	COPY(407, "cuMemcpy3D_v2_ptds", 1, UNKNOWN, 0, read_copy_3d),
	COPY(291, "cuMemcpy3DAsync_v2", 0, UNKNOWN, 1, read_copy_3d),
	COPY(425, "cuMemcpy3DAsync_v2_ptsz", 1, UNKNOWN, 1, read_copy_3d),
	COPY(320, "cuMemcpy3DPeer", 0, PTOP, 0, read_copy_3d),
	COPY(410, "cuMemcpy3DPeer_ptds", 1, PTOP, 0, read_copy_3d),
	COPY(321, "cuMemcpy3DPeerAsync", 0, PTOP, 1, read_copy_3d),
	COPY(427, "cuMemcpy3DPeerAsync_ptsz", 1, PTOP, 1, read_copy_3d),
	COPY(776, "cuMemcpyBatchAsync", 0, UNKNOWN, 1, read_copy_batch_1),
	COPY(777, "cuMemcpyBatchAsync_ptsz", 1, UNKNOWN, 1, read_copy_batch_1),
	COPY(796, "cuMemcpyBatchAsync_v2", 0, UNKNOWN, 1, read_copy_batch),
	COPY(797, "cuMemcpyBatchAsync_v2_ptsz", 1, UNKNOWN, 1, read_copy_batch),
	COPY(778, "cuMemcpy3DBatchAsync", 0, UNKNOWN, 1, read_copy_3d_batch_1),
	COPY(779, "cuMemcpy3DBatchAsync_ptsz", 1, UNKNOWN, 1, read_copy_3d_batch_1),
	COPY(798, "cuMemcpy3DBatchAsync_v2", 0, UNKNOWN, 1, read_copy_3d_batch),
	COPY(799, "cuMemcpy3DBatchAsync_v2_ptsz", 1, UNKNOWN, 1, read_copy_3d_batch),

	SET(249, "cuMemsetD8_v2", 0, 1, 0, read_set_8),
	SET(411, "cuMemsetD8_v2_ptds", 1, 1, 0, read_set_8),
	SET(216, "cuMemsetD8Async", 0, 1, 1, read_set_8),
	SET(428, "cuMemsetD8Async_ptsz", 1, 1, 1, read_set_8),
	SET(250, "cuMemsetD16_v2", 0, 2, 0, read_set_16),
	SET(412, "cuMemsetD16_v2_ptds", 1, 2, 0, read_set_16),
	SET(218, "cuMemsetD16Async", 0, 2, 1, read_set_16),
	SET(429, "cuMemsetD16Async_ptsz", 1, 2, 1, read_set_16),
	SET(251, "cuMemsetD32_v2", 0, 4, 0, read_set_32),
	SET(413, "cuMemsetD32_v2_ptds", 1, 4, 0, read_set_32),
	SET(220, "cuMemsetD32Async", 0, 4, 1, read_set_32),
	SET(430, "cuMemsetD32Async_ptsz", 1, 4, 1, read_set_32),
	SET(252, "cuMemsetD2D8_v2", 0, 1, 0, read_set_2d),
	SET(414, "cuMemsetD2D8_v2_ptds", 1, 1, 0, read_set_2d),
	SET(222, "cuMemsetD2D8Async", 0, 1, 1, read_set_2d),
	SET(431, "cuMemsetD2D8Async_ptsz", 1, 1, 1, read_set_2d),
	SET(253, "cuMemsetD2D16_v2", 0, 2, 0, read_set_2d),
	SET(415, "cuMemsetD2D16_v2_ptds", 1, 2, 0, read_set_2d),
	SET(224, "cuMemsetD2D16Async", 0, 2, 1, read_set_2d),
	SET(432, "cuMemsetD2D16Async_ptsz", 1, 2, 1, read_set_2d),
	SET(254, "cuMemsetD2D32_v2", 0, 4, 0, read_set_2d),
	SET(416, "cuMemsetD2D32_v2_ptds", 1, 4, 0, read_set_2d),
	SET(226, "cuMemsetD2D32Async", 0, 4, 1, read_set_2d),
	SET(433, "cuMemsetD2D32Async_ptsz", 1, 4, 1, read_set_2d),

	ALLOC(243, "cuMemAlloc_v2", 0, DEVICE, 0, 0, read_alloc),
	ALLOC(244, "cuMemAllocPitch_v2", 0, DEVICE, 0, 0, read_alloc_pitch),
	ALLOC(294, "cuMemAllocHost_v2", 0, PINNED, 0, 0, read_alloc),
	ALLOC(39, "cuMemHostAlloc", 0, PINNED, 0, 0, read_alloc),
	ALLOC(271, "cuMemHostAlloc_v2", 0, PINNED, 0, 0, read_alloc),
	ALLOC(371, "cuMemAllocManaged", 0, MANAGED, 0, 0, read_alloc),
	ALLOC(598, "cuMemAllocAsync", 0, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc),
	ALLOC(599, "cuMemAllocAsync_ptsz", 1, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc),
	ALLOC(611, "cuMemAllocFromPoolAsync", 0, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc_pool),
	ALLOC(612, "cuMemAllocFromPoolAsync_ptsz", 1, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc_pool),
	ALLOC(301, "cuMemHostRegister", 0, PINNED, TRACE_MEMORY_REGISTERED, 0, read_register),
	ALLOC(379, "cuMemHostRegister_v2", 0, PINNED, TRACE_MEMORY_REGISTERED, 0, read_register),
	ALLOC(272, "cuArrayCreate_v2", 0, ARRAY, 0, 0, read_array),
	ALLOC(274, "cuArray3DCreate_v2", 0, ARRAY, 0, 0, read_array_3d),
	ALLOC(347, "cuMipmappedArrayCreate", 0, ARRAY, 0, 0, read_array_mipmapped),
	ALLOC(549, "cuMemCreate", 0, DEVICE, TRACE_MEMORY_MAPPED, 0, read_physical),
	FREE(245, "cuMemFree_v2", 0, UNKNOWN, 0, 0),
	FREE(38, "cuMemFreeHost", 0, PINNED, 0, 0),
	FREE(302, "cuMemHostUnregister", 0, PINNED, TRACE_MEMORY_REGISTERED, 0),
	FREE(600, "cuMemFreeAsync", 0, DEVICE, TRACE_MEMORY_POOL, 1),
	FREE(601, "cuMemFreeAsync_ptsz", 1, DEVICE, TRACE_MEMORY_POOL, 1),
	FREE(89, "cuArrayDestroy", 0, ARRAY, 0, 0),
	FREE(349, "cuMipmappedArrayDestroy", 0, ARRAY, 0, 0),
	FREE(550, "cuMemRelease", 0, UNKNOWN, TRACE_MEMORY_MAPPED, 0),

	SYNC(17, "cuCtxSynchronize", 0, TRACE_SYNC_CONTEXT, 0, read_nothing),
	SYNC(800, "cuCtxSynchronize_v2", 0, TRACE_SYNC_CONTEXT, 0, read_nothing),
	SYNC(126, "cuStreamSynchronize", 0, TRACE_SYNC_STREAM, 1, read_stream),
	SYNC(440, "cuStreamSynchronize_ptsz", 1, TRACE_SYNC_STREAM, 1, read_stream),
	SYNC(121, "cuEventSynchronize", 0, TRACE_SYNC_EVENT, 0, read_event),
	SYNC(295, "cuStreamWaitEvent", 0, TRACE_SYNC_STREAM_WAIT, 1, read_wait),
	SYNC(436, "cuStreamWaitEvent_ptsz", 1, TRACE_SYNC_STREAM_WAIT, 1, read_wait),
	SYNC(119, "cuEventRecord", 0, TRACE_EVENT_RECORD, 1, read_event),
	SYNC(441, "cuEventRecord_ptsz", 1, TRACE_EVENT_RECORD, 1, read_event),
	SYNC(587, "cuEventRecordWithFlags", 0, TRACE_EVENT_RECORD, 1, read_event),
	SYNC(588, "cuEventRecordWithFlags_ptsz", 1, TRACE_EVENT_RECORD, 1, read_event),

	BEGIN(495, "cuStreamBeginCapture", 0),
	BEGIN(496, "cuStreamBeginCapture_ptsz", 1),
	BEGIN(539, "cuStreamBeginCapture_v2", 0),
	BEGIN(540, "cuStreamBeginCapture_v2_ptsz", 1),
	BEGIN(720, "cuStreamBeginCaptureToGraph", 0),
	BEGIN(721, "cuStreamBeginCaptureToGraph_ptsz", 1),
	END(497, "cuStreamEndCapture", 0),
	END(498, "cuStreamEndCapture_ptsz", 1),
};

const uint16_t driver_timed_ids[] = {
	18, 19, 20, 21, 22, /* cuModuleLoad, LoadData, LoadDataEx, LoadFatBinary, Unload */
	678, 679, 680,      /* cuLibraryLoadData, LoadFromFile, Unload */
	374, 451, 384, 452, /* cuOccupancyMaxActiveBlocksPerMultiprocessor, ...WithFlags, MaxPotentialBlockSize, ...WithFlags */
	543, 675, 676,      /* cuOccupancyAvailableDynamicSMemPerBlock, MaxPotentialClusterSize, MaxActiveClusters */
	513, 578, 643, 656, 657, 580, 581, /* cuGraphInstantiate, _v2, WithFlags, WithParams, _ptsz, cuGraphUpload, _ptsz */
	0,
};

struct driver_call *driver_call(uint32_t cbid)
{
	return cbid < CALLS && calls[cbid].kind ? &calls[cbid] : NULL;
}

const uint16_t *driver_call_ids(void)
{
	static uint16_t ids[CALLS];
	size_t count = 0;

	for (uint16_t id = 0; id < CALLS; id++)
		if (calls[id].kind)
			ids[count++] = id;
	return ids; /* ended by a 0 that was never overwritten: no id is 0, so there are fewer than CALLS */
}
