/* SPDX-License-Identifier: MIT
 * tensors.h: sentences on PyTorch's memory: how much its tensors held and where, what of it was not theirs, and what there
 * was when it ran out.
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_SUMMARY_H
#define PPERF_REPORT_VIEWS_MEMORY_SUMMARY_H

#include "report/print/print.h"
#include "report/text/paragraph.h"

/* On the first screen: the last time that memory ran out, with what was live then; nothing if it never did. */
void memory_summary_put_oom(const struct process *process, const struct style *style);
/* What tensors held, on each GPU. */
void memory_summary_put_levels(const struct process *process, const struct style *style);
/* Before the rows of the view `memory`: both, and every time that memory ran out. */
void memory_summary_header(const struct report *report, const struct style *style);

#endif
