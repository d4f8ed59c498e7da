/* SPDX-License-Identifier: MIT
 * Collects the warnings that accompany every view of a trace.
 */
#ifndef PPERF_REPORT_RUN_WARNINGS_H
#define PPERF_REPORT_RUN_WARNINGS_H

#include "report/run/process.h"

/* Adds the warnings of traces and profiles to `processes`. */
void warnings_collect(const struct options *options, struct processes *processes);

/* Ends the program if no process has the GPU of --device. Names the GPUs that exist. */
void warnings_check_device(const struct options *options, const struct processes *processes);
/* Ends the program with a message if --device, --step-marker or --steps matches nothing in the
 * traces. */
void warnings_check_selection(const struct options *options, const struct processes *processes);

/* Ends the program with a message if the metric is a counter that the traces do not have. */
void warnings_check_metric(const struct options *options, const struct processes *processes);

#endif
