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
#define DIAGNOSE_RULES 44u

void arrange_diagnose(
	const struct options *options, struct processes *processes, struct rows *rows);
/* Adds what the rules need to the pass that makes the profile. */
void diagnose_read_in(const struct options *options, struct shared_pass *pass);
void draw_diagnose(const struct report *report, const struct style *style);
/* Prints all of --brief, as text or JSON. */
void brief_diagnose(const struct report *report, struct output *out);
struct paragraph;
/* Adds what a finding costs, such as "up to 3.12 ms (12.5 % of the GPU span)". `row` has a cost. */
void finding_add_cost(struct paragraph *paragraph, const struct row *row);
/* Adds the share of the place of a finding: "12 %". Where that is a share of more than the finding
 * costs, adds " of 3.12 ms" or the like; otherwise `of_cost`. */
void finding_add_place_share(
	struct paragraph *paragraph, const struct row *row, const char *of_cost);

#endif
