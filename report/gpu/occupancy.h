/* SPDX-License-Identifier: MIT
 * occupancy.h: how full a kernel can make a multiprocessor (SM), from the device's limits and what one block needs.
 *
 * An SM holds as many blocks at once as its warp slots, its registers, its shared memory and its block slots allow;
 * the scarcest decides. Registers are given to warps in units of 256, to each of the SM's four partitions apart;
 * shared memory to blocks in units of 128 bytes (256 before compute capability 8), plus what the driver keeps for
 * itself of each block. The same sums as NVIDIA's cuda_occupancy.h, held equal by a test where that header is
 * present. Theoretical: what the launch allows, not what was reached. Where the trace says how
 * much shared memory was configured on the SM as the kernel ran, that much counts, not all that the SM could have.
 *
 * Pure computation: no state, no allocation, any thread.
 */
#ifndef PPERF_REPORT_GPU_OCCUPANCY_H
#define PPERF_REPORT_GPU_OCCUPANCY_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stdint.h>

/* What keeps further blocks off the SM; several may at once. */
enum occupancy_limit {
	OCCUPANCY_WARPS = 1,
	OCCUPANCY_REGISTERS = 2,
	OCCUPANCY_SHARED_MEMORY = 4,
	OCCUPANCY_BLOCKS = 8,
};

struct occupancy {
	uint32_t
		blocks_per_sm; /* resident at once; 0: one block alone does not fit by the limits known here */
	uint32_t active_warps; /* blocks_per_sm times the block's warps */
	uint32_t max_warps;    /* of the SM */
	uint32_t limits;       /* enum occupancy_limit, or-ed */
	uint64_t blocks;       /* of the grid, saturated at UINT64_MAX */
	double theoretical;    /* active_warps / max_warps, 0 to 1 */
	double waves_per_sm; /* blocks / (multiprocessors * blocks_per_sm); 0 if blocks_per_sm is 0 */
};

/* false, and nothing written: the device's limits are unknown (zeros, a warp that is not 32 threads, compute
 * capability before 5) or the launch is empty. Clusters and block barriers (capability 9 on) are not in a trace and
 * are left out: they can only lower the figure. */
bool occupancy_of(const struct trace_device *device, const struct trace_kernel *kernel,
	struct occupancy *out);

/* "registers", "shared memory, blocks", ...: static text for each combination. "" for 0. */
const char *occupancy_limit_text(uint32_t limits);

#endif
