/* SPDX-License-Identifier: MIT
 * nvtx_api.h: NVIDIA's NVTX headers, types only: the one place where they enter. Including nvToolsExt.h with its functions would make this
 * library an NVTX client of its own.
 */
#ifndef PPERF_PRELOAD_NVTX_API_H
#define PPERF_PRELOAD_NVTX_API_H

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtCounters.h>

#endif
