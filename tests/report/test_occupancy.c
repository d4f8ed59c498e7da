/* SPDX-License-Identifier: MIT
 * test_occupancy.c: occupancy against figures that NVIDIA documents, and against NVIDIA's own
 * cuda_occupancy.h where it is at hand.
 */
#include "report/gpu/occupancy.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAVE_NVIDIAS
#endif

/* As cudaGetDeviceProperties gives them. The last four: GP100, GP102, GM200, GV100. */
static const struct trace_device devices[] = {
#define DEVICE(major, minor, sms, threads, blocks, shared, reserved)                            \
	{                                                                                       \
		.compute_major = major, .compute_minor = minor, .multiprocessors = sms,         \
		.warp_threads = 32, .max_threads_per_sm = threads, .max_blocks_per_sm = blocks, \
		.max_threads_per_block = 1024, .registers_per_sm = 65536,                       \
		.registers_per_block = 65536, .shared_bytes_per_sm = shared,                    \
		.shared_bytes_per_block = 49152, .reserved_shared_bytes_per_block = reserved    \
	}
	DEVICE(7, 5, 40, 1024, 16, 65536, 0),
	DEVICE(8, 0, 108, 2048, 32, 167936, 1024),
	DEVICE(8, 6, 84, 1536, 16, 102400, 1024),
	DEVICE(8, 7, 16, 1536, 16, 167936, 1024),
	DEVICE(8, 9, 128, 1536, 24, 102400, 1024),
	DEVICE(9, 0, 132, 2048, 32, 233472, 1024),
	DEVICE(10, 0, 148, 2048, 32, 233472, 1024),
	DEVICE(10, 3, 160, 2048, 32, 233472, 1024),
	DEVICE(12, 0, 170, 1536, 24, 102400, 1024),
	DEVICE(12, 1, 48, 1536, 24, 102400, 1024),
	DEVICE(7, 0, 80, 2048, 32, 98304, 0),
	DEVICE(6, 0, 56, 2048, 32, 65536, 0),
	DEVICE(6, 1, 28, 2048, 32, 98304, 0),
	DEVICE(5, 2, 24, 2048, 32, 98304, 0),
};
#define DEVICES (sizeof devices / sizeof *devices)

static const struct trace_device *device_of(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < DEVICES; i++)
		if (devices[i].compute_major == major && devices[i].compute_minor == minor)
			return devices + i;
	ck_abort_msg("no device %u.%u in the table", major, minor);
	return NULL;
}

static struct trace_kernel kernel_of(
	uint32_t blocks, uint32_t threads, uint32_t registers, uint32_t shared)
{
	return (struct trace_kernel){ .grid = { blocks, 1, 1 },
		.block = { threads, 1, 1 },
		.registers = registers,
		.dynamic_shared_bytes = shared };
}

static struct occupancy occupancy_on(uint32_t major, uint32_t minor, struct trace_kernel kernel)
{
	struct occupancy result;

	ck_assert(occupancy_of(device_of(major, minor), &kernel, &result));
	return result;
}

START_TEST(a_small_kernel_fills_the_sm)
{
	struct occupancy h100 = occupancy_on(9, 0, kernel_of(132 * 8 * 3, 256, 32, 0));

	ck_assert_uint_eq(h100.blocks_per_sm, 8);
	ck_assert_uint_eq(h100.active_warps, 64);
	ck_assert_uint_eq(h100.max_warps, 64);
	ck_assert_double_eq(h100.theoretical, 1.0);
	ck_assert_double_eq(h100.waves_per_sm, 3.0);
	ck_assert_uint_eq(h100.limits, OCCUPANCY_WARPS | OCCUPANCY_REGISTERS);
	ck_assert_str_eq(occupancy_limit_text(h100.limits), "warps, registers");
}
END_TEST

START_TEST(the_scarcest_resource_decides)
{
	struct occupancy few_warps = occupancy_on(9, 0, kernel_of(1, 32, 16, 0)),
			 registers = occupancy_on(8, 0, kernel_of(1, 1024, 64, 0)),
			 shared = occupancy_on(9, 0, kernel_of(66, 384, 168, 200 * 1024));

	ck_assert_uint_eq(few_warps.blocks_per_sm, 32);
	ck_assert_double_eq(few_warps.theoretical, 0.5);
	ck_assert_str_eq(occupancy_limit_text(few_warps.limits), "blocks");
	ck_assert_uint_eq(registers.blocks_per_sm, 1);
	ck_assert_double_eq(registers.theoretical, 0.5);
	ck_assert_str_eq(occupancy_limit_text(registers.limits), "registers");
	ck_assert_uint_eq(shared.blocks_per_sm, 1);
	ck_assert_double_eq(shared.theoretical, 12.0 / 64);
	ck_assert_double_eq(shared.waves_per_sm, 0.5);
	ck_assert_str_eq(occupancy_limit_text(shared.limits), "registers, shared memory");
}
END_TEST

START_TEST(registers_go_to_warps_in_units_of_256)
{
	ck_assert_uint_eq(
		occupancy_on(8, 0, kernel_of(1, 128, 33, 0)).blocks_per_sm, 12); /* as if 40 */
	ck_assert_uint_eq(occupancy_on(8, 0, kernel_of(1, 128, 40, 0)).blocks_per_sm, 12);
	ck_assert_uint_eq(occupancy_on(8, 0, kernel_of(1, 128, 41, 0)).blocks_per_sm,
		10); /* as if 48: 10 warps in each of 4 parts */
}
END_TEST

START_TEST(shared_memory_that_the_driver_configured_bounds_it)
{
	struct trace_kernel kernel = kernel_of(1, 32, 16, 7 * 1024);

	ck_assert_uint_eq(occupancy_on(9, 0, kernel).blocks_per_sm, 28);
	kernel.shared_carveout_bytes = 64 * 1024;
	ck_assert_uint_eq(occupancy_on(9, 0, kernel).blocks_per_sm, 8);
	kernel.shared_carveout_bytes =
		7 * 1024; /* less than it needs: it cannot have run so, and is not believed */
	ck_assert_uint_eq(occupancy_on(9, 0, kernel).blocks_per_sm, 28);
	kernel.shared_carveout_bytes = UINT32_MAX;
	ck_assert_uint_eq(occupancy_on(9, 0, kernel).blocks_per_sm, 28);
}
END_TEST

START_TEST(what_cannot_run_has_no_blocks)
{
	ck_assert_uint_eq(occupancy_on(9, 0, kernel_of(1, 1025, 16, 0)).blocks_per_sm, 0);
	ck_assert_uint_eq(occupancy_on(9, 0, kernel_of(1, 1024, 65, 0)).blocks_per_sm, 0);
	ck_assert_uint_eq(occupancy_on(9, 0, kernel_of(1, 32, 256, 0)).blocks_per_sm, 0);
	ck_assert_uint_eq(occupancy_on(9, 0, kernel_of(1, 32, 16, 228 * 1024)).blocks_per_sm, 0);
	ck_assert_double_eq(occupancy_on(9, 0, kernel_of(7, 1025, 16, 0)).waves_per_sm, 0);
	ck_assert_double_eq(occupancy_on(9, 0, kernel_of(7, 1025, 16, 0)).theoretical, 0);
}
END_TEST

START_TEST(unknown_limits_and_absurd_sizes_are_survived)
{
	struct trace_kernel kernel = kernel_of(1, 32, 16, 0);
	struct trace_device device = { 0 };
	struct occupancy result;

	ck_assert(!occupancy_of(&device, &kernel, &result));
	memset(&device, 0xff, sizeof device);
	ck_assert(!occupancy_of(&device, &kernel, &result));
	device.warp_threads = 32;
	memset(&kernel, 0xff, sizeof kernel);
	ck_assert(occupancy_of(&device, &kernel, &result));
	ck_assert_uint_eq(result.blocks, UINT64_MAX);
	ck_assert_uint_eq(result.blocks_per_sm, 0);
	kernel = kernel_of(0, 32, 16, 0);
	ck_assert(!occupancy_of(device_of(9, 0), &kernel, &result));
	kernel = kernel_of(1, 0, 16, 0);
	ck_assert(!occupancy_of(device_of(9, 0), &kernel, &result));
}
END_TEST

#ifdef HAVE_NVIDIAS
static struct cudaOccDeviceProp nvidias_device(const struct trace_device *device)
{
	struct cudaOccDeviceProp theirs = {
		.computeMajor = (int)device->compute_major,
		.computeMinor = (int)device->compute_minor,
		.maxThreadsPerBlock = (int)device->max_threads_per_block,
		.maxThreadsPerMultiprocessor = (int)device->max_threads_per_sm,
		.regsPerBlock = (int)device->registers_per_block,
		.regsPerMultiprocessor = (int)device->registers_per_sm,
		.warpSize = (int)device->warp_threads,
		.sharedMemPerBlock = device->shared_bytes_per_block,
		.sharedMemPerMultiprocessor = device->shared_bytes_per_sm,
		.numSms = (int)device->multiprocessors,
		.sharedMemPerBlockOptin = device->shared_bytes_per_sm -
					  device->reserved_shared_bytes_per_block,
		.reservedSharedMemPerBlock = device->reserved_shared_bytes_per_block,
	};

	return theirs;
}

/* false: their header is older than the device. `carveout`: percent of the SM's shared memory, -1
 * for no preference. */
static bool nvidias_answer(const struct trace_device *device, const struct trace_kernel *kernel,
	int carveout, struct cudaOccResult *result)
{
	struct cudaOccDeviceProp theirs = nvidias_device(device);
	struct cudaOccDeviceState state = { .carveoutConfig = carveout };
	struct cudaOccFuncAttributes function = {
		.maxThreadsPerBlock = INT_MAX,
		.numRegs = (int)kernel->registers,
		.sharedSizeBytes = kernel->static_shared_bytes,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = kernel->dynamic_shared_bytes,
		.numBlockBarriers = 1,
	};

	return cudaOccMaxActiveBlocksPerMultiprocessor(result, &theirs, &function, &state,
		       (int)kernel->block[0], kernel->dynamic_shared_bytes) == CUDA_OCC_SUCCESS;
}

static size_t compare(
	const struct trace_device *device, const struct trace_kernel *kernel, int carveout)
{
	struct cudaOccResult theirs;
	struct occupancy ours;

	if (!nvidias_answer(device, kernel, carveout, &theirs))
		return 0;
	ck_assert(occupancy_of(device, kernel, &ours));
	ck_assert_msg(
		(int)ours.blocks_per_sm == theirs.activeBlocksPerMultiprocessor &&
			ours.limits == (theirs.limitingFactors &
					       (OCC_LIMIT_WARPS | OCC_LIMIT_REGISTERS |
						       OCC_LIMIT_SHARED_MEMORY | OCC_LIMIT_BLOCKS)),
		"%u.%u: %u threads, %u registers, %u + %u bytes shared: %u blocks (%s) instead of "
		"%d (%x)",
		device->compute_major, device->compute_minor, kernel->block[0], kernel->registers,
		kernel->static_shared_bytes, kernel->dynamic_shared_bytes, ours.blocks_per_sm,
		occupancy_limit_text(ours.limits), theirs.activeBlocksPerMultiprocessor,
		theirs.limitingFactors);
	return 1;
}

static uint32_t most_shared(const struct trace_device *device)
{
	return device->compute_major < 7
		       ? device->shared_bytes_per_block
		       : device->shared_bytes_per_sm - device->reserved_shared_bytes_per_block;
}

START_TEST(every_block_and_register_count_agrees_with_nvidias_sums)
{
	const struct trace_device *device = devices + _i;
	size_t compared = 0;

	for (uint32_t threads = 1; threads <= 1024; threads += threads < 130 ? 1 : 7)
		for (uint32_t registers = 0; registers <= 255; registers++) {
			struct trace_kernel kernel = kernel_of(1, threads, registers, 0);

			compared += compare(device, &kernel, -1);
		}
	ck_assert(compared > 50000 || device->compute_minor > 0);
}
END_TEST

START_TEST(every_shared_memory_size_agrees_with_nvidias_sums)
{
	const struct trace_device *device = devices + _i;
	size_t compared = 0;

	for (uint32_t shared = 0; shared <= most_shared(device);
		shared += shared % 1024 < 2 || shared % 1024 > 1021 ? 1 : 51) {
		struct trace_kernel kernel = kernel_of(1, 64, 24, shared);

		compared += compare(device, &kernel, -1);
		kernel.static_shared_bytes = shared % 49152;
		kernel.dynamic_shared_bytes = shared - kernel.static_shared_bytes;
		compared += compare(device, &kernel, -1);
	}
	ck_assert(compared > 1000 || device->compute_minor > 0);
}
END_TEST

START_TEST(any_mixture_agrees_with_nvidias_sums)
{
	const struct trace_device *device = devices + _i;

	srandom((unsigned)_i);
	for (int i = 0; i < 30000; i++) {
		uint32_t threads = 1 + (uint32_t)random() % 1024;
		struct trace_kernel kernel = kernel_of(1, threads, (uint32_t)random() % 256,
			(uint32_t)random() % (most_shared(device) + 1));

		if (random() % 2)
			kernel.dynamic_shared_bytes %= 16384;
		compare(device, &kernel, -1);
	}
}
END_TEST

START_TEST(configured_shared_memory_agrees_with_nvidias_sums)
{
	const struct trace_device *device = devices + _i;
	struct cudaOccDeviceProp theirs = nvidias_device(device);
	size_t configured;

	if (device->compute_major < 7)
		return;
	for (int percent = 1; percent <= 100; percent++) {
		struct cudaOccDeviceState state = { .carveoutConfig = percent };

		if (cudaOccSMemPreferenceVoltaPlus(&configured, &theirs, &state) !=
			CUDA_OCC_SUCCESS)
			return;
		for (uint32_t shared = 0;
			shared + 1280 <= configured && shared <= most_shared(device);
			shared += 509) {
			struct trace_kernel kernel = kernel_of(1, 64, 24, shared);

			kernel.shared_carveout_bytes = (uint32_t)configured;
			compare(device, &kernel, percent);
		}
	}
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("occupancy");
	TCase *figures = tcase_create("figures"), *nvidias = tcase_create("cuda_occupancy.h");
	SRunner *runner;
	int failed;

	tcase_add_test(figures, a_small_kernel_fills_the_sm);
	tcase_add_test(figures, the_scarcest_resource_decides);
	tcase_add_test(figures, registers_go_to_warps_in_units_of_256);
	tcase_add_test(figures, shared_memory_that_the_driver_configured_bounds_it);
	tcase_add_test(figures, what_cannot_run_has_no_blocks);
	tcase_add_test(figures, unknown_limits_and_absurd_sizes_are_survived);
#ifdef HAVE_NVIDIAS
	tcase_add_loop_test(
		nvidias, every_block_and_register_count_agrees_with_nvidias_sums, 0, DEVICES);
	tcase_add_loop_test(nvidias, every_shared_memory_size_agrees_with_nvidias_sums, 0, DEVICES);
	tcase_add_loop_test(nvidias, any_mixture_agrees_with_nvidias_sums, 0, DEVICES);
	tcase_add_loop_test(nvidias, configured_shared_memory_agrees_with_nvidias_sums, 0, DEVICES);
#endif
	suite_add_tcase(suite, figures);
	suite_add_tcase(suite, nvidias);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
