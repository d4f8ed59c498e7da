/* SPDX-License-Identifier: MIT
 * Reads what the critical path is made of, in one pass over the trace: GPU work and calls
 * (activities.h), and the ranges of the threads (range_log.h). Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_PATH_INPUT_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_PATH_INPUT_H

#include "report/analysis/activities.h"
#include "report/analysis/critical_path/range_log.h"

/* Owned by the caller of path_input_take, who reads both once. */
struct path_input {
	struct activities *activities; /* freed by activities_free */
	struct range_log *ranges;      /* freed by range_log_free; queries can begin */
};

/* Reads them in a pass that serves other analyses, too. */
void path_input_read_in(struct shared_pass *pass);
/* Returns what path_input_read_in has read, at the first call. Otherwise reads it in one more
 * pass. */
struct path_input path_input_take(struct process *process);

#endif
