/* SPDX-License-Identifier: MIT
 *
 * Prints sentences that say where time and memory went: measured amounts, and the node that owns
 * the largest part.
 */
#ifndef PPERF_REPORT_SUMMARY_HEADLINE_H
#define PPERF_REPORT_SUMMARY_HEADLINE_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

/* Prints, for a program without GPU work, where its time on the CPU went. */
void headline_put_time(const struct process *process, const struct style *style);
/* Prints where GPU work was launched, and the peak of device memory. `has_verdict`: what the GPU
 * did is printed already; false: prints also how busy it was. Prints nothing of what the trace does
 * not have. */
void headline_put_where(const struct process *process, const struct style *style, bool has_verdict);

#endif
