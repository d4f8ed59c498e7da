/* SPDX-License-Identifier: MIT
 * Runs the rules of the view `diagnose` over each process and shows what they find.
 *
 * A new rule is an entry in the table of diagnose.c, a function in one of the *_rules.c files, and a threshold in limits.h.
 * When start-up dominates the run, percentages of the whole run hide problems in the steps: rules of percentages that find
 * nothing in the whole run are evaluated again on the steady steps alone.
 */
#ifndef PPERF_REPORT_DIAGNOSE_DIAGNOSE_H
#define PPERF_REPORT_DIAGNOSE_DIAGNOSE_H

#include "report/diagnose/finding.h"
#include "report/table/view.h"

extern const struct diagnose_rule diagnose_rules[]; /* name NULL: ends the list */
#define DIAGNOSE_RULES 19u

void arrange_diagnose(
	const struct options *options, struct processes *processes, struct rows *rows);
void draw_diagnose(const struct report *report, const struct style *style);
/* All of --brief, as text or JSON. */
void brief_diagnose(const struct report *report, struct output *out);

#endif
