/* SPDX-License-Identifier: MIT
 *
 * Arranges each category of GPU work and, below it, its kernels and copies.
 */
#include "report/views/views.h"
#include "report/analysis/activities.h"
#include "report/table/column.h"
#include "report/analysis/group_by.h"
#include <stdlib.h>

static void add_category_children(
	const struct options *options, struct process *process, struct rows *rows, uint32_t node)
{
	const struct column *sort = view_sort(options, process);
	const struct node *nodes = process->flat->nodes;
	const size_t first = rows->count;

	for (uint32_t id = nodes[node].first_child; id; id = nodes[id].next) {
		struct row row = tree_row(process, process->flat, id);

		row.parent = node ? (uint32_t)first - 1 : NO_ROW;
		row.depth = node ? 1 : 0;
		rows_add(rows, &row);
	}
	rows_sort(rows->rows + first, rows->count - first, sort);
	if ((node ? 1u : 0u) >= options->depth) {
		rows->hidden_by_depth += rows->count - first;
		rows->count = first;
	}
	if (node)
		rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
}

static void add_category_rows(
	const struct options *options, struct process *process, struct rows *rows)
{
	struct rows categories = { .count = 0 };

	add_category_children(options, process, &categories, 0);
	for (size_t i = 0; i < categories.count; i++) {
		rows_add(rows, &categories.rows[i]);
		add_category_children(options, process, rows, categories.rows[i].node);
	}
	rows->hidden_by_depth += categories.hidden_by_depth;
	free(categories.rows);
}

/* The sizes of collectives are in the activities. */
void categories_read_in(const struct options *options, struct shared_pass *pass)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(pass->process->timeline, &devices);
	uint64_t communication_ns = 0;

	for (size_t i = 0; i < count; i++)
		communication_ns += devices[i].all.communication_ns;
	if (communication_ns)
		activities_read_in(options, pass);
}

void arrange_categories(
	const struct options *options, struct processes *processes, struct rows *rows)
{
	const enum demangle_form form = options->demangle;

	for (size_t i = 0; i < processes->shown; i++) {
		struct process *process = &processes->all[i];

		if (!process->flat)
			process->flat = group_by_categories(process, form);
		if (process->flat->count > 1)
			add_category_rows(options, process, rows);
		else
			processes_warn(processes,
				"%s: no GPU work is in this trace; pperf-report info lists its "
				"sources",
				process->path);
	}
	rows->empty_explained = rows->count == 0;
}
