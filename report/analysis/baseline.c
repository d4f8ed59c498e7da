/* SPDX-License-Identifier: MIT */
#include "report/analysis/baseline.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum source { OF_METRIC, OF_RESERVED, OF_ALLOCATED };

static const struct {
	const char *name;
	enum source source;
	enum metric metric;
	enum unit unit;
} known[] = {
	{ "gpu", OF_METRIC, METRIC_GPU, UNIT_TIME },
	{ "cpu", OF_METRIC, METRIC_CPU, UNIT_TIME },
	{ "wall", OF_METRIC, METRIC_WALL, UNIT_TIME },
	{ "idle", OF_METRIC, METRIC_IDLE, UNIT_TIME },
	{ "calls", OF_METRIC, METRIC_CALLS, UNIT_COUNT },
	{ "alloc", OF_METRIC, METRIC_ALLOC, UNIT_BYTES },
	{ "tensors", OF_METRIC, METRIC_TENSORS, UNIT_BYTES },
	{ "reserved_peak", OF_RESERVED, METRIC_ALLOC, UNIT_BYTES },
	{ "allocated_peak", OF_ALLOCATED, METRIC_TENSORS, UNIT_BYTES },
};

#define KNOWN (sizeof known / sizeof *known)

const char *sheet_name(size_t number)
{
	return number < KNOWN ? known[number].name : NULL;
}

static size_t number_of(const char *name)
{
	size_t number = 0;

	while (number < KNOWN && strcmp(known[number].name, name) != 0)
		number++;
	return number;
}

bool sheet_knows(const char *name)
{
	return number_of(name) < KNOWN;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sheet_row *)a)->path, ((const struct sheet_row *)b)->path);
}

/* The names from the root, each / and \ behind a \. */
static char *path_of(const struct process *process, const struct tree *tree, uint32_t id)
{
	uint32_t nodes[TREE_DEEPEST + 8], count = 0;
	size_t room = 0, used = 0;
	char *path = NULL;

	for (uint32_t node = id; node && count < TREE_DEEPEST + 8; node = tree->nodes[node].parent)
		nodes[count++] = node;
	while (count) {
		const struct text text = text_of(process->texts, tree->nodes[nodes[--count]].name);

		grow(&path, &room, used + 2 * (size_t)text.length + 2, 1);
		for (uint32_t i = 0; i < text.length && text.bytes[i]; i++) {
			if (text.bytes[i] == '/' || text.bytes[i] == '\\')
				path[used++] = '\\';
			path[used++] = text.bytes[i];
		}
		path[used++] = count ? '/' : '\0';
	}
	return path;
}

static void add_row(struct figure *figure, char *path, double value)
{
	grow(&figure->rows, &figure->row_room, figure->row_count + 1, sizeof *figure->rows);
	figure->rows[figure->row_count++] = (struct sheet_row){ .path = path, .value = value };
}

static void order_rows(struct figure *figure)
{
	size_t kept = 0;

	if (figure->row_count)
		qsort(figure->rows, figure->row_count, sizeof *figure->rows, by_path);
	for (size_t i = 0; i < figure->row_count; i++) {
		if (kept && strcmp(figure->rows[kept - 1].path, figure->rows[i].path) == 0) {
			figure->rows[kept - 1].value += figure->rows[i].value;
			free(figure->rows[i].path);
		} else {
			figure->rows[kept++] = figure->rows[i];
		}
	}
	figure->row_count = kept;
}

static int by_double(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_double);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Of the times of steps: one slow step shall not fail a gate. */
static double median_step(const struct figure *figure)
{
	double *values = need(figure->value_count * sizeof *values), result;

	memcpy(values, figure->values, figure->value_count * sizeof *values);
	result = median(values, figure->value_count);
	free(values);
	return result;
}

/* Whether what the place has is a part of the whole that no other place tells of. */
static bool adds_up(const struct amounts *amounts, uint32_t id, bool time)
{
	return amounts->metric == METRIC_CALLS ||
	       (!amounts->fold->tree->nodes[id].parent && fold_shares(amounts->fold, id, time));
}

static long double roots_have(const struct amounts *amounts, bool time)
{
	const struct tree *tree = amounts->fold->tree;
	long double sum = 0;

	for (uint32_t id = 1; id < tree->count; id++)
		if (adds_up(amounts, id, time))
			sum += amounts->nodes[id].total;
	return sum;
}

/* What each step had of it. */
static void take_values(struct figure *figure, const struct amounts *amounts)
{
	const bool time = amounts->metric == METRIC_CPU || amounts->metric == METRIC_WALL;
	const struct tree *tree = amounts->fold->tree;

	if (!amounts->values)
		return;
	figure->values = need(amounts->values * sizeof *figure->values);
	figure->value_count = amounts->values;
	for (uint32_t i = 0; time && i < amounts->values; i++) {
		const struct step *step = amounts->steps[i * amounts->step_stride];

		figure->values[i] = (double)(step->end_ns - step->begin_ns);
	}
	for (uint32_t id = 1; !time && id < tree->count; id++)
		for (uint32_t i = 0; adds_up(amounts, id, time) && amounts->nodes[id].values && i < amounts->values; i++)
			figure->values[i] += amounts->nodes[id].values[i];
}

static bool is_known(const struct process *process, size_t number)
{
	const struct fold_totals *totals = &process->fold->totals;

	if (known[number].metric == METRIC_GPU || known[number].metric == METRIC_IDLE)
		return totals->gpu_sum_ns > 0;
	if (known[number].metric == METRIC_ALLOC)
		return totals->level_device != UINT32_MAX && totals->reserved_peak > 0;
	return known[number].metric != METRIC_TENSORS || totals->has_tensors;
}

static double value_of(const struct sheet *sheet, size_t number, const struct amounts *amounts, const struct figure *figure)
{
	if (known[number].source == OF_RESERVED)
		return (double)sheet->process->fold->totals.reserved_peak;
	if (known[number].source == OF_ALLOCATED)
		return (double)sheet->process->fold->totals.allocated_peak;
	if (figure->value_count && (amounts->metric == METRIC_CPU || amounts->metric == METRIC_WALL || amounts->metric == METRIC_GPU))
		return median_step(figure);
	if (amounts->metric == METRIC_WALL)
		return amounts_figure(amounts, amounts_wall(amounts));
	return amounts_figure(amounts, roots_have(amounts, amounts->metric == METRIC_CPU));
}

static void measure(struct sheet *sheet, size_t number)
{
	const bool is_flow = known[number].source == OF_METRIC;
	struct amounts *amounts = amounts_read(
		sheet->process, known[number].metric, known[number].name, is_flow && sheet->by_steps);
	const struct tree *tree = amounts->fold->tree;
	struct figure figure = { .unit = known[number].unit };

	snprintf(figure.name, sizeof figure.name, "%s", known[number].name);
	take_values(&figure, amounts);
	figure.value = value_of(sheet, number, amounts, &figure);
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node_tensors *tensors = tree->nodes[id].tensors;
		const double value = known[number].source == OF_ALLOCATED ? (double)(tensors ? tensors->total.at_peak : 0)
									   : amounts_figure(amounts, amounts->nodes[id].total);

		if (value != 0)
			add_row(&figure, path_of(sheet->process, tree, id), value);
	}
	order_rows(&figure);
	amounts_free(amounts);
	grow(&sheet->figures, &sheet->room, sheet->count + 1, sizeof *sheet->figures);
	sheet->figures[sheet->count++] = figure;
}

const struct figure *sheet_figure(struct sheet *sheet, const char *name)
{
	for (size_t i = 0; i < sheet->count; i++)
		if (strcmp(sheet->figures[i].name, name) == 0)
			return &sheet->figures[i];
	if (!sheet->process || !is_known(sheet->process, number_of(name)))
		return NULL;
	measure(sheet, number_of(name));
	return &sheet->figures[sheet->count - 1];
}

double sheet_value_at(const struct figure *figure, const char *path)
{
	struct sheet_row wanted = { .path = strdup(path) };
	const struct sheet_row *row = wanted.path && figure->row_count ? bsearch(&wanted, figure->rows, figure->row_count,
										  sizeof wanted, by_path)
									: NULL;

	free(wanted.path);
	return row ? row->value : 0;
}

void sheet_free(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++) {
		for (size_t row = 0; row < sheet->figures[i].row_count; row++)
			free(sheet->figures[i].rows[row].path);
		free(sheet->figures[i].rows);
		free(sheet->figures[i].values);
	}
	free(sheet->figures);
	processes_free(&sheet->processes);
	free(sheet);
}
