/* SPDX-License-Identifier: MIT
 * Names copies, memsets and waits as PyTorch's profiler (Kineto) does. Its readers know copies by
 * these names.
 */
#ifndef PPERF_REPORT_EXPORT_KINETO_NAMES_H
#define PPERF_REPORT_EXPORT_KINETO_NAMES_H

#include "collector/trace_format.h"
#include "report/text/string_table.h"
#include <stdbool.h>
#include <stddef.h>

#define KINETO_NAME_BYTES 80u

/* Writes `Memcpy HtoD (Pageable -> Device)` or `Memset (Device)`. */
void kineto_copy_name(char name[KINETO_NAME_BYTES], const struct trace_gpu_copy *copy);
/* `Stream Wait Event`, of an enum trace_sync_type. */
const char *kineto_sync_name(uint32_t type);
/* `Buffer Flush`, of a CUpti_ActivityOverheadKind. */
const char *kineto_overhead_name(uint32_t type);
/* Whether a call is a function of CUDA's driver, such as cuLaunchKernel. */
bool kineto_is_driver_call(const char *name, size_t length);
/* Programs that were compiled with CUDA 13 launch by __cudaLaunchKernel. Kineto, as CUPTI, names it
 * cudaLaunchKernel. Other names are as they are. */
struct string_view kineto_call_name(struct string_view name);
/* `cuda_driver` for the functions of CUDA's driver, else `cuda_runtime`. */
const char *kineto_call_category(const char *name, size_t length);

#endif
