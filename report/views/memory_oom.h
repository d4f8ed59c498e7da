/* SPDX-License-Identifier: MIT
 * Prints what follows the sentence that memory ran out: why, the calls of CUDA that failed before,
 * and where the other threads were.
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_OOM_H
#define PPERF_REPORT_VIEWS_MEMORY_OOM_H

#include "report/run/process.h"
#include "report/text/style.h"

/* Of PyTorch's allocator. */
void memory_oom_put_torch(
	struct process *process, const struct memory_oom *oom, const struct style *style);
/* Of a CUDA allocation that failed. */
void memory_oom_put_call(
	struct process *process, const struct failed_allocation *failed, const struct style *style);

#endif
