/*
 * The bytes of each record of the simulated CUPTI. A record is built as the newest version has it
 * and cut to the length of the version that is simulated.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t lengths[ACTIVITY_KINDS];
static atomic_ullong kernels;

#define LENGTH_OF(kind, record, struct_, bytes, since) \
	if (switches()->version >= (since))            \
		lengths[kind] = (bytes);

static void find_lengths(void){ CUPTI_LENGTHS(LENGTH_OF) }

uint32_t record_length(uint32_t kind)
{
	pthread_once(&once, find_lengths);
	if (kind == UNKNOWN_KIND)
		return UNKNOWN_BYTES;
	return kind < ACTIVITY_KINDS ? lengths[kind] : 0;
}

static uint8_t *begin(
	struct record *record, CUpti_ActivityKind kind, uint32_t stream, uint64_t due_ns)
{
	uint32_t wide = kind;

	memset(record, 0, sizeof *record);
	record->due_ns = due_ns;
	record->stream = stream;
	record->length = record_length(wide);
	memcpy(record->bytes, &wide, sizeof wide);
	return record->bytes;
}

/* A fatter grid gets more local memory; the formula only has to be deterministic. */
static uint64_t local_total(const struct sim_work *work)
{
	return (uint64_t)work->local_bytes * work->grid.x * work->grid.y * work->grid.z *
	       work->block.x * work->block.y * work->block.z;
}

static void put_shape(uint8_t *bytes, const struct sim_work *work)
{
	CUPTI_SET(bytes, Kernel, gridX, work->grid.x);
	CUPTI_SET(bytes, Kernel, gridY, work->grid.y);
	CUPTI_SET(bytes, Kernel, gridZ, work->grid.z);
	CUPTI_SET(bytes, Kernel, blockX, work->block.x);
	CUPTI_SET(bytes, Kernel, blockY, work->block.y);
	CUPTI_SET(bytes, Kernel, blockZ, work->block.z);
	CUPTI_SET(bytes, Kernel, clusterX, work->cluster.x);
	CUPTI_SET(bytes, Kernel, clusterY, work->cluster.y);
	CUPTI_SET(bytes, Kernel, clusterZ, work->cluster.z);
	CUPTI_SET(bytes, Kernel, registersPerThread, work->registers);
	CUPTI_SET(bytes, Kernel, staticSharedMemory, work->static_shared);
	CUPTI_SET(bytes, Kernel, dynamicSharedMemory, work->dynamic_shared);
	CUPTI_SET(bytes, Kernel, sharedMemoryExecuted, work->static_shared + work->dynamic_shared);
	CUPTI_SET(bytes, Kernel, localMemoryPerThread, work->local_bytes);
	CUPTI_SET(bytes, Kernel, localMemoryTotal, local_total(work));
	CUPTI_SET(bytes, Kernel, localMemoryTotal_v2, local_total(work));
}

static void put_kernel_times(
	uint8_t *bytes, const struct sim_work *work, uint64_t queued_ns, uint64_t nth)
{
	unsigned untimed = switches()->untimed;

	if ((untimed && nth % untimed == 0) || clock_zeroes())
		return;
	CUPTI_SET(bytes, Kernel, start, clock_of_device(work->start_ns));
	CUPTI_SET(bytes, Kernel, end, clock_of_device(work->end_ns));
	CUPTI_SET(bytes, Kernel, completed, clock_of_device(work->end_ns));
	if (!activity_latency())
		return;
	CUPTI_SET(bytes, Kernel, queued, clock_of_device(queued_ns));
	CUPTI_SET(bytes, Kernel, submitted, clock_of_device(queued_ns));
}

void record_kernel(struct record *record, const struct sim_work *work, uint64_t queued_ns)
{
	bool concurrent = activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, work->context);
	uint8_t *bytes = begin(record,
		concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL,
		work->stream, work->end_ns);
	uint64_t nth = ++kernels;

	put_shape(bytes, work);
	put_kernel_times(bytes, work, queued_ns, nth);
	CUPTI_SET(bytes, Kernel, deviceId, work->device);
	CUPTI_SET(bytes, Kernel, contextId, work->context);
	CUPTI_SET(bytes, Kernel, streamId, work->stream);
	CUPTI_SET(bytes, Kernel, correlationId, correlation_of(work->correlation));
	CUPTI_SET(bytes, Kernel, gridId, nth);
	CUPTI_SET(bytes, Kernel, name, work->name);
	CUPTI_SET(bytes, Kernel, launchType, work->cooperative);
	CUPTI_SET(bytes, Kernel, graphNodeId, work->node);
	CUPTI_SET(bytes, Kernel, graphId, work->graph_exec);
	CUPTI_SET(bytes, Kernel, channelID, work->stream);
	CUPTI_SET(bytes, Kernel, channelType, CUPTI_CHANNEL_TYPE_COMPUTE);
}

static void record_peer_copy(struct record *record, const struct sim_work *work)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_MEMCPY2, work->stream, work->end_ns);

	CUPTI_SET(bytes, MemcpyPtoP, copyKind, work->copy_kind);
	CUPTI_SET(bytes, MemcpyPtoP, srcKind, work->source_memory);
	CUPTI_SET(bytes, MemcpyPtoP, dstKind, work->target_memory);
	CUPTI_SET(bytes, MemcpyPtoP, flags, work->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0);
	CUPTI_SET(bytes, MemcpyPtoP, bytes, work->bytes);
	CUPTI_SET(bytes, MemcpyPtoP, start, clock_of_device(work->start_ns));
	CUPTI_SET(bytes, MemcpyPtoP, end, clock_of_device(work->end_ns));
	CUPTI_SET(bytes, MemcpyPtoP, deviceId, work->device);
	CUPTI_SET(bytes, MemcpyPtoP, contextId, work->context);
	CUPTI_SET(bytes, MemcpyPtoP, streamId, work->stream);
	CUPTI_SET(bytes, MemcpyPtoP, srcDeviceId, work->source_device);
	CUPTI_SET(bytes, MemcpyPtoP, srcContextId, work->context);
	CUPTI_SET(bytes, MemcpyPtoP, dstDeviceId, work->target_device);
	CUPTI_SET(bytes, MemcpyPtoP, dstContextId, work->context);
	CUPTI_SET(bytes, MemcpyPtoP, correlationId, correlation_of(work->correlation));
	CUPTI_SET(bytes, MemcpyPtoP, graphNodeId, work->node);
	CUPTI_SET(bytes, MemcpyPtoP, graphId, work->graph_exec);
	CUPTI_SET(bytes, MemcpyPtoP, channelID, work->stream);
	CUPTI_SET(bytes, MemcpyPtoP, channelType, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
}

void record_copy(struct record *record, const struct sim_work *work)
{
	uint8_t *bytes;

	if (work->copy_kind == SIM_COPY_PTOP) {
		record_peer_copy(record, work);
		return;
	}
	bytes = begin(record, CUPTI_ACTIVITY_KIND_MEMCPY, work->stream, work->end_ns);
	CUPTI_SET(bytes, Memcpy, copyKind, work->copy_kind);
	CUPTI_SET(bytes, Memcpy, srcKind, work->source_memory);
	CUPTI_SET(bytes, Memcpy, dstKind, work->target_memory);
	CUPTI_SET(bytes, Memcpy, flags, work->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0);
	CUPTI_SET(bytes, Memcpy, bytes, work->bytes);
	CUPTI_SET(bytes, Memcpy, start, clock_of_device(work->start_ns));
	CUPTI_SET(bytes, Memcpy, end, clock_of_device(work->end_ns));
	CUPTI_SET(bytes, Memcpy, deviceId, work->device);
	CUPTI_SET(bytes, Memcpy, contextId, work->context);
	CUPTI_SET(bytes, Memcpy, streamId, work->stream);
	CUPTI_SET(bytes, Memcpy, correlationId, correlation_of(work->correlation));
	CUPTI_SET(bytes, Memcpy, graphNodeId, work->node);
	CUPTI_SET(bytes, Memcpy, graphId, work->graph_exec);
	CUPTI_SET(bytes, Memcpy, channelID, work->stream);
	CUPTI_SET(bytes, Memcpy, channelType, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
	CUPTI_SET(bytes, Memcpy, copyCount, 1);
}

void record_set(struct record *record, const struct sim_work *work)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_MEMSET, work->stream, work->end_ns);

	CUPTI_SET(bytes, Memset, value, work->value);
	CUPTI_SET(bytes, Memset, bytes, work->bytes);
	CUPTI_SET(bytes, Memset, start, clock_of_device(work->start_ns));
	CUPTI_SET(bytes, Memset, end, clock_of_device(work->end_ns));
	CUPTI_SET(bytes, Memset, deviceId, work->device);
	CUPTI_SET(bytes, Memset, contextId, work->context);
	CUPTI_SET(bytes, Memset, streamId, work->stream);
	CUPTI_SET(bytes, Memset, correlationId, correlation_of(work->correlation));
	CUPTI_SET(bytes, Memset, flags, work->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0);
	CUPTI_SET(bytes, Memset, memoryKind, work->target_memory);
	CUPTI_SET(bytes, Memset, graphNodeId, work->node);
	CUPTI_SET(bytes, Memset, graphId, work->graph_exec);
	CUPTI_SET(bytes, Memset, channelID, work->stream);
	CUPTI_SET(bytes, Memset, channelType, CUPTI_CHANNEL_TYPE_COMPUTE);
}

static void put_pool(uint8_t *bytes, const struct sim_memory *memory)
{
	if (!memory->pool)
		return;
	CUPTI_SET(bytes, Memory, poolType, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
	CUPTI_SET(bytes, Memory, poolAddress, memory->pool);
	CUPTI_SET(bytes, Memory, poolThreshold, memory->pool_threshold);
	CUPTI_SET(bytes, Memory, poolSize, memory->pool_reserved);
	CUPTI_SET(bytes, Memory, poolUsed, memory->pool_used);
}

void record_memory(struct record *record, const struct sim_memory *memory)
{
	uint8_t *bytes = begin(
		record, CUPTI_ACTIVITY_KIND_MEMORY2, memory->stream, memory->time_ns);

	CUPTI_SET(bytes, Memory, memoryOperationType,
		memory->release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
				: CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
	CUPTI_SET(bytes, Memory, memoryKind, memory->kind);
	CUPTI_SET(bytes, Memory, correlationId, correlation_of(memory->correlation));
	CUPTI_SET(bytes, Memory, address, memory->address);
	CUPTI_SET(bytes, Memory, bytes, memory->bytes);
	CUPTI_SET(bytes, Memory, timestamp, clock_of_device(memory->time_ns));
	CUPTI_SET(bytes, Memory, processId, getpid());
	CUPTI_SET(bytes, Memory, deviceId, memory->device);
	CUPTI_SET(bytes, Memory, contextId, memory->context);
	CUPTI_SET(bytes, Memory, streamId, memory->stream);
	CUPTI_SET(bytes, Memory, isAsync, memory->async);
	put_pool(bytes, memory);
}

void record_api(struct record *record, const struct sim_scope *scope, uint64_t end_ns)
{
	uint8_t *bytes = begin(record,
		scope->function->domain == SIM_RUNTIME ? CUPTI_ACTIVITY_KIND_RUNTIME
						       : CUPTI_ACTIVITY_KIND_DRIVER,
		0, 0);

	CUPTI_SET(bytes, API, cbid, scope->function->cbid);
	CUPTI_SET(bytes, API, start, scope->start_ns);
	CUPTI_SET(bytes, API, end, end_ns);
	CUPTI_SET(bytes, API, processId, getpid());
	CUPTI_SET(bytes, API, threadId, thread_id());
	CUPTI_SET(bytes, API, correlationId, scope->correlation);
	CUPTI_SET(bytes, API, returnValue, scope->result ? *scope->result : 0);
}

void record_external(struct record *record, uint32_t kind, uint64_t id, uint32_t correlation)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0, 0);

	CUPTI_SET(bytes, ExternalCorrelation, externalKind, kind);
	CUPTI_SET(bytes, ExternalCorrelation, externalId, id);
	CUPTI_SET(bytes, ExternalCorrelation, correlationId, correlation);
}

void record_overhead(struct record *record, uint32_t kind, uint64_t start_ns, uint64_t end_ns,
	uint32_t correlation)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_OVERHEAD, 0, 0);

	CUPTI_SET(bytes, Overhead, overheadKind, kind);
	CUPTI_SET(bytes, Overhead, objectKind, CUPTI_ACTIVITY_OBJECT_THREAD);
	CUPTI_SET(bytes, Overhead, processId, getpid());
	CUPTI_SET(bytes, Overhead, threadId, thread_id());
	CUPTI_SET(bytes, Overhead, start, start_ns);
	CUPTI_SET(bytes, Overhead, end, end_ns);
	CUPTI_SET(bytes, Overhead, correlationId, correlation);
}

void record_sync(struct record *record, const struct sim_sync *sync, uint64_t event_sync)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0, 0);

	CUPTI_SET(bytes, Synchronization, type, sync->kind);
	CUPTI_SET(bytes, Synchronization, start, clock_of_device(sync->start_ns));
	CUPTI_SET(bytes, Synchronization, end, clock_of_device(sync->end_ns));
	CUPTI_SET(bytes, Synchronization, correlationId, correlation_of(sync->correlation));
	CUPTI_SET(bytes, Synchronization, contextId, sync->context);
	CUPTI_SET(bytes, Synchronization, streamId, sync->stream);
	CUPTI_SET(bytes, Synchronization, cudaEventId, sync->event);
	CUPTI_SET(bytes, Synchronization, cudaEventSyncId, event_sync);
	CUPTI_SET(bytes, Synchronization, returnValue, sync->result);
}

void record_event(struct record *record, const struct sim_event_record *event, uint64_t event_sync)
{
	bool timed = activity_event_times();
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_CUDA_EVENT, event->stream,
		timed ? event->device_ns : 0);

	CUPTI_SET(bytes, CudaEvent, correlationId, correlation_of(event->correlation));
	CUPTI_SET(bytes, CudaEvent, contextId, event->context);
	CUPTI_SET(bytes, CudaEvent, streamId, event->stream);
	CUPTI_SET(bytes, CudaEvent, eventId, event->event);
	CUPTI_SET(bytes, CudaEvent, deviceId, event->device);
	CUPTI_SET(bytes, CudaEvent, deviceTimestamp, timed ? clock_of_device(event->device_ns) : 0);
	CUPTI_SET(bytes, CudaEvent, cudaEventSyncId, event_sync);
}

void record_graph(
	struct record *record, const struct sim_work *first, uint64_t start_ns, uint64_t end_ns)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, first->stream, end_ns);

	CUPTI_SET(bytes, GraphTrace, correlationId, correlation_of(first->correlation));
	CUPTI_SET(bytes, GraphTrace, start, clock_of_device(start_ns));
	CUPTI_SET(bytes, GraphTrace, end, clock_of_device(end_ns));
	CUPTI_SET(bytes, GraphTrace, deviceId, first->device);
	CUPTI_SET(bytes, GraphTrace, graphId, first->graph_exec);
	CUPTI_SET(bytes, GraphTrace, contextId, first->context);
	CUPTI_SET(bytes, GraphTrace, streamId, first->stream);
	CUPTI_SET(bytes, GraphTrace, endDeviceId, first->device);
	CUPTI_SET(bytes, GraphTrace, endContextId, first->context);
}

static int attribute(CUdevice_attribute number, int device)
{
	return sim_device_attribute((int)number, device);
}

/* Everything of a device but its limits. */
static void put_device(uint8_t *bytes, int device)
{
	CUPTI_SET(bytes, Device, id, device);
	CUPTI_SET(bytes, Device, name, SIM_DEVICE_NAME);
	CUPTI_SET(bytes, Device, isCudaVisible, 1);
	sim_device_uuid(device, bytes + AT_Device_uuid);
	CUPTI_SET(bytes, Device, globalMemorySize, sim_device_memory());
	CUPTI_SET(bytes, Device, constantMemorySize,
		attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device));
	CUPTI_SET(bytes, Device, l2CacheSize, attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device));
	CUPTI_SET(
		bytes, Device, numThreadsPerWarp, attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	CUPTI_SET(bytes, Device, coreClockRate, attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device));
	CUPTI_SET(bytes, Device, numMultiprocessors,
		attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	CUPTI_SET(bytes, Device, computeCapabilityMajor,
		attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	CUPTI_SET(bytes, Device, computeCapabilityMinor,
		attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
}

void record_device(struct record *record, int device)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_DEVICE, 0, 0);
	int warp = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
	int threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);

	put_device(bytes, device);
	CUPTI_SET(bytes, Device, maxWarpsPerMultiprocessor, warp ? threads / warp : 0);
	CUPTI_SET(bytes, Device, maxBlocksPerMultiprocessor,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device));
	CUPTI_SET(bytes, Device, maxSharedMemoryPerMultiprocessor,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device));
	CUPTI_SET(bytes, Device, maxRegistersPerMultiprocessor,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device));
	CUPTI_SET(bytes, Device, maxRegistersPerBlock,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device));
	CUPTI_SET(bytes, Device, maxSharedMemoryPerBlock,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device));
	CUPTI_SET(bytes, Device, maxThreadsPerBlock,
		attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
}

void record_context(struct record *record, const struct sim_context *context)
{
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_CONTEXT, 0, 0);
	int device = sim_context_device(context);

	CUPTI_SET(bytes, Context, contextId, sim_context_id(context));
	CUPTI_SET(bytes, Context, deviceId, device);
	CUPTI_SET(bytes, Context, computeApiKind, CUPTI_ACTIVITY_COMPUTE_API_CUDA);
	CUPTI_SET(bytes, Context, nullStreamId, sim_context_null_stream(context));
	CUPTI_SET(bytes, Context, numMultiprocessors,
		attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
}

void record_stream(struct record *record, const struct sim_stream *stream, uint32_t correlation)
{
	const struct sim_context *context = sim_stream_context(stream);
	uint8_t *bytes = begin(record, CUPTI_ACTIVITY_KIND_STREAM, 0, 0);
	uint32_t flag = sim_stream_flags(stream) & CU_STREAM_NON_BLOCKING
				? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
				: CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;

	if (sim_stream_id(stream) == sim_context_null_stream(context))
		flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL;
	CUPTI_SET(bytes, Stream, contextId, sim_context_id(context));
	CUPTI_SET(bytes, Stream, streamId, sim_stream_id(stream));
	CUPTI_SET(bytes, Stream, priority, sim_stream_priority(stream));
	CUPTI_SET(bytes, Stream, flag, flag);
	CUPTI_SET(bytes, Stream, correlationId, correlation);
}
