/* SPDX-License-Identifier: MIT
 *
 * Prints sentences on PyTorch's memory: the levels of tensors, memory that no tensor holds, and
 * each time that memory ran out.
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_SUMMARY_H
#define PPERF_REPORT_VIEWS_MEMORY_SUMMARY_H

#include "report/print/print.h"
#include "report/text/paragraph.h"

/* Prints, for the summary, the last time that memory ran out and which nodes owned the live
 * tensors. Prints nothing if memory never ran out. */
void memory_summary_put_oom(const struct process *process, const struct style *style);
/* Prints the peak and the final level of tensor memory of each GPU, or that PyTorch's allocator
 * reported no tensors. */
void memory_summary_put_levels(const struct process *process, const struct style *style);
/* Prints the text above the rows of the view `memory`: the last times that memory ran out, then the
 * levels. */
void memory_summary_header(const struct report *report, const struct style *style);
/* Prints why the view `memory` has no rows; with --growth, that nothing grows, or why that is not
 * known. */
void memory_explain_empty(const struct report *report, const struct style *style);

#endif
