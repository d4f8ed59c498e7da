/* SPDX-License-Identifier: MIT
 * The view `overlap`, for a caller that reads the activities for other analyses, too.
 *
 *	struct overlap *overlap = overlap_begin();
 *	visitors[0] = overlap_visitor(overlap);
 *	activities_visit(activities, visitors, count);
 *	overlap_add_rows(options, process, overlap, &rows);
 *	overlap_free(overlap);
 */
#ifndef PPERF_REPORT_VIEWS_OVERLAP_H
#define PPERF_REPORT_VIEWS_OVERLAP_H

#include "report/analysis/activities.h"
#include "report/views/views.h"

struct overlap;

struct overlap *overlap_begin(void);
struct activity_visitor overlap_visitor(struct overlap *overlap);
void overlap_add_rows(const struct options *options, struct process *process,
	struct overlap *overlap, struct rows *rows);
void overlap_free(struct overlap *overlap); /* `overlap` may be NULL */

#endif
