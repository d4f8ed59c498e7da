/* SPDX-License-Identifier: MIT
 * cuda_array.h: how many bytes memory of a shape has.
 */
#ifndef PPERF_PRELOAD_CUDA_ARRAY_BYTES_H
#define PPERF_PRELOAD_CUDA_ARRAY_BYTES_H

#include "preload/cuda/cuda_abi.h"

#include <stdint.h>

/* a * b * c, UINT64_MAX if that is too much. */
uint64_t volume_bytes(uint64_t a, uint64_t b, uint64_t c);

/* Of the texels of an array of `levels` mip levels (1: no mipmap), without what the device adds to align them. An extent of 0 stands for 1, and
 * flags are CUDA_ARRAY_*. A level has half the width, height and depth of the one before; layers and cube faces stay. */
uint64_t array_bytes(const struct cuda_channels *texel, struct cuda_extent extent, unsigned levels,
	unsigned flags);

#endif
