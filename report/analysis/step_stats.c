/* SPDX-License-Identifier: MIT */
#include "report/analysis/step_stats.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/search.h"
#include "report/stats/median.h"
#include "report/text/format_number.h"
#include <stdlib.h>
#include <string.h>

#define TREND_MAX 1024u
#define OUTLIERS_FROM 5u /* steady-state steps */

/* The position of the pass among the steps. */
struct step_stats_reader {
	struct process *process;
	struct step_table *table;
	size_t at; /* threads report slightly out of order */
	/* The step that was found last, or the time without a step. found_from_ns UINT64_MAX: none
	 * was looked for. */
	struct step_stats *found;
	uint64_t found_from_ns, found_to_ns;
	/* Indexes of the steps whose begin the memory levels have reached, and whose end they have
	 * not: several if steps overlap. level_at: the first step whose begin is ahead. */
	size_t *open;
	size_t open_count, open_room, level_at;
	uint64_t next_edge_ns; /* before it, no step begins and no open one ends */
	int64_t allocated, reserved;
};

DEFINE_COUNT_WHILE(steps_before, struct step_stats, item->step->number < limit)

/* Each thread has steps of its own. */
static struct step_stats *stats_of_thread_step(
	const struct step_stats_reader *reading, uint32_t tid, uint64_t at_ns)
{
	struct step_table *table = reading->table;
	const struct step *step = steps_step_of_thread(reading->process->steps, tid, at_ns);
	const size_t at = step ? steps_before(table->steps, table->count, step->number)
			       : table->count;

	return at < table->count && table->steps[at].step == step ? &table->steps[at] : NULL;
}

static void find_step(struct step_stats_reader *reading, uint64_t at_ns)
{
	struct step_table *table = reading->table;
	struct step_stats *next;

	while (reading->at > 0 && table->steps[reading->at - 1].step->end_ns > at_ns)
		reading->at--;
	while (reading->at < table->count && table->steps[reading->at].step->end_ns <= at_ns)
		reading->at++;
	next = reading->at < table->count ? &table->steps[reading->at] : NULL;
	reading->found = next && at_ns >= next->step->begin_ns ? next : NULL;
	if (reading->found) {
		reading->found_from_ns = next->step->begin_ns;
		reading->found_to_ns = next->step->end_ns;
		return;
	}
	reading->found_from_ns = reading->at ? table->steps[reading->at - 1].step->end_ns : 0;
	reading->found_to_ns = next ? next->step->begin_ns : UINT64_MAX;
}

/* Returns NULL if thread `tid` was in no step at `at_ns`. */
static struct step_stats *stats_of_step_at(
	struct step_stats_reader *reading, uint32_t tid, uint64_t at_ns)
{
	if (steps_overlap(reading->process->steps))
		return stats_of_thread_step(reading, tid, at_ns);
	if (at_ns < reading->found_from_ns || at_ns >= reading->found_to_ns)
		find_step(reading, at_ns);
	return reading->found;
}

static void add_step_cpu_time(void *context, const struct observed_segment *part)
{
	struct step_stats_reader *reading = context;
	struct step_stats *step = stats_of_step_at(reading, part->thread->tid, part->begin_ns);
	unsigned kind;

	if (!step)
		return;
	step->cpu_ns += part->self_ns;
	kind = part->trace_node ? reader_node(reading->process->reader, part->trace_node)->kind : 0;
	step->trains |= kind == TRACE_NODE_BACKWARD || kind == TRACE_NODE_OPTIMIZER;
	step->computes |= kind == TRACE_NODE_MODULE || kind == TRACE_NODE_OP;
}

static void add_step_gpu_work(void *context, const struct observed_gpu_work *work)
{
	struct step_stats_reader *reading = context;
	const struct trace_gpu *gpu = work->gpu;
	const struct gpu_launch *launch = work->launch;
	struct step_stats *step = work->counts ? stats_of_step_at(reading, launch ? launch->tid : 0,
							 launch ? launch->begin_ns : work->begin_ns)
					       : NULL;

	if (!step)
		return;
	step->gpu_calls++;
	step->kernels += gpu->head.kind == TRACE_KERNEL;
	step->gpu_ns += work->timed && gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns
								   : 0;
	reading->table->has_gpu = true;
}

static void raise_peaks(const struct step_stats_reader *reading, struct step_stats *step)
{
	if (step->allocated_peak < reading->allocated)
		step->allocated_peak = reading->allocated;
	if (step->reserved_peak < reading->reserved)
		step->reserved_peak = reading->reserved;
}

/* Ends the open steps that end at or before `at_ns`. */
static void end_steps_until(struct step_stats_reader *reading, uint64_t at_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < reading->open_count; i++) {
		struct step_stats *step = &reading->table->steps[reading->open[i]];

		if (step->step->end_ns > at_ns) {
			reading->open[kept++] = reading->open[i];
			continue;
		}
		step->allocated_end = reading->allocated;
		step->reserved_end = reading->reserved;
	}
	reading->open_count = kept;
}

/* Applies the current levels to all steps up to `at_ns`. */
static void add_levels_until(struct step_stats_reader *reading, uint64_t at_ns)
{
	struct step_table *table = reading->table;

	if (at_ns < reading->next_edge_ns)
		return;
	end_steps_until(reading, at_ns);
	for (; reading->level_at < table->count &&
		table->steps[reading->level_at].step->begin_ns <= at_ns;
		reading->level_at++) {
		struct step_stats *step = &table->steps[reading->level_at];

		step->allocated_peak = step->allocated_end = reading->allocated;
		step->reserved_peak = step->reserved_end = reading->reserved;
		if (step->step->end_ns > at_ns)
			*ARRAY_ADD(reading->open, reading->open_room,
				reading->open_count) = reading->level_at;
	}
	reading->next_edge_ns = reading->level_at < table->count
					? table->steps[reading->level_at].step->begin_ns
					: UINT64_MAX;
	for (size_t i = 0; i < reading->open_count; i++)
		reading->next_edge_ns = min_u64(reading->next_edge_ns,
			table->steps[reading->open[i]].step->end_ns);
}

static void set_level(void *context, uint64_t at_ns, int64_t allocated, int64_t reserved)
{
	struct step_stats_reader *reading = context;

	add_levels_until(reading, at_ns);
	reading->allocated = allocated;
	reading->reserved = reserved;
	reading->table->has_reserved |= reserved != 0;
	reading->table->has_allocated |= allocated != 0;
	for (size_t i = 0; i < reading->open_count; i++)
		raise_peaks(reading, &reading->table->steps[reading->open[i]]);
}

static void restart_step_stats(void *context)
{
	struct step_stats_reader *reading = context;
	struct step_table *table = reading->table;

	for (size_t i = 0; i < table->count; i++)
		table->steps[i] = (struct step_stats){ .step = table->steps[i].step };
	table->has_gpu = table->has_allocated = table->has_reserved = false;
	reading->at = reading->level_at = reading->open_count = 0;
	reading->found_from_ns = UINT64_MAX;
	reading->next_edge_ns = 0;
	reading->allocated = reading->reserved = 0;
}

static struct step_table *new_table(
	const struct process *process, const struct profile_options *options)
{
	struct step_table *table = xcalloc(sizeof *table);

	table->steps = xcalloc((process->steps->count + 1) * sizeof *table->steps);
	for (size_t i = 0; i < process->steps->count; i++) {
		const struct step *step = &process->steps->steps[i];

		if (options->steps &&
			(step->number < options->first_step || step->number > options->last_step))
			continue;
		table->steps[table->count++].step = step;
		table->usual += step->kind == STEP_USUAL;
	}
	return table;
}

/* The windows of the steps are known. */
static void set_latest_ends(struct step_table *table)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < table->count; i++)
		table->steps[i].latest_end_ns = latest = max_u64(
			latest, table->steps[i].step->window_end_ns);
}

/* The context of add_step_gap. */
struct gap_reading {
	struct step_table *table;
	const struct timeline *timeline;
	bool is_outside; /* before the first work of a device, or after its last */
};

DEFINE_COUNT_WHILE(steps_ended, struct step_stats, item->latest_end_ns <= limit)

static void add_step_gap(void *context, uint32_t device, uint64_t from_ns, uint64_t to_ns)
{
	const struct gap_reading *reading = context;
	const struct step_table *table = reading->table;

	for (size_t i = steps_ended(table->steps, table->count, from_ns);
		i < table->count && table->steps[i].step->window_begin_ns < to_ns; i++) {
		struct step_stats *step = &table->steps[i];
		const uint64_t from = max_u64(step->step->window_begin_ns, from_ns),
			       to = min_u64(step->step->window_end_ns, to_ns);
		uint64_t idle = to > from ? to - from : 0;

		if (idle)
			idle -= timeline_unknown_within(
				reading->timeline, device, HANDOVER_TRACE_TIME, from, to);
		step->gaps += idle > 0;
		step->gap_max_ns = max_u64(step->gap_max_ns, idle);
		step->outside_ns += reading->is_outside ? idle : 0;
	}
}

/* Adds the time of steps in which a device has no work yet, or no more. The timeline, which begins
 * with the first work of a device, has no gap there. */
static void add_time_outside(struct gap_reading *gaps)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(gaps->timeline, &devices);

	gaps->is_outside = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t first_ns, last_ns;

		timeline_device_span(gaps->timeline, i, &first_ns, &last_ns);
		add_step_gap(gaps, devices[i].device, 0, first_ns);
		add_step_gap(gaps, devices[i].device, last_ns, UINT64_MAX);
	}
}

/* Begin or end of a step. */
struct busy_edge {
	uint64_t at_ns, index; /* index: 2 times that of the step; of an end 1 more */
};

COMPARE_BY_TWO(by_edge_time, struct busy_edge, at_ns, index)

/* Adds the busy and idle time of the GPUs in each step. The timeline answers in time order only. */
static void read_busy_edges(struct step_table *table, struct timeline *timeline)
{
	struct busy_edge *edges = xcalloc((2 * table->count + 1) * sizeof *edges);

	for (size_t i = 0; i < table->count; i++) {
		edges[2 * i] = (struct busy_edge){ table->steps[i].step->window_begin_ns, 2 * i };
		edges[2 * i + 1] = (struct busy_edge){ table->steps[i].step->window_end_ns,
			2 * i + 1 };
	}
	qsort(edges, 2 * table->count, sizeof *edges, by_edge_time);
	for (size_t i = 0; i < 2 * table->count; i++) {
		struct step_stats *step = &table->steps[edges[i].index / 2];
		const uint64_t busy = timeline_busy(timeline, edges[i].at_ns),
			       idle = timeline_idle(timeline, edges[i].at_ns);

		step->busy_ns = busy - step->busy_ns;
		step->idle_ns = idle - step->idle_ns;
	}
	free(edges);
}

static void read_busy(struct step_table *table, const struct process *process)
{
	struct timeline *timeline = process->profile->timeline;
	struct gap_reading gaps = { .table = table, .timeline = timeline };

	if (!timeline)
		return;
	timeline_rewind(timeline);
	timeline_on_gap(timeline, add_step_gap, &gaps);
	read_busy_edges(table, timeline);
	/* Emits the gap after the last step too, because it may begin in that step. */
	timeline_busy(timeline, UINT64_MAX);
	add_time_outside(&gaps);
	for (size_t i = 0; i < table->count; i++)
		table->steps[i].idle_ns += table->steps[i].outside_ns;
	table->has_gpu = true;
}

/* Marks steps that differ from the median by more than 5 robust deviations, and by 5 % or more. */
static void find_outliers(struct step_table *table)
{
	int64_t *values = xcalloc((table->usual + 1) * sizeof *values), median, spread;

	step_table_values(table, SIZE_MAX, values);
	spread = step_spread(values, table->usual);
	median = step_median(values, table->usual);
	for (size_t i = 0; table->usual >= OUTLIERS_FROM && i < table->count; i++) {
		const struct step *step = table->steps[i].step;
		const double off = (double)((int64_t)(step->end_ns - step->begin_ns) - median),
			     most = 5 * 1.4826 * (double)spread;

		if (step->kind == STEP_USUAL && (off < 0 ? -off : off) > most &&
			(off < 0 ? -off : off) > 0.05 * (double)median)
			table->steps[i].outlier = off < 0 ? -1 : 1;
	}
	free(values);
}

static void set_windows(struct step_table *table, const struct steps *steps)
{
	table->host_is_ahead = steps->on_gpu;
	for (size_t i = 0; i < table->count; i++) {
		const struct step *step = table->steps[i].step;

		table->steps[i].window_ns = step->window_end_ns - step->window_begin_ns;
		table->steps[i].ahead_ns = step->window_begin_ns > step->begin_ns
						   ? step->window_begin_ns - step->begin_ns
						   : 0;
	}
}

/* The pass is over, and the windows of the steps are known. */
static struct step_table *finish_table(struct step_stats_reader *reading)
{
	struct step_table *table = reading->table;

	set_windows(table, reading->process->steps);
	set_latest_ends(table);
	add_levels_until(reading, UINT64_MAX);
	free(reading->open);
	read_busy(table, reading->process);
	find_outliers(table);
	return table;
}

static void free_table(void *data)
{
	struct step_table *table = data;

	if (table)
		free(table->steps);
	free(table);
}

static const char table_key; /* of process_attach */

/* At the end of the pass. */
static void keep_table(void *context, const struct profile *pass)
{
	struct step_stats_reader *reading = context;

	(void)pass;
	process_attach(reading->process, &table_key, finish_table(reading), free_table);
	free(reading);
}

void step_table_read_in(struct shared_pass *pass)
{
	struct process *process = pass->process;
	struct step_stats_reader *reading;

	if (process_attached(process, &table_key))
		return;
	reading = xcalloc(sizeof *reading);
	*reading = (struct step_stats_reader){ .process = process,
		.found_from_ns = UINT64_MAX,
		.table = new_table(process, &process->profile->options) };
	shared_pass_add(pass,
		&(const struct profile_observer){ .context = reading,
			.restart = restart_step_stats,
			.segment = add_step_cpu_time,
			.work = add_step_gpu_work,
			.level = set_level },
		keep_table);
}

const struct step_table *step_table_of(struct process *process)
{
	struct shared_pass pass = { .process = process };

	step_table_read_in(&pass);
	shared_pass_run(&pass);
	return process_attached(process, &table_key);
}

bool step_busy_read(const struct process *process, uint64_t *busy_ns, uint64_t *idle_ns)
{
	struct step_table *table = process->steps && !steps_overlap(process->steps)
					   ? new_table(process, &process->profile->options)
					   : NULL;
	uint64_t steps_ns = 0;

	*busy_ns = *idle_ns = 0;
	if (table && table->usual) {
		set_latest_ends(table);
		read_busy(table, process);
	}
	for (size_t i = 0; table && i < table->count; i++)
		if (table->steps[i].step->kind == STEP_USUAL) {
			*busy_ns += table->steps[i].busy_ns;
			*idle_ns += table->steps[i].idle_ns;
			steps_ns += table->steps[i].step->end_ns - table->steps[i].step->begin_ns;
		}
	free_table(table);
	if (*busy_ns + *idle_ns < steps_ns / 2)
		*busy_ns = *idle_ns = 0;
	return *busy_ns + *idle_ns > 0;
}

void step_table_values(const struct step_table *table, size_t offset, int64_t *values)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct step_stats *figures = &table->steps[i];

		if (figures->step->kind != STEP_USUAL)
			continue;
		if (offset == SIZE_MAX)
			values[count] = (int64_t)(figures->step->end_ns - figures->step->begin_ns);
		else
			memcpy(&values[count], (const char *)figures + offset, sizeof *values);
		count++;
	}
}

int64_t step_median(int64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_i64);
	return count ? values[(count - 1) / 2] : 0;
}

int64_t step_spread(const int64_t *values, size_t count)
{
	int64_t *off = xcalloc((count + 1) * sizeof *off), median;

	memcpy(off, values, count * sizeof *off);
	median = step_median(off, count);
	for (size_t i = 0; i < count; i++)
		off[i] = off[i] < median ? saturating_subtract(median, off[i])
					 : saturating_subtract(off[i], median);
	median = step_median(off, count);
	free(off);
	return median;
}

double step_trend(const int64_t *values, size_t count)
{
	const size_t stride = (count + TREND_MAX - 1) / TREND_MAX,
		     taken = (count + stride - 1) / stride;
	double *slopes = xcalloc((taken * taken / 2 + 1) * sizeof *slopes), middle;
	size_t pairs = 0;

	for (size_t i = 0; i < taken; i++)
		for (size_t later = i + 1; later < taken; later++)
			slopes[pairs++] = (double)saturating_subtract(
						  values[later * stride], values[i * stride]) /
					  (double)((later - i) * stride);
	middle = median_unsorted(slopes, pairs);
	free(slopes);
	return middle;
}
