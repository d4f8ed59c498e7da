/* SPDX-License-Identifier: MIT
 * Exports the functions of libnvToolsExt.so.1, the NVTX 2 that was a shared library. Programs built
 * with it bind to these functions, because a preloaded object is searched first. The library itself
 * is then not called, and nothing is counted twice. If a chained tool is named, or NVTX is
 * not recorded, calls are forwarded to the library.
 */
#include "preload/nvtx/nvtx.h"

#include "collector/file/dictionary.h"
#include "collector/process/dynamic_linker.h"
#include "preload/nvtx/chained_tool.h"

#include <stdbool.h>

typedef void any_function(void);

static bool enabled;

void nvtx_v2_configure(bool on)
{
	enabled = on;
}

/* Returns libnvToolsExt's own function, NULL if there is none. */
static any_function *library_function(const char *name)
{
	void *symbol = quiet_dlsym(RTLD_NEXT, name);
	any_function *function;

	__builtin_memcpy(&function, &symbol, sizeof function);
	return function;
}

/* Returns the function that handles the call. */
static any_function *handler_of(unsigned module, unsigned id, const char *name)
{
	if (!enabled || nvtx_chain_is_named())
		return library_function(name);
	meta_set("source.nvtx", "on");
	return nvtx_entry_function(module, id);
}

/* Defines result name(parameters), which calls the handler with `arguments`, or returns `none` if
 * there is no handler. NVTX's headers declare these names otherwise. The functions therefore have
 * other names in this file, and get NVTX's as symbols. */
#define V2_FUNCTION(result, module, id, name, parameters, call)                             \
	__attribute__((visibility("default"))) result v2_##name parameters __asm__(#name);  \
	result v2_##name parameters                                                         \
	{                                                                                   \
		typedef result function parameters;                                         \
		static _Atomic(any_function *) cached;                                      \
		function *f = (function *)cached;                                           \
                                                                                            \
		if (!f) {                                                                   \
			f = (function *)handler_of(                                         \
				NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##id, #name); \
			cached = (any_function *)f;                                         \
		}                                                                           \
		call;                                                                       \
	}
#define V2(result, none, module, id, name, parameters, arguments) \
	V2_FUNCTION(result, module, id, name, parameters, return f ? f arguments : none)
#define V2_VOID(module, id, name, parameters, arguments) \
	V2_FUNCTION(void, module, id, name, parameters, if (f) f arguments)
#define V2_NAME(module, name, object)                                                        \
	V2_VOID(module, Name##name##A, nvtxName##name##A, (object o, const char *n), (o, n)) \
	V2_VOID(module, Name##name##W, nvtxName##name##W, (object o, const wchar_t *n), (o, n))

typedef const nvtxEventAttributes_t *event;
typedef nvtxDomainHandle_t domain;

V2(int, -2, CORE, RangePushEx, nvtxRangePushEx, (event e), (e))
V2(int, -2, CORE, RangePushA, nvtxRangePushA, (const char *m), (m))
V2(int, -2, CORE, RangePushW, nvtxRangePushW, (const wchar_t *m), (m))
V2(int, -2, CORE, RangePop, nvtxRangePop, (void), ())
V2(nvtxRangeId_t, 0, CORE, RangeStartEx, nvtxRangeStartEx, (event e), (e))
V2(nvtxRangeId_t, 0, CORE, RangeStartA, nvtxRangeStartA, (const char *m), (m))
V2(nvtxRangeId_t, 0, CORE, RangeStartW, nvtxRangeStartW, (const wchar_t *m), (m))
V2_VOID(CORE, RangeEnd, nvtxRangeEnd, (nvtxRangeId_t i), (i))
V2_VOID(CORE, MarkEx, nvtxMarkEx, (event e), (e))
V2_VOID(CORE, MarkA, nvtxMarkA, (const char *m), (m))
V2_VOID(CORE, MarkW, nvtxMarkW, (const wchar_t *m), (m))
V2_NAME(CORE, Category, uint32_t)
V2_NAME(CORE, OsThread, uint32_t)
V2_VOID(CORE2, DomainMarkEx, nvtxDomainMarkEx, (domain d, event e), (d, e))
V2(nvtxRangeId_t, 0, CORE2, DomainRangeStartEx, nvtxDomainRangeStartEx, (domain d, event e), (d, e))
V2_VOID(CORE2, DomainRangeEnd, nvtxDomainRangeEnd, (domain d, nvtxRangeId_t i), (d, i))
V2(int, -2, CORE2, DomainRangePushEx, nvtxDomainRangePushEx, (domain d, event e), (d, e))
V2(int, -2, CORE2, DomainRangePop, nvtxDomainRangePop, (domain d), (d))
V2(nvtxResourceHandle_t, NULL, CORE2, DomainResourceCreate, nvtxDomainResourceCreate,
	(domain d, nvtxResourceAttributes_t *a), (d, a))
V2_VOID(CORE2, DomainResourceDestroy, nvtxDomainResourceDestroy, (nvtxResourceHandle_t r), (r))
V2_VOID(CORE2, DomainNameCategoryA, nvtxDomainNameCategoryA, (domain d, uint32_t c, const char *n),
	(d, c, n))
V2_VOID(CORE2, DomainNameCategoryW, nvtxDomainNameCategoryW,
	(domain d, uint32_t c, const wchar_t *n), (d, c, n))
V2(nvtxStringHandle_t, NULL, CORE2, DomainRegisterStringA, nvtxDomainRegisterStringA,
	(domain d, const char *s), (d, s))
V2(nvtxStringHandle_t, NULL, CORE2, DomainRegisterStringW, nvtxDomainRegisterStringW,
	(domain d, const wchar_t *s), (d, s))
V2(domain, NULL, CORE2, DomainCreateA, nvtxDomainCreateA, (const char *n), (n))
V2(domain, NULL, CORE2, DomainCreateW, nvtxDomainCreateW, (const wchar_t *n), (n))
V2_VOID(CORE2, DomainDestroy, nvtxDomainDestroy, (domain d), (d))
V2_VOID(CORE2, Initialize, nvtxInitialize, (const void *r), (r))
V2_NAME(CUDA, CuDevice, nvtx_CUdevice)
V2_NAME(CUDA, CuContext, nvtx_CUcontext)
V2_NAME(CUDA, CuStream, nvtx_CUstream)
V2_NAME(CUDA, CuEvent, nvtx_CUevent)
V2_NAME(CUDART, CudaDevice, int)
V2_NAME(CUDART, CudaStream, nvtx_cudaStream_t)
V2_NAME(CUDART, CudaEvent, nvtx_cudaEvent_t)
V2(nvtxSyncUser_t, NULL, SYNC, DomainSyncUserCreate, nvtxDomainSyncUserCreate,
	(domain d, const nvtxSyncUserAttributes_t *a), (d, a))
V2_VOID(SYNC, DomainSyncUserDestroy, nvtxDomainSyncUserDestroy, (nvtxSyncUser_t h), (h))
V2_VOID(SYNC, DomainSyncUserAcquireStart, nvtxDomainSyncUserAcquireStart, (nvtxSyncUser_t h), (h))
V2_VOID(SYNC, DomainSyncUserAcquireFailed, nvtxDomainSyncUserAcquireFailed, (nvtxSyncUser_t h), (h))
V2_VOID(SYNC, DomainSyncUserAcquireSuccess, nvtxDomainSyncUserAcquireSuccess, (nvtxSyncUser_t h),
	(h))
V2_VOID(SYNC, DomainSyncUserReleasing, nvtxDomainSyncUserReleasing, (nvtxSyncUser_t h), (h))
