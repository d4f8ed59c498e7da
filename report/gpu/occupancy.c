/* SPDX-License-Identifier: MIT
 * The blocks per SM are the smallest of four limits.
 */
#include "report/gpu/occupancy.h"

#define WARP_THREADS 32u
#define REGISTER_UNIT 256u /* registers are allocated to a warp in these units */
#define REGISTERS_MAX 255u /* highest number that a thread can address */
#define UNLIMITED UINT32_MAX

static uint64_t round_up_to_unit(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint32_t blocks_by_warps(const struct trace_device *device, uint64_t threads, uint64_t warps)
{
	if (device->max_threads_per_block && threads > device->max_threads_per_block)
		return 0;
	return (uint32_t)(device->max_threads_per_sm / WARP_THREADS / warps);
}

/* An SM is divided into partitions with registers of their own. */
static uint32_t blocks_by_warp_registers(
	const struct trace_device *device, uint32_t partitions, uint32_t registers, uint64_t warps)
{
	uint64_t per_warp = round_up_to_unit((uint64_t)registers * WARP_THREADS, REGISTER_UNIT);

	if (registers == 0)
		return UNLIMITED;
	/* CUDA refuses a launch unless the registers suffice for the block's warps, rounded up to a
	 * multiple of the partitions. */
	if (registers > REGISTERS_MAX ||
		per_warp * round_up_to_unit(warps, partitions) > device->registers_per_block)
		return 0;
	return (uint32_t)(device->registers_per_sm / partitions / per_warp * partitions / warps);
}

static uint32_t blocks_by_registers(
	const struct trace_device *device, uint32_t registers, uint64_t warps)
{
	uint32_t limit = blocks_by_warp_registers(device, 4, registers, warps);

	/* GP100 has two partitions, but a launch must also be valid for the four of the rest of
	 * its family. */
	if (limit && device->compute_major == 6 && device->compute_minor == 0)
		limit = blocks_by_warp_registers(device, 2, registers, warps);
	return limit;
}

static uint32_t blocks_by_shared_memory(
	const struct trace_device *device, const struct trace_kernel *kernel)
{
	uint64_t wanted = (uint64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes;
	uint64_t block = round_up_to_unit(wanted + device->reserved_shared_bytes_per_block,
		device->compute_major < 8 ? 256 : 128);
	uint64_t sm = device->shared_bytes_per_sm;

	if (block == 0)
		return UNLIMITED;
	if (kernel->shared_carveout_bytes >= block && kernel->shared_carveout_bytes < sm)
		sm = kernel->shared_carveout_bytes;
	return (uint32_t)(sm / block);
}

/* Returns the product of three sizes; UINT64_MAX if it is larger. */
static uint64_t product_of(const uint32_t sizes[3])
{
	uint64_t result;

	if (__builtin_mul_overflow((uint64_t)sizes[0] * sizes[1], sizes[2], &result))
		return UINT64_MAX;
	return result;
}

static bool limits_known(const struct trace_device *device)
{
	return device->compute_major >= 5 && device->warp_threads == WARP_THREADS &&
	       device->multiprocessors && device->max_threads_per_sm >= WARP_THREADS &&
	       device->max_blocks_per_sm && device->registers_per_sm &&
	       device->registers_per_block && device->shared_bytes_per_sm;
}

bool occupancy_of(
	const struct trace_device *device, const struct trace_kernel *kernel, struct occupancy *out)
{
	const uint64_t threads = product_of(kernel->block), blocks = product_of(kernel->grid);
	const uint64_t warps = threads / WARP_THREADS + (threads % WARP_THREADS > 0);
	uint32_t limits[4], least = UNLIMITED;

	if (!limits_known(device) || threads == 0 || blocks == 0)
		return false;
	limits[0] = blocks_by_warps(device, threads, warps);
	limits[1] = blocks_by_registers(
		device, kernel->registers, warps > UINT32_MAX ? UINT32_MAX : warps);
	limits[2] = blocks_by_shared_memory(device, kernel);
	limits[3] = device->max_blocks_per_sm;
	*out = (struct occupancy){ .blocks = blocks,
		.max_warps = device->max_threads_per_sm / WARP_THREADS };
	for (int i = 0; i < 4; i++)
		least = limits[i] < least ? limits[i] : least;
	for (int i = 0; i < 4; i++)
		out->limits |= limits[i] == least ? 1u << i : 0;
	out->blocks_per_sm = least;
	out->active_warps = (uint32_t)(least * warps);
	out->theoretical = (double)out->active_warps / out->max_warps;
	if (least)
		out->waves_per_sm = (double)blocks / ((double)device->multiprocessors * least);
	return true;
}

static const char *const limit_texts[16] = {
	"",
	"warps",
	"registers",
	"warps, registers",
	"shared memory",
	"warps, shared memory",
	"registers, shared memory",
	"warps, registers, shared memory",
	"blocks",
	"warps, blocks",
	"registers, blocks",
	"warps, registers, blocks",
	"shared memory, blocks",
	"warps, shared memory, blocks",
	"registers, shared memory, blocks",
	"warps, registers, shared memory, blocks",
};

const char *occupancy_limit_text(uint32_t limits)
{
	return limit_texts[limits & 15];
}

bool occupancy_fills_device(const struct trace_device *device, const struct trace_kernel *kernel)
{
	const uint64_t threads = product_of(kernel->block);
	struct occupancy occupancy;

	if (occupancy_of(device, kernel, &occupancy))
		return occupancy.waves_per_sm >= 1;
	return threads && device->multiprocessors && threads <= device->max_threads_per_sm &&
	       product_of(kernel->grid) >=
		       (uint64_t)device->multiprocessors * (device->max_threads_per_sm / threads);
}
