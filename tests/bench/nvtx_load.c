/* SPDX-License-Identifier: MIT
 * The load (load.h) as NVTX ranges, which is what libpperf.so and the floor record.
 */
#include "load.h"

#include <nvtx3/nvToolsExt.h>

static inline void chain(unsigned first)
{
	for (unsigned d = 0; d < DEPTH; d++)
		nvtxRangePushA(names[first + d]);
	for (unsigned d = 0; d < DEPTH; d++)
		nvtxRangePop();
}
