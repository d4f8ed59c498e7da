/* SPDX-License-Identifier: MIT
 *
 * Runs the rules of the view `diagnose` over each process and shows what they find.
 *
 * A new rule is an entry in the table of diagnose.c, a function in one of the *_rules.c files, and
 * a threshold in limits.h. When start-up dominates the run, percentages of the whole run hide
 * problems in the steps. Rules about percentages that find nothing in the whole run are then
 * evaluated again on steady-state steps alone.
 */
#ifndef PPERF_REPORT_DIAGNOSE_DIAGNOSE_H
#define PPERF_REPORT_DIAGNOSE_DIAGNOSE_H

#include "report/diagnose/finding.h"
#include "report/table/view.h"

/* The rules, in the order of the table. An entry with the name NULL ends the list. */
extern const struct diagnose_rule diagnose_rules[];
#define DIAGNOSE_RULES 36u

void arrange_diagnose(
	const struct options *options, struct processes *processes, struct rows *rows);
void draw_diagnose(const struct report *report, const struct style *style);
/* Prints all of --brief, as text or JSON. */
void brief_diagnose(const struct report *report, struct output *out);
/* Returns what to print before the impact of a finding: "up to ", "concerns ", or nothing. */
const char *finding_bound_words(const struct row *row);

#endif
