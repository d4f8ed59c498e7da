/* SPDX-License-Identifier: MIT
 *
 * Values of columns for distributions and instances: percentiles, bins, modules, the worst
 * instance.
 */
#include "report/base/compare.h"
#include "report/table/column_values_macros.h"

static const struct distribution *row_distribution(const struct row *row)
{
	return row_part(row) && row_part(row)->kind == DISTRIBUTION_WHOLE ? row_part(row)->of
									  : NULL;
}

static bool is_part_kind(const struct row *row, enum distribution_kind kind)
{
	return row_part(row) && row_part(row)->kind == kind;
}

static struct string_view metric_key(const struct row *row)
{
	const char *key = row->process->metric == METRIC_USER
				  ? row->process->profile->options.counter
				  : metrics[row->process->metric].key;

	return (struct string_view){ .bytes = key, .length = (uint32_t)strlen(key) };
}

#define WORST_VALUE(name, has, value)                                               \
	COLUMN_VALUE_IF(name, const struct node *node = row_node(row);              \
			const struct node_worst *worst = node ? node->worst : NULL, \
			worst && worst->found && (has), value)
#define INSTANCE_VALUE(name, has, value)                                                       \
	COLUMN_VALUE_IF(name,                                                                  \
		const struct instance *instance = row->kind == ROW_INSTANCE ? row->of.instance \
									    : NULL,            \
		instance && (has), value)

#define DISTRIBUTION_VALUE(name, value) \
	COLUMN_VALUE_IF(                \
		name, const struct distribution *whole = row_distribution(row), whole, value)
COLUMN_VALUE_IF(measure, const struct distribution_row *part = row_part(row), part,
	string_cell(part->of->of_gpu ? "gpu" : "cpu"))
COLUMN_VALUE_IF(bin_from, const struct distribution_row *part = row_part(row),
	is_part_kind(row, DISTRIBUTION_BIN) || is_part_kind(row, DISTRIBUTION_MODE),
	unsigned_cell(part->from))
COLUMN_VALUE_IF(bin_to, const struct distribution_row *part = row_part(row),
	is_part_kind(row, DISTRIBUTION_BIN) || is_part_kind(row, DISTRIBUTION_MODE),
	unsigned_cell(part->to))
DISTRIBUTION_VALUE(mean, unsigned_cell((whole->total_ns + whole->count / 2) / whole->count))
DISTRIBUTION_VALUE(p25, unsigned_cell(whole->p25))
DISTRIBUTION_VALUE(p75, unsigned_cell(whole->p75))
DISTRIBUTION_VALUE(outliers, unsigned_cell(whole->outliers))

/* Returns which instance of its node the row is, from 1. 0: the row is not an instance, or was not
 * numbered. Stores its begin in `*at_ns`. */
static uint64_t instance_number(const struct row *row, uint64_t *at_ns)
{
	const struct distribution_row *part = row_part(row);

	*at_ns = part ? part->at_ns : row->kind == ROW_INSTANCE ? row->of.instance->begin_ns : 0;
	return part ? part->number : row->kind == ROW_INSTANCE ? row->of.instance->number : 0;
}

COLUMN_VALUE_IF(number, uint64_t at;
		const uint64_t number = instance_number(row, &at), number, unsigned_cell(number))
COLUMN_VALUE_IF(step, uint64_t at; uint64_t step = 0,
		instance_number(row, &at) && distribution_step(row->process, at, &step),
		unsigned_cell(step))

static bool has_times(const struct node *node)
{
	return node->min_ns != UINT64_MAX;
}

/* The times of counted instances are null: only the longest is known. */
COLUMN_VALUE_IF(shortest, const struct node *node = row_node(row);
		const struct launch_config *kernel = row_kernel(row),
		(node && (has_times(node) || node->is_counted)) ||
			(kernel && kernel->min_ns != UINT64_MAX) || row_distribution(row),
		row_distribution(row)      ? unsigned_cell(row_distribution(row)->min_ns)
		: node && node->is_counted ? null_cell
					   : unsigned_cell(node ? node->min_ns : kernel->min_ns))
COLUMN_VALUE_IF(longest, const struct node *node = row_node(row);
		const struct launch_config *kernel = row_kernel(row),
		(node && (has_times(node) || node->is_counted)) ||
			(kernel && kernel->min_ns != UINT64_MAX) || row_distribution(row),
		unsigned_cell(row_distribution(row) ? row_distribution(row)->max_ns
			      : node                ? node->max_ns
						    : kernel->max_ns))

static uint64_t percentile_of_distribution(const struct distribution *whole, unsigned per_mille)
{
	return per_mille == 500 ? whole->p50 : per_mille == 950 ? whole->p95 : whole->p99;
}

/* The percentile is limited to the observed range: the middle of a histogram bin may be outside. */
static struct cell percentile_cell(const struct row *row, unsigned per_mille)
{
	const struct distribution *whole = row_distribution(row);
	const struct node *node = row_node(row);
	const struct launch_config *kernel = row_kernel(row);
	const struct percentiles *samples = node     ? &node->samples
					    : kernel ? &kernel->samples
						     : NULL;
	uint64_t least, most, value;

	if (whole)
		return unsigned_cell(percentile_of_distribution(whole, per_mille));
	if (node && node->is_counted)
		return null_cell;
	least = node ? node->min_ns : kernel ? kernel->min_ns : UINT64_MAX;
	if (least == UINT64_MAX)
		return no_cell;
	most = node ? node->max_ns : kernel->max_ns;
	value = percentiles_get((struct percentiles *)(uintptr_t)samples, per_mille);
	return unsigned_cell(max_u64(least, min_u64(value, most)));
}

ROW_VALUE(p50, true, percentile_cell(row, 500))
ROW_VALUE(p95, true, percentile_cell(row, 950))
ROW_VALUE(p99, true, percentile_cell(row, 990))

#define MEMBERS_VALUE(name, has, value) \
	COLUMN_VALUE_IF(name, struct module_spread spread, row_spread(row, &spread) && (has), value)
MEMBERS_VALUE(members_count, true, unsigned_cell(spread.count))
MEMBERS_VALUE(members_metric, true, string_cell(row->process->gpu_ns ? "gpu" : "cpu"))
MEMBERS_VALUE(members_min, true, unsigned_cell(spread.least))
MEMBERS_VALUE(members_median, true, unsigned_cell(spread.median))
MEMBERS_VALUE(members_max, true, unsigned_cell(spread.most))
MEMBERS_VALUE(outlier_label, spread.outlier,
	text_cell(string_table_get(row->process->texts, spread.outlier->label)))
MEMBERS_VALUE(outlier_time, spread.outlier, unsigned_cell(spread.outlier_ns))
MEMBERS_VALUE(outlier_calls, spread.outlier, unsigned_cell(spread.outlier->calls))

MEMBERS_VALUE(spread, true,
	((struct cell){ .kind = CELL_SPAN, .unsigned_value = spread.least, .max = spread.most }))

WORST_VALUE(worst_metric, true, text_cell(metric_key(row)))
WORST_VALUE(worst_label, true, text_cell(string_table_get(row->process->texts, worst->label)))
WORST_VALUE(worst_start, true, unsigned_cell(worst->begin_ns))
WORST_VALUE(worst_value, !metric_is_level(row), number_cell(worst->value))
WORST_VALUE(worst_before, metric_is_level(row), number_cell(worst->before))
WORST_VALUE(worst_after, metric_is_level(row), number_cell(worst->after))
WORST_VALUE(worst_delta, metric_is_level(row), number_cell(worst->after - worst->before))

COLUMN_VALUE_IF(start, const struct distribution_row *part = row_part(row),
	row->kind == ROW_INSTANCE || is_part_kind(row, DISTRIBUTION_OUTLIER),
	unsigned_cell(part ? part->at_ns : row->of.instance->begin_ns))
COLUMN_VALUE_IF(duration, const struct distribution_row *part = row_part(row),
	row->kind == ROW_INSTANCE || is_part_kind(row, DISTRIBUTION_OUTLIER) ||
		is_part_kind(row, DISTRIBUTION_MODE),
	unsigned_cell(part ? part->value : row->of.instance->total_ns))
INSTANCE_VALUE(value, !metric_is_level(row), number_cell(instance->value))
INSTANCE_VALUE(before, metric_is_level(row), number_cell(instance->level_before))
INSTANCE_VALUE(after, metric_is_level(row), number_cell(instance->level_after))
INSTANCE_VALUE(delta, metric_is_level(row), number_cell(instance->change))

COLUMN_VALUE(unit)
{
	static const char *const names[] = {
		[UNIT_COUNT] = "", [UNIT_TIME] = "ns", [UNIT_BYTES] = "bytes"
	};

	if (row->kind != ROW_INSTANCE)
		return no_cell;
	return row->process->metric == METRIC_USER
		       ? text_cell(string_table_get(
				 row->process->texts, row->process->profile->counter_unit))
		       : string_cell(names[metrics[row->process->metric].unit]);
}
