/* SPDX-License-Identifier: MIT */
#include "preload/nvtx/chained_tool.h"

#include "collector/file/dictionary.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static char chained_path[4096];
bool nvtx_chain_active;
/* The chained tool's functions. */
static NvtxFunctionPointer next[NVTX_MODULES][NVTX_SLOTS];

void nvtx_chain_set(const char *path)
{
	if (path && *path && strlen(path) < sizeof chained_path)
		strcpy(chained_path, path);
}

bool nvtx_chain_is_named(void)
{
	return chained_path[0] != '\0';
}

static void *chained_library(void)
{
	void *library = dlopen(chained_path, RTLD_LAZY);

	/* Clears the error, so that the program does not see our failed lookup. */
	if (!library)
		dlerror();
	return library;
}

void nvtx_chain_start(NvtxGetExportTableFunc_t get_table)
{
	NvtxInitializeInjectionNvtxFunc_t start;
	void *library, *symbol;
	int saved = errno;

	if (!chained_path[0])
		return;
	library = chained_library();
	symbol = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
	memcpy(&start, &symbol, sizeof start);
	if (symbol && start(get_table))
		nvtx_chain_active = true;
	meta_set("warning.nvtx_chain",
		nvtx_chain_active
			? "NVTX_INJECTION64_PATH named another tool; NVTX calls are forwarded to it"
			: "NVTX_INJECTION64_PATH named another tool, which could not be started");
	errno = saved;
}

bool nvtx_chain_store(
	unsigned module, unsigned id, NvtxFunctionPointer current, NvtxFunctionPointer before)
{
	NvtxFunctionPointer expected = NULL;

	if (!nvtx_chain_active || !current || current == before ||
		current == nvtx_chain_next(module, id))
		return true;
	return __atomic_compare_exchange_n(&next[module][id], &expected, current, false,
		       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	       expected == current;
}

NvtxFunctionPointer nvtx_chain_next(unsigned module, unsigned id)
{
	return __atomic_load_n(&next[module][id], __ATOMIC_ACQUIRE);
}

void nvtx_chain_start_extension(nvtxExtModuleInfo_t *module)
{
	NvtxExtInitializeInjectionFunc_t start;
	void *library, *symbol;
	int saved = errno;

	if (!chained_path[0])
		return;
	library = chained_library();
	symbol = library ? dlsym(library, "InitializeInjectionNvtxExtension") : NULL;
	memcpy(&start, &symbol, sizeof start);
	if (symbol)
		start(module);
	errno = saved;
}
