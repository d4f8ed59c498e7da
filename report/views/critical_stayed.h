/* SPDX-License-Identifier: MIT
 *
 * What a critical tree of reserved memory left behind (stayed_segments.h): a sentence below the
 * tree, and a row in JSON and CSV.
 */
#ifndef PPERF_REPORT_VIEWS_CRITICAL_STAYED_H
#define PPERF_REPORT_VIEWS_CRITICAL_STAYED_H

#include "report/print/print.h"

/* Adds a row of the kind `stayed` if the metric is reserved memory and segments stayed: of the
 * first tree of the process in `rows`. */
void critical_add_stayed_row(
	const struct options *options, struct process *process, struct rows *rows);
void critical_print_stayed(const struct report *report, const struct style *style);

#endif
