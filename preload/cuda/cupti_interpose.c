/* SPDX-License-Identifier: MIT
 * Interposes the functions of CUPTI that a process can use for one client only. Calls of another
 * profiler arrive here, and it is served beside pperf (collector/cupti/client.h). torch.profiler's
 * do, because libtorch_cpu links libcupti. A tool that takes the functions from libcupti by dlsym
 * is not seen.
 */
#include "collector/cupti/client.h"
#include "preload/cuda/traced_call.h"
#include "preload/cuda/cupti_callbacks.h"
#include "preload/cuda/real.h"

#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

/* name, function, parameters, arguments */
#define CALLS(X)                                                                                   \
	X(cuptiActivityRegisterCallbacks, cupti_client_register,                                   \
		(cupti_buffer_requested requested, cupti_buffer_completed completed),              \
		(requested, completed))                                                            \
	X(cuptiActivityRegisterTimestampCallback, cupti_client_set_clock, (cupti_clock clock),     \
		(clock))                                                                           \
	X(cuptiActivityEnable, cupti_client_enable, (int kind), (kind))                            \
	X(cuptiActivityDisable, cupti_client_disable, (int kind), (kind))                          \
	X(cuptiActivityEnableDriverApi, cupti_client_enable_driver_api,                            \
		(uint32_t cbid, uint8_t on), (cbid, on))                                           \
	X(cuptiActivityEnableRuntimeApi, cupti_client_enable_runtime_api,                          \
		(uint32_t cbid, uint8_t on), (cbid, on))                                           \
	X(cuptiActivityEnableAllSyncRecords, cupti_client_enable_all_syncs, (uint8_t on), (on))    \
	X(cuptiActivityFlushAll, cupti_client_flush, (uint32_t flags), (flags))                    \
	X(cuptiActivityGetNumDroppedRecords, cupti_client_get_dropped,                             \
		(void *context, uint32_t stream, size_t *dropped), (context, stream, dropped))     \
	X(cuptiActivitySetAttribute, cupti_client_set_attribute,                                   \
		(int attribute, size_t *bytes, void *value), (attribute, bytes, value))            \
	X(cuptiSubscribe, cupti_client_subscribe,                                                  \
		(void **subscriber, cupti_callback callback, void *data),                          \
		(subscriber, callback, data))                                                      \
	X(cuptiUnsubscribe, cupti_client_unsubscribe, (void *subscriber), (subscriber))            \
	X(cuptiEnableCallback, cupti_client_enable_callback,                                       \
		(uint32_t on, void *subscriber, int domain, uint32_t id),                          \
		(on, subscriber, domain, id))                                                      \
	X(cuptiEnableDomain, cupti_client_enable_domain,                                           \
		(uint32_t on, void *subscriber, int domain), (on, subscriber, domain))             \
	X(cuptiActivityEnableAndDump, cupti_client_enable_and_dump, (int kind), (kind))            \
	X(cuptiActivityEnableContext, cupti_client_enable_context, (void *context, int kind),      \
		(context, kind))                                                                   \
	X(cuptiActivityDisableContext, cupti_client_disable_context, (void *context, int kind),    \
		(context, kind))                                                                   \
	X(cuptiSubscribe_v2, cupti_client_subscribe_v2,                                            \
		(void **subscriber, cupti_callback callback, void *data, void *more),              \
		(subscriber, callback, data, more))                                                \
	X(cuptiEnableAllDomains, cupti_client_enable_all_domains, (uint32_t on, void *subscriber), \
		(on, subscriber))                                                                  \
	X(cuptiGetCallbackState, cupti_client_callback_state,                                      \
		(uint32_t * on, void *subscriber, int domain, uint32_t id),                        \
		(on, subscriber, domain, id))                                                      \
	X(cuptiFinalize, cupti_client_finalize, (void), ())

/* Starts pperf's own session before the client's call, so that it is never the second one. Before
 * that, queries what pperf needs of the runtime, so that the client does not see these calls. */
static void start_own_session(const void *caller)
{
	static atomic_bool prepared;

	if (!atomic_exchange(&prepared, true))
		real_prepare(caller);
	cupti_callbacks_start();
}

#define X(name, function, parameters, arguments) \
	EXPORT int name parameters;              \
	EXPORT int name parameters               \
	{                                        \
		start_own_session(CALLER);       \
		return function arguments;       \
	}
CALLS(X)
#undef X
