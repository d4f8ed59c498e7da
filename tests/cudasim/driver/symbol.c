/* The driver API: function pointers by name, texts of errors, and the table for the runtime. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"

#define SYMBOL_MAX 128

/* Newest first; a version that came with a newer CUDA than the caller's is not for it. */
static const struct {
	const char *suffix;
	int since; /* CUDA version from which plain names may mean it */
} suffixes[] = {
	{ "_v4", 13000 },
	{ "_v3", 12030 },
	{ "_v2", 0 },
	{ "", 0 },
};

/* Plain names whose _v2 or _v3 came late: the version of CUDA from which the plain name means it.
 */
static const struct {
	const char *symbol;
	int since;
} late[] = {
	{ "cuStreamGetCaptureInfo_v3", 12030 },
	{ "cuStreamGetCaptureInfo_v2", 11030 },
	{ "cuStreamUpdateCaptureDependencies_v2", 12030 },
	{ "cuGraphAddDependencies_v2", 12030 },
	{ "cuGraphAddKernelNode_v2", 12000 },
	{ "cuGraphExecKernelNodeSetParams_v2", 12000 },
	{ "cuGraphExecUpdate_v2", 12000 },
	{ "cuEventElapsedTime_v2", 12080 },
	{ "cuCtxCreate_v4", 13000 },
	{ "cuCtxCreate_v3", 11040 },
};

static int since(const char *symbol, int otherwise)
{
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
		if (strcmp(late[i].symbol, symbol) == 0)
			return late[i].since;
	return otherwise;
}

/* This library, whatever else the process holds under the same names. */
static void *own_library(void)
{
	static void *library;
	Dl_info info;

	if (!__atomic_load_n(&library, __ATOMIC_ACQUIRE) && dladdr((void *)&library, &info))
		__atomic_store_n(&library, dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD),
			__ATOMIC_RELEASE);
	return library;
}

static void *find(const char *name, int version, bool per_thread)
{
	static const char *const twins[] = { "_ptsz", "_ptds", "" };
	char symbol[SYMBOL_MAX + 16];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(symbol, sizeof(symbol), "%.*s%s", SYMBOL_MAX, name, suffixes[i].suffix);
		if (version < since(symbol, suffixes[i].since))
			continue;
		for (size_t twin = per_thread ? 0 : 2; twin < 3; twin++) {
			char full[sizeof(symbol) + 8];
			void *address;

			snprintf(full, sizeof(full), "%s%s", symbol, twins[twin]);
			address = dlsym(own_library(), full);
			if (address)
				return address;
		}
	}
	return NULL;
}

DRIVER_API(cuGetProcAddress_v2,
	(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
		CUdriverProcAddressQueryResult *symbolStatus),
	(symbol, pfn, cudaVersion, flags, symbolStatus))
{
	if (!symbol || !pfn || strncmp(symbol, "cu", 2) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = find(
		symbol, cudaVersion, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
	if (symbolStatus)
		*symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS
				     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

DRIVER_API(cuGetProcAddress, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags),
	(symbol, pfn, cudaVersion, flags))
{
	return cuGetProcAddress_v2_inside(symbol, pfn, cudaVersion, flags, NULL);
}

/* The private tables that a static runtime asks for do not exist. */
DRIVER_API_BARE(cuGetExportTable, (const void **ppExportTable, const CUuuid *pExportTableId),
	(ppExportTable, pExportTableId))
{
	(void)pExportTableId;
	*ppExportTable = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
	{ CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
	{ CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
		"the operation cannot be performed in the present state" },
	{ CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
		"too many resources requested for launch" },
	{ CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
		"operation not permitted when stream is capturing" },
	{ CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
		"operation failed due to a previous error during capture" },
};

DRIVER_API(cuGetErrorString, (CUresult error, const char **pStr), (error, pStr))
{
	*pStr = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			*pStr = errors[i].text;
	return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGetErrorName, (CUresult error, const char **pStr), (error, pStr))
{
	*pStr = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			*pStr = errors[i].name;
	return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define ENTRY_OF(name) .name = name,
#define TWIN_ENTRIES_OF(name) .name = name, .name##_ptsz = name##_ptsz,
#define DEFAULT_ENTRIES_OF(name) .name = name, .name##_ptds = name##_ptds,

SIM_EXPORT const struct sim_driver sim_driver = { SIM_DRIVER_TWINS(TWIN_ENTRIES_OF)
		SIM_DRIVER_DEFAULT_TWINS(DEFAULT_ENTRIES_OF) SIM_DRIVER_CALLS(ENTRY_OF) };
