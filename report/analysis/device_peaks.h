/* SPDX-License-Identifier: MIT
 *
 * Finds the peaks of a trace's GPUs, by their names and by the attributes that the driver reported.
 */
#ifndef PPERF_REPORT_ANALYSIS_DEVICE_PEAKS_H
#define PPERF_REPORT_ANALYSIS_DEVICE_PEAKS_H

#include "report/analysis/gpu_peaks.h"
#include "report/run/process.h"

struct peaks peaks_of_process(
	struct process *process, const struct peaks_table *table, uint32_t device);
/* any bytes; empty: unknown */
struct string_view peaks_device_name(struct process *process, uint32_t device);
/* such as `table`; empty: no peaks are known */
const char *peaks_origin(const struct peaks *peaks);

#endif
