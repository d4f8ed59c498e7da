/* SPDX-License-Identifier: MIT
 *
 * Declares the entry points of the views. Each one either arranges rows or prints everything
 * itself. The list of views is in report/cli/view_list.c.
 */
#ifndef PPERF_REPORT_VIEWS_VIEWS_H
#define PPERF_REPORT_VIEWS_VIEWS_H

#include "report/table/view.h"

/* Functions that arrange the rows of a view, each in a file of its own. */
void arrange_tree(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_table(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_critical(
	const struct options *options, struct processes *processes, struct rows *rows);
void categories_read_in(const struct options *options, struct shared_pass *pass);
void arrange_categories(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_steps(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_kernels(const struct options *options, struct processes *processes, struct rows *rows);
void arrange_streams(const struct options *options, struct process *process, struct rows *rows);
void arrange_queue(const struct options *options, struct process *process, struct rows *rows);
void idle_read_in(const struct options *options, struct shared_pass *pass);
void arrange_idle(const struct options *options, struct process *process, struct rows *rows);
void arrange_overlap(const struct options *options, struct process *process, struct rows *rows);
void arrange_roofline(
	const struct options *options, struct processes *processes, struct rows *rows);
void critical_path_read_in(const struct options *options, struct shared_pass *pass);
void arrange_critical_path(
	const struct options *options, struct process *process, struct rows *rows);
void arrange_api(const struct options *options, struct process *process, struct rows *rows);
void arrange_memory(const struct options *options, struct process *process, struct rows *rows);

/* The views of the option --map, --over-time, and --at or --by of memory. */
void arrange_memory_map(const struct options *options, struct process *process, struct rows *rows);
void draw_memory_map(const struct report *report, const struct style *style);
void arrange_memory_history(
	const struct options *options, struct process *process, struct rows *rows);
/* memory --ledger: its rows, what text says before them, and why there are none. */
void arrange_memory_ledger(
	const struct options *options, struct process *process, struct rows *rows);
void memory_ledger_header(const struct report *report, const struct style *style);
void memory_ledger_explain_empty(const struct report *report, const struct style *style);
void arrange_memory_moment(
	const struct options *options, struct process *process, struct rows *rows);
/* Prints what the device held at the moment, above the table. */
void memory_moment_header(const struct report *report, const struct style *style);
/* Prints why there is no such moment. */
void memory_moment_explain_empty(const struct report *report, const struct style *style);

void arrange_instances(
	const struct options *options, struct processes *processes, struct rows *rows);
void arrange_distribution(
	const struct options *options, struct processes *processes, struct rows *rows);
void draw_distribution(const struct report *report, const struct style *style);

/* Returns the row of step `index` of the step table, which the process has. It belongs to the
 * process. */
struct row steps_row(const struct options *options, struct process *process, size_t index);

/* Adds rows for the instance `root` and for its children that are stored. `tree`: of
 * their nodes. */
void arrange_instance(const struct options *options, struct process *process, struct rows *rows,
	const struct tree *tree, const struct instance *root);
/* Keeps the `most` rows with the largest values of one critical tree, and adds the number of
 * the others to rows->hidden_by_top. */
void critical_keep_largest(struct rows *rows, size_t most);

/* Prints a line for each GPU of the processes shown, above the table of roofline. */
void roofline_header(const struct report *report, const struct style *style);

/* Views that print everything themselves. Each returns the exit status. */
int diff_view(const struct options *options);
int gate_view(const struct options *options);
int ranks_view(const struct options *options);
int info_view(const struct options *options);
int dump_view(const struct options *options);

#endif
