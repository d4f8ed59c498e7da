/* SPDX-License-Identifier: MIT
 * verdict.h: one measured sentence each for time and memory: how much, and the place where most of it was asked for.
 */
#ifndef PPERF_REPORT_VIEWS_SUMMARY_HEADLINE_H
#define PPERF_REPORT_VIEWS_SUMMARY_HEADLINE_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

void headline_put(const struct process *process, const struct style *style);

/* "in `a / b`", or that it was in no range. */
void headline_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node);

#endif
