/* SPDX-License-Identifier: MIT
 * device_peaks.h: the peaks of the GPUs of a trace, by their names and by what the driver said of them.
 */
#ifndef PPERF_REPORT_ANALYSIS_DEVICE_PEAKS_H
#define PPERF_REPORT_ANALYSIS_DEVICE_PEAKS_H

#include "report/analysis/gpu_peaks.h"
#include "report/run/process.h"

struct peaks peaks_of_process(
	struct process *process, const struct peaks_table *table, uint32_t device);
struct string_view peaks_device_name(
	struct process *process, uint32_t device);   /* any bytes; empty: not known */
const char *peaks_origin(const struct peaks *peaks); /* `table`; empty: there are none */

#endif
