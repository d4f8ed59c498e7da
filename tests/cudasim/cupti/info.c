/*
 * What the simulated CUPTI can be asked at any time: its version, its clock, and the identifiers
 * that records carry.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* By id; made from the real headers at build time. */
static const char *const driver_names[] = {
#include "cbid_names_driver.h"
};
static const char *const runtime_names[] = {
#include "cbid_names_runtime.h"
};

static _Atomic(CUpti_TimestampCallbackFunc) timestamp_callback;
static _Atomic uint64_t origin_ns, origin_ticks; /* when it was registered */
static atomic_int thread_id_type;

uint64_t clock_now(void)
{
	CUpti_TimestampCallbackFunc callback = timestamp_callback;

	return callback ? callback() : sim_time_ns();
}

/* A client's clock may run at another rate: that of the time since it was registered. */
uint64_t clock_of_device(uint64_t realtime_ns)
{
	CUpti_TimestampCallbackFunc callback = timestamp_callback;
	uint64_t ns = sim_time_ns(), ticks;
	double rate;

	if (!callback)
		return realtime_ns;
	ticks = callback();
	rate = ns > origin_ns ? (double)(int64_t)(ticks - origin_ticks) / (double)(ns - origin_ns)
			      : 1;
	return ticks + (uint64_t)(int64_t)((double)(int64_t)(realtime_ns - ns) * rate);
}

bool clock_zeroes(void)
{
	return timestamp_callback && switches()->clock_zeroes;
}

uint32_t thread_id(void)
{
	if (thread_id_type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return (uint32_t)gettid();
	return (uint32_t)(uintptr_t)pthread_self();
}

SIM_EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
	entry_pure(__func__);
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = switches()->version;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
	entry_pure(__func__);
	if (!timestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*timestamp = clock_now();
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
	CUptiResult result = entry(__func__);

	if (!function)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!result) {
		if (timestamp_callback != function) {
			origin_ns = sim_time_ns();
			origin_ticks = function();
		}
		timestamp_callback = function;
	}
	return result;
}

SIM_EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT &&
		type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return CUPTI_ERROR_NOT_SUPPORTED;
	thread_id_type = (int)type;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	entry_pure(__func__);
	if (!type)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*type = (CUpti_ActivityThreadIdType)thread_id_type;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetCallbackName(
	CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	entry_pure(__func__);
	if (!name)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = NULL;
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API)
		return CUPTI_ERROR_INVALID_PARAMETER;
	/* As in the real library, 0 is "INVALID" and no error. */
	if (cbid != 0 && !callback_exists(domain, cbid))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_names[cbid] : runtime_names[cbid];
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!context)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*id = sim_context_id((const struct sim_context *)context);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id)
{
	CUptiResult result = entry(__func__);
	const struct sim_context *of = (const struct sim_context *)context;

	if (result)
		return result;
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!of)
		of = sim_context_current();
	if (!of)
		return CUPTI_ERROR_INVALID_DEVICE;
	*id = (uint32_t)sim_context_device(of);
	return CUPTI_SUCCESS;
}

static CUptiResult stream_id(CUcontext context, CUstream handle, bool per_thread, uint32_t *id)
{
	const struct sim_stream *stream;

	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	stream = sim_stream_of((struct sim_context *)context, handle, per_thread);
	if (!stream)
		return CUPTI_ERROR_INVALID_STREAM;
	if (context && sim_stream_context(stream) != (struct sim_context *)context)
		return CUPTI_ERROR_INVALID_STREAM;
	*id = sim_stream_id(stream);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id)
{
	CUptiResult result = entry(__func__);

	return result ? result : stream_id(context, stream, false, id);
}

SIM_EXPORT CUptiResult cuptiGetStreamIdEx(
	CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id)
{
	CUptiResult result = entry(__func__);

	return result ? result : stream_id(context, stream, per_thread != 0, id);
}

SIM_EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (!graph || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_graph_id((const struct sim_graph *)graph);
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (!node || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_node_id((const struct sim_node *)node);
	return CUPTI_SUCCESS;
}

static CUptiResult get_graph_exec_id(CUgraphExec exec, uint32_t *id)
{
	CUptiResult result = entry("cuptiGetGraphExecId");

	if (result)
		return result;
	if (!exec || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = sim_graph_exec_id((const struct sim_graph_exec *)exec);
	return CUPTI_SUCCESS;
}
CUPTI_SINCE(CUPTI_12_3, cuptiGetGraphExecId, get_graph_exec_id)
