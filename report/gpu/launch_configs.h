/* SPDX-License-Identifier: MIT
 * kernels.h: every shape in which a kernel was launched, with its times: one entry for each name, device, grid,
 * block, shared memory and registers. At most KERNELS_MOST; what comes after goes to one entry for all the rest (name
 * 0).
 */
#ifndef PPERF_REPORT_GPU_LAUNCH_CONFIGS_H
#define PPERF_REPORT_GPU_LAUNCH_CONFIGS_H

#include "collector/trace_format.h"
#include "report/base/hash_index.h"
#include "report/stats/percentiles.h"
#include <stddef.h>

#define LAUNCH_CONFIGS_MAX 65536u

struct launch_config {
	struct trace_kernel record; /* the longest of them */
	uint64_t calls, total_ns, min_ns, max_ns, untimed;
	uint64_t longest_start_ns; /* since the trace's start */
	struct percentiles samples;
	uint32_t name; /* text; as shown */
	uint32_t node; /* of the tree: who launched the longest */
};

struct launch_configs {
	struct launch_config *kernels;
	uint32_t count;
	size_t room;
	struct hash_index index; /* by name and shape */
	uint32_t *recent; /* by the trace's id of the name: the entry last added to + 1; 0: none */
	size_t recent_room;
	const uint8_t *only; /* as struct tree's */
	uint32_t only_count;
};

/* The same device, grid, block, shared memory and registers. */
bool launch_config_equal(const struct trace_kernel *a, const struct trace_kernel *b);

struct launch_configs *launch_configs_new(void);
void launch_configs_free(struct launch_configs *kernels);

/* One that ran: its text, who launched it, when and how long. untimed: the times are not known. Returns its entry's
 * index. */
uint32_t launch_configs_add(struct launch_configs *kernels, const struct trace_kernel *record,
	uint32_t name, uint32_t node, uint64_t start_ns, uint64_t duration_ns, bool untimed,
	struct percentiles_budget *budget);

#endif
