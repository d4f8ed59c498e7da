/*
 * A small tool on top of the simulated CUPTI, for its tests: loads the libraries of one CUDA major,
 * subscribes, keeps what callbacks and buffers bring, and makes CUDA calls.
 *
 * A test opens one client in its own process (Check forks): the libraries of two majors do not live
 * together. The environment is set before client_open().
 */
#ifndef CUPTI_CLIENT_H
#define CUPTI_CLIENT_H

#include "cupti/layout.h"

#include <check.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

/* What the tests call, by domain. NULL where a library does not have it. */
#define CUPTI_FUNCTIONS(X)                              \
	X(cuptiGetVersion)                              \
	X(cuptiGetTimestamp)                            \
	X(cuptiGetResultString)                         \
	X(cuptiGetErrorMessage)                         \
	X(cuptiGetCallbackName)                         \
	X(cuptiSubscribe)                               \
	X(cuptiSubscribe_v2)                            \
	X(cuptiUnsubscribe)                             \
	X(cuptiEnableCallback)                          \
	X(cuptiEnableDomain)                            \
	X(cuptiEnableAllDomains)                        \
	X(cuptiGetCallbackState)                        \
	X(cuptiActivityRegisterCallbacks)               \
	X(cuptiActivityRegisterTimestampCallback)       \
	X(cuptiActivityEnable)                          \
	X(cuptiActivityDisable)                         \
	X(cuptiActivityEnableAndDump)                   \
	X(cuptiActivityEnableContext)                   \
	X(cuptiActivityDisableContext)                  \
	X(cuptiActivityEnableRuntimeApi)                \
	X(cuptiActivityEnableDriverApi)                 \
	X(cuptiActivityEnableLatencyTimestamps)         \
	X(cuptiActivityEnableAllSyncRecords)            \
	X(cuptiActivityEnableHWTrace)                   \
	X(cuptiActivityEnableCudaEventDeviceTimestamps) \
	X(cuptiActivityFlushAll)                        \
	X(cuptiActivityFlushPeriod)                     \
	X(cuptiActivityGetNextRecord)                   \
	X(cuptiActivityGetNumDroppedRecords)            \
	X(cuptiActivityGetAttribute)                    \
	X(cuptiActivitySetAttribute)                    \
	X(cuptiActivityPushExternalCorrelationId)       \
	X(cuptiActivityPopExternalCorrelationId)        \
	X(cuptiSetThreadIdType)                         \
	X(cuptiGetThreadIdType)                         \
	X(cuptiGetDeviceId)                             \
	X(cuptiGetContextId)                            \
	X(cuptiGetStreamIdEx)                           \
	X(cuptiGetGraphId)                              \
	X(cuptiGetGraphNodeId)                          \
	X(cuptiGetGraphExecId)                          \
	X(cuptiFinalize)

#define DRIVER_FUNCTIONS(X)         \
	X(cuInit)                   \
	X(cuDevicePrimaryCtxRetain) \
	X(cuCtxSetCurrent)          \
	X(cuCtxSynchronize)         \
	X(cuModuleLoadData)         \
	X(cuModuleGetFunction)      \
	X(cuLaunchKernel)           \
	X(cuStreamCreate)           \
	X(cuStreamSynchronize)      \
	X(cuMemAlloc_v2)            \
	X(cuMemFree_v2)

#define RUNTIME_FUNCTIONS(X)            \
	X(cudaFree)                     \
	X(cudaMalloc)                   \
	X(cudaMallocAsync)              \
	X(cudaFreeAsync)                \
	X(cudaMemcpy)                   \
	X(cudaMemcpyAsync)              \
	X(cudaMemset)                   \
	X(cudaMemsetAsync)              \
	X(cudaLaunchKernel)             \
	X(cudaSetDevice)                \
	X(cudaMemcpyPeerAsync)          \
	X(cudaStreamCreate)             \
	X(cudaStreamCreateWithPriority) \
	X(cudaStreamSynchronize)        \
	X(cudaStreamQuery)              \
	X(cudaStreamWaitEvent)          \
	X(cudaStreamBeginCapture)       \
	X(cudaStreamEndCapture)         \
	X(cudaDeviceSynchronize)        \
	X(cudaEventCreate)              \
	X(cudaEventQuery)               \
	X(cudaEventRecord)              \
	X(cudaEventSynchronize)         \
	X(cudaGraphInstantiate)         \
	X(cudaGraphLaunch)              \
	X(__cudaRegisterFatBinary)      \
	X(__cudaRegisterFatBinaryEnd)   \
	X(__cudaRegisterFunction)

/* Of crt/host_runtime.h, which is for C++ only. */
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp_size);

#define CLIENT_POINTER(name) __typeof__(name) *name;
struct cupti_functions {
	CUPTI_FUNCTIONS(CLIENT_POINTER)
};
struct cuda_functions {
	DRIVER_FUNCTIONS(CLIENT_POINTER)
	RUNTIME_FUNCTIONS(CLIENT_POINTER)
};
extern struct cupti_functions cupti;
extern struct cuda_functions cuda;

/* One callback, with what it was given. */
struct event {
	CUpti_CallbackDomain domain;
	CUpti_CallbackId cbid;
	int tid;
	/* API callbacks */
	CUpti_ApiCallbackSite site;
	uint32_t correlation;
	uint64_t data; /* *correlationData, which ENTER sets to `order` + 1 */
	char name[64];
	char symbol[64];      /* "": none */
	bool symbol_is_valid; /* false: symbolName is no address */
	bool has_params;
	int result;       /* at EXIT */
	uint32_t context; /* uid */
	/* resource and synchronise callbacks */
	CUcontext context_handle;
	CUstream stream;
	uint32_t module;
	size_t module_bytes;
	uint64_t node, original_node; /* ids */
	int node_kind;
	uint32_t graph_exec; /* id */
	/* state callbacks */
	CUptiResult code;
	char message[80];
	size_t order; /* among all callbacks */
};

/* One record as it was read. */
struct entry {
	uint32_t kind;
	size_t buffer; /* the how manyth buffer it came in, from 0 */
	uint8_t bytes[CUPTI_RECORD_MAX];
};

struct buffer_note {
	size_t valid;
	size_t records;
	CUptiResult end; /* what ended the iteration */
	int tid;         /* where bufferCompleted ran */
};

struct client {
	int major;
	CUpti_SubscriberHandle subscriber;
	size_t buffer_bytes;   /* of the next buffers; 0: declines. Default 64 KiB */
	size_t buffer_records; /* maxNumRecords of the next buffers; default 0 */
	size_t requests;
	int request_tid; /* where the latest bufferRequested ran */
	size_t dropped;  /* sum over all buffers */
	struct event *events;
	size_t event_count;
	struct entry *entries;
	size_t entry_count;
	struct buffer_note *buffers;
	size_t buffer_count;
};
extern struct client client;

/* Loads the libraries of `major` and subscribes. client_load() does not subscribe. */
void client_load(int major);
void client_open(int major);
/* Enables callbacks of `domain`: ids, ended by 0. */
void client_enable(CUpti_CallbackDomain domain, ...);
/* Registers the buffer callbacks and enables kinds, ended by 0. */
void client_record(int kind, ...);
void client_flush(bool forced);
/* Synchronises the context, then flushes what is complete. */
void client_finish(void);

/* A kernel of the driver API; makes device 0's primary context current on the calling thread. */
CUfunction client_kernel(const char *name);
void client_launch(CUfunction kernel, CUstream stream, unsigned blocks);
/* A kernel for cudaLaunchKernel. */
const void *client_runtime_kernel(const char *name);
void client_runtime_launch(const void *kernel, cudaStream_t stream, unsigned blocks);

/* How many buffers have come; for while the worker may bring more. */
size_t client_buffers(void);

/* How many, and the nth (from 0) that match; a missing one fails the test. */
size_t client_events(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
const struct event *client_event(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, size_t nth);
const struct event *client_api(
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid, CUpti_ApiCallbackSite site, size_t nth);
size_t client_entries(uint32_t kind);
const uint8_t *client_entry(uint32_t kind, size_t nth);

int client_tid(void);

/* Runs a suite; what main() returns. */
int client_run(Suite *suite);

#endif
