/*
 * Where the fields of CUPTI's activity records lie, and how long the records of each CUPTI version
 * are.
 *
 * Records have only ever grown at the tail: a field keeps its offset, and an older CUPTI's record
 * is a prefix of a newer one's. So there is one list of fields a record, in groups by the API
 * version that brought them (19: CUDA 12.0, 26: 12.8, 130000: 13.0 and so on), and one list of
 * lengths.
 *
 * The simulated CUPTI writes records through these offsets and the tests read them back through
 * them; with the real headers of a version at hand, every line of that version is asserted against
 * them.
 *
 * For a line FIELD(Kernel, start, 16, uint64_t) this header defines AT_Kernel_start = 16 and
 * type_Kernel_start; CUPTI_GET and CUPTI_SET use them.
 */
#ifndef CUPTI_LAYOUT_H
#define CUPTI_LAYOUT_H

#include <assert.h>
#include <cupti.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What CUDA 12.0 had: FIELD(record, member, offset, type). */
#define CUPTI_FIELDS_19(FIELD)                                        \
	FIELD(Kernel, kind, 0, uint32_t)                              \
	FIELD(Kernel, registersPerThread, 6, uint16_t)                \
	FIELD(Kernel, start, 16, uint64_t)                            \
	FIELD(Kernel, end, 24, uint64_t)                              \
	FIELD(Kernel, completed, 32, uint64_t)                        \
	FIELD(Kernel, deviceId, 40, uint32_t)                         \
	FIELD(Kernel, contextId, 44, uint32_t)                        \
	FIELD(Kernel, streamId, 48, uint32_t)                         \
	FIELD(Kernel, gridX, 52, int32_t)                             \
	FIELD(Kernel, gridY, 56, int32_t)                             \
	FIELD(Kernel, gridZ, 60, int32_t)                             \
	FIELD(Kernel, blockX, 64, int32_t)                            \
	FIELD(Kernel, blockY, 68, int32_t)                            \
	FIELD(Kernel, blockZ, 72, int32_t)                            \
	FIELD(Kernel, staticSharedMemory, 76, int32_t)                \
	FIELD(Kernel, dynamicSharedMemory, 80, int32_t)               \
	FIELD(Kernel, localMemoryPerThread, 84, uint32_t)             \
	FIELD(Kernel, localMemoryTotal, 88, uint32_t)                 \
	FIELD(Kernel, correlationId, 92, uint32_t)                    \
	FIELD(Kernel, gridId, 96, int64_t)                            \
	FIELD(Kernel, name, 104, const char *)                        \
	FIELD(Kernel, queued, 120, uint64_t)                          \
	FIELD(Kernel, submitted, 128, uint64_t)                       \
	FIELD(Kernel, launchType, 136, uint8_t)                       \
	FIELD(Kernel, sharedMemoryExecuted, 140, uint32_t)            \
	FIELD(Kernel, graphNodeId, 144, uint64_t)                     \
	FIELD(Kernel, graphId, 156, uint32_t)                         \
	FIELD(Kernel, channelID, 168, uint32_t)                       \
	FIELD(Kernel, channelType, 172, uint32_t)                     \
	FIELD(Kernel, clusterX, 176, uint32_t)                        \
	FIELD(Kernel, clusterY, 180, uint32_t)                        \
	FIELD(Kernel, clusterZ, 184, uint32_t)                        \
	FIELD(Kernel, localMemoryTotal_v2, 192, uint64_t)             \
	FIELD(Kernel, maxPotentialClusterSize, 200, uint32_t)         \
	FIELD(Kernel, maxActiveClusters, 204, uint32_t)               \
	FIELD(Memcpy, kind, 0, uint32_t)                              \
	FIELD(Memcpy, copyKind, 4, uint8_t)                           \
	FIELD(Memcpy, srcKind, 5, uint8_t)                            \
	FIELD(Memcpy, dstKind, 6, uint8_t)                            \
	FIELD(Memcpy, flags, 7, uint8_t)                              \
	FIELD(Memcpy, bytes, 8, uint64_t)                             \
	FIELD(Memcpy, start, 16, uint64_t)                            \
	FIELD(Memcpy, end, 24, uint64_t)                              \
	FIELD(Memcpy, deviceId, 32, uint32_t)                         \
	FIELD(Memcpy, contextId, 36, uint32_t)                        \
	FIELD(Memcpy, streamId, 40, uint32_t)                         \
	FIELD(Memcpy, correlationId, 44, uint32_t)                    \
	FIELD(Memcpy, runtimeCorrelationId, 48, uint32_t)             \
	FIELD(Memcpy, graphNodeId, 64, uint64_t)                      \
	FIELD(Memcpy, graphId, 72, uint32_t)                          \
	FIELD(Memcpy, channelID, 76, uint32_t)                        \
	FIELD(Memcpy, channelType, 80, uint32_t)                      \
	FIELD(MemcpyPtoP, kind, 0, uint32_t)                          \
	FIELD(MemcpyPtoP, copyKind, 4, uint8_t)                       \
	FIELD(MemcpyPtoP, srcKind, 5, uint8_t)                        \
	FIELD(MemcpyPtoP, dstKind, 6, uint8_t)                        \
	FIELD(MemcpyPtoP, flags, 7, uint8_t)                          \
	FIELD(MemcpyPtoP, bytes, 8, uint64_t)                         \
	FIELD(MemcpyPtoP, start, 16, uint64_t)                        \
	FIELD(MemcpyPtoP, end, 24, uint64_t)                          \
	FIELD(MemcpyPtoP, deviceId, 32, uint32_t)                     \
	FIELD(MemcpyPtoP, contextId, 36, uint32_t)                    \
	FIELD(MemcpyPtoP, streamId, 40, uint32_t)                     \
	FIELD(MemcpyPtoP, srcDeviceId, 44, uint32_t)                  \
	FIELD(MemcpyPtoP, srcContextId, 48, uint32_t)                 \
	FIELD(MemcpyPtoP, dstDeviceId, 52, uint32_t)                  \
	FIELD(MemcpyPtoP, dstContextId, 56, uint32_t)                 \
	FIELD(MemcpyPtoP, correlationId, 60, uint32_t)                \
	FIELD(MemcpyPtoP, graphNodeId, 72, uint64_t)                  \
	FIELD(MemcpyPtoP, graphId, 80, uint32_t)                      \
	FIELD(MemcpyPtoP, channelID, 84, uint32_t)                    \
	FIELD(MemcpyPtoP, channelType, 88, uint32_t)                  \
	FIELD(Memset, kind, 0, uint32_t)                              \
	FIELD(Memset, value, 4, uint32_t)                             \
	FIELD(Memset, bytes, 8, uint64_t)                             \
	FIELD(Memset, start, 16, uint64_t)                            \
	FIELD(Memset, end, 24, uint64_t)                              \
	FIELD(Memset, deviceId, 32, uint32_t)                         \
	FIELD(Memset, contextId, 36, uint32_t)                        \
	FIELD(Memset, streamId, 40, uint32_t)                         \
	FIELD(Memset, correlationId, 44, uint32_t)                    \
	FIELD(Memset, flags, 48, uint16_t)                            \
	FIELD(Memset, memoryKind, 50, uint16_t)                       \
	FIELD(Memset, graphNodeId, 64, uint64_t)                      \
	FIELD(Memset, graphId, 72, uint32_t)                          \
	FIELD(Memset, channelID, 76, uint32_t)                        \
	FIELD(Memset, channelType, 80, uint32_t)                      \
	FIELD(Memory, kind, 0, uint32_t)                              \
	FIELD(Memory, memoryOperationType, 4, uint32_t)               \
	FIELD(Memory, memoryKind, 8, uint32_t)                        \
	FIELD(Memory, correlationId, 12, uint32_t)                    \
	FIELD(Memory, address, 16, uint64_t)                          \
	FIELD(Memory, bytes, 24, uint64_t)                            \
	FIELD(Memory, timestamp, 32, uint64_t)                        \
	FIELD(Memory, PC, 40, uint64_t)                               \
	FIELD(Memory, processId, 48, uint32_t)                        \
	FIELD(Memory, deviceId, 52, uint32_t)                         \
	FIELD(Memory, contextId, 56, uint32_t)                        \
	FIELD(Memory, streamId, 60, uint32_t)                         \
	FIELD(Memory, name, 64, const char *)                         \
	FIELD(Memory, isAsync, 72, uint32_t)                          \
	FIELD(API, kind, 0, uint32_t)                                 \
	FIELD(API, cbid, 4, uint32_t)                                 \
	FIELD(API, start, 8, uint64_t)                                \
	FIELD(API, end, 16, uint64_t)                                 \
	FIELD(API, processId, 24, uint32_t)                           \
	FIELD(API, threadId, 28, uint32_t)                            \
	FIELD(API, correlationId, 32, uint32_t)                       \
	FIELD(API, returnValue, 36, uint32_t)                         \
	FIELD(ExternalCorrelation, kind, 0, uint32_t)                 \
	FIELD(ExternalCorrelation, externalKind, 4, uint32_t)         \
	FIELD(ExternalCorrelation, externalId, 8, uint64_t)           \
	FIELD(ExternalCorrelation, correlationId, 16, uint32_t)       \
	FIELD(Overhead, kind, 0, uint32_t)                            \
	FIELD(Overhead, overheadKind, 4, uint32_t)                    \
	FIELD(Overhead, objectKind, 8, uint32_t)                      \
	FIELD(Overhead, start, 24, uint64_t)                          \
	FIELD(Overhead, end, 32, uint64_t)                            \
	FIELD(Synchronization, kind, 0, uint32_t)                     \
	FIELD(Synchronization, type, 4, uint32_t)                     \
	FIELD(Synchronization, start, 8, uint64_t)                    \
	FIELD(Synchronization, end, 16, uint64_t)                     \
	FIELD(Synchronization, correlationId, 24, uint32_t)           \
	FIELD(Synchronization, contextId, 28, uint32_t)               \
	FIELD(Synchronization, streamId, 32, uint32_t)                \
	FIELD(Synchronization, cudaEventId, 36, uint32_t)             \
	FIELD(CudaEvent, kind, 0, uint32_t)                           \
	FIELD(CudaEvent, correlationId, 4, uint32_t)                  \
	FIELD(CudaEvent, contextId, 8, uint32_t)                      \
	FIELD(CudaEvent, streamId, 12, uint32_t)                      \
	FIELD(CudaEvent, eventId, 16, uint32_t)                       \
	FIELD(GraphTrace, kind, 0, uint32_t)                          \
	FIELD(GraphTrace, correlationId, 4, uint32_t)                 \
	FIELD(GraphTrace, start, 8, uint64_t)                         \
	FIELD(GraphTrace, end, 16, uint64_t)                          \
	FIELD(GraphTrace, deviceId, 24, uint32_t)                     \
	FIELD(GraphTrace, graphId, 28, uint32_t)                      \
	FIELD(GraphTrace, contextId, 32, uint32_t)                    \
	FIELD(GraphTrace, streamId, 36, uint32_t)                     \
	FIELD(Device, kind, 0, uint32_t)                              \
	FIELD(Device, globalMemorySize, 16, uint64_t)                 \
	FIELD(Device, constantMemorySize, 24, uint32_t)               \
	FIELD(Device, l2CacheSize, 28, uint32_t)                      \
	FIELD(Device, numThreadsPerWarp, 32, uint32_t)                \
	FIELD(Device, coreClockRate, 36, uint32_t)                    \
	FIELD(Device, numMultiprocessors, 44, uint32_t)               \
	FIELD(Device, maxWarpsPerMultiprocessor, 52, uint32_t)        \
	FIELD(Device, maxBlocksPerMultiprocessor, 56, uint32_t)       \
	FIELD(Device, maxSharedMemoryPerMultiprocessor, 60, uint32_t) \
	FIELD(Device, maxRegistersPerMultiprocessor, 64, uint32_t)    \
	FIELD(Device, maxRegistersPerBlock, 68, uint32_t)             \
	FIELD(Device, maxSharedMemoryPerBlock, 72, uint32_t)          \
	FIELD(Device, maxThreadsPerBlock, 76, uint32_t)               \
	FIELD(Device, computeCapabilityMajor, 104, uint32_t)          \
	FIELD(Device, computeCapabilityMinor, 108, uint32_t)          \
	FIELD(Device, id, 112, uint32_t)                              \
	FIELD(Device, name, 136, const char *)                        \
	FIELD(Device, isCudaVisible, 144, uint8_t)                    \
	FIELD(Context, kind, 0, uint32_t)                             \
	FIELD(Context, contextId, 4, uint32_t)                        \
	FIELD(Context, deviceId, 8, uint32_t)                         \
	FIELD(Context, computeApiKind, 12, uint16_t)                  \
	FIELD(Context, nullStreamId, 14, uint16_t)                    \
	FIELD(Stream, kind, 0, uint32_t)                              \
	FIELD(Stream, contextId, 4, uint32_t)                         \
	FIELD(Stream, streamId, 8, uint32_t)                          \
	FIELD(Stream, priority, 12, uint32_t)                         \
	FIELD(Stream, flag, 16, uint32_t)                             \
	FIELD(Stream, correlationId, 20, uint32_t)

/* What came later, asserted only where the headers are as new: 12.2, 12.3, 12.5, 12.6, 12.8, 13.0.
 */
#define CUPTI_FIELDS_20(FIELD) FIELD(Overhead, correlationId, 40, uint32_t)
#define CUPTI_FIELDS_21(FIELD)                       \
	FIELD(GraphTrace, endDeviceId, 48, uint32_t) \
	FIELD(GraphTrace, endContextId, 52, uint32_t)
#define CUPTI_FIELDS_23(FIELD) FIELD(Context, numMultiprocessors, 22, uint16_t)
#define CUPTI_FIELDS_24(FIELD) FIELD(Memory, source, 120, const char *)
#define CUPTI_FIELDS_26(FIELD)                                \
	FIELD(Memcpy, copyCount, 88, uint64_t)                \
	FIELD(Synchronization, cudaEventSyncId, 40, uint64_t) \
	FIELD(Synchronization, returnValue, 48, uint32_t)     \
	FIELD(CudaEvent, deviceId, 24, uint32_t)              \
	FIELD(CudaEvent, deviceTimestamp, 40, uint64_t)       \
	FIELD(CudaEvent, cudaEventSyncId, 48, uint64_t)
#define CUPTI_FIELDS_130000(FIELD) FIELD(Kernel, isDeviceLaunched, 208, uint8_t)

/* Members of members: NESTED(record, name, member, offset, type). */
#define CUPTI_NESTED_19(NESTED)                                                        \
	NESTED(Overhead, processId, objectId.pt.processId, 12, uint32_t)               \
	NESTED(Overhead, threadId, objectId.pt.threadId, 16, uint32_t)                 \
	NESTED(Memory, poolType, memoryPoolConfig.memoryPoolType, 80, uint32_t)        \
	NESTED(Memory, poolAddress, memoryPoolConfig.address, 88, uint64_t)            \
	NESTED(Memory, poolThreshold, memoryPoolConfig.releaseThreshold, 96, uint64_t) \
	NESTED(Memory, poolSize, memoryPoolConfig.pool.size, 104, uint64_t)            \
	NESTED(Memory, poolUsed, memoryPoolConfig.utilizedSize, 112, uint64_t)         \
	NESTED(Device, uuid, uuid.bytes[0], 120, uint8_t)

/*
 * LENGTH(kind, record, struct, bytes, since): from API version `since` on, records of this kind are
 * CUpti_Activity<struct>s. By kind, then by version. CUDA 12.8 to 12.9 say 26, 27, 28. The release
 * that brought Device5 is not documented; it is taken to be 12.2.
 */
#define CUPTI_LENGTHS_12(LENGTH)                                                                   \
	LENGTH(CUPTI_ACTIVITY_KIND_KERNEL, Kernel, Kernel9, 208, 19)                               \
	LENGTH(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, Kernel, Kernel9, 208, 19)                    \
	LENGTH(CUPTI_ACTIVITY_KIND_MEMCPY, Memcpy, Memcpy5, 88, 19)                                \
	LENGTH(CUPTI_ACTIVITY_KIND_MEMCPY2, MemcpyPtoP, MemcpyPtoP4, 96, 19)                       \
	LENGTH(CUPTI_ACTIVITY_KIND_MEMSET, Memset, Memset4, 88, 19)                                \
	LENGTH(CUPTI_ACTIVITY_KIND_MEMORY2, Memory, Memory3, 120, 19)                              \
	LENGTH(CUPTI_ACTIVITY_KIND_DRIVER, API, API, 40, 19)                                       \
	LENGTH(CUPTI_ACTIVITY_KIND_RUNTIME, API, API, 40, 19)                                      \
	LENGTH(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, ExternalCorrelation, ExternalCorrelation, \
		24, 19)                                                                            \
	LENGTH(CUPTI_ACTIVITY_KIND_OVERHEAD, Overhead, Overhead, 40, 19)                           \
	LENGTH(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Synchronization, Synchronization, 40, 19)      \
	LENGTH(CUPTI_ACTIVITY_KIND_CUDA_EVENT, CudaEvent, CudaEvent, 24, 19)                       \
	LENGTH(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, GraphTrace, GraphTrace, 48, 19)                    \
	LENGTH(CUPTI_ACTIVITY_KIND_DEVICE, Device, Device4, 176, 19)                               \
	LENGTH(CUPTI_ACTIVITY_KIND_CONTEXT, Context, Context, 16, 19)                              \
	LENGTH(CUPTI_ACTIVITY_KIND_STREAM, Stream, Stream, 24, 19)
#define CUPTI_LENGTHS_20(LENGTH)                                          \
	LENGTH(CUPTI_ACTIVITY_KIND_OVERHEAD, Overhead, Overhead2, 48, 20) \
	LENGTH(CUPTI_ACTIVITY_KIND_DEVICE, Device, Device5, 184, 20)
#define CUPTI_LENGTHS_21(LENGTH) \
	LENGTH(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, GraphTrace, GraphTrace2, 56, 21)
#define CUPTI_LENGTHS_22(LENGTH)                                          \
	LENGTH(CUPTI_ACTIVITY_KIND_OVERHEAD, Overhead, Overhead3, 56, 22) \
	LENGTH(CUPTI_ACTIVITY_KIND_CONTEXT, Context, Context2, 24, 22)
#define CUPTI_LENGTHS_23(LENGTH) LENGTH(CUPTI_ACTIVITY_KIND_CONTEXT, Context, Context3, 32, 23)
#define CUPTI_LENGTHS_24(LENGTH) LENGTH(CUPTI_ACTIVITY_KIND_MEMORY2, Memory, Memory4, 128, 24)
#define CUPTI_LENGTHS_26(LENGTH)                                                               \
	LENGTH(CUPTI_ACTIVITY_KIND_MEMCPY, Memcpy, Memcpy6, 96, 26)                            \
	LENGTH(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Synchronization, Synchronization2, 56, 26) \
	LENGTH(CUPTI_ACTIVITY_KIND_CUDA_EVENT, CudaEvent, CudaEvent2, 56, 26)
#define CUPTI_LENGTHS_130000(LENGTH)                                      \
	LENGTH(CUPTI_ACTIVITY_KIND_KERNEL, Kernel, Kernel10, 216, 130000) \
	LENGTH(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, Kernel, Kernel10, 216, 130000)

/* All of it, oldest first. */
#define CUPTI_FIELDS(FIELD)    \
	CUPTI_FIELDS_19(FIELD) \
	CUPTI_FIELDS_20(FIELD) \
	CUPTI_FIELDS_21(FIELD) \
	CUPTI_FIELDS_23(FIELD) \
	CUPTI_FIELDS_24(FIELD) CUPTI_FIELDS_26(FIELD) CUPTI_FIELDS_130000(FIELD)
#define CUPTI_LENGTHS(LENGTH)                                                      \
	CUPTI_LENGTHS_12(LENGTH)                                                   \
	CUPTI_LENGTHS_20(LENGTH)                                                   \
	CUPTI_LENGTHS_21(LENGTH)                                                   \
	CUPTI_LENGTHS_22(LENGTH)                                                   \
	CUPTI_LENGTHS_23(LENGTH) CUPTI_LENGTHS_24(LENGTH) CUPTI_LENGTHS_26(LENGTH) \
		CUPTI_LENGTHS_130000(LENGTH)

/* No record is longer. */
#define CUPTI_RECORD_MAX 216

#define CUPTI_DEFINE(record, member, offset, type) \
	enum { AT_##record##_##member = offset };  \
	typedef type type_##record##_##member;
#define CUPTI_DEFINE_NESTED(record, name, member, offset, type) \
	CUPTI_DEFINE(record, name, offset, type)
CUPTI_FIELDS(CUPTI_DEFINE)
CUPTI_NESTED_19(CUPTI_DEFINE_NESTED)

/* Fields are copied in and out: a client's buffer says nothing about its type. */
#define CUPTI_SET(bytes, record, member, value)                                      \
	do {                                                                         \
		type_##record##_##member field_ = (type_##record##_##member)(value); \
		memcpy((bytes) + AT_##record##_##member, &field_, sizeof field_);    \
	} while (0)
#define CUPTI_GET(bytes, record, member)                                              \
	(*(const type_##record##_##member *)(const void *)((const uint8_t *)(bytes) + \
							   AT_##record##_##member))

#endif
