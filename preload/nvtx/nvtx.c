/* SPDX-License-Identifier: MIT
 * Handles the calls of NVTX's CORE, CORE2, CUDA, CUDART and SYNC modules. Each is recorded, then
 * forwarded to a chained tool if there is one. A handler may run on any thread, also in a host
 * function of a CUDA stream, so it calls nothing but the collector.
 */
#include "preload/nvtx/nvtx.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "collector/stream/held_records.h"
#include "collector/stream/stream.h"
#include "preload/nvtx/chained_tool.h"
#include "preload/nvtx/handles.h"
#include "preload/nvtx/text.h"
#include "collector/stream/schedule.h"

#include <stdbool.h>
#include <string.h>

/* NVTX declares these types only beside its functions. */
typedef nvtxSyncUser_t(NVTX_API *sync_create_fntype)(
	nvtxDomainHandle_t, const nvtxSyncUserAttributes_t *);
typedef void(NVTX_API *sync_fntype)(nvtxSyncUser_t);

/* The chained tool's function for a slot, or NULL. */
#define CHAINED(module, id, type)                                                     \
	(nvtx_chained() ? (type)nvtx_chain_next(                                      \
				  NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##id) \
			: (type)NULL)

/* ---- ranges and marks ---- */

/* Pushes a range that may be a step of PPERF_SCHEDULE. */
static int push_step(uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	const bool step = schedule_range_begins(text);
	const int level = range_push(domain, text, attributes);

	if (step)
		schedule_range_opened(schedule_key(domain, level));
	return level;
}

static inline int push_range(
	uint32_t domain, const char *text, const struct range_attributes *attributes)
{
	return __builtin_expect(schedule_has_marker, 0) ? push_step(domain, text, attributes)
							: range_push(domain, text, attributes);
}

static int pop_range(uint32_t domain)
{
	const int level = range_pop(domain);

	if (__builtin_expect(schedule_has_marker, 0))
		schedule_range_ended(schedule_key(domain, level));
	return level;
}

static int NVTX_API push_a(const char *message)
{
	nvtxRangePushA_impl_fntype next = CHAINED(CORE, RangePushA, nvtxRangePushA_impl_fntype);
	int level = schedule_has_marker ? push_step(0, message, NULL) : range_push_plain(message);

	return next ? next(message) : level;
}

static int NVTX_API push_w(const wchar_t *message)
{
	nvtxRangePushW_impl_fntype next = CHAINED(CORE, RangePushW, nvtxRangePushW_impl_fntype);
	struct nvtx_text text;
	int level;

	nvtx_text_wide(&text, message);
	level = push_range(0, text.chars, NULL);
	nvtx_text_free(&text);
	return next ? next(message) : level;
}

static int push_event(uint32_t domain, const nvtxEventAttributes_t *event)
{
	struct range_attributes attributes;
	struct nvtx_text text;
	const struct range_attributes *used = nvtx_event_read(event, &text, &attributes);
	int level = push_range(domain, text.chars, used);

	nvtx_text_free(&text);
	return level;
}

static int NVTX_API push_ex(const nvtxEventAttributes_t *event)
{
	nvtxRangePushEx_impl_fntype next = CHAINED(CORE, RangePushEx, nvtxRangePushEx_impl_fntype);
	int level = push_event(0, event);

	return next ? next(event) : level;
}

static int NVTX_API domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	nvtxDomainRangePushEx_impl_fntype next = CHAINED(
		CORE2, DomainRangePushEx, nvtxDomainRangePushEx_impl_fntype);
	int level = push_event(nvtx_domain_of(domain), event);

	return next ? next(domain, event) : level;
}

static int NVTX_API range_pop_handler(void)
{
	nvtxRangePop_impl_fntype next = CHAINED(CORE, RangePop, nvtxRangePop_impl_fntype);
	int level = schedule_has_marker ? pop_range(0) : range_pop_plain();

	return next ? next() : level;
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain)
{
	nvtxDomainRangePop_impl_fntype next = CHAINED(
		CORE2, DomainRangePop, nvtxDomainRangePop_impl_fntype);
	int level = pop_range(nvtx_domain_of(domain));

	return next ? next(domain) : level;
}

/* Starts a range and returns its id: `chained_id`, the chained tool's, or if that is 0, a new
 * one. */
static nvtxRangeId_t start_range(uint32_t domain, const char *text,
	const struct range_attributes *attributes, nvtxRangeId_t chained_id)
{
	if (!chained_id)
		return range_start(domain, text, attributes);
	range_start_as(chained_id, domain, text, attributes);
	return chained_id;
}

static nvtxRangeId_t start_range_event(
	uint32_t domain, const nvtxEventAttributes_t *event, nvtxRangeId_t chained_id)
{
	struct range_attributes attributes;
	struct nvtx_text text;
	const struct range_attributes *used = nvtx_event_read(event, &text, &attributes);
	nvtxRangeId_t id = start_range(domain, text.chars, used, chained_id);

	nvtx_text_free(&text);
	return id;
}

static nvtxRangeId_t NVTX_API start_a(const char *message)
{
	nvtxRangeStartA_impl_fntype next = CHAINED(CORE, RangeStartA, nvtxRangeStartA_impl_fntype);

	return start_range(0, message, NULL, next ? next(message) : 0);
}

static nvtxRangeId_t NVTX_API start_w(const wchar_t *message)
{
	nvtxRangeStartW_impl_fntype next = CHAINED(CORE, RangeStartW, nvtxRangeStartW_impl_fntype);
	struct nvtx_text text;
	nvtxRangeId_t id;

	nvtx_text_wide(&text, message);
	id = start_range(0, text.chars, NULL, next ? next(message) : 0);
	nvtx_text_free(&text);
	return id;
}

static nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t *event)
{
	nvtxRangeStartEx_impl_fntype next = CHAINED(
		CORE, RangeStartEx, nvtxRangeStartEx_impl_fntype);

	return start_range_event(0, event, next ? next(event) : 0);
}

static nvtxRangeId_t NVTX_API domain_start_ex(
	nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	nvtxDomainRangeStartEx_impl_fntype next = CHAINED(
		CORE2, DomainRangeStartEx, nvtxDomainRangeStartEx_impl_fntype);

	return start_range_event(nvtx_domain_of(domain), event, next ? next(domain, event) : 0);
}

static void NVTX_API range_end_handler(nvtxRangeId_t id)
{
	nvtxRangeEnd_impl_fntype next = CHAINED(CORE, RangeEnd, nvtxRangeEnd_impl_fntype);

	range_end(id);
	if (next)
		next(id);
}

/* The range keeps the domain that it was started with. `domain` is ignored. */
static void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
	nvtxDomainRangeEnd_impl_fntype next = CHAINED(
		CORE2, DomainRangeEnd, nvtxDomainRangeEnd_impl_fntype);

	range_end(id);
	if (next)
		next(domain, id);
}

static void NVTX_API mark_a(const char *message)
{
	nvtxMarkA_impl_fntype next = CHAINED(CORE, MarkA, nvtxMarkA_impl_fntype);

	range_mark(0, message, NULL);
	if (next)
		next(message);
}

static void NVTX_API mark_w(const wchar_t *message)
{
	nvtxMarkW_impl_fntype next = CHAINED(CORE, MarkW, nvtxMarkW_impl_fntype);
	struct nvtx_text text;

	nvtx_text_wide(&text, message);
	range_mark(0, text.chars, NULL);
	nvtx_text_free(&text);
	if (next)
		next(message);
}

static void mark_event(uint32_t domain, const nvtxEventAttributes_t *event)
{
	struct range_attributes attributes;
	struct nvtx_text text;
	const struct range_attributes *used = nvtx_event_read(event, &text, &attributes);

	range_mark(domain, text.chars, used);
	nvtx_text_free(&text);
}

static void NVTX_API mark_ex(const nvtxEventAttributes_t *event)
{
	nvtxMarkEx_impl_fntype next = CHAINED(CORE, MarkEx, nvtxMarkEx_impl_fntype);

	mark_event(0, event);
	if (next)
		next(event);
}

static void NVTX_API domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	nvtxDomainMarkEx_impl_fntype next = CHAINED(
		CORE2, DomainMarkEx, nvtxDomainMarkEx_impl_fntype);

	mark_event(nvtx_domain_of(domain), event);
	if (next)
		next(domain, event);
}

/* ---- names of objects ---- */

static void name_object(
	enum trace_object_type type, uint64_t object, uint32_t domain, const char *text)
{
	struct trace_object *record;
	struct signal_guard guard;

	if (!stream_enter())
		return;
	uint32_t name = name_id_always(text, strlen(text));

	held_records_lock(&guard);
	record = stream_record(TRACE_OBJECT, sizeof *record);
	if (record) {
		record->type = (uint32_t)type;
		record->object = object;
		record->domain = domain;
		record->name = name;
		held_records_set(held_object_key(record->type, object, domain), record);
		stream_commit();
	}
	held_records_unlock(&guard);
	stream_leave();
}

/* Defines two handlers, narrow and wide, that name an object of one argument. `bits` converts the
 * argument to 64 bits. */
#define NAME_HANDLERS(module, call, handler, argument, bits, type)               \
	static void NVTX_API handler##_a(argument object, const char *name)      \
	{                                                                        \
		typedef void(NVTX_API * next_fntype)(argument, const char *);    \
		next_fntype next = CHAINED(module, call##A, next_fntype);        \
                                                                                 \
		name_object(type, bits object, 0, name ? name : "");             \
		if (next)                                                        \
			next(object, name);                                      \
	}                                                                        \
	static void NVTX_API handler##_w(argument object, const wchar_t *name)   \
	{                                                                        \
		typedef void(NVTX_API * next_fntype)(argument, const wchar_t *); \
		next_fntype next = CHAINED(module, call##W, next_fntype);        \
		struct nvtx_text text;                                           \
                                                                                 \
		nvtx_text_wide(&text, name);                                     \
		name_object(type, bits object, 0, text.chars);                   \
		nvtx_text_free(&text);                                           \
		if (next)                                                        \
			next(object, name);                                      \
	}
#define NUMBER (uint64_t)
#define POINTER (uint64_t)(uintptr_t)

NAME_HANDLERS(CORE, NameCategory, category, uint32_t, NUMBER, TRACE_OBJECT_CATEGORY)
NAME_HANDLERS(CORE, NameOsThread, os_thread, uint32_t, NUMBER, TRACE_OBJECT_THREAD)
NAME_HANDLERS(CUDA, NameCuDevice, cu_device, nvtx_CUdevice, NUMBER, TRACE_OBJECT_CU_DEVICE)
NAME_HANDLERS(CUDA, NameCuContext, cu_context, nvtx_CUcontext, POINTER, TRACE_OBJECT_CU_CONTEXT)
NAME_HANDLERS(CUDA, NameCuStream, cu_stream, nvtx_CUstream, POINTER, TRACE_OBJECT_CU_STREAM)
NAME_HANDLERS(CUDA, NameCuEvent, cu_event, nvtx_CUevent, POINTER, TRACE_OBJECT_CU_EVENT)
NAME_HANDLERS(CUDART, NameCudaDevice, cuda_device, int, NUMBER, TRACE_OBJECT_CUDA_DEVICE)
NAME_HANDLERS(
	CUDART, NameCudaStream, cuda_stream, nvtx_cudaStream_t, POINTER, TRACE_OBJECT_CUDA_STREAM)
NAME_HANDLERS(CUDART, NameCudaEvent, cuda_event, nvtx_cudaEvent_t, POINTER, TRACE_OBJECT_CUDA_EVENT)

static void NVTX_API domain_category_a(
	nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
	nvtxDomainNameCategoryA_impl_fntype next = CHAINED(
		CORE2, DomainNameCategoryA, nvtxDomainNameCategoryA_impl_fntype);

	name_object(TRACE_OBJECT_CATEGORY, category, nvtx_domain_of(domain), name ? name : "");
	if (next)
		next(domain, category, name);
}

static void NVTX_API domain_category_w(
	nvtxDomainHandle_t domain, uint32_t category, const wchar_t *name)
{
	nvtxDomainNameCategoryW_impl_fntype next = CHAINED(
		CORE2, DomainNameCategoryW, nvtxDomainNameCategoryW_impl_fntype);
	struct nvtx_text text;

	nvtx_text_wide(&text, name);
	name_object(TRACE_OBJECT_CATEGORY, category, nvtx_domain_of(domain), text.chars);
	nvtx_text_free(&text);
	if (next)
		next(domain, category, name);
}

/* ---- domains, strings, resources: handles ---- */

/* Returns the handle for the program: `chained_handle` if it is not NULL, else `handle`. With a
 * chained tool, makes it an alias of `handle`. */
static const void *program_handle(const struct nvtx_handle *handle, const void *chained_handle)
{
	if (nvtx_chained())
		nvtx_handle_alias(handle, chained_handle ? chained_handle : handle);
	return chained_handle ? chained_handle : handle;
}

static const void *make_handle(enum nvtx_handle_kind kind, nvtxDomainHandle_t domain,
	const char *text, const void *chained_handle)
{
	return program_handle(nvtx_handle_make(kind, nvtx_domain_of(domain), text), chained_handle);
}

static nvtxDomainHandle_t NVTX_API domain_create_a(const char *name)
{
	nvtxDomainCreateA_impl_fntype next = CHAINED(
		CORE2, DomainCreateA, nvtxDomainCreateA_impl_fntype);

	return (nvtxDomainHandle_t)(uintptr_t)make_handle(
		NVTX_HANDLE_DOMAIN, NULL, name ? name : "", next ? next(name) : NULL);
}

static nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t *name)
{
	nvtxDomainCreateW_impl_fntype next = CHAINED(
		CORE2, DomainCreateW, nvtxDomainCreateW_impl_fntype);
	struct nvtx_text text;
	const void *handle;

	nvtx_text_wide(&text, name);
	handle = make_handle(NVTX_HANDLE_DOMAIN, NULL, text.chars, next ? next(name) : NULL);
	nvtx_text_free(&text);
	return (nvtxDomainHandle_t)(uintptr_t)handle;
}

static nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t domain, const char *string)
{
	nvtxDomainRegisterStringA_impl_fntype next = CHAINED(
		CORE2, DomainRegisterStringA, nvtxDomainRegisterStringA_impl_fntype);

	return (nvtxStringHandle_t)(uintptr_t)make_handle(NVTX_HANDLE_STRING, domain,
		string ? string : "", next ? next(domain, string) : NULL);
}

static nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t domain, const wchar_t *string)
{
	nvtxDomainRegisterStringW_impl_fntype next = CHAINED(
		CORE2, DomainRegisterStringW, nvtxDomainRegisterStringW_impl_fntype);
	struct nvtx_text text;
	const void *handle;

	nvtx_text_wide(&text, string);
	handle = make_handle(
		NVTX_HANDLE_STRING, domain, text.chars, next ? next(domain, string) : NULL);
	nvtx_text_free(&text);
	return (nvtxStringHandle_t)(uintptr_t)handle;
}

#define HANDLES 0u /* the `type` of our handles in held_object_key */

/* Records that a resource or lock was created or destroyed. */
static void record_object(enum trace_object_type type, const struct nvtx_handle *handle,
	uint32_t subtype, uint64_t other)
{
	struct trace_object *record;
	struct signal_guard guard;
	uint64_t key;

	if (!handle || !stream_enter())
		return;
	held_records_lock(&guard);
	record = stream_record(TRACE_OBJECT, sizeof *record);
	if (record) {
		record->type = (uint32_t)type;
		record->object = (uint64_t)(uintptr_t)handle;
		record->other = other;
		record->subtype = subtype;
		record->name = type == TRACE_OBJECT_DESTROYED ? 0 : handle->name;
		record->domain = handle->domain;
		key = held_object_key(HANDLES, record->object, 0);
		if (type == TRACE_OBJECT_DESTROYED)
			held_records_remove(TRACE_OBJECT, key);
		else
			held_records_set(key, record);
		stream_commit();
	}
	held_records_unlock(&guard);
	stream_leave();
}

static nvtxResourceHandle_t NVTX_API resource_create(
	nvtxDomainHandle_t domain, nvtxResourceAttributes_t *attributes)
{
	nvtxDomainResourceCreate_impl_fntype next = CHAINED(
		CORE2, DomainResourceCreate, nvtxDomainResourceCreate_impl_fntype);
	const struct nvtx_handle *handle;
	const void *chained_handle = next ? next(domain, attributes) : NULL;
	bool covered = attributes && attributes->size >= sizeof *attributes;
	struct nvtx_text text;

	if (covered)
		nvtx_text_message(&text, attributes->messageType, attributes->message);
	else
		nvtx_text_narrow(&text, NULL);
	handle = nvtx_handle_make(NVTX_HANDLE_RESOURCE, nvtx_domain_of(domain), text.chars);
	nvtx_text_free(&text);
	if (covered)
		record_object(TRACE_OBJECT_RESOURCE, handle, (uint32_t)attributes->identifierType,
			attributes->identifier.ullValue);
	return (nvtxResourceHandle_t)(uintptr_t)program_handle(handle, chained_handle);
}

static void NVTX_API resource_destroy(nvtxResourceHandle_t resource)
{
	nvtxDomainResourceDestroy_impl_fntype next = CHAINED(
		CORE2, DomainResourceDestroy, nvtxDomainResourceDestroy_impl_fntype);

	record_object(TRACE_OBJECT_DESTROYED, nvtx_handle_of(resource), TRACE_OBJECT_RESOURCE, 0);
	if (next)
		next(resource);
}

/* Our handle stays valid: programs use a domain after this call, and other libraries of the program
 * may use the same domain. */
static void NVTX_API domain_destroy(nvtxDomainHandle_t domain)
{
	nvtxDomainDestroy_impl_fntype next = CHAINED(
		CORE2, DomainDestroy, nvtxDomainDestroy_impl_fntype);

	if (next)
		next(domain);
}

static void NVTX_API on_initialize(const void *reserved)
{
	nvtxInitialize_impl_fntype next = CHAINED(CORE2, Initialize, nvtxInitialize_impl_fntype);

	if (next)
		next(reserved);
}

/* ---- user-defined locks ---- */

static nvtxSyncUser_t NVTX_API lock_create(
	nvtxDomainHandle_t domain, const nvtxSyncUserAttributes_t *attributes)
{
	sync_create_fntype next = CHAINED(SYNC, DomainSyncUserCreate, sync_create_fntype);
	const void *chained_handle = next ? next(domain, attributes) : NULL;
	const struct nvtx_handle *handle;
	struct nvtx_text text;

	if (attributes && attributes->size >= sizeof *attributes)
		nvtx_text_message(&text, attributes->messageType, attributes->message);
	else
		nvtx_text_narrow(&text, NULL);
	handle = nvtx_handle_make(NVTX_HANDLE_LOCK, nvtx_domain_of(domain), text.chars);
	nvtx_text_free(&text);
	record_object(TRACE_OBJECT_SYNC, handle, 0, 0);
	return (nvtxSyncUser_t)(uintptr_t)program_handle(handle, chained_handle);
}

static void lock_action(nvtxSyncUser_t handle, enum trace_nvtx_sync_action action)
{
	struct trace_nvtx_sync *record;

	if (!stream_enter())
		return;
	record = stream_record(TRACE_NVTX_SYNC, sizeof *record);
	if (record) {
		record->object = (uint64_t)(uintptr_t)nvtx_handle_of(handle);
		record->action = (uint32_t)action;
		stream_commit();
	}
	stream_leave();
}

static void NVTX_API lock_destroy(nvtxSyncUser_t handle)
{
	sync_fntype next = CHAINED(SYNC, DomainSyncUserDestroy, sync_fntype);

	record_object(TRACE_OBJECT_DESTROYED, nvtx_handle_of(handle), TRACE_OBJECT_SYNC, 0);
	if (next)
		next(handle);
}

#define LOCK_HANDLER(handler, call, action)                          \
	static void NVTX_API handler(nvtxSyncUser_t handle)          \
	{                                                            \
		sync_fntype next = CHAINED(SYNC, call, sync_fntype); \
                                                                     \
		lock_action(handle, action);                         \
		if (next)                                            \
			next(handle);                                \
	}
LOCK_HANDLER(lock_acquire_start, DomainSyncUserAcquireStart, TRACE_ACQUIRE_START)
LOCK_HANDLER(lock_acquire_failed, DomainSyncUserAcquireFailed, TRACE_ACQUIRE_FAILED)
LOCK_HANDLER(lock_acquire_success, DomainSyncUserAcquireSuccess, TRACE_ACQUIRE_SUCCESS)
LOCK_HANDLER(lock_releasing, DomainSyncUserReleasing, TRACE_RELEASING)

/* ---- the table ---- */

#define ENTRY_WITH_FAST(module, id, function, fast_function)                                  \
	{                                                                                     \
		NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##id,                           \
			(NvtxFunctionPointer)(function), (NvtxFunctionPointer)(fast_function) \
	}
#define ENTRY(module, id, function) ENTRY_WITH_FAST(module, id, function, function)
#define ENTRY_PAIR(module, id, function) \
	ENTRY(module, id##A, function##_a), ENTRY(module, id##W, function##_w)

const struct nvtx_entry nvtx_entries[] = {
	ENTRY(CORE, MarkEx, mark_ex),
	ENTRY_PAIR(CORE, Mark, mark),
	ENTRY(CORE, RangeStartEx, start_ex),
	ENTRY_PAIR(CORE, RangeStart, start),
	ENTRY(CORE, RangeEnd, range_end_handler),
	ENTRY(CORE, RangePushEx, push_ex),
	ENTRY(CORE, RangePushW, push_w),
	ENTRY_WITH_FAST(CORE, RangePushA, push_a, range_push_plain),
	ENTRY_WITH_FAST(CORE, RangePop, range_pop_handler, range_pop_plain),
	ENTRY_PAIR(CORE, NameCategory, category),
	ENTRY_PAIR(CORE, NameOsThread, os_thread),
	ENTRY(CORE2, DomainMarkEx, domain_mark_ex),
	ENTRY(CORE2, DomainRangeStartEx, domain_start_ex),
	ENTRY(CORE2, DomainRangeEnd, domain_end),
	ENTRY(CORE2, DomainRangePushEx, domain_push_ex),
	ENTRY(CORE2, DomainRangePop, domain_pop),
	ENTRY(CORE2, DomainResourceCreate, resource_create),
	ENTRY(CORE2, DomainResourceDestroy, resource_destroy),
	ENTRY_PAIR(CORE2, DomainNameCategory, domain_category),
	ENTRY_PAIR(CORE2, DomainRegisterString, register),
	ENTRY_PAIR(CORE2, DomainCreate, domain_create),
	ENTRY(CORE2, DomainDestroy, domain_destroy),
	ENTRY(CORE2, Initialize, on_initialize),
	ENTRY_PAIR(CUDA, NameCuDevice, cu_device),
	ENTRY_PAIR(CUDA, NameCuContext, cu_context),
	ENTRY_PAIR(CUDA, NameCuStream, cu_stream),
	ENTRY_PAIR(CUDA, NameCuEvent, cu_event),
	ENTRY_PAIR(CUDART, NameCudaDevice, cuda_device),
	ENTRY_PAIR(CUDART, NameCudaStream, cuda_stream),
	ENTRY_PAIR(CUDART, NameCudaEvent, cuda_event),
	ENTRY(SYNC, DomainSyncUserCreate, lock_create),
	ENTRY(SYNC, DomainSyncUserDestroy, lock_destroy),
	ENTRY(SYNC, DomainSyncUserAcquireStart, lock_acquire_start),
	ENTRY(SYNC, DomainSyncUserAcquireFailed, lock_acquire_failed),
	ENTRY(SYNC, DomainSyncUserAcquireSuccess, lock_acquire_success),
	ENTRY(SYNC, DomainSyncUserReleasing, lock_releasing),
};
const unsigned nvtx_entry_count = sizeof nvtx_entries / sizeof nvtx_entries[0];

NvtxFunctionPointer nvtx_entry_function(unsigned module, unsigned id)
{
	for (unsigned i = 0; i < nvtx_entry_count; i++)
		if (nvtx_entries[i].module == module && nvtx_entries[i].id == id)
			return nvtx_entries[i].function;
	return NULL;
}
