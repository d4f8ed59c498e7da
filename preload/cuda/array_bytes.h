/* SPDX-License-Identifier: MIT
 * Computes the bytes of CUDA memory from its shape.
 */
#ifndef PPERF_PRELOAD_CUDA_ARRAY_BYTES_H
#define PPERF_PRELOAD_CUDA_ARRAY_BYTES_H

#include "preload/cuda/cuda_abi.h"

#include <stdint.h>

/* Returns a * b * c; UINT64_MAX if that overflows. */
uint64_t volume_bytes(uint64_t a, uint64_t b, uint64_t c);

/* Returns the bytes of the texels of an array, without what the device adds for alignment.
 * `levels`: its mip levels, 1 if it has no mipmap. `flags`: CUDA_ARRAY_*. An extent of 0 counts as
 * 1. Each level has half the width, height and depth of the one before; layers and cube faces are
 * not halved. */
uint64_t array_bytes(const struct cuda_channels *texel, struct cuda_extent extent, unsigned levels,
	unsigned flags);

#endif
