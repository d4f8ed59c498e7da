/* SPDX-License-Identifier: MIT
 *
 * Arranges a row for each step, ordered by time, followed by the median, MAD and slope of
 * steady-state steps. If several threads have steps, a row for each thread comes first.
 */
#include "report/views/views.h"
#include "report/views/memory_growth.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/analysis/step_levels.h"
#include "report/analysis/step_stats.h"
#include "report/table/computed_row.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SUMMARY_MIN_STEPS 2u /* steady-state steps */

enum column_source { SOURCE_ALWAYS, SOURCE_AHEAD, SOURCE_GPU, SOURCE_TENSORS, SOURCE_MEMORY };

/* The columns of a step, and the source that a trace needs for each. */
static const struct {
	const char *key;
	/* in struct step_stats; SIZE_MAX: duration. As step_table_values() takes it. */
	size_t offset;
	enum column_source source;
} step_columns[] = {
	{ "duration_ns", SIZE_MAX, SOURCE_ALWAYS },
	{ "step_gpu_ns", offsetof(struct step_stats, window_ns), SOURCE_AHEAD },
	{ "step_ahead_ns", offsetof(struct step_stats, ahead_ns), SOURCE_AHEAD },
	{ "cpu_self_ns", offsetof(struct step_stats, cpu_ns), SOURCE_ALWAYS },
	{ "gpu_total_ns", offsetof(struct step_stats, gpu_ns), SOURCE_GPU },
	{ "busy_ns", offsetof(struct step_stats, busy_ns), SOURCE_GPU },
	{ "idle_ns", offsetof(struct step_stats, idle_ns), SOURCE_GPU },
	{ "gaps", offsetof(struct step_stats, gaps), SOURCE_GPU },
	{ "gap_max_ns", offsetof(struct step_stats, gap_max_ns), SOURCE_GPU },
	{ "kernels", offsetof(struct step_stats, kernels), SOURCE_GPU },
	{ "gpu_calls", offsetof(struct step_stats, gpu_calls), SOURCE_GPU },
	{ "allocated_peak_bytes", offsetof(struct step_stats, allocated_peak), SOURCE_TENSORS },
	{ "allocated_end_bytes", offsetof(struct step_stats, allocated_end), SOURCE_TENSORS },
	{ "reserved_peak_bytes", offsetof(struct step_stats, reserved_peak), SOURCE_MEMORY },
	{ "reserved_end_bytes", offsetof(struct step_stats, reserved_end), SOURCE_MEMORY },
};

#define STEP_COLUMNS (sizeof step_columns / sizeof *step_columns)

static bool has_source(const struct step_table *table, enum column_source source)
{
	return source == SOURCE_ALWAYS || (source == SOURCE_AHEAD && table->host_is_ahead) ||
	       (source == SOURCE_GPU && table->has_gpu) ||
	       (source == SOURCE_TENSORS && table->has_allocated) ||
	       (source == SOURCE_MEMORY && table->has_reserved);
}

static int64_t step_metric(const struct step_stats *step, size_t offset)
{
	int64_t value = (int64_t)(step->step->end_ns - step->step->begin_ns);

	if (offset != SIZE_MAX)
		memcpy(&value, (const char *)step + offset, sizeof value);
	return value;
}

/* Returns the name of the step's state. The first step is a cold start (loading, compiling, first
 * allocations), unless a schedule left the start of the run out. */
static const char *step_state(const struct process *process, const struct step_stats *step)
{
	if (step->step->kind == STEP_UNFINISHED)
		return "unfinished";
	if (step->step->kind == STEP_CAPTURE)
		return "capture";
	if (step->step->kind == STEP_AT_EDGE)
		return "recording edge";
	if (step->step->kind != STEP_WARM_UP)
		return "usual";
	return step->step == process->steps->steps && !process->windows &&
			       !steps_overlap(process->steps)
		       ? "cold start"
		       : "warm-up";
}

/* Sets the columns of the program's counter. `level`: NULL for none. */
static void set_counter_columns(struct computed_row *computed, const struct step_level *level)
{
	if (level && level->known) {
		computed_row_set_real(computed, "counter_end", level->end);
		computed_row_set_real(computed, "counter_peak", level->peak);
	}
}

/* `level`: of the program's counter; NULL for none. */
static struct computed_row *step_row(const struct options *options, struct process *process,
	const struct step_table *table, size_t index, const struct step_level *level)
{
	const struct step_stats *step = &table->steps[index];
	const char *state = step_state(process, step),
		   *outlier = step->outlier > 0 ? "slow" : "fast";
	struct computed_row *computed = computed_row_new(process, 0, "step");
	const bool usual = step->step->kind == STEP_USUAL;

	computed_row_format_name(computed, "step %llu%s%s%s",
		(unsigned long long)step->step->number, usual && !step->outlier ? "" : " (",
		usual ? (step->outlier ? outlier : "") : state, usual && !step->outlier ? "" : ")");
	computed_row_set_unsigned(computed, "step", step->step->number);
	if (options->all)
		computed_row_set_unsigned(computed, "pid", process->pid);
	if (steps_overlap(process->steps))
		computed_row_set_unsigned(computed, "thread", step->step->tid);
	if (step->trains || step->computes)
		computed_row_set_string(
			computed, "step_kind", step->trains ? "training" : "evaluation");
	computed_row_set_string(computed, "state", state);
	if (step->outlier)
		computed_row_set_string(computed, "outlier", outlier);
	computed_row_set_unsigned(computed, "start_ns", step->step->begin_ns);
	for (size_t i = 0; i < STEP_COLUMNS; i++)
		if (has_source(table, step_columns[i].source))
			computed_row_set_integer(computed, step_columns[i].key,
				step_metric(step, step_columns[i].offset));
	set_counter_columns(computed, level);
	if (process->simulated && table->has_gpu)
		computed_row_set_string(computed, "provenance", "simulated");
	return computed;
}

struct row steps_row(const struct options *options, struct process *process, size_t index)
{
	return step_row(options, process, step_table_of(process), index, NULL)->row;
}

static struct computed_row *summary_row(
	struct process *process, const char *name, struct rows *rows)
{
	struct computed_row *computed = computed_row_new(process, 0, "summary");

	computed_row_set_name(computed, name, strlen(name));
	rows_add(rows, &computed->row);
	return computed;
}

/* Warns if memory grows from step to step. */
static void warn_growth(struct processes *processes, struct process *process)
{
	const struct memory_leak *leak = memory_leaks_worst(process);
	const struct style style = { .ascii = true, .whole_names = true };
	struct paragraph paragraph = { .style = &style };

	if (!leak)
		return;
	if (leak->held->kind == MEMORY_TENSOR)
		paragraph_add(&paragraph, "tensor memory ");
	memory_growth_add_sentence(&paragraph, process, leak);
	processes_warn(processes, "%s: %s; see pperf-report memory --growth", process->path,
		paragraph.built.text);
	free(paragraph.built.text);
}

static void add_summary(struct process *process, const struct step_table *table,
	const struct step_level *levels, struct rows *rows)
{
	int64_t *values = xcalloc((table->usual + 1) * sizeof *values);
	const size_t count = table->usual;
	struct computed_row *median, *spread, *trend;

	if (count >= SUMMARY_MIN_STEPS) {
		median = summary_row(process, "median (steady state)", rows);
		spread = summary_row(process, "MAD", rows);
		trend = summary_row(process, "slope per step", rows);
		for (size_t i = 0; i < STEP_COLUMNS; i++) {
			const char *key = step_columns[i].key;

			if (!has_source(table, step_columns[i].source))
				continue;
			step_table_values(table, step_columns[i].offset, values);
			computed_row_set_integer(
				trend, key, clamp_to_i64(round(step_trend(values, count))));
			computed_row_set_integer(spread, key, step_spread(values, count));
			computed_row_set_integer(median, key, step_median(values, count));
		}
		if (levels) {
			const struct step_level_summary summary = step_levels_summary(
				table, levels);

			set_counter_columns(median, &summary.median);
			set_counter_columns(spread, &summary.spread);
			set_counter_columns(trend, &summary.slope);
		}
	}
	free(values);
}

static int by_duration(const void *a, const void *b)
{
	const struct step_stats *left = *(struct step_stats *const *)a,
				*right = *(struct step_stats *const *)b;
	const bool left_special = left->outlier || left->step->kind != STEP_USUAL,
		   right_special = right->outlier || right->step->kind != STEP_USUAL;
	const int64_t longer = step_metric(right, SIZE_MAX) - step_metric(left, SIZE_MAX);

	if (left_special != right_special)
		return left_special ? -1 : 1;
	return longer ? (longer > 0 ? 1 : -1) : COMPARE(left->step, right->step);
}

/* Selects at most `top` steps: first outliers and steps that are not steady-state, then the
 * longest. Returns an array by index, to be freed. */
static bool *select_steps(const struct step_table *table, uint32_t top)
{
	const struct step_stats **order = xcalloc((table->count + 1) * sizeof(struct step_stats *));
	bool *chosen = xcalloc(table->count + 1);

	for (size_t i = 0; i < table->count; i++)
		order[i] = &table->steps[i];
	qsort(order, table->count, sizeof(struct step_stats *), by_duration);
	for (size_t i = 0; i < table->count && i < top; i++)
		chosen[order[i] - table->steps] = true;
	free(order);
	return chosen;
}

/* Returns false once all rows that are needed are there. Where rows are sorted later, all are. */
static bool has_room_for_row(const struct options *options, const struct rows *rows)
{
	return !options->rows_max || options->sort || rows->count < options->rows_max;
}

/* Adds the row of a thread: the durations of its usual steps, and the sums of all its steps. */
static void add_thread_row(struct process *process, const struct step_table *table,
	const struct steps_thread *thread, struct rows *rows)
{
	struct computed_row *computed = computed_row_new(process, 0, "thread");
	struct step_stats sum = { .cpu_ns = 0 };

	for (size_t i = thread->first; i < thread->first + thread->count; i++) {
		const struct step *own = process->steps->by_thread[i];
		const struct step_stats *step = &table->steps[own - process->steps->steps];

		sum.cpu_ns += step->cpu_ns;
		sum.gpu_ns += step->gpu_ns;
		sum.kernels += step->kernels;
		sum.gpu_calls += step->gpu_calls;
	}
	computed_row_format_name(computed, "thread %u", thread->tid);
	computed_row_set_unsigned(computed, "thread", thread->tid);
	computed_row_set_unsigned(computed, "calls", thread->count);
	if (thread->usual) {
		computed_row_set_unsigned(computed, "p50_ns", thread->p50_ns);
		computed_row_set_unsigned(computed, "p95_ns", thread->p95_ns);
		computed_row_set_unsigned(computed, "max_ns", thread->max_ns);
	}
	computed_row_set_unsigned(computed, "cpu_self_ns", sum.cpu_ns);
	if (table->has_gpu) {
		computed_row_set_unsigned(computed, "gpu_total_ns", sum.gpu_ns);
		computed_row_set_unsigned(computed, "kernels", sum.kernels);
		computed_row_set_unsigned(computed, "gpu_calls", sum.gpu_calls);
	}
	rows_add(rows, &computed->row);
}

COMPARE_BY_LARGEST(by_step_count, struct steps_thread, count, tid)

/* Adds the threads that have steps of their own, those with most steps first. With --steps the
 * statistics, which are of all steps, are left out. */
static void add_thread_rows(const struct options *options, struct process *process,
	const struct step_table *table, struct rows *rows)
{
	const size_t count = options->steps ? 0 : process->steps->thread_count;
	struct steps_thread *threads = xcalloc((count + 1) * sizeof *threads);

	if (count) {
		memcpy(threads, process->steps->threads, count * sizeof *threads);
		qsort(threads, count, sizeof *threads, by_step_count);
	}
	for (size_t i = 0; i < count; i++)
		if (i < view_top(options))
			add_thread_row(process, table, &threads[i], rows);
		else
			rows->hidden_by_top++;
	free(threads);
}

static void add_steps_rows(const struct options *options, struct processes *processes,
	struct process *process, struct rows *rows)
{
	const struct step_table *table = step_table_of(process);
	struct step_level *levels = step_levels_read(process, table);
	bool *chosen = select_steps(table, view_top(options));
	size_t first;

	add_thread_rows(options, process, table, rows);
	first = rows->count;
	for (size_t i = 0; i < table->count; i++)
		if (!chosen[i])
			rows->hidden_by_top++;
		else if (has_room_for_row(options, rows))
			rows_add(rows,
				&step_row(options, process, table, i, levels ? &levels[i] : NULL)
					 ->row);
		else
			rows->beyond_max++;
	if (options->sort)
		rows_sort(rows->rows + first, rows->count - first, view_sort(options, process));
	add_summary(process, table, levels, rows);
	warn_growth(processes, process);
	free(chosen);
	free(levels);
}

void arrange_steps(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++) {
		struct process *process = &processes->all[i];
		const char *reason = process->steps ? process->steps->reason : "";

		if (process->steps && process->steps->count)
			add_steps_rows(options, processes, process, rows);
		else
			processes_warn(processes,
				"%s: no steps were found%s%s; set --step-marker NAME to the name "
				"of the ranges that are steps",
				process->path, *reason ? ": " : "", reason);
	}
	rows->empty_explained = rows->count == 0;
}
