/* SPDX-License-Identifier: MIT
 * arrange_steps.c: a row for each step, in time's order, and behind them what usual steps have in common.
 */
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/analysis/step_stats.h"
#include "report/table/computed_row.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SUMMARY_FROM 2u /* usual steps */
#define GROWTH_FROM 5u

enum source { OF_ALL, OF_GPU, OF_TENSORS, OF_MEMORY };

/* The figures of a step, and where the trace has them from. */
static const struct {
	const char *key;
	size_t offset; /* step_table_values */
	enum source source;
} figures[] = {
	{ "duration_ns", SIZE_MAX, OF_ALL },
	{ "cpu_self_ns", offsetof(struct step_figures, cpu_ns), OF_ALL },
	{ "gpu_total_ns", offsetof(struct step_figures, gpu_ns), OF_GPU },
	{ "busy_ns", offsetof(struct step_figures, busy_ns), OF_GPU },
	{ "idle_ns", offsetof(struct step_figures, idle_ns), OF_GPU },
	{ "gaps", offsetof(struct step_figures, gaps), OF_GPU },
	{ "gap_max_ns", offsetof(struct step_figures, gap_max_ns), OF_GPU },
	{ "kernels", offsetof(struct step_figures, kernels), OF_GPU },
	{ "gpu_calls", offsetof(struct step_figures, gpu_calls), OF_GPU },
	{ "allocated_peak_bytes", offsetof(struct step_figures, allocated_peak), OF_TENSORS },
	{ "allocated_end_bytes", offsetof(struct step_figures, allocated_end), OF_TENSORS },
	{ "reserved_peak_bytes", offsetof(struct step_figures, reserved_peak), OF_MEMORY },
	{ "reserved_end_bytes", offsetof(struct step_figures, reserved_end), OF_MEMORY },
};

#define FIGURES (sizeof figures / sizeof *figures)

static bool is_known(const struct step_table *table, enum source source)
{
	return source == OF_ALL || (source == OF_GPU && table->has_gpu) || (source == OF_TENSORS && table->has_allocated) ||
	       (source == OF_MEMORY && table->has_reserved);
}

static int64_t figure_of(const struct step_figures *step, size_t offset)
{
	int64_t value = (int64_t)(step->step->end_ns - step->step->begin_ns);

	if (offset != SIZE_MAX)
		memcpy(&value, (const char *)step + offset, sizeof value);
	return value;
}

/* The first one, in a trace that has it, is where things are loaded, compiled and taken for the first time. */
static const char *state_of(const struct process *process, const struct step_figures *step)
{
	if (step->step->kind == STEP_UNFINISHED)
		return "unfinished";
	if (step->step->kind == STEP_CAPTURE)
		return "capture";
	if (step->step->kind != STEP_WARM_UP)
		return "usual";
	return step->step == process->steps->steps && !process->windows ? "cold start" : "warm-up";
}

static void add_step(const struct options *options, struct process *process, const struct step_table *table, size_t index, struct rows *rows)
{
	const struct step_figures *step = &table->steps[index];
	const char *state = state_of(process, step), *outlier = step->outlier > 0 ? "slow" : "fast";
	struct tally *tally = tally_new(process, 0);
	const bool usual = step->step->kind == STEP_USUAL;

	tally_name_format(tally, "step %llu%s%s%s", (unsigned long long)step->step->number, usual && !step->outlier ? "" : " (",
		usual ? (step->outlier ? outlier : "") : state, usual && !step->outlier ? "" : ")");
	tally_words(tally, "kind", "step");
	tally_unsigned(tally, "step", step->step->number);
	if (options->all)
		tally_unsigned(tally, "pid", process->pid);
	if (step->trains || step->computes)
		tally_words(tally, "step_kind", step->trains ? "training" : "evaluation");
	tally_words(tally, "state", state);
	if (step->outlier)
		tally_words(tally, "outlier", outlier);
	tally_unsigned(tally, "start_ns", step->step->begin_ns);
	for (size_t i = 0; i < FIGURES; i++)
		if (is_known(table, figures[i].source))
			tally_whole(tally, figures[i].key, figure_of(step, figures[i].offset));
	if (process->simulated && table->has_gpu)
		tally_words(tally, "provenance", "simulated");
	rows_add(rows, &tally->row);
}

static struct tally *summary_row(struct process *process, const char *name, struct rows *rows)
{
	struct tally *tally = tally_new(process, 0);

	tally_name(tally, name, strlen(name));
	tally_words(tally, "kind", "summary");
	rows_add(rows, &tally->row);
	return tally;
}

/* Memory that usual steps leave behind, nearly each of them. */
static void tell_growth(struct processes *processes, const struct process *process, const int64_t *ends, size_t count, const char *what)
{
	const double trend = count >= GROWTH_FROM ? step_trend(ends, count) : 0;
	char text[NUMBER_BYTES];
	size_t grown = 0;

	for (size_t i = 1; i < count; i++)
		grown += ends[i] > ends[i - 1];
	if (trend < 1 || grown * 10 < (count - 1) * 9)
		return;
	number_scaled(text, UNIT_BYTES, number_integer(round(trend)), false, true);
	processes_warn(processes, "%s: %s hold %s more after each of %zu usual steps than after the one before", process->path, what,
		text, count);
}

static void add_summary(struct processes *processes, struct process *process, const struct step_table *table, struct rows *rows)
{
	int64_t *values = need((table->usual + 1) * sizeof *values);
	struct tally *median, *spread, *trend;

	if (table->usual >= SUMMARY_FROM) {
		median = summary_row(process, "median of usual steps", rows);
		spread = summary_row(process, "median distance from it", rows);
		trend = summary_row(process, "trend, a step", rows);
		for (size_t i = 0; i < FIGURES; i++) {
			if (!is_known(table, figures[i].source))
				continue;
			step_table_values(table, figures[i].offset, values);
			if (figures[i].offset == offsetof(struct step_figures, allocated_end))
				tell_growth(processes, process, values, table->usual, "tensors");
			if (figures[i].offset == offsetof(struct step_figures, reserved_end))
				tell_growth(processes, process, values, table->usual, "allocators");
			tally_whole(trend, figures[i].key, number_integer(round(step_trend(values, table->usual))));
			tally_whole(spread, figures[i].key, step_spread(values, table->usual));
			tally_whole(median, figures[i].key, step_median(values, table->usual));
		}
	}
	free(values);
}

static int by_duration(const void *a, const void *b)
{
	const struct step_figures *left = *(struct step_figures *const *)a, *right = *(struct step_figures *const *)b;
	const bool left_odd = left->outlier || left->step->kind != STEP_USUAL, right_odd = right->outlier || right->step->kind != STEP_USUAL;
	const int64_t longer = figure_of(right, SIZE_MAX) - figure_of(left, SIZE_MAX);

	if (left_odd != right_odd)
		return left_odd ? -1 : 1;
	return longer ? (longer > 0 ? 1 : -1) : (left->step > right->step) - (left->step < right->step);
}

/* Where there is no room for all, those that are not like the others, then the longest; in time's order all the same. */
static bool *choose(const struct step_table *table, uint32_t top)
{
	const struct step_figures **order = need((table->count + 1) * sizeof(struct step_figures *));
	bool *chosen = need(table->count + 1);

	for (size_t i = 0; i < table->count; i++)
		order[i] = &table->steps[i];
	qsort(order, table->count, sizeof(struct step_figures *), by_duration);
	for (size_t i = 0; i < table->count && i < top; i++)
		chosen[order[i] - table->steps] = true;
	free(order);
	return chosen;
}

static void add_rows(const struct options *options, struct processes *processes, struct process *process, struct rows *rows)
{
	struct step_table *table = step_table_read(process);
	bool *chosen = choose(table, view_top(options));
	const size_t first = rows->count;

	for (size_t i = 0; i < table->count; i++)
		if (chosen[i])
			add_step(options, process, table, i, rows);
		else
			rows->more++;
	if (options->sort)
		rows_sort(rows->rows + first, rows->count - first, view_sort(options, process));
	add_summary(processes, process, table, rows);
	free(chosen);
	step_table_free(table);
}

void arrange_steps(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++) {
		struct process *process = &processes->all[i];
		const char *reason = process->steps ? process->steps->reason : "";

		if (process->steps && process->steps->count)
			add_rows(options, processes, process, rows);
		else
			processes_warn(processes, "%s: no steps were found%s%s; --step-marker NAME says which ranges are steps", process->path,
				*reason ? ": " : "", reason);
	}
	rows->told = rows->count == 0;
}
