/* SPDX-License-Identifier: MIT
 * The functions of the CUDA driver that CUPTI's callbacks report, and what their arguments mean.
 *
 * All GPU work, allocations and waits pass through these functions, whatever the caller: the
 * runtime, libraries or Triton. A runtime may be linked statically, or its symbols may not be seen.
 * The runtime's own callbacks are not enabled, because each call would be seen twice, with two ids.
 * Beside another profiler that records runtime calls they are (collector/cupti/call_ids.h).
 * Functions from before CUDA 3.2, which have 32-bit sizes, are left out.
 *
 * The callback ids and argument structs are the driver's, the same in CUDA 12 and 13.
 * tests/preload/test_driver_functions.c compares them with NVIDIA's headers.
 */
#ifndef PPERF_PRELOAD_CUDA_DRIVER_FUNCTIONS_H
#define PPERF_PRELOAD_CUDA_DRIVER_FUNCTIONS_H

#include "preload/cuda/traced_call.h"

enum driver_event_kind {
	DRIVER_LAUNCH = 1,
	DRIVER_GRAPH_LAUNCH,
	DRIVER_COPY,
	DRIVER_MEMSET,
	DRIVER_SYNC,
	DRIVER_ALLOC,
	DRIVER_FREE,
	DRIVER_MAPPING,
	DRIVER_MEMORY_QUERY,
	DRIVER_CAPTURE_BEGIN,
	DRIVER_CAPTURE_END,
};

/* What the arguments of a call mean. Members that do not apply are 0. */
struct driver_event {
	uint64_t stream; /* CUDA stream handle */
	/* LAUNCH: CUfunction. GRAPH_LAUNCH: executable graph. SYNC: event. ALLOC, FREE and MAPPING:
	 * address. */
	uint64_t object;
	uint64_t bytes;                           /* MEMORY_QUERY: free ones */
	uint64_t total;                           /* MEMORY_QUERY */
	uint64_t handle;                          /* MAPPING: of physical memory */
	uint32_t grid[3], block[3], shared_bytes; /* LAUNCH */
	/* COPY: enum trace_copy_kind. MEMSET: the value. SYNC: enum trace_sync_type. ALLOC and
	 * FREE: enum trace_memory_kind. MAPPING: enum trace_mapping_action. */
	uint32_t detail;
	uint32_t flags; /* ALLOC and FREE: enum trace_memory_flag */
};

struct driver_function {
	struct traced_function traced;
	enum driver_event_kind kind;
	/* Initial values of the event's `detail` and `flags`, which `read` may replace. MEMSET:
	 * `flags` is the width of a value in bytes. */
	uint32_t detail;
	uint32_t flags;
	/* The arguments include a CUDA stream; some functions share a struct and differ only in
	 * this. */
	bool streamed;
	/* Reads the arguments at the end of the call, when what they point to is still valid.
	 * `done`: the call succeeded, so output pointers are valid. */
	void (*read)(struct driver_event *event, const struct driver_function *call,
		const void *arguments, bool done);
};

/* Returns the function with this callback id. NULL: it is none of these, or driver_function_ids has
 * not been called yet. `traced.api`, a name id, is set at the first record. */
struct driver_function *driver_function(uint32_t cbid);

/* Returns all callback ids, ended by 0. One thread must make the first call. */
const uint16_t *driver_function_ids(void);

/* Callback ids of calls that CUPTI times, because nothing here records them: occupancy queries,
 * loading of modules and libraries, instantiation of graphs. Ended by 0. */
extern const uint16_t driver_timed_ids[];

#endif
