/* SPDX-License-Identifier: MIT
 * Computes the theoretical occupancy of a multiprocessor (SM) from the device's limits and the
 * needs of one block.
 *
 * An SM holds as many blocks at once as its warp slots, registers, shared memory and block slots
 * allow. The scarcest of them decides. Registers are allocated to warps in units of 256, in each of
 * the SM's four partitions separately. Shared memory is allocated to blocks in units of 128 bytes
 * (256 before compute capability 8), including what the driver reserves per block.
 *
 * The formulas are those of NVIDIA's cuda_occupancy.h. A test compares the results where that
 * header is present. Theoretical means what the launch allows, not what was reached. A trace may
 * have the shared memory that was configured on the SM while the kernel ran. This amount is then
 * used instead of the SM's maximum.
 *
 * Pure functions without state or allocation, callable from any thread.
 */
#ifndef PPERF_REPORT_GPU_OCCUPANCY_H
#define PPERF_REPORT_GPU_OCCUPANCY_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stdint.h>

/* What limits the blocks per SM. Several limits may apply at once. */
enum occupancy_limit {
	OCCUPANCY_WARPS = 1,
	OCCUPANCY_REGISTERS = 2,
	OCCUPANCY_SHARED_MEMORY = 4,
	OCCUPANCY_BLOCKS = 8,
};

struct occupancy {
	/* Blocks resident at once. 0: a single block does not fit into the limits known here. */
	uint32_t blocks_per_sm;
	uint32_t active_warps; /* blocks_per_sm times the warps of a block */
	uint32_t max_warps;    /* of the SM */
	uint32_t limits;       /* bits of enum occupancy_limit */
	uint64_t blocks;       /* of the grid; UINT64_MAX if larger */
	double theoretical;    /* active_warps / max_warps, 0 to 1 */
	/* blocks / (multiprocessors * blocks_per_sm); 0 if blocks_per_sm is 0 */
	double waves_per_sm;
};

/* Computes `out`. Returns false without writing it if the launch is empty or the device's limits
 * are unknown. They are unknown if they are 0, a warp does not have 32 threads, or the compute
 * capability is below 5. Clusters and block barriers (compute capability 9 and later) are not in
 * a trace and are ignored. They can only lower the result. */
bool occupancy_of(const struct trace_device *device, const struct trace_kernel *kernel,
	struct occupancy *out);

/* Returns true if the kernel has at least as many blocks as fit on the device at once. If the
 * limits that occupancy_of needs are not known, only the threads of the device count: then it is
 * true only of kernels that fill the device whatever else limits them. */
bool occupancy_fills_device(const struct trace_device *device, const struct trace_kernel *kernel);

/* Returns a static text such as "registers" or "shared memory, blocks" for a combination of
 * limits. Returns "" for 0. */
const char *occupancy_limit_text(uint32_t limits);

#endif
