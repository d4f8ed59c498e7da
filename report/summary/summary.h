/* SPDX-License-Identifier: MIT
 *
 * The first screen: what bounds the run and what costs most, then what ran, what was recorded, and
 * where time and memory went. It is made of the views below it: the verdict and the findings are
 * those of `diagnose`.
 */
#ifndef PPERF_REPORT_SUMMARY_SUMMARY_H
#define PPERF_REPORT_SUMMARY_SUMMARY_H

#include "report/print/print.h"

/* Adds what the findings need to the pass that makes the profile. CSV has no findings. */
void summary_read_in(const struct options *options, struct shared_pass *pass);
/* Prints the whole view `summary`: its paragraphs, then the table of rows if there are any. */
void draw_summary(const struct report *report, const struct style *style);
/* Writes the verdict on the first process shown, for the JSON document. */
void put_summary_json(const struct report *report, struct output *out);

#endif
