/* SPDX-License-Identifier: MIT
 * known.h: of the first screen, how much of the program is known: where that comes from, what of it was recorded when, what
 * is missing and what looking cost. What is missing is said with what to do about it.
 */
#ifndef PPERF_REPORT_VIEWS_SUMMARY_COVERAGE_H
#define PPERF_REPORT_VIEWS_SUMMARY_COVERAGE_H

#include "report/print/print.h"
#include "report/run/process.h"

/* What stands between two facts of a line: a dot, or a comma if only ASCII may be written. */
const char *known_separator(const struct style *style);

/* Sources, coverage, times without CUPTI, windows. */
void coverage_put_sources(const struct process *process, const struct style *style);
/* Operators that are in no record. */
void coverage_put_counted(const struct process *process, const struct style *style);
/* Losses and cost. */
void coverage_put_losses(const struct process *process, const struct style *style);

#endif
