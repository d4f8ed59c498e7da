/* SPDX-License-Identifier: MIT
 * The table of the driver's functions, one line each. driver_decode.c reads their arguments.
 */
#include "preload/cuda/driver_functions.h"

#include "preload/cuda/driver_decode.h"

#define CALLBACK_IDS 1024u /* all callback ids are smaller */
#define NAME_BYTES 40u

enum reader {
#define X(name) BY_##name,
	DRIVER_READERS(X)
#undef X
};

/* A line of the table. It contains no address: the dynamic linker would relocate it in every
 * process, also without CUDA, and copy the pages for that. */
struct function_line {
	char name[NAME_BYTES];
	uint32_t detail;
	uint16_t id;
	uint8_t type, kind, flags, reader;
	bool per_thread, streamed;
};

#define ENTRY(id_, name_, type_, twin, kind_, detail_, flags_, streamed_, reader_)                 \
	{                                                                                          \
		.name = name_, .id = id_, .type = type_, .kind = kind_, .detail = detail_,         \
		.flags = flags_, .reader = BY_##reader_, .per_thread = twin, .streamed = streamed_ \
	}
#define LAUNCH(id, name, twin, reader) \
	ENTRY(id, name, CALL_LAUNCH, twin, DRIVER_LAUNCH, 0, 0, 1, reader)
#define GRAPH(id, name, twin) \
	ENTRY(id, name, CALL_LAUNCH, twin, DRIVER_GRAPH_LAUNCH, 0, 0, 1, read_graph_launch)
#define COPY(id, name, twin, kind, streamed, reader) \
	ENTRY(id, name, CALL_PLAIN, twin, DRIVER_COPY, TRACE_COPY_##kind, 0, streamed, reader)
#define MEMSET(id, name, twin, width, streamed, reader) \
	ENTRY(id, name, CALL_PLAIN, twin, DRIVER_MEMSET, 0, width, streamed, reader)
#define ALLOC(id, name, twin, kind, flags, streamed, reader)                                  \
	ENTRY(id, name, CALL_ALLOC, twin, DRIVER_ALLOC, TRACE_MEMORY_##kind, flags, streamed, \
		reader)
#define FREE(id, name, twin, kind, flags, streamed)                                         \
	ENTRY(id, name, CALL_FREE, twin, DRIVER_FREE, TRACE_MEMORY_##kind, flags, streamed, \
		read_free)
#define MAPPING(id, name, action, reader) \
	ENTRY(id, name, CALL_PLAIN, 0, DRIVER_MAPPING, TRACE_MAPPING_##action, 0, 0, reader)
#define SYNC(id, name, twin, type, streamed, reader) \
	ENTRY(id, name, CALL_PLAIN, twin, DRIVER_SYNC, type, 0, streamed, reader)
#define BEGIN(id, name, twin) \
	ENTRY(id, name, CALL_PLAIN, twin, DRIVER_CAPTURE_BEGIN, 0, 0, 1, read_stream)
#define END(id, name, twin) \
	ENTRY(id, name, CALL_PLAIN, twin, DRIVER_CAPTURE_END, 0, 0, 1, read_stream)

static const struct function_line function_lines[] = {
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
	COPY(837, "cuMemcpyWithAttributesAsync", 0, UNKNOWN, 1, read_copy_attributes),
	COPY(838, "cuMemcpyWithAttributesAsync_ptsz", 1, UNKNOWN, 1, read_copy_attributes),
	COPY(839, "cuMemcpy3DWithAttributesAsync", 0, UNKNOWN, 1, read_copy_3d_attributes),
	COPY(840, "cuMemcpy3DWithAttributesAsync_ptsz", 1, UNKNOWN, 1, read_copy_3d_attributes),

	MEMSET(249, "cuMemsetD8_v2", 0, 1, 0, read_memset),
	MEMSET(411, "cuMemsetD8_v2_ptds", 1, 1, 0, read_memset),
	MEMSET(216, "cuMemsetD8Async", 0, 1, 1, read_memset),
	MEMSET(428, "cuMemsetD8Async_ptsz", 1, 1, 1, read_memset),
	MEMSET(250, "cuMemsetD16_v2", 0, 2, 0, read_memset),
	MEMSET(412, "cuMemsetD16_v2_ptds", 1, 2, 0, read_memset),
	MEMSET(218, "cuMemsetD16Async", 0, 2, 1, read_memset),
	MEMSET(429, "cuMemsetD16Async_ptsz", 1, 2, 1, read_memset),
	MEMSET(251, "cuMemsetD32_v2", 0, 4, 0, read_memset),
	MEMSET(413, "cuMemsetD32_v2_ptds", 1, 4, 0, read_memset),
	MEMSET(220, "cuMemsetD32Async", 0, 4, 1, read_memset),
	MEMSET(430, "cuMemsetD32Async_ptsz", 1, 4, 1, read_memset),
	MEMSET(252, "cuMemsetD2D8_v2", 0, 1, 0, read_memset_2d),
	MEMSET(414, "cuMemsetD2D8_v2_ptds", 1, 1, 0, read_memset_2d),
	MEMSET(222, "cuMemsetD2D8Async", 0, 1, 1, read_memset_2d),
	MEMSET(431, "cuMemsetD2D8Async_ptsz", 1, 1, 1, read_memset_2d),
	MEMSET(253, "cuMemsetD2D16_v2", 0, 2, 0, read_memset_2d),
	MEMSET(415, "cuMemsetD2D16_v2_ptds", 1, 2, 0, read_memset_2d),
	MEMSET(224, "cuMemsetD2D16Async", 0, 2, 1, read_memset_2d),
	MEMSET(432, "cuMemsetD2D16Async_ptsz", 1, 2, 1, read_memset_2d),
	MEMSET(254, "cuMemsetD2D32_v2", 0, 4, 0, read_memset_2d),
	MEMSET(416, "cuMemsetD2D32_v2_ptds", 1, 4, 0, read_memset_2d),
	MEMSET(226, "cuMemsetD2D32Async", 0, 4, 1, read_memset_2d),
	MEMSET(433, "cuMemsetD2D32Async_ptsz", 1, 4, 1, read_memset_2d),

	ALLOC(243, "cuMemAlloc_v2", 0, DEVICE, 0, 0, read_alloc),
	ALLOC(244, "cuMemAllocPitch_v2", 0, DEVICE, 0, 0, read_alloc_pitch),
	ALLOC(294, "cuMemAllocHost_v2", 0, PINNED, 0, 0, read_alloc),
	ALLOC(39, "cuMemHostAlloc", 0, PINNED, 0, 0, read_alloc),
	ALLOC(271, "cuMemHostAlloc_v2", 0, PINNED, 0, 0, read_alloc),
	ALLOC(371, "cuMemAllocManaged", 0, MANAGED, 0, 0, read_alloc),
	ALLOC(598, "cuMemAllocAsync", 0, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc),
	ALLOC(599, "cuMemAllocAsync_ptsz", 1, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc),
	ALLOC(611, "cuMemAllocFromPoolAsync", 0, DEVICE, TRACE_MEMORY_POOL, 1, read_alloc_pool),
	ALLOC(612, "cuMemAllocFromPoolAsync_ptsz", 1, DEVICE, TRACE_MEMORY_POOL, 1,
		read_alloc_pool),
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

	MAPPING(547, "cuMemAddressReserve", RESERVE, read_reserve),
	MAPPING(548, "cuMemAddressFree", UNRESERVE, read_range),
	MAPPING(551, "cuMemMap", MAP, read_map),
	MAPPING(552, "cuMemUnmap", UNMAP, read_range),
	MAPPING(565, "cuMemRetainAllocationHandle", RETAIN, read_handle),
	MAPPING(555, "cuMemImportFromShareableHandle", IMPORT, read_handle),

	ENTRY(242, "cuMemGetInfo_v2", CALL_PLAIN, 0, DRIVER_MEMORY_QUERY, 0, 0, 0,
		read_memory_query),

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
	BEGIN(846, "cuStreamBeginRecaptureToGraph", 0),
	BEGIN(847, "cuStreamBeginRecaptureToGraph_ptsz", 1),
	END(497, "cuStreamEndCapture", 0),
	END(498, "cuStreamEndCapture_ptsz", 1),
};

const uint16_t driver_timed_ids[] = {
	/* cuModuleLoad, LoadData, LoadDataEx, LoadFatBinary, Unload */
	18,
	19,
	20,
	21,
	22,
	/* cuLibraryLoadData, LoadFromFile, Unload */
	678,
	679,
	680,
	/* cuOccupancyMaxActiveBlocksPerMultiprocessor, ...WithFlags, MaxPotentialBlockSize,
	 * ...WithFlags */
	374,
	451,
	384,
	452,
	/* cuOccupancyAvailableDynamicSMemPerBlock, MaxPotentialClusterSize, MaxActiveClusters */
	543,
	675,
	676,
	/* cuGraphInstantiate, _v2, WithFlags, WithParams, _ptsz, cuGraphUpload, _ptsz */
	513,
	578,
	643,
	656,
	657,
	580,
	581,
	0,
};

/* The functions by callback id; entries of other ids have kind 0. Filled before CUPTI's callbacks
 * are enabled. */
static struct driver_function functions_by_id[CALLBACK_IDS];

static void (*const readers[])(
	struct driver_event *, const struct driver_function *, const void *, bool) = {
#define X(name) name,
	DRIVER_READERS(X)
#undef X
};

static void fill_functions(void)
{
	for (size_t i = 0; i < sizeof function_lines / sizeof function_lines[0]; i++) {
		const struct function_line *function_line = &function_lines[i];
		struct driver_function *call = &functions_by_id[function_line->id];

		call->traced.name = function_line->name;
		call->traced.type = (enum call_type)function_line->type;
		call->traced.flags = TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK;
		call->traced.per_thread = function_line->per_thread;
		call->detail = function_line->detail;
		call->flags = function_line->flags;
		call->streamed = function_line->streamed;
		call->read = readers[function_line->reader];
		call->kind = (enum driver_event_kind)function_line->kind;
	}
}

struct driver_function *driver_function(uint32_t cbid)
{
	return cbid < CALLBACK_IDS && functions_by_id[cbid].kind ? &functions_by_id[cbid] : NULL;
}

const uint16_t *driver_function_ids(void)
{
	static uint16_t ids[CALLBACK_IDS];
	size_t count = 0;

	if (ids[0])
		return ids;
	fill_functions();
	for (uint16_t id = 0; id < CALLBACK_IDS; id++)
		if (functions_by_id[id].kind)
			ids[count++] = id;
	/* The last entry is a 0 that was never overwritten: no id is 0, so there are fewer than
	 * CALLBACK_IDS. */
	return ids;
}
