/* SPDX-License-Identifier: MIT
 * Sizes of arrays, and CUDA's types as preload/cuda/cuda_abi.h writes them down against the real
 * headers, where there are any.
 */
#include "preload/cuda/array_bytes.h"

#include <assert.h>
#include <check.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_include)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#define SAME(ours, theirs) \
	static_assert(sizeof(ours) == sizeof(theirs) && _Alignof(ours) == _Alignof(theirs), #theirs)
#define SAME_FIELD(ours, a, theirs, b) \
	static_assert(offsetof(ours, a) == offsetof(theirs, b), #theirs "." #b)

SAME(struct cuda_dim3, struct dim3);
SAME(struct cuda_extent, struct cudaExtent);
SAME_FIELD(struct cuda_extent, height, struct cudaExtent, height);
SAME(struct cuda_pitched_pointer, struct cudaPitchedPtr);
SAME_FIELD(struct cuda_pitched_pointer, pitch, struct cudaPitchedPtr, pitch);
SAME(struct cuda_channels, struct cudaChannelFormatDesc);
SAME_FIELD(struct cuda_channels, kind, struct cudaChannelFormatDesc, f);
SAME(struct cuda_launch_config, struct cudaLaunchConfig_st);
SAME_FIELD(struct cuda_launch_config, block, struct cudaLaunchConfig_st, blockDim);
SAME_FIELD(struct cuda_launch_config, shared_bytes, struct cudaLaunchConfig_st, dynamicSmemBytes);
SAME_FIELD(struct cuda_launch_config, stream, struct cudaLaunchConfig_st, stream);
SAME(int, enum cudaError);
SAME(int, enum cudaStreamCaptureMode);
#if CUDART_VERSION < 13000
SAME(struct cuda_launch_params, struct cudaLaunchParams);
SAME_FIELD(struct cuda_launch_params, shared_bytes, struct cudaLaunchParams, sharedMem);
#endif
static_assert(CUDA_ERROR_INITIALIZATION == (int)cudaErrorInitializationError, "");
static_assert(CUDA_ERROR_CAPTURE_INVALIDATED == (int)cudaErrorStreamCaptureInvalidated, "");
static_assert(CUDA_ERROR_CAPTURE_UNJOINED == (int)cudaErrorStreamCaptureUnjoined, "");
static_assert(CUDA_HOST_ALLOC_MAPPED == cudaHostAllocMapped &&
		      CUDA_HOST_ALLOC_MAPPED == cudaHostRegisterMapped,
	"");
static_assert(CUDA_ARRAY_LAYERED == cudaArrayLayered && CUDA_ARRAY_CUBEMAP == cudaArrayCubemap, "");
static_assert(CUDA_FORMAT_NV12 == (int)cudaChannelFormatKindNV12, "");
static_assert(CUDA_FORMAT_BLOCKS_FIRST == (int)cudaChannelFormatKindUnsignedBlockCompressed1, "");
static_assert(
	CUDA_FORMAT_BLOCKS_LAST == (int)cudaChannelFormatKindUnsignedBlockCompressed7SRGB, "");
static_assert(CUDA_FORMAT_BC1_SRGB == (int)cudaChannelFormatKindUnsignedBlockCompressed1SRGB, "");
static_assert(CUDA_FORMAT_BC4 == (int)cudaChannelFormatKindUnsignedBlockCompressed4, "");
static_assert(CUDA_FORMAT_BC4_SIGNED == (int)cudaChannelFormatKindSignedBlockCompressed4, "");
#ifdef cudaChannelFormatKindUnsignedNormalized1010102
static_assert(CUDA_FORMAT_1010102 == (int)cudaChannelFormatKindUnsignedNormalized1010102, "");
#endif
#endif
#endif

static const struct cuda_channels four_floats = { 32, 32, 32, 32, 2 }, one_byte = { 8, 0, 0, 0, 1 };

static uint64_t plain(const struct cuda_channels *texel, size_t width, size_t height, size_t depth)
{
	return array_bytes(texel, (struct cuda_extent){ width, height, depth }, 1, 0);
}

START_TEST(extents_of_nothing_count_as_one)
{
	ck_assert_uint_eq(plain(&four_floats, 100, 0, 0), 1600);
	ck_assert_uint_eq(plain(&four_floats, 100, 3, 0), 4800);
	ck_assert_uint_eq(plain(&four_floats, 100, 3, 2), 9600);
	ck_assert_uint_eq(plain(&one_byte, 7, 1, 1), 7);
}
END_TEST

START_TEST(levels_halve_what_is_not_a_layer)
{
	ck_assert_uint_eq(
		array_bytes(&one_byte, (struct cuda_extent){ 16, 8, 0 }, 3, 0), 128 + 32 + 8);
	ck_assert_uint_eq(
		array_bytes(&one_byte, (struct cuda_extent){ 4, 4, 4 }, 3, 0), 64 + 8 + 1);
	ck_assert_uint_eq(
		array_bytes(&one_byte, (struct cuda_extent){ 4, 4, 4 }, 3, CUDA_ARRAY_LAYERED),
		64 + 16 + 4);
	ck_assert_uint_eq(
		array_bytes(&one_byte, (struct cuda_extent){ 4, 4, 6 }, 2, CUDA_ARRAY_CUBEMAP),
		96 + 24);
	ck_assert_uint_eq(
		array_bytes(&one_byte, (struct cuda_extent){ 4, 0, 0 }, 1000, 0), 4 + 2 + 62);
}
END_TEST

START_TEST(packed_formats_have_their_own_sizes)
{
	const struct cuda_channels bc1 = { 8, 8, 8, 8, CUDA_FORMAT_BC1 },
				   bc7 = { 8, 8, 8, 8, CUDA_FORMAT_BLOCKS_LAST };
	const struct cuda_channels nv12 = { 8, 8, 8, 0, CUDA_FORMAT_NV12 },
				   packed = { 10, 10, 10, 2, CUDA_FORMAT_1010102 };

	ck_assert_uint_eq(plain(&bc1, 16, 16, 0), 16 * 8);
	ck_assert_uint_eq(plain(&bc7, 17, 1, 0), 5 * 16);
	ck_assert_uint_eq(plain(&nv12, 64, 32, 0), 64 * 32 * 3 / 2);
	ck_assert_uint_eq(plain(&packed, 10, 0, 0), 40);
}
END_TEST

START_TEST(too_much_is_the_most_there_is)
{
	ck_assert_uint_eq(volume_bytes(SIZE_MAX, 2, 1), UINT64_MAX);
	ck_assert_uint_eq(volume_bytes(1u << 30, 1u << 30, 1u << 30), UINT64_MAX);
	ck_assert_uint_eq(volume_bytes(SIZE_MAX, 0, 7), 0);
	ck_assert_uint_eq(plain(&four_floats, SIZE_MAX, SIZE_MAX, SIZE_MAX), UINT64_MAX);
	ck_assert_uint_eq(array_bytes(&four_floats, (struct cuda_extent){ SIZE_MAX, 8, 0 }, 2, 0),
		UINT64_MAX);
}
END_TEST

int main(void)
{
	TCase *sizes = tcase_create("sizes");
	Suite *suite = suite_create("cuda_array");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(sizes, extents_of_nothing_count_as_one);
	tcase_add_test(sizes, levels_halve_what_is_not_a_layer);
	tcase_add_test(sizes, packed_formats_have_their_own_sizes);
	tcase_add_test(sizes, too_much_is_the_most_there_is);
	suite_add_tcase(suite, sizes);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
