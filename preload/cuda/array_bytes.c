/* SPDX-License-Identifier: MIT */
#include "preload/cuda/array_bytes.h"

uint64_t volume_bytes(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(a, b, &bytes) || __builtin_mul_overflow(bytes, c, &bytes))
		return UINT64_MAX;
	return bytes;
}

static uint64_t one_if_zero(uint64_t extent)
{
	return extent ? extent : 1;
}

static int is_block_compressed(int kind)
{
	return kind >= CUDA_FORMAT_BLOCKS_FIRST && kind <= CUDA_FORMAT_BLOCKS_LAST;
}

static uint64_t block_bytes(int kind)
{
	const int small = kind == CUDA_FORMAT_BC1 || kind == CUDA_FORMAT_BC1_SRGB ||
			  kind == CUDA_FORMAT_BC4 || kind == CUDA_FORMAT_BC4_SIGNED;

	return small ? 8 : 16;
}

static uint64_t texel_bits(const struct cuda_channels *texel)
{
	if (texel->kind == CUDA_FORMAT_1010102)
		return 32;
	/* One byte of luma per texel, and two bytes of chroma for every four texels. */
	if (texel->kind == CUDA_FORMAT_NV12)
		return 12;
	return (uint64_t)texel->x + (uint64_t)texel->y + (uint64_t)texel->z + (uint64_t)texel->w;
}

static uint64_t level_bytes(
	const struct cuda_channels *texel, uint64_t width, uint64_t height, uint64_t depth)
{
	uint64_t bits;

	if (is_block_compressed(texel->kind))
		return volume_bytes(
			block_bytes(texel->kind) * ((width + 3) / 4), (height + 3) / 4, depth);
	bits = volume_bytes(texel_bits(texel), width, volume_bytes(height, depth, 1));
	return bits == UINT64_MAX ? bits : (bits + 7) / 8;
}

uint64_t array_bytes(const struct cuda_channels *texel, struct cuda_extent extent, unsigned levels,
	unsigned flags)
{
	uint64_t width = one_if_zero(extent.width), height = one_if_zero(extent.height),
		 depth = one_if_zero(extent.depth);
	uint64_t bytes = 0;

	for (unsigned level = 0; level < levels && level < 64; level++) {
		uint64_t more = level_bytes(texel, width, height, depth);

		bytes = bytes + more < bytes ? UINT64_MAX : bytes + more;
		width = one_if_zero(width / 2);
		height = one_if_zero(height / 2);
		if (!(flags & (CUDA_ARRAY_LAYERED | CUDA_ARRAY_CUBEMAP)))
			depth = one_if_zero(depth / 2);
	}
	return bytes;
}
