/* SPDX-License-Identifier: MIT */
#include "report/analysis/baseline.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include "report/base/text_builder.h"
#include <stdlib.h>
#include <string.h>

enum metric_source { OF_METRIC, OF_RESERVED, OF_ALLOCATED };

static const struct {
	const char *name;
	enum metric_source source;
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

const char *baseline_metric_name(size_t number)
{
	return number < KNOWN ? known[number].name : NULL;
}

static size_t metric_index(const char *name)
{
	size_t number = 0;

	while (number < KNOWN && strcmp(known[number].name, name) != 0)
		number++;
	return number;
}

bool baseline_has_metric(const char *name)
{
	return metric_index(name) < KNOWN;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(
		((const struct baseline_row *)a)->path, ((const struct baseline_row *)b)->path);
}

/* Returns the names from the root, joined by `/`. A `/` or `\` in a name gets a `\` before it. */
static char *node_path(const struct process *process, const struct tree *tree, uint32_t id)
{
	uint32_t nodes[TREE_DEPTH_MAX + 8], count = 0;
	struct text_builder path = { .text = NULL };

	for (uint32_t node = id; node && count < TREE_DEPTH_MAX + 8;
		node = tree->nodes[node].parent)
		nodes[count++] = node;
	while (count) {
		const struct string_view text = string_table_get(
			process->texts, tree->nodes[nodes[--count]].name);

		text_add_path_name(&path, text.bytes, strnlen(text.bytes, text.length));
		text_add_bytes(&path, "/", count > 0);
	}
	return path.text;
}

static void add_baseline_row(struct baseline_metric *figure, char *path, double value)
{
	array_grow_zeroed(
		&figure->rows, &figure->row_room, figure->row_count + 1, sizeof *figure->rows);
	figure->rows[figure->row_count++] = (struct baseline_row){ .path = path, .value = value };
}

static void order_rows(struct baseline_metric *figure)
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

static double sorted_median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_double);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median step: one slow step must not fail a gate. */
static double median_step(const struct baseline_metric *figure)
{
	double *values = xcalloc(figure->value_count * sizeof *values), result;

	memcpy(values, figure->values, figure->value_count * sizeof *values);
	result = sorted_median(values, figure->value_count);
	free(values);
	return result;
}

/* Whether the node's value is a part of the whole that no other node counts. */
static bool has_own_share(const struct metric_samples *metric_samples, uint32_t id, bool time)
{
	return metric_samples->metric == METRIC_CALLS ||
	       (!metric_samples->profile->tree->nodes[id].parent &&
		       profile_root_has_share(metric_samples->profile, id, time));
}

static long double roots_total(const struct metric_samples *metric_samples, bool time)
{
	const struct tree *tree = metric_samples->profile->tree;
	long double sum = 0;

	for (uint32_t id = 1; id < tree->count; id++)
		if (has_own_share(metric_samples, id, time))
			sum += metric_samples->nodes[id].total;
	return sum;
}

/* Copies the metric's value in each step: durations of the steps for CPU and wall time. */
static void copy_step_values(
	struct baseline_metric *figure, const struct metric_samples *metric_samples)
{
	const bool time = metric_samples->metric == METRIC_CPU ||
			  metric_samples->metric == METRIC_WALL;
	const struct tree *tree = metric_samples->profile->tree;

	if (!metric_samples->values)
		return;
	figure->values = xcalloc(metric_samples->values * sizeof *figure->values);
	figure->value_count = metric_samples->values;
	for (uint32_t i = 0; time && i < metric_samples->values; i++) {
		const struct step *step = metric_samples->steps[i * metric_samples->step_stride];

		figure->values[i] = (double)(step->end_ns - step->begin_ns);
	}
	for (uint32_t id = 1; !time && id < tree->count; id++)
		for (uint32_t i = 0; has_own_share(metric_samples, id, time) &&
				     metric_samples->nodes[id].values && i < metric_samples->values;
			i++)
			figure->values[i] += metric_samples->nodes[id].values[i];
}

static bool is_metric_known(const struct process *process, size_t number)
{
	const struct profile_totals *totals = &process->profile->totals;

	if (known[number].metric == METRIC_GPU || known[number].metric == METRIC_IDLE)
		return totals->gpu_sum_ns > 0;
	if (known[number].metric == METRIC_ALLOC)
		return totals->level_device != UINT32_MAX && totals->reserved_peak > 0;
	return known[number].metric != METRIC_TENSORS || totals->has_tensors;
}

static double metric_total_of(const struct baseline *baseline, size_t number,
	const struct metric_samples *metric_samples, const struct baseline_metric *figure)
{
	if (known[number].source == OF_RESERVED)
		return (double)baseline->process->profile->totals.reserved_peak;
	if (known[number].source == OF_ALLOCATED)
		return (double)baseline->process->profile->totals.allocated_peak;
	if (figure->value_count &&
		(metric_samples->metric == METRIC_CPU || metric_samples->metric == METRIC_WALL ||
			metric_samples->metric == METRIC_GPU))
		return median_step(figure);
	if (metric_samples->metric == METRIC_WALL)
		return metric_samples_mean(metric_samples, metric_samples_wall(metric_samples));
	return metric_samples_mean(
		metric_samples, roots_total(metric_samples, metric_samples->metric == METRIC_CPU));
}

static void measure_metric(struct baseline *baseline, size_t number)
{
	const bool is_flow = known[number].source == OF_METRIC;
	struct metric_samples *metric_samples = metric_samples_read(baseline->process,
		known[number].metric, known[number].name, is_flow && baseline->by_steps);
	const struct tree *tree = metric_samples->profile->tree;
	struct baseline_metric figure = { .unit = known[number].unit };

	snprintf(figure.name, sizeof figure.name, "%s", known[number].name);
	copy_step_values(&figure, metric_samples);
	figure.value = metric_total_of(baseline, number, metric_samples, &figure);
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node_tensors *tensors = tree->nodes[id].tensors;
		const double value = known[number].source == OF_ALLOCATED
					     ? (double)(tensors ? tensors->total.at_peak : 0)
					     : metric_samples_mean(metric_samples,
						       metric_samples->nodes[id].total);

		if (value != 0)
			add_baseline_row(&figure, node_path(baseline->process, tree, id), value);
	}
	order_rows(&figure);
	metric_samples_free(metric_samples);
	array_grow_zeroed(&baseline->figures, &baseline->room, baseline->count + 1,
		sizeof *baseline->figures);
	baseline->figures[baseline->count++] = figure;
}

const struct baseline_metric *baseline_find_metric(struct baseline *baseline, const char *name)
{
	for (size_t i = 0; i < baseline->count; i++)
		if (strcmp(baseline->figures[i].name, name) == 0)
			return &baseline->figures[i];
	if (!baseline->process || !is_metric_known(baseline->process, metric_index(name)))
		return NULL;
	measure_metric(baseline, metric_index(name));
	return &baseline->figures[baseline->count - 1];
}

double baseline_value_at(const struct baseline_metric *figure, const char *path)
{
	struct baseline_row wanted = { .path = strdup(path) };
	const struct baseline_row *row = wanted.path && figure->row_count
						 ? bsearch(&wanted, figure->rows, figure->row_count,
							   sizeof wanted, by_path)
						 : NULL;

	free(wanted.path);
	return row ? row->value : 0;
}

void baseline_free(struct baseline *baseline)
{
	for (size_t i = 0; i < baseline->count; i++) {
		for (size_t row = 0; row < baseline->figures[i].row_count; row++)
			free(baseline->figures[i].rows[row].path);
		free(baseline->figures[i].rows);
		free(baseline->figures[i].values);
	}
	free(baseline->figures);
	processes_free(&baseline->processes);
	free(baseline);
}
