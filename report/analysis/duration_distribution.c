/* SPDX-License-Identifier: MIT */
#include "report/analysis/duration_distribution.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdlib.h>

enum pass { PASS_SPREAD, PASS_SORT, PASS_NUMBER, PASSES };

/* What is gathered of one distribution on the way. */
struct gathering {
	struct distribution *into;
	struct samples samples;
	uint64_t granularity;
	struct modes *modes;
	uint64_t earlier[DISTRIBUTION_OUTLIERS + 1]; /* instances that began behind so many of the outliers, and before the next */
	uint64_t begins[DISTRIBUTION_OUTLIERS];      /* of the outliers, rising */
};

/* One duration, as the trace has told it. */
struct told {
	uint64_t at_ns, value;
	uint32_t node;
	bool of_gpu;
};

struct reading {
	uint8_t *wanted; /* by node */
	uint32_t wanted_count;
	struct samples_budget budget;
	struct gathering cpu, gpu;
	enum pass pass;
	struct told *told; /* all of them, in their order, unless there are more than DISTRIBUTION_HELD: `too_many` */
	size_t told_count, told_room;
	bool too_many;
};

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void spread(struct reading *reading, struct gathering *gathering, uint64_t value)
{
	struct distribution *into = gathering->into;

	if (!into->count++ || value < into->min_ns)
		into->min_ns = value;
	if (value > into->max_ns)
		into->max_ns = value;
	into->total_ns += value;
	gathering->granularity = common(gathering->granularity, value);
	samples_add(&gathering->samples, value, &reading->budget);
}

static uint64_t distance(const struct distribution *into, uint64_t value)
{
	return value > into->high ? value - into->high : into->low > value ? into->low - value : 0;
}

/* `a` is shown before `b`. */
static bool is_further(const struct distribution_part *a, const struct distribution_part *b)
{
	const uint64_t left = distance(a->of, a->value), right = distance(b->of, b->value);

	return left != right ? left > right : a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->node < b->node;
}

static void add_outlier(struct distribution *into, uint32_t node, uint64_t at_ns, uint64_t value)
{
	const struct distribution_part far = { .kind = DISTRIBUTION_OUTLIER,
		.of = into,
		.count = 1,
		.value = value,
		.at_ns = at_ns,
		.node = node };
	uint32_t i = into->far_count;

	into->outliers++;
	if (i == DISTRIBUTION_OUTLIERS) {
		if (!is_further(&far, &into->far[i - 1]))
			return;
		i--;
	}
	for (; i > 0 && is_further(&far, &into->far[i - 1]); i--)
		into->far[i] = into->far[i - 1];
	into->far[i] = far;
	if (into->far_count < DISTRIBUTION_OUTLIERS)
		into->far_count++;
}

static void sort(struct gathering *gathering, uint32_t node, uint64_t at_ns, uint64_t value)
{
	struct distribution *into = gathering->into;
	uint32_t low = 0, high = into->bin_count;

	while (low + 1 < high) {
		const uint32_t middle = (low + high) / 2;

		*(into->bins[middle].from <= value ? &low : &high) = middle;
	}
	if (into->bin_count)
		into->bins[low].count++;
	modes_add(gathering->modes, value);
	if (distance(into, value))
		add_outlier(into, node, at_ns, value);
}

static void number(struct gathering *gathering, uint64_t at_ns)
{
	uint32_t low = 0, high = gathering->into->far_count;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (gathering->begins[middle] <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	gathering->earlier[low]++;
}

/* For the passes to come. */
static void hold(struct reading *reading, const struct gathering *gathering, uint32_t node, uint64_t at_ns, uint64_t value)
{
	reading->too_many |= reading->told_count == DISTRIBUTION_HELD;
	if (reading->too_many)
		return;
	grow(&reading->told, &reading->told_room, reading->told_count + 1, sizeof *reading->told);
	reading->told[reading->told_count++] = (struct told){ at_ns, value, node, gathering->into->of_gpu };
}

static void add(struct reading *reading, struct gathering *gathering, uint32_t node, uint64_t at_ns, uint64_t value)
{
	if (node >= reading->wanted_count || !reading->wanted[node])
		return;
	if (reading->pass == PASS_SPREAD) {
		hold(reading, gathering, node, at_ns, value);
		spread(reading, gathering, value);
	} else if (reading->pass == PASS_SORT) {
		sort(gathering, node, at_ns, value);
	} else {
		number(gathering, at_ns);
	}
}

static void leaf(void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct reading *reading = context;

	add(reading, is_work ? &reading->gpu : &reading->cpu, node, at_ns, duration_ns);
}

static void instance(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	struct reading *reading = context;

	if (value > 0)
		add(reading, &reading->gpu, node, at_ns, number_whole(value));
}

static void closed(void *context, const struct fold_seen_instance *seen)
{
	struct reading *reading = context;

	add(reading, &reading->cpu, seen->node, seen->begin_ns, seen->end_ns - seen->begin_ns);
}

static void forget(struct gathering *gathering)
{
	const bool of_gpu = gathering->into->of_gpu;

	samples_free(&gathering->samples);
	gathering->granularity = 0;
	*gathering->into = (struct distribution){ .of_gpu = of_gpu };
}

static void begins(void *context)
{
	struct reading *reading = context;

	if (reading->pass != PASS_SPREAD)
		return; /* only the first pass can be made anew */
	forget(&reading->cpu);
	forget(&reading->gpu);
	reading->told_count = 0;
	reading->too_many = false;
}

static uint64_t percentile(struct gathering *gathering, unsigned per_mille)
{
	const uint64_t value = samples_percentile(&gathering->samples, per_mille);
	const struct distribution *into = gathering->into;

	return value < into->min_ns ? into->min_ns : value > into->max_ns ? into->max_ns : value;
}

static uint64_t edge(const struct distribution *into, uint32_t bin)
{
	const double part = (double)bin / (double)into->bin_count;
	const double least = into->min_ns ? (double)into->min_ns : 1;

	if (bin == 0)
		return into->min_ns;
	if (into->by_ratio)
		return number_whole(least * pow((double)into->max_ns / least, part) + 0.5);
	return into->min_ns + number_whole((double)(into->max_ns - into->min_ns) * part + 0.5);
}

static void set_bins(struct distribution *into)
{
	const uint64_t span = into->max_ns - into->min_ns;

	into->by_ratio = into->max_ns / 10 > (into->min_ns ? into->min_ns : 1);
	into->bin_count = span < DISTRIBUTION_BINS ? (uint32_t)span + 1 : DISTRIBUTION_BINS;
	if (span && span < DISTRIBUTION_BINS)
		into->by_ratio = false;
	for (uint32_t i = 0; i < into->bin_count; i++)
		into->bins[i] = (struct distribution_part){ .kind = DISTRIBUTION_BIN,
			.of = into,
			.from = edge(into, i),
			.to = i + 1 < into->bin_count ? edge(into, i + 1) : into->max_ns,
			.node = into->whole.node };
}

/* All that the first pass tells. */
static void spread_end(struct gathering *gathering, uint32_t node)
{
	struct distribution *into = gathering->into;
	uint64_t range;

	if (!into->count)
		return;
	into->p25 = percentile(gathering, 250);
	into->p50 = percentile(gathering, 500);
	into->p75 = percentile(gathering, 750);
	into->p95 = percentile(gathering, 950);
	into->p99 = percentile(gathering, 990);
	range = into->p75 - into->p25 > into->p50 / 100 ? into->p75 - into->p25 : into->p50 / 100;
	into->high = into->count < DISTRIBUTION_JUDGED || range > (UINT64_MAX - into->p75) / 3 ? UINT64_MAX
											      : into->p75 + 3 * range;
	into->low = into->count >= DISTRIBUTION_JUDGED && into->p25 / 3 > range ? into->p25 - 3 * range : 0;
	into->whole = (struct distribution_part){
		.kind = DISTRIBUTION_WHOLE, .of = into, .count = into->count, .node = node
	};
	set_bins(into);
	gathering->modes = modes_new(into, gathering->granularity);
}

static int by_begin(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void sort_end(struct gathering *gathering)
{
	struct distribution *into = gathering->into;

	if (!into->count)
		return;
	modes_find(gathering->modes, into);
	for (uint32_t i = 0; i < into->far_count; i++)
		gathering->begins[i] = into->far[i].at_ns;
	qsort(gathering->begins, into->far_count, sizeof *gathering->begins, by_begin);
}

/* One more than began before it. */
static void number_end(struct gathering *gathering)
{
	struct distribution *into = gathering->into;

	for (uint32_t i = 0; i < into->far_count; i++) {
		into->far[i].number = 1;
		for (uint32_t at = 0; at <= into->far_count; at++)
			if (at == 0 || gathering->begins[at - 1] < into->far[i].at_ns)
				into->far[i].number += gathering->earlier[at];
	}
}

static void run_held(struct reading *reading)
{
	for (size_t i = 0; i < reading->told_count; i++) {
		const struct told *told = &reading->told[i];

		add(reading, told->of_gpu ? &reading->gpu : &reading->cpu, told->node, told->at_ns, told->value);
	}
}

static void run(struct process *process, struct reading *reading, enum pass pass)
{
	const struct fold_observer observer = { .context = reading,
		.begins = begins,
		.leaf = leaf,
		.instance = instance,
		.closed = closed,
		.closed_of = reading->wanted,
		.closed_count = reading->wanted_count };
	struct fold_options options = fold_options_telling(process->fold, &observer);

	reading->pass = pass;
	if (pass != PASS_SPREAD && !reading->too_many) {
		run_held(reading);
		return;
	}
	options.metric = METRIC_GPU;
	fold_free(fold_run(process->reader, process->texts, &options));
}

struct distributions *distributions_read(struct process *process, struct places places)
{
	struct distributions *made = need(sizeof *made);
	struct reading reading = { .wanted_count = process->fold->tree->count };

	made->places = places;
	made->gpu.of_gpu = true;
	reading.cpu.into = &made->cpu;
	reading.gpu.into = &made->gpu;
	reading.wanted = need(reading.wanted_count);
	for (size_t i = 0; i < places.count; i++)
		reading.wanted[places.nodes[i]] = 1;
	run(process, &reading, PASS_SPREAD);
	spread_end(&reading.cpu, places.nodes[0]);
	spread_end(&reading.gpu, places.nodes[0]);
	if (made->cpu.count || made->gpu.count)
		run(process, &reading, PASS_SORT);
	sort_end(&reading.cpu);
	sort_end(&reading.gpu);
	if (made->cpu.far_count || made->gpu.far_count)
		run(process, &reading, PASS_NUMBER);
	number_end(&reading.cpu);
	number_end(&reading.gpu);
	samples_free(&reading.cpu.samples);
	samples_free(&reading.gpu.samples);
	free(reading.wanted);
	free(reading.told);
	return made;
}

void distributions_free(struct distributions *distributions)
{
	if (!distributions)
		return;
	free(distributions->places.nodes);
	free(distributions);
}

bool distribution_step(const struct process *process, uint64_t at_ns, uint64_t *number)
{
	const struct steps *found = process->steps;
	size_t low = 0, high = found ? found->count : 0;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (found->steps[middle].begin_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at_ns >= found->steps[low - 1].end_ns)
		return false;
	*number = found->steps[low - 1].number;
	return true;
}

const char *distribution_kind_name(enum distribution_kind kind)
{
	static const char *const names[] = { [DISTRIBUTION_WHOLE] = "distribution",
		[DISTRIBUTION_BIN] = "bin",
		[DISTRIBUTION_MODE] = "mode",
		[DISTRIBUTION_OUTLIER] = "outlier" };

	return names[kind];
}
