/* SPDX-License-Identifier: MIT
 *
 * Says on the first screen which functions and lines CPU samples found most often.
 */
#ifndef PPERF_REPORT_SUMMARY_SAMPLED_LINE_H
#define PPERF_REPORT_SUMMARY_SAMPLED_LINE_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

/* Adds `31.4 % of the sampled CPU time is in burn [a.py:7] and what it calls, 25.6 % in ...`, then
 * the native functions that had most, and in a trace of blocked threads too the lines that waited.
 * A program without Python files of its own has the innermost functions only. Adds nothing and
 * returns false if the trace has no samples of threads that used a core. */
bool sampled_add_hottest(struct paragraph *line, struct process *process);
/* Prints the line `sampled`: how many samples there are, what they leave out and, unless
 * `is_verdict`, where most of them are. Prints nothing for a trace without samples. */
void sampled_line_put(struct process *process, bool is_verdict, const struct style *style);

#endif
