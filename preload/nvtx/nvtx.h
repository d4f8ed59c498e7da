/* SPDX-License-Identifier: MIT
 * Declares the handlers of NVTX calls. inject.c writes them to the tables of an NVTX client. v2.c
 * calls them from the exported functions of NVTX 2.
 */
#ifndef PPERF_PRELOAD_NVTX_NVTX_H
#define PPERF_PRELOAD_NVTX_NVTX_H

#include "preload/nvtx/api.h"
#include <stdbool.h>

/* A slot of a client's table and its functions. */
struct nvtx_entry {
	unsigned module, id;
	NvtxFunctionPointer function;
	/* The function for a process without a chained tool and without schedule_has_marker. */
	NvtxFunctionPointer fast_function;
};
extern const struct nvtx_entry nvtx_entries[];
extern const unsigned nvtx_entry_count;

/* Returns the handler of a call, NULL if there is none. v2.c looks it up at the first call of each
 * function of NVTX 2, which has no tables. */
NvtxFunctionPointer nvtx_entry_function(unsigned module, unsigned id);

/* A slot of the payload or counter extension. `id` is an NVTX3EXT_CBID_*. The arrays have no end
 * mark, only their counts. */
struct nvtx_extension_entry {
	unsigned id;
	intptr_t function;
};
extern const struct nvtx_extension_entry nvtx_payload_entries[], nvtx_counter_entries[];
extern const unsigned nvtx_payload_entry_count, nvtx_counter_entry_count;

/* Enables or disables the recording of NVTX. Called by the constructor. */
void nvtx_configure(bool enabled);
/* nvtx_configure() for NVTX 2. Called by nvtx_configure(). */
void nvtx_v2_configure(bool enabled);

#endif
