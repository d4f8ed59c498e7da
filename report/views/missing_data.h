/* SPDX-License-Identifier: MIT
 * Says what a trace lacks for a view without rows, and how to record it with the tool that wrote
 * the trace.
 */
#ifndef PPERF_REPORT_VIEWS_MISSING_DATA_H
#define PPERF_REPORT_VIEWS_MISSING_DATA_H

#include "report/print/print.h"

/* `explain_empty` of views (report/table/view.h). A view that is not in the table of missing_data.c
 * gets a sentence that refers to `info`. */
void missing_data_explain(const struct report *report, const struct style *style);

#endif
