/* SPDX-License-Identifier: MIT
 * Declares what is known of a call that issued GPU work, while its records are expected.
 */
#ifndef PPERF_REPORT_PROFILE_GPU_LAUNCH_H
#define PPERF_REPORT_PROFILE_GPU_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct instance;

/* A call that issued GPU work. Thousands wait for their records, so each is in one cache line. */
struct gpu_launch {
	uint64_t begin_ns, end_ns;
	/* Instance of the range that made the call, with a reference held. NULL: not needed. */
	struct instance *instance;
	/* Graph launch: earliest start of its records so far. 0: none was timed. */
	uint64_t first_ns;
	uint32_t node; /* node of the call tree that made the call */
	/* index of the module (module_group.h) that made the call, or 0 */
	uint32_t module;
	/* node of the launched graph in the call tree; 0: not a graph launch */
	uint32_t graph_node;
	uint32_t tid;               /* of the calling thread */
	uint32_t trace_node, stack; /* trace ids of the call's node and stack */
	bool counts;                /* false: outside of the steps selected by --steps */
	bool in_range;              /* the call was made inside a range */
	bool empty;                 /* a copy or memset of 0 bytes, which needs no record */
	bool has_record;            /* a record was matched */
	uint32_t reserved;
};

#endif
