/* SPDX-License-Identifier: MIT
 * Holds what collector/cupti/abi.h says of CUPTI's binary interface against CUPTI's own headers, as
 * this is compiled. The layouts of older releases stand in the same headers, so that all of them
 * are checked.
 */
#include "collector/cupti/session.h"
#include "collector/cupti/abi.h"
#include "collector/trace_format.h"

#include <assert.h>
#include <check.h>
#include <stdio.h>

#if __has_include(<cupti.h>)
#define HAVE_CUPTI 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cupti.h>
#if __has_include(<cupti_activity_deprecated.h>)
#include <cupti_activity_deprecated.h>
#endif
#pragma GCC diagnostic pop

#define AT(ours, member, theirs, field)                                         \
	static_assert(offsetof(struct ours, member) == offsetof(theirs, field), \
		#ours "." #member " is not where " #theirs " has it")
#define IS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)

#define KERNEL(theirs)                                                    \
	AT(cupti_kernel, registers, theirs, registersPerThread);          \
	AT(cupti_kernel, start, theirs, start);                           \
	AT(cupti_kernel, end, theirs, end);                               \
	AT(cupti_kernel, device, theirs, deviceId);                       \
	AT(cupti_kernel, context, theirs, contextId);                     \
	AT(cupti_kernel, stream, theirs, streamId);                       \
	AT(cupti_kernel, grid[0], theirs, gridX);                         \
	AT(cupti_kernel, grid[1], theirs, gridY);                         \
	AT(cupti_kernel, grid[2], theirs, gridZ);                         \
	AT(cupti_kernel, block[0], theirs, blockX);                       \
	AT(cupti_kernel, block[1], theirs, blockY);                       \
	AT(cupti_kernel, block[2], theirs, blockZ);                       \
	AT(cupti_kernel, static_shared, theirs, staticSharedMemory);      \
	AT(cupti_kernel, dynamic_shared, theirs, dynamicSharedMemory);    \
	AT(cupti_kernel, local_per_thread, theirs, localMemoryPerThread); \
	AT(cupti_kernel, correlation, theirs, correlationId);             \
	AT(cupti_kernel, name, theirs, name);                             \
	AT(cupti_kernel, shared_executed, theirs, sharedMemoryExecuted);  \
	AT(cupti_kernel, graph_node, theirs, graphNodeId);                \
	AT(cupti_kernel, graph, theirs, graphId)
KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10);
#endif
#if CUPTI_API_VERSION >= 130500
KERNEL(CUpti_ActivityKernel13);
#endif

#define MEMCPY(theirs)                                        \
	AT(cupti_memcpy, copy_kind, theirs, copyKind);        \
	AT(cupti_memcpy, source_kind, theirs, srcKind);       \
	AT(cupti_memcpy, target_kind, theirs, dstKind);       \
	AT(cupti_memcpy, flags, theirs, flags);               \
	AT(cupti_memcpy, bytes, theirs, bytes);               \
	AT(cupti_memcpy, start, theirs, start);               \
	AT(cupti_memcpy, end, theirs, end);                   \
	AT(cupti_memcpy, device, theirs, deviceId);           \
	AT(cupti_memcpy, context, theirs, contextId);         \
	AT(cupti_memcpy, stream, theirs, streamId);           \
	AT(cupti_memcpy, correlation, theirs, correlationId); \
	AT(cupti_memcpy, graph_node, theirs, graphNodeId);    \
	AT(cupti_memcpy, graph, theirs, graphId)
MEMCPY(CUpti_ActivityMemcpy5);
#if CUPTI_API_VERSION >= 26
MEMCPY(CUpti_ActivityMemcpy6);
#endif
#if CUPTI_API_VERSION >= 130500
MEMCPY(CUpti_ActivityMemcpy7);
#endif

AT(cupti_memcpy_peer, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
AT(cupti_memcpy_peer, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
AT(cupti_memcpy_peer, target_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
AT(cupti_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP4, flags);
AT(cupti_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
AT(cupti_memcpy_peer, start, CUpti_ActivityMemcpyPtoP4, start);
AT(cupti_memcpy_peer, end, CUpti_ActivityMemcpyPtoP4, end);
AT(cupti_memcpy_peer, device, CUpti_ActivityMemcpyPtoP4, deviceId);
AT(cupti_memcpy_peer, context, CUpti_ActivityMemcpyPtoP4, contextId);
AT(cupti_memcpy_peer, stream, CUpti_ActivityMemcpyPtoP4, streamId);
AT(cupti_memcpy_peer, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
AT(cupti_memcpy_peer, target_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
AT(cupti_memcpy_peer, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(cupti_memcpy_peer, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(cupti_memcpy_peer, graph, CUpti_ActivityMemcpyPtoP4, graphId);

#define MEMSET(theirs)                                        \
	AT(cupti_memset, value, theirs, value);               \
	AT(cupti_memset, bytes, theirs, bytes);               \
	AT(cupti_memset, start, theirs, start);               \
	AT(cupti_memset, end, theirs, end);                   \
	AT(cupti_memset, device, theirs, deviceId);           \
	AT(cupti_memset, context, theirs, contextId);         \
	AT(cupti_memset, stream, theirs, streamId);           \
	AT(cupti_memset, correlation, theirs, correlationId); \
	AT(cupti_memset, flags, theirs, flags);               \
	AT(cupti_memset, memory_kind, theirs, memoryKind);    \
	AT(cupti_memset, graph_node, theirs, graphNodeId);    \
	AT(cupti_memset, graph, theirs, graphId)
MEMSET(CUpti_ActivityMemset4);
#if CUPTI_API_VERSION >= 130500
MEMSET(CUpti_ActivityMemset5);
#endif

#define MEMORY(theirs)                                            \
	AT(cupti_memory, operation, theirs, memoryOperationType); \
	AT(cupti_memory, memory_kind, theirs, memoryKind);        \
	AT(cupti_memory, correlation, theirs, correlationId);     \
	AT(cupti_memory, address, theirs, address);               \
	AT(cupti_memory, bytes, theirs, bytes);                   \
	AT(cupti_memory, time, theirs, timestamp);                \
	AT(cupti_memory, device, theirs, deviceId);               \
	AT(cupti_memory, stream, theirs, streamId)
MEMORY(CUpti_ActivityMemory3);
#if CUPTI_API_VERSION >= 24
MEMORY(CUpti_ActivityMemory4);
#endif

#define SYNCHRONIZATION(theirs)                                        \
	AT(cupti_synchronization, type, theirs, type);                 \
	AT(cupti_synchronization, start, theirs, start);               \
	AT(cupti_synchronization, end, theirs, end);                   \
	AT(cupti_synchronization, correlation, theirs, correlationId); \
	AT(cupti_synchronization, context, theirs, contextId);         \
	AT(cupti_synchronization, stream, theirs, streamId);           \
	AT(cupti_synchronization, event, theirs, cudaEventId)
SYNCHRONIZATION(CUpti_ActivitySynchronization);
#if CUPTI_API_VERSION >= 26
SYNCHRONIZATION(CUpti_ActivitySynchronization2);
#endif

#define EVENT(theirs)                                        \
	AT(cupti_event, correlation, theirs, correlationId); \
	AT(cupti_event, context, theirs, contextId);         \
	AT(cupti_event, stream, theirs, streamId);           \
	AT(cupti_event, event, theirs, eventId)
EVENT(CUpti_ActivityCudaEvent);
#if CUPTI_API_VERSION >= 26
EVENT(CUpti_ActivityCudaEvent2);
AT(cupti_event, device_time, CUpti_ActivityCudaEvent2, deviceTimestamp);
AT(cupti_synchronization, event_record, CUpti_ActivitySynchronization2, cudaEventSyncId);
AT(cupti_synchronization, result, CUpti_ActivitySynchronization2, returnValue);
#endif
#if CUPTI_API_VERSION >= 130500
EVENT(CUpti_ActivityCudaEvent3);
AT(cupti_event, device_time, CUpti_ActivityCudaEvent3, deviceTimestamp);
#endif

#define GRAPH_LAUNCH(theirs)                                        \
	AT(cupti_graph_launch, correlation, theirs, correlationId); \
	AT(cupti_graph_launch, start, theirs, start);               \
	AT(cupti_graph_launch, end, theirs, end);                   \
	AT(cupti_graph_launch, device, theirs, deviceId);           \
	AT(cupti_graph_launch, graph, theirs, graphId);             \
	AT(cupti_graph_launch, context, theirs, contextId);         \
	AT(cupti_graph_launch, stream, theirs, streamId)
GRAPH_LAUNCH(CUpti_ActivityGraphTrace);
#if CUPTI_API_VERSION >= 21
GRAPH_LAUNCH(CUpti_ActivityGraphTrace2);
AT(cupti_graph_launch, end_device, CUpti_ActivityGraphTrace2, endDeviceId);
AT(cupti_graph_launch, end_context, CUpti_ActivityGraphTrace2, endContextId);
#endif

#define OVERHEAD(theirs)                                     \
	AT(cupti_overhead, type, theirs, overheadKind);      \
	AT(cupti_overhead, object_kind, theirs, objectKind); \
	AT(cupti_overhead, object, theirs, objectId);        \
	AT(cupti_overhead, start, theirs, start);            \
	AT(cupti_overhead, end, theirs, end)
OVERHEAD(CUpti_ActivityOverhead);
#if CUPTI_API_VERSION >= 20
OVERHEAD(CUpti_ActivityOverhead2);
AT(cupti_overhead, correlation, CUpti_ActivityOverhead2, correlationId);
#endif
#if CUPTI_API_VERSION >= 22
OVERHEAD(CUpti_ActivityOverhead3);
AT(cupti_overhead, correlation, CUpti_ActivityOverhead3, correlationId);
#endif
static_assert(offsetof(CUpti_ActivityObjectKindId, pt.threadId) == sizeof(uint32_t),
	"object[1] is not a thread's id");

AT(cupti_api, cbid, CUpti_ActivityAPI, cbid);
AT(cupti_api, start, CUpti_ActivityAPI, start);
AT(cupti_api, end, CUpti_ActivityAPI, end);
AT(cupti_api, thread, CUpti_ActivityAPI, threadId);
AT(cupti_api, correlation, CUpti_ActivityAPI, correlationId);
AT(cupti_api, result, CUpti_ActivityAPI, returnValue);

#define CONTEXT(theirs)                                \
	AT(cupti_context, context, theirs, contextId); \
	AT(cupti_context, device, theirs, deviceId);   \
	AT(cupti_context, null_stream, theirs, nullStreamId)
CONTEXT(CUpti_ActivityContext);
#if CUPTI_API_VERSION >= 23
CONTEXT(CUpti_ActivityContext2);
#endif
#if CUPTI_API_VERSION >= 26
CONTEXT(CUpti_ActivityContext3);
#endif
#if CUPTI_API_VERSION >= 130500
CONTEXT(CUpti_ActivityContext4);
#endif

AT(cupti_call, site, CUpti_CallbackData, callbackSite);
AT(cupti_call, name, CUpti_CallbackData, functionName);
AT(cupti_call, arguments, CUpti_CallbackData, functionParams);
AT(cupti_call, result, CUpti_CallbackData, functionReturnValue);
AT(cupti_call, symbol, CUpti_CallbackData, symbolName);
AT(cupti_call, context_handle, CUpti_CallbackData, context);
AT(cupti_call, context, CUpti_CallbackData, contextUid);
AT(cupti_call, data, CUpti_CallbackData, correlationData);
AT(cupti_call, correlation, CUpti_CallbackData, correlationId);
AT(cupti_resource, context, CUpti_ResourceData, context);
AT(cupti_resource, stream, CUpti_ResourceData, resourceHandle.stream);
AT(cupti_resource, descriptor, CUpti_ResourceData, resourceDescriptor);
AT(cupti_graph, graph, CUpti_GraphData, graph);
AT(cupti_graph, original_graph, CUpti_GraphData, originalGraph);
AT(cupti_graph, node, CUpti_GraphData, node);
AT(cupti_graph, original_node, CUpti_GraphData, originalNode);
AT(cupti_graph, node_type, CUpti_GraphData, nodeType);
AT(cupti_graph, exec, CUpti_GraphData, graphExec);
AT(cupti_state, result, CUpti_StateData, notification.result);
AT(cupti_state, message, CUpti_StateData, notification.message);

IS(CUPTI_OK, CUPTI_SUCCESS);
IS(CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
IS(CUPTI_NO_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
IS(CUPTI_END_OF_BUFFER, CUPTI_ERROR_MAX_LIMIT_REACHED);
IS(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
IS(CUPTI_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
IS(CUPTI_NO_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
#if CUPTI_API_VERSION >= 20
IS(CUPTI_OTHER_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#endif
IS(CUPTI_UNKNOWN_ERROR, CUPTI_ERROR_UNKNOWN);
IS(CUPTI_ENTER, CUPTI_API_ENTER);
IS(CUPTI_EXIT, CUPTI_API_EXIT);
IS(CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
IS(CUPTI_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
IS(CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
IS(CUPTI_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
IS(CUPTI_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED);
IS(CUPTI_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED);
IS(CUPTI_MODULE_UNLOAD, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
IS(CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
IS(CUPTI_GRAPH_EXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
IS(CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
#if CUPTI_API_VERSION >= 20
IS(CUPTI_STATE, CUPTI_CB_DOMAIN_STATE);
IS(CUPTI_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);
IS(CUPTI_ERROR, CUPTI_CBID_STATE_ERROR);
IS(CUPTI_WARNING, CUPTI_CBID_STATE_WARNING);
#endif
IS(CUPTI_HOST_PINNED, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
#if CUPTI_API_VERSION >= 21
IS(CUPTI_BUFFER_EACH_THREAD, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
#endif
IS(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
IS(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
IS(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
IS(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
IS(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
IS(CUPTI_DRIVER_CALL, CUPTI_ACTIVITY_KIND_DRIVER);
IS(CUPTI_RUNTIME_CALL, CUPTI_ACTIVITY_KIND_RUNTIME);
IS(CUPTI_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
IS(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
IS(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
IS(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
IS(CUPTI_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
IS(CUPTI_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
IS(CUPTI_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
AT(cupti_external, external, CUpti_ActivityExternalCorrelation, externalId);
AT(cupti_external, correlation, CUpti_ActivityExternalCorrelation, correlationId);
IS(CUPTI_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2);
IS(CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
/* The trace has CUPTI's numbers. */
IS(TRACE_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
IS(TRACE_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
IS(TRACE_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
IS(TRACE_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
IS(TRACE_SYNC_STREAM_WAIT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
IS(TRACE_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
#else
#define HAVE_CUPTI 0
#endif

START_TEST(the_headers_were_there_to_be_compared_with)
{
	if (!HAVE_CUPTI)
		fputs("SKIP: no cupti.h; CUPTI's layouts were not checked\n", stderr);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti abi");
	TCase *cases = tcase_create("cupti abi");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, the_headers_were_there_to_be_compared_with);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
