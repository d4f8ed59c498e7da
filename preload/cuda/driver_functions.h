/* SPDX-License-Identifier: MIT
 * driver_calls.h: the driver's functions that are heard of through CUPTI's callbacks, and what
 * their arguments say.
 *
 * Everything that puts work on a GPU, takes its memory or waits for it passes through these,
 * whoever calls: the runtime, also where it is linked statically or its symbols are not seen,
 * libraries, Triton. So the runtime's own callbacks are not asked for: each call would be told
 * twice, with two ids. Functions of CUDA before 3.2 (32-bit sizes) are left out.
 *
 * The numbers and argument structs are the driver's, the same in CUDA 12 and 13;
 * tests/preload/test_driver_functions.c holds them against the real headers.
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
	DRIVER_CAPTURE_BEGIN,
	DRIVER_CAPTURE_END,
};

/* What a call's arguments say. Zero where they say nothing. */
struct driver_event {
	uint64_t stream; /* handle */
	uint64_t
		object; /* LAUNCH: CUfunction, GRAPH_LAUNCH: executable graph, SYNC: event, ALLOC and FREE: address */
	uint64_t bytes;
	uint32_t grid[3], block[3], shared_bytes; /* LAUNCH */
	/* COPY: enum trace_copy_kind, SET: the value, SYNC: enum trace_sync_type, ALLOC and FREE:
	 * enum trace_memory_kind */
	uint32_t detail;
	uint32_t flags; /* ALLOC and FREE: enum trace_memory_flag */
};

struct driver_function {
	struct call_site site;
	enum driver_event_kind kind;
	uint32_t detail; /* what the event's are, unless `read` knows better */
	uint32_t flags;
	bool streamed; /* the arguments have a stream, where functions differ in that only */
	/* Reads the arguments at the call's end, when what they point to is still there. done: it
	 * succeeded, so output pointers are good. */
	void (*read)(struct driver_event *event, const struct driver_function *call,
		const void *arguments, bool done);
};

/* The call with this callback id; NULL: not one of these, or driver_call_ids has not been called yet. Its site's name id may be changed. */
struct driver_function *driver_function(uint32_t cbid);

/* All callback ids, ended by 0. The first time by one thread. */
const uint16_t *driver_function_ids(void);

/* Those that CUPTI shall time because nothing here records them: occupancy queries, loading of
 * modules and libraries, instantiation of graphs. Ended by 0. */
extern const uint16_t driver_timed_ids[];

#endif
