/* SPDX-License-Identifier: MIT
 * nvtx_chain.h: another NVTX tool that the user had set. It is loaded and set up as if pperf were not there; each call then goes to it as well, with
 * the program's own arguments, and the program gets its answers (handles, levels, ids).
 */
#ifndef PPERF_PRELOAD_NVTX_CHAINED_TOOL_H
#define PPERF_PRELOAD_NVTX_CHAINED_TOOL_H

#include "preload/nvtx/api.h"
#include <stdbool.h>

#define NVTX_MODULES 8 /* NvtxCallbackModule values below this are ours */
#define NVTX_SLOTS 17  /* of the largest of them */

/* By the constructor: the library that NVTX_INJECTION64_PATH named. NULL: none. */
void nvtx_chain_set(const char *path);

/* There is another tool, and it is at work. */
extern bool nvtx_chain_active;
static inline bool nvtx_chained(void)
{
	return __builtin_expect(nvtx_chain_active, 0);
}

/* There is another tool, at work or still to be started. */
bool nvtx_chain_is_named(void);

/* Lets the other tool fill the tables of the unit that is starting. */
void nvtx_chain_start(NvtxGetExportTableFunc_t get_table);

/* `there` stands in a slot after the other tool was started, `before` stood there until then: remembers what the tool has put there as
 * the one to go on to. false: a unit before this one had something else there; the slot is left to the other tool. */
bool nvtx_chain_store(
	unsigned module, unsigned id, NvtxFunctionPointer there, NvtxFunctionPointer before);

/* The other tool's function, NULL if there is none. */
NvtxFunctionPointer nvtx_chain_next(unsigned module, unsigned id);

/* The same for extensions. */
void nvtx_chain_start_extension(nvtxExtModuleInfo_t *module);

#endif
