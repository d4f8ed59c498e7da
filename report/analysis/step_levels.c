/* SPDX-License-Identifier: MIT */
#include "report/analysis/step_levels.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOPE_MAX 1024u /* steps that a slope is computed from */

/* The position of the pass among the steps, which are ordered by their begins. */
struct level_reading {
	const struct step_table *table;
	struct step_level *levels;
	/* Indexes of the steps that have begun and not ended at the time that was reached. */
	size_t *open;
	size_t open_count, open_room, next; /* next: the first step that has not begun */
	double value;
	bool known;
};

static void end_steps(struct level_reading *reading, uint64_t at_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < reading->open_count; i++) {
		const size_t step = reading->open[i];

		if (reading->table->steps[step].step->end_ns > at_ns) {
			reading->open[kept++] = step;
			continue;
		}
		reading->levels[step].end = reading->value;
		reading->levels[step].known = reading->known;
	}
	reading->open_count = kept;
}

static void advance(struct level_reading *reading, uint64_t at_ns)
{
	end_steps(reading, at_ns);
	for (; reading->next < reading->table->count &&
		reading->table->steps[reading->next].step->begin_ns <= at_ns;
		reading->next++) {
		reading->levels[reading->next] = (struct step_level){
			.end = reading->value, .peak = reading->value, .known = reading->known
		};
		*ARRAY_ADD(reading->open, reading->open_room, reading->open_count) = reading->next;
		end_steps(reading, at_ns);
	}
}

/* Sets the level. The first one of the run is the level of open steps from their begin on. */
static void set_value(struct level_reading *reading, uint64_t at_ns, double value)
{
	advance(reading, at_ns);
	for (size_t i = 0; i < reading->open_count; i++) {
		struct step_level *level = &reading->levels[reading->open[i]];

		level->peak = reading->known ? fmax(level->peak, value) : value;
	}
	reading->value = value;
	reading->known = true;
}

/* Returns false if the record has no value, or is of another counter. */
static bool counter_value(
	const struct process *process, const struct trace_metric *record, double *value)
{
	const struct trace_counter *counter = reader_counter(process->reader, record->counter);
	const char *wanted = process->profile->options.counter;
	const struct trace_text name = reader_name(process->reader, counter ? counter->name : 0);
	int64_t whole;

	if (!counter || name.length != strlen(wanted) || memcmp(name.bytes, wanted, name.length))
		return false;
	memcpy(&whole, &record->value, sizeof whole);
	memcpy(value, &record->value, sizeof *value);
	if (record->type == TRACE_METRIC_I64)
		*value = (double)whole;
	else if (record->type != TRACE_METRIC_F64)
		return false;
	return isfinite(*value);
}

struct step_level *step_levels_read(const struct process *process, const struct step_table *table)
{
	struct level_reading reading = { .table = table };
	struct trace_event event;
	double value;
	int status;

	if (process->metric != METRIC_USER || !process->profile->counter_found)
		return NULL;
	reading.levels = xcalloc((table->count + 1) * sizeof *reading.levels);
	reader_rewind(process->reader);
	while ((status = reader_next(process->reader, &event)) > 0)
		if (event.kind == TRACE_METRIC && counter_value(process, event.record, &value))
			set_value(&reading, event.time_ns, value);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(process->reader));
	advance(&reading, UINT64_MAX);
	free(reading.open);
	return reading.levels;
}

/* ---- statistics ---- */

static double median_sorting(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_double);
	return values[(count - 1) / 2];
}

static double spread_around(const double *values, size_t count, double median)
{
	double *off = xcalloc(count * sizeof *off), spread;

	for (size_t i = 0; i < count; i++)
		off[i] = fabs(values[i] - median);
	spread = median_sorting(off, count);
	free(off);
	return spread;
}

/* The median slope of all pairs (Theil and Sen). */
static double slope_per_step(const double *values, size_t count)
{
	const size_t stride = (count + SLOPE_MAX - 1) / SLOPE_MAX,
		     used = (count + stride - 1) / stride;
	double *slopes = xcalloc((used * used / 2 + 1) * sizeof *slopes), slope;
	size_t pairs = 0;

	for (size_t i = 0; i < used; i++)
		for (size_t later = i + 1; later < used; later++)
			slopes[pairs++] = (values[later * stride] - values[i * stride]) /
					  (double)((later - i) * stride);
	slope = pairs ? median_sorting(slopes, pairs) : 0;
	free(slopes);
	return slope;
}

struct step_level_summary step_levels_summary(
	const struct step_table *table, const struct step_level *levels)
{
	double *ends = xcalloc((table->count + 1) * sizeof *ends),
	       *peaks = xcalloc((table->count + 1) * sizeof *peaks);
	struct step_level_summary summary = { .median = { .known = false } };
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		if (levels[i].known && table->steps[i].step->kind == STEP_USUAL) {
			ends[count] = levels[i].end;
			peaks[count++] = levels[i].peak;
		}
	if (count >= 2) {
		summary.slope.end = slope_per_step(ends, count);
		summary.slope.peak = slope_per_step(peaks, count);
		summary.median.end = median_sorting(ends, count);
		summary.median.peak = median_sorting(peaks, count);
		summary.spread.end = spread_around(ends, count, summary.median.end);
		summary.spread.peak = spread_around(peaks, count, summary.median.peak);
		summary.median.known = summary.spread.known = summary.slope.known = true;
	}
	free(ends);
	free(peaks);
	return summary;
}
