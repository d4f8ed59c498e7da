/* SPDX-License-Identifier: MIT
 * Declares the entry points of the views. Each arranges its rows, or prints everything itself; the list of views is
 * report/cli/view_list.c.
 */
#ifndef PPERF_REPORT_VIEWS_VIEWS_H
#define PPERF_REPORT_VIEWS_VIEWS_H

#include "report/table/view.h"

/* Arrangements, each in its file. */
void arrange_tree(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_table(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_critical(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_categories(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_steps(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_kernels(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_streams(const struct options *options, struct process *process, struct rows *rows);
void arrange_queue(const struct options *options, struct process *process, struct rows *rows);
void arrange_idle(const struct options *options, struct process *process, struct rows *rows);
void arrange_overlap(const struct options *options, struct process *process, struct rows *rows);
void arrange_roofline(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_critical_path(
	const struct options *options, struct process *process, struct rows *rows);
void arrange_api(const struct options *options, struct process *process, struct rows *rows);
void arrange_memory(const struct options *options, struct process *process, struct rows *rows);

void arrange_instances(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_distribution(
	const struct options *options, struct processes *processes, struct rows *rows);
void draw_distribution(const struct report *report, const struct style *style);

/* An instance and what is kept of those inside. */
void arrange_instance(const struct options *options, struct process *process, struct rows *rows,
	const struct tree *tree, const struct instance *root);
/* Of one critical tree, only the rows with the most of it; counts the others. */
void critical_keep_largest(struct rows *rows, size_t most);

/* The summary's text: what ran, what was recorded, where the time or the memory went. */
void draw_summary(const struct report *report, const struct style *style);
/* The lines above roofline's table: a line for each GPU of the processes shown. */
void roofline_header(const struct report *report, const struct style *style);

/* Views that print everything themselves. Each returns the exit status. */
int diff_view(const struct options *options);
int gate_view(const struct options *options);
int ranks_view(const struct options *options);
int info_view(const struct options *options);
int dump_view(const struct options *options);

#endif
