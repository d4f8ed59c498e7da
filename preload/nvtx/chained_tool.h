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

/* Loads the chained tool and calls its InitializeInjectionNvtx2. Called once for each NVTX client:
 * a copy of NVTX in an executable or library. The tool stores its functions in that client's
 * tables, which `get_table` returns. META warning.nvtx_chain says whether it started. Does nothing
 * if no tool is named. Keeps errno. */
void nvtx_chain_start(NvtxGetExportTableFunc_t get_table);

/* Stores the chained tool's function of a slot as the one to call next. `before` and `after` are
 * the slot's values before and after the tool was started. Returns false if the slot of an earlier
 * NVTX client got another function: this slot is then left to the chained tool. */
bool nvtx_chain_store(
	unsigned module, unsigned id, NvtxFunctionPointer after, NvtxFunctionPointer before);

/* Returns the chained tool's function of the slot, NULL if there is none. */
NvtxFunctionPointer nvtx_chain_next(unsigned module, unsigned id);

/* Loads the chained tool and calls its InitializeInjectionNvtxExtension, if it has one. Does
 * nothing if no tool is named. Keeps errno. */
void nvtx_chain_start_extension(nvtxExtModuleInfo_t *module);

#endif
