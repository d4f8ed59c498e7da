/* SPDX-License-Identifier: MIT */
#include "report/analysis/duration_distribution.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/search.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdlib.h>

enum distribution_pass { PASS_QUARTILES, PASS_BINS, PASS_OUTLIER_NUMBERS, PASSES };

/* Data collected for one distribution during the passes. */
struct distribution_builder {
	struct distribution *result;
	struct percentiles samples;
	uint64_t granularity;
	struct mode_histogram *modes;
	/* earlier[i]: instances that began at or after outlier i - 1 and before outlier i, by
	 * begin. */
	uint64_t earlier[DISTRIBUTION_OUTLIERS_MAX + 1];
	uint64_t begins[DISTRIBUTION_OUTLIERS_MAX]; /* of the outliers, ascending */
};

/* One duration of the trace, kept for later passes. */
struct held_duration {
	uint64_t at_ns, value;
	uint32_t node;
	bool of_gpu;
};

struct distribution_reader {
	uint8_t *wanted; /* by node */
	uint32_t wanted_count;
	struct percentiles_budget budget;
	struct distribution_builder cpu, gpu;
	enum distribution_pass pass;
	/* All durations in the order of the trace, unless `too_many`: more than
	 * DISTRIBUTION_HELD_MAX. */
	struct held_duration *held;
	size_t held_count, held_room;
	bool too_many;
};

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void add_to_quartiles(
	struct distribution_reader *reader, struct distribution_builder *builder, uint64_t value)
{
	struct distribution *result = builder->result;

	if (!result->count++ || value < result->min_ns)
		result->min_ns = value;
	if (value > result->max_ns)
		result->max_ns = value;
	result->total_ns += value;
	builder->granularity = greatest_common_divisor(builder->granularity, value);
	percentiles_add(&builder->samples, value, &reader->budget);
}

static uint64_t outlier_distance(const struct distribution *result, uint64_t value)
{
	return value > result->high  ? value - result->high
	       : result->low > value ? result->low - value
				     : 0;
}

/* Whether `a` is ranked before `b`. */
static bool is_larger_outlier(const struct distribution_row *a, const struct distribution_row *b)
{
	const uint64_t left = outlier_distance(a->of, a->value),
		       right = outlier_distance(b->of, b->value);

	return left != right          ? left > right
	       : a->at_ns != b->at_ns ? a->at_ns < b->at_ns
				      : a->node < b->node;
}

static void add_outlier(struct distribution *result, uint32_t node, uint64_t at_ns, uint64_t value)
{
	const struct distribution_row outlier = { .kind = DISTRIBUTION_OUTLIER,
		.of = result,
		.count = 1,
		.value = value,
		.at_ns = at_ns,
		.node = node };
	uint32_t i = result->worst_outlier_count;

	result->outliers++;
	if (i == DISTRIBUTION_OUTLIERS_MAX) {
		if (!is_larger_outlier(&outlier, &result->worst_outliers[i - 1]))
			return;
		i--;
	}
	for (; i > 0 && is_larger_outlier(&outlier, &result->worst_outliers[i - 1]); i--)
		result->worst_outliers[i] = result->worst_outliers[i - 1];
	result->worst_outliers[i] = outlier;
	if (result->worst_outlier_count < DISTRIBUTION_OUTLIERS_MAX)
		result->worst_outlier_count++;
}

static void count_in_bin(
	struct distribution_builder *builder, uint32_t node, uint64_t at_ns, uint64_t value)
{
	struct distribution *result = builder->result;
	uint32_t low = 0, high = result->bin_count;

	while (low + 1 < high) {
		const uint32_t middle = (low + high) / 2;

		*(result->bins[middle].from <= value ? &low : &high) = middle;
	}
	if (result->bin_count)
		result->bins[low].count++;
	mode_histogram_add(builder->modes, value);
	if (outlier_distance(result, value))
		add_outlier(result, node, at_ns, value);
}

DEFINE_COUNT_WHILE(outliers_begun, uint64_t, *item <= limit)

/* Keeps a duration for the later passes. */
static void hold_duration(struct distribution_reader *reader,
	const struct distribution_builder *builder, uint32_t node, uint64_t at_ns, uint64_t value)
{
	reader->too_many |= reader->held_count == DISTRIBUTION_HELD_MAX;
	if (reader->too_many)
		return;
	*ARRAY_ADD(reader->held, reader->held_room, reader->held_count) = (struct held_duration){
		at_ns, value, node, builder->result->of_gpu
	};
}

static void add_duration(struct distribution_reader *reader, struct distribution_builder *builder,
	uint32_t node, uint64_t at_ns, uint64_t value)
{
	if (node >= reader->wanted_count || !reader->wanted[node])
		return;
	if (reader->pass == PASS_QUARTILES) {
		hold_duration(reader, builder, node, at_ns, value);
		add_to_quartiles(reader, builder, value);
	} else if (reader->pass == PASS_BINS) {
		count_in_bin(builder, node, at_ns, value);
	} else {
		builder->earlier[outliers_begun(
			builder->begins, builder->result->worst_outlier_count, at_ns)]++;
	}
}

static void add_leaf_duration(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct distribution_reader *reader = context;

	add_duration(reader, is_work ? &reader->gpu : &reader->cpu, node, at_ns, duration_ns);
}

static void add_instance_gpu_time(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	struct distribution_reader *reader = context;

	if (value > 0)
		add_duration(reader, &reader->gpu, node, at_ns, clamp_to_u64(value));
}

static void add_range_duration(void *context, const struct observed_instance *seen)
{
	struct distribution_reader *reader = context;

	add_duration(
		reader, &reader->cpu, seen->node, seen->begin_ns, seen->end_ns - seen->begin_ns);
}

static void reset_builder(struct distribution_builder *builder)
{
	const bool of_gpu = builder->result->of_gpu;

	percentiles_free(&builder->samples);
	builder->granularity = 0;
	*builder->result = (struct distribution){ .of_gpu = of_gpu };
}

static void restart_distribution(void *context)
{
	struct distribution_reader *reader = context;

	if (reader->pass != PASS_QUARTILES)
		/* The later passes add to the results of the first one, which must not be
		 * cleared. */
		return;
	reset_builder(&reader->cpu);
	reset_builder(&reader->gpu);
	reader->held_count = 0;
	reader->too_many = false;
}

static uint64_t builder_percentile(struct distribution_builder *builder, unsigned per_mille)
{
	const uint64_t value = percentiles_get(&builder->samples, per_mille);
	const struct distribution *result = builder->result;

	return value < result->min_ns   ? result->min_ns
	       : value > result->max_ns ? result->max_ns
					: value;
}

static uint64_t bin_edge(const struct distribution *result, uint32_t bin)
{
	const double part = (double)bin / (double)result->bin_count;
	const double least = result->min_ns ? (double)result->min_ns : 1;

	if (bin == 0)
		return result->min_ns;
	if (result->by_ratio)
		return clamp_to_u64(least * pow((double)result->max_ns / least, part) + 0.5);
	return result->min_ns +
	       clamp_to_u64((double)(result->max_ns - result->min_ns) * part + 0.5);
}

static void set_bins(struct distribution *result)
{
	const uint64_t span = result->max_ns - result->min_ns;

	result->by_ratio = result->max_ns / 10 > (result->min_ns ? result->min_ns : 1);
	result->bin_count = span < DISTRIBUTION_BINS ? (uint32_t)span + 1 : DISTRIBUTION_BINS;
	if (span && span < DISTRIBUTION_BINS)
		result->by_ratio = false;
	for (uint32_t i = 0; i < result->bin_count; i++)
		result->bins[i] = (struct distribution_row){ .kind = DISTRIBUTION_BIN,
			.of = result,
			.from = bin_edge(result, i),
			.to = i + 1 < result->bin_count ? bin_edge(result, i + 1) : result->max_ns,
			.node = result->whole.node };
}

/* Durations further than 3 interquartile ranges from the quartiles are outliers. The range counts
 * as at least 1 % of the median. */
static void set_outlier_limits(struct distribution *result)
{
	const uint64_t range = max_u64(result->p75 - result->p25, result->p50 / 100);

	result->high = UINT64_MAX;
	if (result->count < DISTRIBUTION_COUNT_MIN)
		return;
	if (range <= (UINT64_MAX - result->p75) / 3)
		result->high = result->p75 + 3 * range;
	if (result->p25 / 3 > range)
		result->low = result->p25 - 3 * range;
}

/* Computes what follows from the first pass: percentiles, outlier limits and bins. */
static void finish_quartiles(struct distribution_builder *builder, uint32_t node)
{
	struct distribution *result = builder->result;

	if (!result->count)
		return;
	result->p25 = builder_percentile(builder, 250);
	result->p50 = builder_percentile(builder, 500);
	result->p75 = builder_percentile(builder, 750);
	result->p95 = builder_percentile(builder, 950);
	result->p99 = builder_percentile(builder, 990);
	set_outlier_limits(result);
	result->whole = (struct distribution_row){
		.kind = DISTRIBUTION_WHOLE, .of = result, .count = result->count, .node = node
	};
	set_bins(result);
	builder->modes = mode_histogram_new(result, builder->granularity);
}

static void finish_bins(struct distribution_builder *builder)
{
	struct distribution *result = builder->result;

	if (!result->count)
		return;
	mode_histogram_find(builder->modes, result);
	for (uint32_t i = 0; i < result->worst_outlier_count; i++)
		builder->begins[i] = result->worst_outliers[i].at_ns;
	qsort(builder->begins, result->worst_outlier_count, sizeof *builder->begins, compare_u64);
}

/* Numbers each outlier: one more than the count of instances that began before it. */
static void number_outliers(struct distribution_builder *builder)
{
	struct distribution *result = builder->result;

	for (uint32_t i = 0; i < result->worst_outlier_count; i++) {
		result->worst_outliers[i].number = 1;
		for (uint32_t at = 0; at <= result->worst_outlier_count; at++)
			if (at == 0 || builder->begins[at - 1] < result->worst_outliers[i].at_ns)
				result->worst_outliers[i].number += builder->earlier[at];
	}
}

static void replay_held(struct distribution_reader *reader)
{
	for (size_t i = 0; i < reader->held_count; i++) {
		const struct held_duration *held = &reader->held[i];

		add_duration(reader, held->of_gpu ? &reader->gpu : &reader->cpu, held->node,
			held->at_ns, held->value);
	}
}

static void run_pass(
	struct process *process, struct distribution_reader *reader, enum distribution_pass pass)
{
	const struct profile_observer observer = { .context = reader,
		.restart = restart_distribution,
		.leaf = add_leaf_duration,
		.instance = add_instance_gpu_time,
		.closed = add_range_duration,
		.closed_nodes = reader->wanted,
		.closed_node_count = reader->wanted_count };
	struct profile_options options = profile_options_for_observer(process->profile, &observer);

	reader->pass = pass;
	if (pass != PASS_QUARTILES && !reader->too_many) {
		replay_held(reader);
		return;
	}
	options.metric = METRIC_GPU;
	profile_free(profile_build(process->reader, process->texts, &options));
}

/* Reads the trace up to three times: for the quartiles, the bins and the outliers' numbers. */
static void run_passes(struct process *process, struct distribution_reader *reader, uint32_t node)
{
	const struct distribution *cpu = reader->cpu.result, *gpu = reader->gpu.result;

	run_pass(process, reader, PASS_QUARTILES);
	finish_quartiles(&reader->cpu, node);
	finish_quartiles(&reader->gpu, node);
	if (cpu->count || gpu->count)
		run_pass(process, reader, PASS_BINS);
	finish_bins(&reader->cpu);
	finish_bins(&reader->gpu);
	if (cpu->worst_outlier_count || gpu->worst_outlier_count)
		run_pass(process, reader, PASS_OUTLIER_NUMBERS);
	number_outliers(&reader->cpu);
	number_outliers(&reader->gpu);
}

struct distributions *distributions_read(struct process *process, struct node_list selected)
{
	struct distributions *made = xcalloc(sizeof *made);
	struct distribution_reader reader = { .wanted_count = process->profile->tree->count };

	made->selected = selected;
	made->gpu.of_gpu = true;
	reader.cpu.result = &made->cpu;
	reader.gpu.result = &made->gpu;
	reader.wanted = xcalloc(reader.wanted_count);
	for (size_t i = 0; i < selected.count; i++)
		reader.wanted[selected.nodes[i]] = 1;
	run_passes(process, &reader, selected.nodes[0]);
	percentiles_free(&reader.cpu.samples);
	percentiles_free(&reader.gpu.samples);
	free(reader.wanted);
	free(reader.held);
	return made;
}

void distributions_free(struct distributions *distributions)
{
	if (!distributions)
		return;
	free(distributions->selected.nodes);
	free(distributions);
}

bool distribution_step(const struct process *process, uint64_t at_ns, uint64_t *number)
{
	const struct step *step = steps_step_at(process->steps, at_ns);

	if (step)
		*number = step->number;
	return step;
}

const char *distribution_kind_name(enum distribution_kind kind)
{
	static const char *const names[] = { [DISTRIBUTION_WHOLE] = "distribution",
		[DISTRIBUTION_BIN] = "bin",
		[DISTRIBUTION_MODE] = "mode",
		[DISTRIBUTION_OUTLIER] = "outlier" };

	return names[kind];
}
