/* SPDX-License-Identifier: MIT
 * Declares what pperf uses of CUPTI's binary interface. Only this folder and its tests include it.
 *
 * libcupti is found at run time, in whatever version the program has, so nothing here comes from
 * its headers. Numbers and record layouts are written down, and tests/collector/test_cupti_abi.c
 * asserts each of them against the real headers where there are any.
 *
 * A library always writes the newest record layout it knows. From CUDA 12.0 (API version 19) on,
 * the layouts of the kinds below have only grown at their end. The structs here are therefore the
 * part that all versions share. A later member is read only if the loaded version is at least the
 * one noted. Never use sizeof of these structs to step from record to record.
 */
#ifndef PPERF_COLLECTOR_CUPTI_ABI_H
#define PPERF_COLLECTOR_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* API versions (cuptiGetVersion). They count up to 12.9. From 13.0 on they are 10000 major + 100
 * minor + update. */
#define CUPTI_VERSION_12_0 19u /* the oldest that pperf uses */
#define CUPTI_VERSION_12_2 20u /* overhead records carry a correlation id */
#define CUPTI_VERSION_12_3 21u /* graph records name the device of the last node */
/* Event records carry the time on the device, and synchronisation records the call's result. */
#define CUPTI_VERSION_12_8 26u
#define CUPTI_VERSION_12_9 27u /* a client may decline to provide a buffer */
#define CUPTI_VERSION_13_0 130000u
#define CUPTI_VERSION_13_0_1 130001u
#define CUPTI_VERSION_13_1_1 130101u
#define CUPTI_VERSION_13_2 130200u
#define CUPTI_VERSION_13_3 130300u
#define CUPTI_VERSION_13_4_1 130401u

/* The values of CUptiResult that pperf tests for. */
enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_INVALID_OPERATION = 7,
	CUPTI_NO_MEMORY = 8,
	CUPTI_END_OF_BUFFER = 12, /* CUPTI's name: CUPTI_ERROR_MAX_LIMIT_REACHED */
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21, /* an incomplete record */
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_NO_PRIVILEGES = 35,
	CUPTI_OTHER_SUBSCRIBER = 39,
	CUPTI_UNKNOWN_ERROR = 999,
};

enum cupti_domain { CUPTI_DRIVER = 1, CUPTI_RUNTIME = 2, CUPTI_RESOURCE = 3, CUPTI_STATE = 6 };

enum cupti_resource_id {
	CUPTI_CONTEXT_CREATED = 1,
	CUPTI_CONTEXT_ENDS = 2,
	CUPTI_STREAM_CREATED = 3,
	CUPTI_MODULE_LOADED = 6,
	CUPTI_MODULE_UNLOAD = 7,
	CUPTI_NODE_CREATED = 13,
	CUPTI_GRAPH_EXEC_CREATED = 18,
	CUPTI_NODE_CLONED = 20,
};

enum cupti_state_id { CUPTI_FATAL_ERROR = 1, CUPTI_ERROR = 2, CUPTI_WARNING = 3 };

enum cupti_attribute { CUPTI_HOST_PINNED = 8, CUPTI_BUFFER_EACH_THREAD = 9 };
enum cupti_thread_id_type { CUPTI_THREAD_ID_SYSTEM = 1 };
#define CUPTI_FLUSH_FORCED 1u

enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3, /* enabled by another client only */
	CUPTI_DRIVER_CALL = 4,
	CUPTI_RUNTIME_CALL = 5,
	CUPTI_CONTEXT = 9,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_MEMCPY_PEER = 22, /* MEMCPY2 */
	CUPTI_CUDA_EVENT = 36,  /* enabled by another client only */
	CUPTI_SYNCHRONIZATION = 38,
	CUPTI_MEMORY = 49, /* MEMORY2 */
	CUPTI_GRAPH_TRACE = 51,
	/* Enabled by another client only; only their times are known here. */
	CUPTI_EXTERNAL_CORRELATION = 39,
	CUPTI_MARKER = 12,
	CUPTI_ENVIRONMENT = 20,
	CUPTI_UNIFIED_MEMORY = 25,
	CUPTI_OPENMP = 47,
	CUPTI_INTERNAL_LAUNCH = 48,
	CUPTI_MEMORY_POOL = 50,
	CUPTI_JIT = 52,
	CUPTI_DEVICE_GRAPH_TRACE = 53,
	CUPTI_MEMORY_DECOMPRESSION = 54,
};

struct cupti_kernel { /* Kernel9 and later */
	uint32_t kind;
	uint8_t cache_config, shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t static_shared, dynamic_shared, local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name; /* valid as long as its module is loaded */
	void *reserved;
	uint64_t queued, submitted;
	/* carveout: requested part of the SM's L1 cache used as shared memory */
	uint8_t launch_type, carveout[2], padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph; /* graph: id of the executable graph */
};

struct cupti_memcpy { /* Memcpy5 and later */
	uint32_t kind;
	uint8_t copy_kind, source_kind, target_kind, flags; /* flags: 1 if asynchronous */
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_memcpy_peer { /* MemcpyPtoP4 */
	uint32_t kind;
	uint8_t copy_kind, source_kind, target_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t source_device, source_context, target_device, target_context, correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_memset { /* Memset4 */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_memory { /* Memory3 and later */
	uint32_t kind, operation, memory_kind, correlation;
	uint64_t address, bytes, time, pc;
	uint32_t process, device, context, stream;
};

struct cupti_synchronization {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
	uint64_t event_record; /* this and the following member: CUPTI_VERSION_12_8 */
	uint32_t result;       /* CUresult */
};
#define CUDA_NOT_READY 600u /* CUresult of a query that finds GPU work unfinished */

struct cupti_event {
	uint32_t kind, correlation, context, stream, event;
	uint32_t padding;
	uint32_t device, padding2; /* this and the following members: CUPTI_VERSION_12_8 */
	void *reserved;
	uint64_t device_time;
};

struct cupti_overhead {
	uint32_t kind, type, object_kind; /* object_kind: 2 if a thread, whose id is in object[1] */
	uint32_t object[3];
	uint64_t start, end;
	uint32_t correlation; /* CUPTI_VERSION_12_2 */
};
#define CUPTI_OBJECT_THREAD 2u
#define CUPTI_OVERHEAD_BUFFER_REQUEST (7u << 16) /* CUPTI_VERSION_12_6 */

struct cupti_graph_launch { /* GraphTrace */
	uint32_t kind, correlation;
	uint64_t start, end;
	/* Of the first node. device and context are CUPTI_ON_HOST if that is a host function. */
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context; /* CUPTI_VERSION_12_3; of the last node */
};
#define CUPTI_ON_HOST 0x7fffffffu

struct cupti_api { /* DRIVER, RUNTIME */
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

struct cupti_external { /* EXTERNAL_CORRELATION */
	uint32_t kind, external_kind;
	uint64_t external;
	uint32_t correlation;
};

struct cupti_context {
	uint32_t kind, context, device;
	uint16_t api, null_stream;
};

/* The argument of RESOURCE callbacks. */
struct cupti_resource {
	void *context;
	void *stream;           /* for STREAM_CREATED */
	const void *descriptor; /* for graphs: struct cupti_graph */
};
struct cupti_graph {
	void *graph, *original_graph, *node, *original_node;
	uint32_t node_type; /* CUgraphNodeType */
	void *dependency, *exec;
};
/* The argument of STATE callbacks. */
struct cupti_state {
	int result;
	const char *message;
};

typedef void (*cupti_callback)(void *data, int domain, uint32_t cbid, const void *call);
typedef void (*cupti_buffer_requested)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*cupti_buffer_completed)(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

typedef uint64_t (*cupti_clock)(void);

/* Every function that is used: 1 if pperf cannot work without it, member, symbol, arguments. All
 * return a CUptiResult. */
#define CUPTI_FUNCTIONS(X)                                                                        \
	X(1, get_version, cuptiGetVersion, (uint32_t * version))                                  \
	X(1, subscribe, cuptiSubscribe, (void **subscriber, cupti_callback callback, void *data)) \
	X(1, enable_callback, cuptiEnableCallback,                                                \
		(uint32_t on, void *subscriber, int domain, uint32_t cbid))                       \
	X(1, register_buffers, cuptiActivityRegisterCallbacks,                                    \
		(cupti_buffer_requested, cupti_buffer_completed))                                 \
	X(1, enable, cuptiActivityEnable, (int kind))                                             \
	X(1, disable, cuptiActivityDisable, (int kind))                                           \
	X(1, flush_all, cuptiActivityFlushAll, (uint32_t flags))                                  \
	X(1, next_record, cuptiActivityGetNextRecord,                                             \
		(uint8_t * buffer, size_t valid, void **record))                                  \
	X(1, dropped, cuptiActivityGetNumDroppedRecords,                                          \
		(void *context, uint32_t stream, size_t *dropped))                                \
	X(0, result_text, cuptiGetResultString, (int result, const char **text))                  \
	X(0, callback_name, cuptiGetCallbackName, (int domain, uint32_t cbid, const char **name)) \
	X(0, set_thread_id_type, cuptiSetThreadIdType, (int type))                                \
	X(0, set_attribute, cuptiActivitySetAttribute,                                            \
		(int attribute, size_t *bytes, void *value))                                      \
	X(0, enable_and_dump, cuptiActivityEnableAndDump, (int kind))                             \
	X(0, enable_driver_api, cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t on))        \
	X(0, enable_runtime_api, cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t on))      \
	X(0, register_clock, cuptiActivityRegisterTimestampCallback, (cupti_clock clock))         \
	X(0, enable_all_syncs, cuptiActivityEnableAllSyncRecords, (uint8_t on))                   \
	X(0, finalize, cuptiFinalize, (void))                                                     \
	X(0, unsubscribe, cuptiUnsubscribe, (void *subscriber))                                   \
	X(0, enable_domain, cuptiEnableDomain, (uint32_t on, void *subscriber, int domain))       \
	X(0, subscribe_v2, cuptiSubscribe_v2,                                                     \
		(void **subscriber, cupti_callback callback, void *data, void *more))             \
	X(0, enable_all_domains, cuptiEnableAllDomains, (uint32_t on, void *subscriber))          \
	X(0, callback_state, cuptiGetCallbackState,                                               \
		(uint32_t * on, void *subscriber, int domain, uint32_t cbid))                     \
	X(0, enable_context, cuptiActivityEnableContext, (void *context, int kind))               \
	X(0, disable_context, cuptiActivityDisableContext, (void *context, int kind))             \
	X(0, context_id, cuptiGetContextId, (void *context, uint32_t *id))                        \
	X(0, device_id, cuptiGetDeviceId, (void *context, uint32_t *id))                          \
	X(0, stream_id, cuptiGetStreamIdEx,                                                       \
		(void *context, void *stream, uint8_t per_thread, uint32_t *id))                  \
	X(0, graph_id, cuptiGetGraphId, (void *graph, uint32_t *id))                              \
	X(0, graph_node_id, cuptiGetGraphNodeId, (void *node, uint64_t *id))                      \
	X(0, graph_exec_id, cuptiGetGraphExecId, (void *exec, uint32_t *id))

/* A loaded libcupti. Functions that are not needed may be NULL. */
struct cupti_library {
#define X(needed, member, symbol, arguments) int(*member) arguments;
	CUPTI_FUNCTIONS(X)
#undef X
	void *handle;
	uint32_t version;
	int driver_version; /* cuDriverGetVersion; 0: unknown */
	char path[4096];
};

/* Finds libcupti, loads it without making its symbols visible, and resolves the functions. `wanted`
 * is the path of the library to use, `toolkit` the folder where CUDA is installed. Either may be
 * NULL. Returns false on failure, with a sentence in `reason`. errno is not preserved. */
int cupti_load(struct cupti_library *library, const char *wanted, const char *toolkit, char *reason,
	size_t reason_bytes);

#endif
