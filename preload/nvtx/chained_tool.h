/* SPDX-License-Identifier: MIT
 * Forwards NVTX calls to the chained tool: another NVTX tool, which the user has named in
 * NVTX_INJECTION64_PATH. It is loaded and started as if pperf were not there. Each call then goes
 * to it too, with the program's own arguments, and the program gets its results (handles, levels,
 * ids).
 */
#ifndef PPERF_PRELOAD_NVTX_CHAINED_TOOL_H
#define PPERF_PRELOAD_NVTX_CHAINED_TOOL_H

#include "preload/nvtx/api.h"
#include <stdbool.h>

#define NVTX_MODULES 8 /* NvtxCallbackModule values below this have slots here */
#define NVTX_SLOTS 17  /* of the largest module */

/* Sets the chained tool's library, NULL for none. Called by the constructor. */
void nvtx_chain_set(const char *path);

/* Whether the chained tool was started. */
extern bool nvtx_chain_active;
static inline bool nvtx_chained(void)
{
	return __builtin_expect(nvtx_chain_active, 0);
}

/* Returns whether a chained tool is named, started or not. */
bool nvtx_chain_is_named(void);

/* Starts the chained tool, which fills the tables of the NVTX client that is starting. */
void nvtx_chain_start(NvtxGetExportTableFunc_t get_table);

/* Stores the chained tool's function of a slot. `current`: the slot's value after the tool was
 * started, `before`: its value until then. Returns false if an earlier NVTX client had another
 * function there. The caller must then leave the slot to the chained tool. */
bool nvtx_chain_store(
	unsigned module, unsigned id, NvtxFunctionPointer current, NvtxFunctionPointer before);

/* Returns the chained tool's function of the slot, NULL if there is none. */
NvtxFunctionPointer nvtx_chain_next(unsigned module, unsigned id);

/* nvtx_chain_start() for an extension. */
void nvtx_chain_start_extension(nvtxExtModuleInfo_t *module);

#endif
