/* SPDX-License-Identifier: MIT
 * Collects the launch configurations of kernels, with their times. One entry per name, device,
 * grid, block, shared memory and registers. Beyond LAUNCH_CONFIGS_MAX entries, all further
 * configurations share one entry (name 0).
 */
#ifndef PPERF_REPORT_GPU_LAUNCH_CONFIGS_H
#define PPERF_REPORT_GPU_LAUNCH_CONFIGS_H

#include "collector/trace_format.h"
#include "report/base/hash_index.h"
#include "report/stats/percentiles.h"
#include <stddef.h>

#define LAUNCH_CONFIGS_MAX 65536u

struct launch_config {
	/* the first one of this configuration; zeros in the shared entry */
	struct trace_kernel record;
	uint64_t calls, total_ns, min_ns, max_ns, untimed;
	uint64_t longest_start_ns; /* since the start of the trace */
	struct percentiles samples;
	uint32_t name; /* text id of the shown name */
	uint32_t node; /* node of the call tree that launched the longest */
};

struct launch_configs {
	struct launch_config *kernels;
	uint32_t count;
	size_t room;
	struct hash_index index; /* by name and shape */
	uint32_t *recent; /* by the trace's id of the name: the entry last added to + 1; 0: none */
	size_t recent_room;
};

/* Returns true if device, grid, block, shared memory and registers are equal. */
bool launch_config_equal(const struct trace_kernel *a, const struct trace_kernel *b);

struct launch_configs *launch_configs_new(void);
void launch_configs_free(struct launch_configs *kernels);

/* Adds one kernel. `name`: text id of its name. `node`: launched it. `untimed`: CUPTI could not
 * time it, so only the counts change. Returns the index of its entry. */
uint32_t launch_configs_add(struct launch_configs *kernels, const struct trace_kernel *record,
	uint32_t name, uint32_t node, uint64_t start_ns, uint64_t duration_ns, bool untimed,
	struct percentiles_budget *budget);

#endif
