/* SPDX-License-Identifier: MIT
 *
 * Prints the headline of the summary. It has one measured sentence each for time and memory, with
 * the amount and the node that owns the largest part.
 */
#ifndef PPERF_REPORT_VIEWS_SUMMARY_HEADLINE_H
#define PPERF_REPORT_VIEWS_SUMMARY_HEADLINE_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

void headline_put(const struct process *process, const struct style *style);

/* Appends "in `a / b`", the path of `node`, or says that there was no range. */
void headline_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node);

/* The same without the section of the run, such as `(between steps)`, that the node is in.
 * `omits_steps`: without the step as well. */
void headline_add_call_path(struct paragraph *paragraph, const struct process *process,
	uint32_t node, bool omits_steps);

#endif
