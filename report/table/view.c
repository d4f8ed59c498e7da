/* SPDX-License-Identifier: MIT */
#include "report/table/view.h"
#include "report/table/column.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <stdlib.h>
#include <string.h>

static const struct view *views;

void views_set(const struct view *list)
{
	views = list;
}

const struct view *view_default(void)
{
	return &views[0];
}

const struct view *view_find(const char *name)
{
	for (const struct view *view = views; view->name; view++)
		if (strcmp(view->name, name) == 0)
			return view;
	return NULL;
}

struct row *rows_add(struct rows *rows, const struct row *row)
{
	ARRAY_GROW(rows->rows, rows->room, rows->count + 1);
	rows->rows[rows->count] = *row;
	return &rows->rows[rows->count++];
}

static const char *const metric_sort_keys[METRIC_COUNT] = {
	[METRIC_GPU] = "gpu_total_ns",
	[METRIC_CPU] = "cpu_total_ns",
	[METRIC_WALL] = "cpu_total_ns",
	[METRIC_IDLE] = "idle_ns",
	[METRIC_CALLS] = "calls",
	[METRIC_RESERVED] = "reserved_delta_bytes",
	[METRIC_ALLOCATED] = "allocated_delta_bytes",
	[METRIC_RESERVED_PEAK] = "reserved_peak_bytes",
	[METRIC_ALLOCATED_PEAK] = "allocated_peak_bytes",
	[METRIC_ALLOC] = "alloc_bytes",
	[METRIC_TENSORS] = "tensor_alloc_bytes",
	[METRIC_USER] = "worst.delta",
};

const struct column *view_sort(const struct options *options, const struct process *process)
{
	const char *key = options->sort         ? options->sort
			  : options->view->sort ? options->view->sort
						: metric_sort_keys[process->metric];

	if (!options->sort && !options->view->sort && process->profile->only_samples)
		key = process->profile->sampled.cpu_ns ? "cpu_sampled_total_ns" : "samples";
	/* After an out-of-memory error, order by what was held at that time. */
	if (!options->sort && strcmp(key, "at_peak_bytes") == 0 &&
		process->profile->memory->counts.ooms)
		key = "at_oom_bytes";
	return column_find(key, strlen(key));
}

double view_min_percent(const struct options *options)
{
	if (options->min_percent >= 0)
		return options->min_percent;
	return options->format == FORMAT_TEXT ? options->view->min_percent : 0;
}

uint32_t view_top(const struct options *options)
{
	if (options->top)
		return options->top;
	return options->format == FORMAT_TEXT && options->view->top ? options->view->top
								    : UINT32_MAX;
}

/* A row with its sort keys. */
struct sortable_row {
	struct row row;
	long double number, time; /* CPU time, for rows with equal or no `number` */
	bool has_number;
	struct string_view name;
	size_t index;
};

static int compare_text(struct string_view a, struct string_view b)
{
	const int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);

	return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_sort_value(const void *a, const void *b)
{
	const struct sortable_row *left = a, *right = b;
	int order;

	if (left->has_number != right->has_number)
		return left->has_number ? -1 : 1;
	if (left->has_number && left->number != right->number)
		return left->number > right->number ? -1 : 1;
	if (left->time != right->time)
		return left->time > right->time ? -1 : 1;
	order = compare_text(left->name, right->name);
	return order ? order : (left->index > right->index) - (left->index < right->index);
}

void rows_sort(struct row *rows, size_t count, const struct column *column)
{
	const struct column *time = column_find("cpu_total_ns", strlen("cpu_total_ns"));
	struct sortable_row *sorted = xcalloc((count + 1) * sizeof *sorted);
	const struct rows all = { .rows = rows, .count = count };

	for (size_t i = 0; i < count; i++) {
		const struct cell cell = column_value(column, &rows[i], &all),
				  spent = column_value(time, &rows[i], &all);

		sorted[i] = (struct sortable_row){ .row = rows[i], .index = i, .name = { "", 0 } };
		sorted[i].has_number = cell_number(&cell, &sorted[i].number);
		if (!cell_number(&spent, &sorted[i].time))
			sorted[i].time = 0;
		if (rows[i].kind != ROW_LEVEL)
			sorted[i].name = row_name(&rows[i]);
	}
	qsort(sorted, count, sizeof *sorted, by_sort_value);
	for (size_t i = 0; i < count; i++)
		rows[i] = sorted[i].row;
	free(sorted);
}

void rows_finish_level(const struct options *options, struct process *process, struct rows *rows,
	size_t first, uint32_t depth, uint32_t top)
{
	const struct column *sort = view_sort(options, process);

	rows_sort(rows->rows + first, rows->count - first, sort);
	if (depth >= options->depth) {
		rows->hidden_by_depth += rows->count - first;
		rows->count = first;
	}
	rows_prune(rows, first, sort, view_min_percent(options), top);
}

/* Returns the absolute value of a row in a column of numbers. Returns 0 where the cell is empty, a
 * text, a range or a yes or no. */
static long double row_magnitude(const struct rows *rows, size_t index, const struct column *column)
{
	const struct cell cell = column_value(column, &rows->rows[index], rows);
	long double number = 0;

	return cell_number(&cell, &number) ? (number < 0 ? -number : number) : 0;
}

void rows_prune(struct rows *rows, size_t first, const struct column *column, double min_percent,
	uint32_t top)
{
	long double sum = 0;
	size_t kept = first;

	for (size_t i = first; i < rows->count; i++)
		sum += row_magnitude(rows, i, column);
	for (size_t i = first; i < rows->count; i++)
		if (row_magnitude(rows, i, column) < sum * (long double)min_percent / 100)
			rows->hidden_by_percent++;
		else if (kept - first >= top)
			rows->hidden_by_top++;
		else
			rows->rows[kept++] = rows->rows[i];
	rows->count = kept;
}
