/*
 * Which activity records the client of the simulated CUPTI wants: kinds, single API functions,
 * attributes, and the external correlation ids of each thread.
 */
#include "cupti/parts.h"

#include <stdatomic.h>

enum {
	CBIDS = 1024,
	CONTEXTS = 64, /* those that cuptiActivityEnableContext can single out */
	EXTERNAL_DEPTH = 128,
};

/* What was said of one API function or one context: nothing, or not what was said of all. */
enum said { UNSAID, SAID_OFF, SAID_ON };

static atomic_bool kinds[ACTIVITY_KINDS];
static atomic_uchar in_context[CONTEXTS][ACTIVITY_KINDS];
static atomic_uchar functions[SIM_RUNTIME + 1][CBIDS];
static atomic_bool latency, event_times;
static atomic_uchar all_syncs; /* enum said; UNSAID: SIM_CUPTI_QUERIES */

static _Thread_local struct {
	uint64_t ids[EXTERNAL_DEPTH];
	unsigned depth;
} external[EXTERNAL_KINDS];

/* Attributes and their defaults. */
static struct attribute {
	size_t bytes;
	_Atomic uint64_t value;
	uint32_t since;
} attributes[] = {
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = { sizeof(size_t), 3200000, 0 },
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP] = { sizeof(size_t), 8388608, 0 },
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = { sizeof(size_t), 250, 0 },
	[CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE] = { sizeof(size_t), 25000, 0 },
	[CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT] = { sizeof(size_t), 250, 0 },
	[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = { 1, 0, 0 },
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = { sizeof(size_t), 3, 0 },
	[CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE] = { sizeof(size_t), 3, 0 },
	[CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] = { 1, 0, 0 },
	[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = { 1, SIM_MAJOR >= 13, CUPTI_12_3 },
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = { sizeof(size_t), 16777216,
		CUPTI_12_3 },
};

bool activity_on(CUpti_ActivityKind kind, uint32_t context)
{
	unsigned char said = context < CONTEXTS ? in_context[context][kind] : UNSAID;

	return said == UNSAID ? kinds[kind] : said == SAID_ON;
}

bool activity_any(void)
{
	for (int kind = 0; kind < ACTIVITY_KINDS; kind++)
		if (kinds[kind])
			return true;
	return false;
}

bool activity_api_kind_on(enum sim_domain domain)
{
	return kinds[domain == SIM_RUNTIME ? CUPTI_ACTIVITY_KIND_RUNTIME
					   : CUPTI_ACTIVITY_KIND_DRIVER];
}

bool activity_api_on(enum sim_domain domain, int cbid)
{
	unsigned char said = cbid > 0 && cbid < CBIDS ? functions[domain][cbid] : UNSAID;

	return said == UNSAID ? activity_api_kind_on(domain) : said == SAID_ON;
}

bool activity_latency(void)
{
	return latency;
}

bool activity_sync_wanted(const struct sim_sync *sync)
{
	enum queries queries = switches()->queries;

	if (!sync->query || queries == QUERIES_NONE)
		return !sync->query;
	return !sync->result || all_syncs == SAID_ON ||
	       (all_syncs == UNSAID && queries == QUERIES_ALL);
}

bool activity_event_times(void)
{
	return event_times || switches()->version < CUPTI_13_0;
}

bool activity_per_thread(void)
{
	return switches()->version >= CUPTI_12_3 &&
	       attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER].value != 0;
}

bool activity_zeroed(void)
{
	return attributes[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER].value != 0;
}

static void forget_functions(enum sim_domain domain)
{
	for (int cbid = 0; cbid < CBIDS; cbid++)
		functions[domain][cbid] = UNSAID;
}

void activity_clear(void)
{
	for (int kind = 0; kind < ACTIVITY_KINDS; kind++) {
		kinds[kind] = false;
		for (int context = 0; context < CONTEXTS; context++)
			in_context[context][kind] = UNSAID;
	}
	forget_functions(SIM_DRIVER);
	forget_functions(SIM_RUNTIME);
}

/* Results of CUPTI 13's own kinds of the dropped profiling API, and of kinds that come with others.
 */
static CUptiResult is_kind(CUpti_ActivityKind kind)
{
	uint32_t version = switches()->version;

	switch ((int)kind) {
	case CUPTI_ACTIVITY_KIND_EVENT:
	case CUPTI_ACTIVITY_KIND_METRIC:
	case CUPTI_ACTIVITY_KIND_CDP_KERNEL:
	case CUPTI_ACTIVITY_KIND_EVENT_INSTANCE:
	case CUPTI_ACTIVITY_KIND_METRIC_INSTANCE:
	case CUPTI_ACTIVITY_KIND_MODULE:
	case CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE:
		return CUPTI_ERROR_NOT_COMPATIBLE;
	case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR:
	case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS:
	case CUPTI_ACTIVITY_KIND_BRANCH:
	case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION:
	case CUPTI_ACTIVITY_KIND_SHARED_ACCESS:
	case CUPTI_ACTIVITY_KIND_PC_SAMPLING:
	case CUPTI_ACTIVITY_KIND_PC_SAMPLING_RECORD_INFO:
	case CUPTI_ACTIVITY_KIND_INSTRUCTION_CORRELATION:
		return version >= CUPTI_13_0 ? CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED
					     : CUPTI_ERROR_NOT_SUPPORTED;
	default:
		if (kind <= CUPTI_ACTIVITY_KIND_INVALID || (int)kind > (version >= 26 ? 54 : 52))
			return CUPTI_ERROR_INVALID_KIND;
		return CUPTI_SUCCESS;
	}
}

static CUptiResult may_enable(CUpti_ActivityKind kind)
{
	CUptiResult result = is_kind(kind);

	if (!result)
		result = (CUptiResult)switches()->enable_fail[kind];
	return result;
}

static void set_kind(CUpti_ActivityKind kind, bool on)
{
	kinds[kind] = on;
	/* The kind overrides what was said of single functions before. */
	if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
		forget_functions(SIM_DRIVER);
	if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
		forget_functions(SIM_RUNTIME);
	if (on)
		tools_install();
}

SIM_EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	CUptiResult result = entry(__func__);

	if (!result)
		result = may_enable(kind);
	if (!result)
		set_kind(kind, true);
	if (!result && !switches()->worker_at_record)
		worker_start();
	return result;
}

SIM_EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	CUptiResult result = entry(__func__);

	if (!result)
		result = is_kind(kind);
	if (!result && switches()->hang_disable)
		worker_hang();
	if (!result)
		set_kind(kind, false);
	return result;
}

static CUptiResult say_in_context(CUcontext context, CUpti_ActivityKind kind, enum said said)
{
	uint32_t id = sim_context_id((const struct sim_context *)context);

	if (id == 0 || id >= CONTEXTS)
		return CUPTI_ERROR_INVALID_CONTEXT;
	in_context[id][kind] = (unsigned char)said;
	tools_install();
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
	CUptiResult result = entry(__func__);

	if (!result)
		result = may_enable(kind);
	return result ? result : say_in_context(context, kind, SAID_ON);
}

SIM_EXPORT CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
	CUptiResult result = entry(__func__);

	if (!result)
		result = is_kind(kind);
	return result ? result : say_in_context(context, kind, SAID_OFF);
}

/* Puts the record of one thing that exists already. `data` points to the kind that is wanted. */
static void dump_one(const struct sim_resource *resource, void *data)
{
	const CUpti_ActivityKind *kind = data;
	struct record record = { 0 };

	if (resource->kind == SIM_CONTEXT_CREATED && *kind == CUPTI_ACTIVITY_KIND_CONTEXT)
		record_context(&record, resource->context);
	if (resource->kind == SIM_STREAM_CREATED && *kind == CUPTI_ACTIVITY_KIND_STREAM)
		record_stream(&record, resource->stream, 0);
	if (record.length)
		buffer_put(BUFFER_THREAD, &record);
}

static void dump(CUpti_ActivityKind kind)
{
	sim_visit_resources(dump_one, &kind);
	for (int device = 0; kind == CUPTI_ACTIVITY_KIND_DEVICE && device < sim_device_count();
		device++) {
		struct record record;

		record_device(&record, device);
		buffer_put(BUFFER_THREAD, &record);
	}
}

SIM_EXPORT CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	CUptiResult result = entry(__func__);

	if (!result)
		result = may_enable(kind);
	if (result)
		return result;
	set_kind(kind, true);
	if (buffer_registered() && sim_initialised())
		dump(kind);
	return CUPTI_SUCCESS;
}

static CUptiResult enable_api(enum sim_domain domain, CUpti_CallbackId cbid, uint8_t enable)
{
	if (!callback_exists((CUpti_CallbackDomain)domain, cbid))
		return CUPTI_ERROR_INVALID_PARAMETER;
	functions[domain][cbid] = enable ? SAID_ON : SAID_OFF;
	tools_install();
	return CUPTI_SUCCESS;
}

static CUptiResult enable_driver_api(CUpti_CallbackId cbid, uint8_t enable)
{
	CUptiResult result = entry("cuptiActivityEnableDriverApi");

	return result ? result : enable_api(SIM_DRIVER, cbid, enable);
}
CUPTI_SINCE(CUPTI_12_5, cuptiActivityEnableDriverApi, enable_driver_api)

static CUptiResult enable_runtime_api(CUpti_CallbackId cbid, uint8_t enable)
{
	CUptiResult result = entry("cuptiActivityEnableRuntimeApi");

	return result ? result : enable_api(SIM_RUNTIME, cbid, enable);
}
CUPTI_SINCE(CUPTI_12_5, cuptiActivityEnableRuntimeApi, enable_runtime_api)

static CUptiResult set_option(const char *function, atomic_bool *option, uint8_t enable)
{
	CUptiResult result = entry(function);

	if (!result)
		*option = enable != 0;
	return result;
}

SIM_EXPORT CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	return set_option(__func__, &latency, enable);
}

static CUptiResult enable_all_sync_records(uint8_t enable)
{
	CUptiResult result = entry("cuptiActivityEnableAllSyncRecords");

	if (!result)
		all_syncs = enable ? SAID_ON : SAID_OFF;
	return result;
}
CUPTI_SINCE(CUPTI_12_8, cuptiActivityEnableAllSyncRecords, enable_all_sync_records)

#if CUPTI_API_VERSION >= 130000
static CUptiResult enable_event_times(uint8_t enable)
{
	return set_option("cuptiActivityEnableCudaEventDeviceTimestamps", &event_times, enable);
}
CUPTI_SINCE(CUPTI_13_0, cuptiActivityEnableCudaEventDeviceTimestamps, enable_event_times)
#endif

/* The hardware event system needs Blackwell. */
static CUptiResult enable_hw_trace(uint8_t enable)
{
	CUptiResult result = entry("cuptiActivityEnableHWTrace");

	return result || !enable ? result : CUPTI_ERROR_NOT_SUPPORTED;
}
CUPTI_SINCE(CUPTI_12_8, cuptiActivityEnableHWTrace, enable_hw_trace)

static CUptiResult find_attribute(CUpti_ActivityAttribute attribute, const size_t *bytes,
	const void *value, struct attribute **found)
{
	if (!bytes || !value || (size_t)attribute >= sizeof attributes / sizeof *attributes)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*found = &attributes[attribute];
	if ((*found)->since > switches()->version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*bytes < (*found)->bytes)
		return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivitySetAttribute(
	CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
	struct attribute *found;
	CUptiResult result = entry(__func__);
	uint64_t wide = 0;

	if (!result)
		result = find_attribute(attribute, bytes, value, &found);
	if (result)
		return result;
	memcpy(&wide, value, found->bytes);
	found->value = wide;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetAttribute(
	CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
	struct attribute *found;
	CUptiResult result = entry(__func__);
	uint64_t wide;

	if (!result)
		result = find_attribute(attribute, bytes, value, &found);
	if (result)
		return result;
	wide = found->value;
	memcpy(value, &wide, found->bytes);
	*bytes = found->bytes;
	return CUPTI_SUCCESS;
}

bool external_top(unsigned kind, uint64_t *id)
{
	if (!external[kind].depth)
		return false;
	*id = external[kind].ids[external[kind].depth - 1];
	return true;
}

static bool is_external(CUpti_ExternalCorrelationKind kind)
{
	return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < EXTERNAL_KINDS;
}

SIM_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (!is_external(kind))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (external[kind].depth == EXTERNAL_DEPTH)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	external[kind].ids[external[kind].depth++] = id;
	return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
	CUptiResult result = entry(__func__);

	if (result)
		return result;
	if (!is_external(kind))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!external[kind].depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	external[kind].depth--;
	if (last)
		*last = external[kind].ids[external[kind].depth];
	return CUPTI_SUCCESS;
}
