/* SPDX-License-Identifier: MIT
 * The view `idle`, for a caller that reads the activities for other analyses, too.
 *
 *	struct idle_report *idle = idle_report_begin(options, process, activities);
 *	visitors[0] = idle_parts_begin(process, activities, idle_report_add, idle);
 *	visitors[1] = idle_report_ends(idle);
 *	activities_visit(activities, visitors, 2);
 *	idle_report_add_rows(options, idle, &rows);
 *	idle_report_free(idle);
 */
#ifndef PPERF_REPORT_VIEWS_IDLE_H
#define PPERF_REPORT_VIEWS_IDLE_H

#include "report/analysis/idle_parts.h"
#include "report/views/views.h"

struct idle_report;

/* Begins to read the idle time of a process that has a timeline. `activities` must be kept. */
struct idle_report *idle_report_begin(
	const struct options *options, struct process *process, struct activities *activities);
/* Adds a part. `context`: the report. */
void idle_report_add(void *context, const struct idle_part *part);
struct activity_visitor idle_report_ends(struct idle_report *idle);
void idle_report_add_rows(
	const struct options *options, struct idle_report *idle, struct rows *rows);
void idle_report_free(struct idle_report *idle);

#endif
