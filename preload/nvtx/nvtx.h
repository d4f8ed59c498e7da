/* SPDX-License-Identifier: MIT
 * nvtx.h: what an NVTX client calls, so that nvtx_inject.c can put it in its tables and nvtx_v2.c behind the old symbols.
 */
#ifndef PPERF_PRELOAD_NVTX_NVTX_H
#define PPERF_PRELOAD_NVTX_NVTX_H

#include "preload/nvtx/api.h"
#include <stdbool.h>

struct nvtx_entry { /* a slot of a client's table, and what stands in it */
	unsigned module, id;
	NvtxFunctionPointer function;
	NvtxFunctionPointer
		alone; /* the same where no tool is chained, and no range is a step of the schedule */
};
extern const struct nvtx_entry nvtx_entries[];
extern const unsigned nvtx_entry_count;

/* For the old symbols, which have no tables. */
NvtxFunctionPointer nvtx_entry_function(unsigned module, unsigned id);

/* Slots of the payload and counter extensions, by NVTX3EXT_CBID_*; 0 ends neither: see the counts. */
struct nvtx_extension_entry {
	unsigned id;
	intptr_t function;
};
extern const struct nvtx_extension_entry nvtx_payload_entries[], nvtx_counter_entries[];
extern const unsigned nvtx_payload_entry_count, nvtx_counter_entry_count;

/* Is NVTX recorded? By the constructor. */
void nvtx_configure(bool enabled);
void nvtx_v2_configure(bool enabled);

#endif
