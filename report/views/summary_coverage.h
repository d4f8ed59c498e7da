/* SPDX-License-Identifier: MIT
 *
 * Prints the part of the summary about how complete the data is: sources, times of recording,
 * losses, and the cost of recording. Each loss comes with its remedy.
 */
#ifndef PPERF_REPORT_VIEWS_SUMMARY_COVERAGE_H
#define PPERF_REPORT_VIEWS_SUMMARY_COVERAGE_H

#include "report/print/print.h"
#include "report/run/process.h"
#include "report/text/paragraph.h"

/* Returns the separator between two facts of a line: a dot, or a comma if only ASCII may be
 * written. */
const char *coverage_separator(const struct style *style);

/* Appends how many GPU records were attributed to ranges, and how. */
void coverage_add(struct paragraph *paragraph, const struct process *process);
/* Prints the sources, their coverage, the times of CUPTI handover and the recording windows. */
void coverage_put_sources(const struct process *process, const struct style *style);
/* Prints how many operators were only counted and have no records. */
void coverage_put_counted(const struct process *process, const struct style *style);
/* Prints losses and the cost of recording. */
void coverage_put_losses(const struct process *process, const struct style *style);

#endif
