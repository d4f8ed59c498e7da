/* SPDX-License-Identifier: MIT */
#include "report/analysis/compared_run.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/text_builder.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The level of PyTorch's allocator on the device whose levels are shown; NULL: there is none. */
static const struct memory_level *tensor_level(const struct profile *profile)
{
	const struct memory_owners *memory = profile->memory;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == MEMORY_TENSOR &&
			memory->levels[i].device == profile->totals.level_device)
			return &memory->levels[i];
	return NULL;
}

/* What PyTorch's allocator held in no tensor when its tensors held most. */
static double waste_peak(const struct profile *profile)
{
	const struct memory_level *level = tensor_level(profile);

	return level && level->pool.reserved_at_peak > level->pool.peak
		       ? (double)(level->pool.reserved_at_peak - level->pool.peak)
		       : 0;
}

static uint32_t count_failed(const struct profile *profile, bool succeeded_later)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < profile->memory->failed_count; i++)
		count += profile->memory->failed[i].succeeded_later == succeeded_later;
	return count;
}

static double retries(const struct profile *profile)
{
	return count_failed(profile, true);
}

/* A failure of PyTorch's allocator comes after failed CUDA allocations of its own. */
static double ooms(const struct profile *profile)
{
	return profile->totals.has_tensors ? (double)profile->memory->counts.ooms
					   : count_failed(profile, false);
}

/* The most that one place held: of tensors if there are any, else of device memory. */
static double largest_place_peak(const struct profile *profile)
{
	const struct memory_owners *memory = profile->memory;
	uint64_t most = 0;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_level *level = &memory->levels[memory->sites[i].level];
		const bool counts = profile->totals.has_tensors ? level->kind == MEMORY_TENSOR
								: memory_is_device(level->kind);

		if (counts && memory->sites[i].flow.held_max > most)
			most = memory->sites[i].flow.held_max;
	}
	return (double)most;
}

const struct run_metric_kind run_metric_kinds[RUN_METRICS] = {
	{ "gpu", METRIC_GPU, false, NULL, UNIT_COUNT, false },
	{ "cpu", METRIC_CPU, false, NULL, UNIT_COUNT, false },
	{ "wall", METRIC_WALL, false, NULL, UNIT_COUNT, false },
	{ "idle", METRIC_IDLE, false, NULL, UNIT_COUNT, false },
	{ "calls", METRIC_CALLS, false, NULL, UNIT_COUNT, false },
	{ "alloc", METRIC_ALLOC, false, NULL, UNIT_COUNT, false },
	{ "tensors", METRIC_TENSORS, false, NULL, UNIT_COUNT, false },
	{ "reserved_peak", METRIC_ALLOC, true, NULL, UNIT_COUNT, false },
	{ "allocated_peak", METRIC_TENSORS, true, NULL, UNIT_COUNT, false },
	{ "waste_peak", METRIC_TENSORS, true, waste_peak, UNIT_BYTES, true },
	{ "largest_place_peak", METRIC_ALLOC, true, largest_place_peak, UNIT_BYTES, false },
	{ "retries", METRIC_ALLOC, true, retries, UNIT_COUNT, false },
	{ "ooms", METRIC_ALLOC, true, ooms, UNIT_COUNT, false },
};

const struct run_metric_kind *run_metric_find(const char *name)
{
	for (size_t i = 0; i < RUN_METRICS; i++)
		if (strcmp(run_metric_kinds[i].name, name) == 0)
			return &run_metric_kinds[i];
	return NULL;
}

enum unit run_metric_unit(const struct run_metric *metric)
{
	return metric->kind->of_memory ? metric->kind->unit : metrics[metric->kind->metric].unit;
}

void compared_run_open(struct compared_run *run, const struct options *options, const char *path,
	bool allows_baseline)
{
	*run = (struct compared_run){ .path = path, .rank = -1 };
	if (allows_baseline && baseline_load(run, path))
		return;
	run->processes = processes_read_side(options, path);
	assert(run->processes.count > 0);
	run->process = run->processes.all;
	run->rank = run->process->rank;
	run->steps = metric_samples_steps(run->process);
	run->by_steps = run->steps >= CHANGE_TEST_SAMPLES_MIN;
}

void compared_runs_open(struct compared_run runs[2], const struct options *options,
	const char *before, const char *after, bool allows_baseline)
{
	compared_run_open(&runs[0], options, before, allows_baseline);
	compared_run_open(&runs[1], options, after, allows_baseline);
	if (runs[0].by_steps == runs[1].by_steps)
		return;
	for (unsigned which = 0; which < 2; which++) {
		if (!runs[which].process && runs[which].by_steps)
			fatal(STATUS_UNREADABLE,
				"the baseline is per step, and %s has too few steps to compare",
				runs[runs[0].process == NULL].path);
		runs[which].by_steps = false;
	}
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

void run_metric_add_row(struct run_metric *metric, char *path, double value)
{
	*ARRAY_ADD(metric->rows, metric->row_room,
		metric->row_count) = (struct run_row){ .path = path, .value = value };
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct run_row *)a)->path, ((const struct run_row *)b)->path);
}

void run_metric_order_rows(struct run_metric *metric)
{
	struct run_row *kept = metric->rows;

	if (!metric->row_count)
		return;
	qsort(metric->rows, metric->row_count, sizeof *metric->rows, by_path);
	for (size_t i = 1; i < metric->row_count; i++) {
		if (strcmp(kept->path, metric->rows[i].path) == 0) {
			kept->value += metric->rows[i].value;
			free(metric->rows[i].path);
		} else {
			*++kept = metric->rows[i];
		}
	}
	metric->row_count = (size_t)(kept - metric->rows) + 1;
}

void run_metric_free(struct run_metric *metric)
{
	for (size_t row = 0; row < metric->row_count; row++)
		free(metric->rows[row].path);
	free(metric->rows);
	free(metric->values);
}

static bool has_data(const struct process *process, enum metric metric)
{
	const struct profile_totals *totals = &process->profile->totals;

	if (metric == METRIC_GPU || metric == METRIC_IDLE)
		return totals->gpu_sum_ns > 0;
	if (metric == METRIC_ALLOC)
		return totals->level_device != UINT32_MAX && totals->reserved_peak > 0;
	return metric != METRIC_TENSORS || totals->has_tensors;
}

static double whole_value(const struct process *process, const struct run_metric *metric,
	const struct metric_samples *samples)
{
	const struct profile_totals *totals = &process->profile->totals;

	if (metric->kind->is_peak)
		return (double)(samples->metric == METRIC_ALLOC ? totals->reserved_peak
								: totals->allocated_peak);
	return metric_samples_typical(samples);
}

static double node_value(
	const struct run_metric *metric, const struct metric_samples *samples, uint32_t id)
{
	const struct node_tensors *tensors = samples->profile->tree->nodes[id].tensors;

	if (metric->kind->is_peak && samples->metric == METRIC_TENSORS)
		return tensors ? (double)tensors->total.at_peak : 0;
	return metric_samples_mean(samples, samples->nodes[id].total);
}

static void compute_metric(struct compared_run *run, struct run_metric *metric)
{
	struct metric_samples *samples = metric_samples_read(
		run->process, metric->kind->metric, NULL, run->by_steps && !metric->kind->is_peak);
	const struct tree *tree = samples->profile->tree;

	metric->values = metric_samples_step_values(samples);
	metric->value_count = samples->values;
	metric->value = whole_value(run->process, metric, samples);
	for (uint32_t id = 1; id < tree->count; id++) {
		const double value = node_value(metric, samples, id);

		if (value != 0)
			run_metric_add_row(metric, node_path(run->process, tree, id), value);
	}
	run_metric_order_rows(metric);
	metric_samples_free(samples);
}

const struct run_metric *compared_run_metric(
	struct compared_run *run, const struct run_metric_kind *kind)
{
	struct run_metric *metric = run->metrics;

	for (; metric < run->metrics + run->metric_count; metric++)
		if (metric->kind == kind)
			return metric;
	if (!run->process || !has_data(run->process, kind->metric) ||
		(kind->needs_tensors && !run->process->profile->totals.has_tensors))
		return NULL;
	metric->kind = kind;
	if (kind->of_memory)
		metric->value = kind->of_memory(run->process->profile);
	else
		compute_metric(run, metric);
	run->metric_count++;
	return metric;
}

void compared_run_free(struct compared_run *run)
{
	for (size_t i = 0; i < run->metric_count; i++)
		run_metric_free(&run->metrics[i]);
	if (run->metric_samples)
		metric_samples_free(run->metric_samples);
	processes_free(&run->processes);
}

/* Returns the row's value minus that of the same path in `before`. Rows are passed in the order of
 * their paths: `*at` is the index in `before` where the search goes on. */
static double row_increase(const struct run_metric *before, size_t *at, const struct run_row *row)
{
	while (*at < before->row_count && by_path(&before->rows[*at], row) < 0)
		++*at;
	return *at < before->row_count && by_path(&before->rows[*at], row) == 0
		       ? row->value - before->rows[*at].value
		       : row->value;
}

/* Whether `path` is below `around`; NULL: every path is. */
static bool is_below(const char *path, const char *around)
{
	const size_t length = around ? strlen(around) : 0;

	return !around || (strncmp(path, around, length) == 0 && path[length] == '/' &&
				  (length == 0 || path[length - 1] != '\\'));
}

const char *run_metric_worst_path(
	const struct run_metric *before, const struct run_metric *after, double *increase)
{
	const char *worst = NULL, *around;

	do {
		double most = worst ? *increase / 2 : 0;

		around = worst;
		for (size_t i = 0, at = 0; i < after->row_count; i++) {
			const double found = row_increase(before, &at, &after->rows[i]);

			if (is_below(after->rows[i].path, around) && found > most) {
				*increase = most = found;
				worst = after->rows[i].path;
			}
		}
	} while (worst != around);
	return worst;
}

const char *json_unit_name(enum unit unit)
{
	return unit == UNIT_TIME ? "ns" : unit == UNIT_BYTES ? "bytes" : "count";
}

void json_begin_comparison(
	struct json_writer *json, const char *view, const char *before, const char *after)
{
	json_write_begin(json, '{');
	json_put_string(json, "schema", "pperf.report/1");
	json_put_string(json, "view", view);
	json_put_begin(json, "files", '[');
	json_write_string(json, before);
	json_write_string(json, after);
	json_write_end(json, ']');
}

void json_put_test_method(struct json_writer *json, const struct compared_run runs[2])
{
	json_put_begin(json, "ranks", '[');
	json_write_rank(json, runs[0].rank);
	json_write_rank(json, runs[1].rank);
	json_write_end(json, ']');
	json_put_string(json, "method", CHANGE_TEST_METHOD);
	json_put_double(json, "alpha", CHANGE_TEST_ALPHA);
}
