/* SPDX-License-Identifier: MIT
 *
 * Values of a run's memory that `gate` compares. Each has one value a run.
 */
#ifndef PPERF_REPORT_ANALYSIS_RUN_MEMORY_H
#define PPERF_REPORT_ANALYSIS_RUN_MEMORY_H

#include "report/run/process.h"

/* Sets *value. Returns false if the run has no data for it. */
typedef bool run_memory_value(
	struct process *process, const struct options *options, double *value);

/* What PyTorch's allocator held in no tensor when its tensors held most. */
run_memory_value run_memory_waste_peak;
/* Percent: 1 - largest gap / free bytes inside the segments at that time (memory --at peak). */
run_memory_value run_memory_fragmentation_peak;
/* What the memory that grows fastest takes a step (memory --growth). Needs steps. */
run_memory_value run_memory_growth_per_step;
/* The most that one place held: of tensors if there are any, else of device memory. */
run_memory_value run_memory_largest_place_peak;
/* Failed CUDA allocations that were repeated with success. */
run_memory_value run_memory_retries;
/* How often PyTorch's allocator ran out of memory; without PyTorch: the other failed CUDA
 * allocations. */
run_memory_value run_memory_ooms;

#endif
