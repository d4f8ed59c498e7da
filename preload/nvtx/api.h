/* SPDX-License-Identifier: MIT
 * Includes the types of NVIDIA's NVTX headers. No other file includes these headers. Including
 * nvToolsExt.h with its functions would make this library an NVTX client of its own.
 */
#ifndef PPERF_PRELOAD_NVTX_API_H
#define PPERF_PRELOAD_NVTX_API_H

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtCounters.h>

#endif
