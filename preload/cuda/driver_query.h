/* SPDX-License-Identifier: MIT
 * Queries the CUDA driver through functions found by dlsym, once libcuda is in the process. The
 * queries create no context, are allowed during a stream capture unless marked, and leave no CUDA
 * error behind.
 * Any thread; errno is kept.
 */
#ifndef PPERF_PRELOAD_CUDA_DRIVER_QUERY_H
#define PPERF_PRELOAD_CUDA_DRIVER_QUERY_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the device of the calling thread's current context. UINT32_MAX: there is none, or the
 * driver is not loaded. */
uint32_t driver_device(void);

/* True if `stream` is being captured into a graph; false if that is unknown. `per_thread`: a NULL
 * stream is the thread's own default stream. */
bool driver_is_capturing(const void *stream, bool per_thread);

/* Returns the mangled name of a kernel that was just launched (a cudaKernel_t), or NULL. The driver
 * owns the text. */
const char *driver_kernel_name(const void *kernel);

/* Queries how much memory of the current device is free, and how much it has. Returns false if that
 * is unknown. Not to be called while a stream is captured, nor in a callback. */
bool driver_memory_info(uint64_t *free_bytes, uint64_t *total_bytes);

#endif
