/* SPDX-License-Identifier: MIT
 * remarks.h: what must be said beside any view of a trace.
 */
#ifndef PPERF_REPORT_RUN_WARNINGS_H
#define PPERF_REPORT_RUN_WARNINGS_H

#include "report/run/process.h"

/* Adds to the warnings of `processes` what their traces and folds have to say. */
void warnings_collect(const struct options *options, struct processes *processes);

/* A counter's name must be one that the trace has; else the program ends with a sentence. */
void warnings_check_metric(const struct options *options, const struct processes *processes);

#endif
