/* SPDX-License-Identifier: MIT */
#include "preload/nvtx/chained_tool.h"

#include "collector/process/dynamic_linker.h"
#include "collector/file/dictionary.h"

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

/* Returns a function of the chained tool, or NULL. */
static void *chained_symbol(const char *name)
{
	void *library = quiet_dlopen(chained_path, RTLD_LAZY);

	return library ? quiet_dlsym(library, name) : NULL;
}

void nvtx_chain_start(NvtxGetExportTableFunc_t get_table)
{
	NvtxInitializeInjectionNvtxFunc_t start;
	void *symbol;
	int saved = errno;

	if (!chained_path[0])
		return;
	symbol = chained_symbol("InitializeInjectionNvtx2");
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
	unsigned module, unsigned id, NvtxFunctionPointer after, NvtxFunctionPointer before)
{
	NvtxFunctionPointer expected = NULL;

	if (!nvtx_chain_active || !after || after == before || after == nvtx_chain_next(module, id))
		return true;
	return __atomic_compare_exchange_n(&next[module][id], &expected, after, false,
		       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	       expected == after;
}

NvtxFunctionPointer nvtx_chain_next(unsigned module, unsigned id)
{
	return __atomic_load_n(&next[module][id], __ATOMIC_ACQUIRE);
}

void nvtx_chain_start_extension(nvtxExtModuleInfo_t *module)
{
	NvtxExtInitializeInjectionFunc_t start;
	void *symbol;
	int saved = errno;

	if (!chained_path[0])
		return;
	symbol = chained_symbol("InitializeInjectionNvtxExtension");
	memcpy(&start, &symbol, sizeof start);
	if (symbol)
		start(module);
	errno = saved;
}
