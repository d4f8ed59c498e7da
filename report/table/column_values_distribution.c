/* SPDX-License-Identifier: MIT
 * figures_spread.c: how durations are spread, and single instances: percentiles, distributions, members, the worst.
 */
#include "report/table/column_values_macros.h"

static const struct distribution *whole_of(const struct row *row)
{
	return part_of(row) && part_of(row)->kind == DISTRIBUTION_WHOLE ? part_of(row)->of : NULL;
}

static bool is_part(const struct row *row, enum distribution_kind kind)
{
	return part_of(row) && part_of(row)->kind == kind;
}

static struct text metric_key(const struct row *row)
{
	const char *key = row->process->metric == METRIC_USER ? row->process->fold->options.counter
							      : metrics[row->process->metric].key;

	return (struct text){ .bytes = key, .length = (uint32_t)strlen(key) };
}

#define OF_WORST(name, has, value)                           \
	FIGURE(name, const struct node *node = node_of(row); \
		const struct node_worst *worst = node ? node->worst : NULL, worst && worst->found && (has), value)
#define OF_INSTANCE(name, has, value)                                                                       \
	FIGURE(name, const struct instance *instance = row->kind == ROW_INSTANCE ? row->of.instance : NULL, \
		instance && (has), value)

#define OF_WHOLE(name, value) FIGURE(name, const struct distribution *whole = whole_of(row), whole, value)
FIGURE(measure, const struct distribution_part *part = part_of(row), part, words(part->of->of_gpu ? "gpu" : "cpu"))
FIGURE(part_from, const struct distribution_part *part = part_of(row),
	is_part(row, DISTRIBUTION_BIN) || is_part(row, DISTRIBUTION_MODE), count(part->from))
FIGURE(part_to, const struct distribution_part *part = part_of(row),
	is_part(row, DISTRIBUTION_BIN) || is_part(row, DISTRIBUTION_MODE), count(part->to))
OF_WHOLE(mean, count((whole->total_ns + whole->count / 2) / whole->count))
OF_WHOLE(p25, count(whole->p25))
OF_WHOLE(p75, count(whole->p75))
OF_WHOLE(outliers, count(whole->outliers))

/* Which of its place's instances it is; 0: it is none, or nobody has counted. at_ns: when it began. */
static uint64_t number_of(const struct row *row, uint64_t *at_ns)
{
	const struct distribution_part *part = part_of(row);

	*at_ns = part ? part->at_ns : row->kind == ROW_INSTANCE ? row->of.instance->begin_ns : 0;
	return part ? part->number : row->kind == ROW_INSTANCE ? row->of.instance->number : 0;
}

FIGURE(number, uint64_t at; const uint64_t number = number_of(row, &at), number, count(number))
FIGURE(step, uint64_t at; uint64_t step = 0, number_of(row, &at) && distribution_step(row->process, at, &step), count(step))

static bool has_times(const struct node *node)
{
	return node->min_ns != UINT64_MAX;
}

/* Instances that were only counted: of one alone nothing is known but how long the longest was. */
FIGURE(shortest, const struct node *node = node_of(row); const struct kernel *kernel = kernel_of(row),
	(node && (has_times(node) || node->is_counted)) || (kernel && kernel->min_ns != UINT64_MAX) || whole_of(row),
	whole_of(row) ? count(whole_of(row)->min_ns) : node && node->is_counted ? unknown : count(node ? node->min_ns : kernel->min_ns))
FIGURE(longest, const struct node *node = node_of(row); const struct kernel *kernel = kernel_of(row),
	(node && (has_times(node) || node->is_counted)) || (kernel && kernel->min_ns != UINT64_MAX) || whole_of(row),
	count(whole_of(row) ? whole_of(row)->max_ns : node ? node->max_ns : kernel->max_ns))

/* Within what was seen: the middle of a histogram's step may lie outside. */
static struct cell percentile(const struct row *row, unsigned per_mille)
{
	const struct distribution *whole = whole_of(row);
	const struct node *node = node_of(row);
	const struct kernel *kernel = kernel_of(row);
	const uint64_t least = node     ? node->min_ns
			       : kernel ? kernel->min_ns
					: UINT64_MAX,
		       most = node     ? node->max_ns
			      : kernel ? kernel->max_ns
				       : 0;
	struct samples *samples = (struct samples *)(uintptr_t)(node     ? &node->samples
								: kernel ? &kernel->samples
									 : NULL);
	uint64_t value;

	if (whole)
		return count(per_mille == 500 ? whole->p50 : per_mille == 950 ? whole->p95 : whole->p99);
	if (node && node->is_counted)
		return unknown;
	if (!samples || least == UINT64_MAX)
		return none;
	value = samples_percentile(samples, per_mille);
	return count(value < least ? least : value > most ? most : value);
}

VALUE(p50)
{
	(void)rows;
	return percentile(row, 500);
}

VALUE(p95)
{
	(void)rows;
	return percentile(row, 950);
}

VALUE(p99)
{
	(void)rows;
	return percentile(row, 990);
}

#define OF_MEMBERS(name, has, value) FIGURE(name, struct spread spread, row_spread(row, &spread) && (has), value)
OF_MEMBERS(members_count, true, count(spread.count))
OF_MEMBERS(members_metric, true, words(row->process->gpu_ns ? "gpu" : "cpu"))
OF_MEMBERS(members_least, true, count(spread.least))
OF_MEMBERS(members_median, true, count(spread.median))
OF_MEMBERS(members_most, true, count(spread.most))
OF_MEMBERS(odd_label, spread.odd, text(text_of(row->process->texts, spread.odd->label)))
OF_MEMBERS(odd_time, spread.odd, count(spread.odd_ns))
OF_MEMBERS(odd_calls, spread.odd, count(spread.odd->calls))

OF_MEMBERS(spread, true, ((struct cell){ .kind = CELL_SPAN, .number = spread.least, .most = spread.most }))

OF_WORST(worst_metric, true, text(metric_key(row)))
OF_WORST(worst_label, true, text(text_of(row->process->texts, worst->label)))
OF_WORST(worst_start, true, count(worst->begin_ns))
OF_WORST(worst_value, !has_levels(row), level(worst->value))
OF_WORST(worst_before, has_levels(row), level(worst->before))
OF_WORST(worst_after, has_levels(row), level(worst->after))
OF_WORST(worst_delta, has_levels(row), level(worst->after - worst->before))

FIGURE(start, const struct distribution_part *part = part_of(row),
	row->kind == ROW_INSTANCE || is_part(row, DISTRIBUTION_OUTLIER),
	count(part ? part->at_ns : row->of.instance->begin_ns))
FIGURE(duration, const struct distribution_part *part = part_of(row),
	row->kind == ROW_INSTANCE || is_part(row, DISTRIBUTION_OUTLIER) || is_part(row, DISTRIBUTION_MODE),
	count(part ? part->value : row->of.instance->total_ns))
OF_INSTANCE(value, !has_levels(row), level(instance->value))
OF_INSTANCE(before, has_levels(row), level(instance->before))
OF_INSTANCE(after, has_levels(row), level(instance->after))
OF_INSTANCE(delta, has_levels(row), level(instance->change))

VALUE(unit)
{
	static const char *const names[] = { [UNIT_COUNT] = "", [UNIT_TIME] = "ns", [UNIT_BYTES] = "bytes" };

	(void)rows;
	if (row->kind != ROW_INSTANCE)
		return none;
	return row->process->metric == METRIC_USER
		       ? text(text_of(row->process->texts, row->process->fold->counter_unit))
		       : words(names[metrics[row->process->metric].unit]);
}
