/* SPDX-License-Identifier: MIT */
#include "report/analysis/metric_samples.h"
#include "report/base/alloc.h"
#include "report/base/search.h"
#include "report/stats/mann_whitney.h"
#include <stdlib.h>

static bool is_step_wanted(const struct profile_options *options, const struct step *step)
{
	return step->kind == STEP_USUAL &&
	       (!options->steps ||
		       (step->number >= options->first_step && step->number <= options->last_step));
}

size_t metric_samples_steps(const struct process *process)
{
	size_t count = 0;

	if (!process->steps || steps_overlap(process->steps))
		return 0;
	for (size_t i = 0; i < process->steps->count; i++)
		count += is_step_wanted(&process->profile->options, &process->steps->steps[i]);
	for (uint32_t id = 1; id < process->profile->tree->count; id++)
		if (process->profile->tree->nodes[id].is_counted)
			return 0;
	return count;
}

static void collect_steps(struct metric_samples *all, const struct process *process)
{
	const struct steps *found = process->steps;

	all->steps = xcalloc((found->count + 1) * sizeof *all->steps);
	for (size_t i = 0; i < found->count; i++)
		if (is_step_wanted(&process->profile->options, &found->steps[i]))
			all->steps[all->step_count++] = &found->steps[i];
	all->step_stride = (all->step_count + METRIC_SAMPLES_MAX - 1) / METRIC_SAMPLES_MAX;
	if (all->step_stride)
		all->values = (uint32_t)((all->step_count + all->step_stride - 1) /
					 all->step_stride);
}

DEFINE_COUNT_WHILE(steady_steps_begun, struct step *const, (*item)->begin_ns <= limit)

/* Returns the index of the steady-state step at `at_ns`, or SIZE_MAX. */
static size_t sample_step_at(struct metric_samples *all, uint64_t at_ns)
{
	const struct step *step = all->step_count ? all->steps[all->cursor] : NULL;
	size_t begun;

	if (step && at_ns >= step->begin_ns && at_ns < step->end_ns)
		return all->cursor;
	begun = steady_steps_begun(all->steps, all->step_count, at_ns);
	if (!begun || at_ns >= all->steps[begun - 1]->end_ns)
		return SIZE_MAX;
	return all->cursor = begun - 1;
}

static struct node_samples *node_samples_of(struct metric_samples *all, uint32_t node)
{
	ARRAY_GROW(all->nodes, all->room, (size_t)node + 1);
	return &all->nodes[node];
}

static void add_step_sample(
	struct metric_samples *all, uint32_t node, uint64_t at_ns, long double value)
{
	struct node_samples *samples = node_samples_of(all, node);
	const size_t step = sample_step_at(all, at_ns);

	if (step == SIZE_MAX)
		return;
	samples->total += value;
	samples->calls++;
	if (step % all->step_stride)
		return;
	if (!samples->values) {
		samples->values = xcalloc(all->values * sizeof *samples->values);
		samples->count = all->values;
	}
	samples->values[step / all->step_stride] += (double)value;
}

/* Makes room: keeps every second sample and doubles the stride. */
static void halve_samples(struct node_samples *samples)
{
	for (uint32_t i = 0; i < samples->count / 2; i++)
		samples->values[i] = samples->values[2 * i];
	samples->count /= 2;
	samples->stride *= 2;
}

static void keep_instance_value(struct node_samples *samples, long double value)
{
	size_t room = samples->room;

	if (!samples->stride)
		samples->stride = 1;
	if (samples->passed++ % samples->stride)
		return;
	if (samples->count == METRIC_SAMPLES_MAX) {
		halve_samples(samples);
		if ((samples->passed - 1) % samples->stride)
			return;
	}
	ARRAY_GROW(samples->values, room, (size_t)samples->count + 1);
	samples->room = (uint32_t)room;
	samples->values[samples->count++] = (double)value;
}

static void restart_samples(void *context)
{
	struct metric_samples *all = context;

	for (size_t i = 0; i < all->room; i++) {
		free(all->nodes[i].values);
		all->nodes[i] = (struct node_samples){ .total = 0 };
	}
	all->cursor = 0;
}

static void add_metric_value(
	struct metric_samples *all, uint32_t node, uint64_t at_ns, long double value)
{
	struct node_samples *samples;

	if (all->steps) {
		add_step_sample(all, node, at_ns, value);
		return;
	}
	samples = node_samples_of(all, node);
	samples->total += value;
	samples->calls++;
	keep_instance_value(samples, value);
}

static void add_leaf_sample(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct metric_samples *all = context;

	if (all->metric == METRIC_CALLS)
		add_metric_value(all, node, at_ns, 1);
	else if (is_work ? all->metric == METRIC_GPU
			 : all->metric == METRIC_CPU || all->metric == METRIC_WALL)
		add_metric_value(all, node, at_ns, duration_ns);
}

/* Keeps samples and calls only: the total of the range is added up from its GPU work. */
static void add_gpu_instance(
	struct metric_samples *all, uint32_t node, uint64_t at_ns, long double value)
{
	struct node_samples *samples = node_samples_of(all, node);

	samples->calls += !all->steps || sample_step_at(all, at_ns) != SIZE_MAX;
	if (!all->steps)
		keep_instance_value(samples, value);
}

static void add_instance_sample(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	struct metric_samples *all = context;

	if (all->metric == METRIC_CALLS)
		value = 1;
	if (all->metric != METRIC_GPU)
		add_metric_value(all, node, at_ns, value);
	else
		add_gpu_instance(all, node, at_ns, value);
}

static void add_samples_to_parent(struct metric_samples *all, uint32_t parent, uint32_t id)
{
	struct node_samples *to = node_samples_of(all, parent);
	const struct node_samples *from = node_samples_of(all, id);

	to->total += from->total;
	if (!all->steps || !from->values)
		return;
	if (!to->values) {
		to->values = xcalloc(all->values * sizeof *to->values);
		to->count = all->values;
	}
	for (uint32_t i = 0; i < all->values; i++)
		to->values[i] += from->values[i];
}

/* Adds up values that are known only of parts. GPU work counts in all its ancestors, and a group is
 * the sum of the ranges in it. */
static void sum_samples(struct metric_samples *all)
{
	const struct tree *tree = all->profile->tree;

	node_samples_of(all, tree->count);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];
		const bool is_range = node_kind_class(node->kind) == NODE_RANGES;

		if (node->is_counted && (all->metric == METRIC_CPU || all->metric == METRIC_WALL))
			all->nodes[id].total = node->total_ns;
		if (node->is_counted && all->metric == METRIC_CALLS)
			all->nodes[id].total = node->calls;
		if (node->is_counted)
			all->nodes[id].calls = node->calls;
		if (all->metric == METRIC_GPU || (all->metric != METRIC_CALLS && is_range &&
							 tree->nodes[node->parent].is_group))
			add_samples_to_parent(all, node->parent, id);
	}
}

struct metric_samples *metric_samples_read(
	struct process *process, enum metric metric, const char *counter, bool by_steps)
{
	struct metric_samples *all = xcalloc(sizeof *all);
	const struct profile_observer observer = { .context = all,
		.restart = restart_samples,
		.leaf = add_leaf_sample,
		.instance = add_instance_sample };
	struct profile_options options = process->profile->options;

	all->metric = metric;
	if (by_steps)
		collect_steps(all, process);
	options.metric = metric;
	options.counter = counter;
	options.pick_metric = false;
	options.observer = &observer;
	all->profile = profile_build(process->reader, process->texts, &options);
	sum_samples(all);
	return all;
}

double metric_samples_mean(const struct metric_samples *all, long double total)
{
	return (double)(all->steps && all->step_count ? total / all->step_count : total);
}

/* Whether the node's value is a part of the whole that no other node counts. */
static bool has_own_share(const struct metric_samples *all, uint32_t id)
{
	return all->metric == METRIC_CALLS ||
	       (!all->profile->tree->nodes[id].parent &&
		       profile_root_has_share(all->profile, id, all->metric == METRIC_CPU));
}

/* Whether the value of a step is its duration. */
static bool is_duration(const struct metric_samples *all)
{
	return all->metric == METRIC_WALL || (all->metric == METRIC_CPU && all->steps);
}

double metric_samples_whole(const struct metric_samples *all)
{
	long double sum = all->metric == METRIC_WALL && !all->steps ? all->profile->totals.wall_ns
								    : 0;

	for (size_t i = 0; all->steps && is_duration(all) && i < all->step_count; i++)
		sum += all->steps[i]->end_ns - all->steps[i]->begin_ns;
	for (uint32_t id = all->profile->tree->count - 1; !is_duration(all) && id > 0; id--)
		if (has_own_share(all, id))
			sum += all->nodes[id].total;
	return metric_samples_mean(all, sum);
}

double metric_samples_typical(const struct metric_samples *all)
{
	double *values = metric_samples_step_values(all), median;

	if (!all->values || metrics[all->metric].unit != UNIT_TIME || all->metric == METRIC_IDLE) {
		free(values);
		return metric_samples_whole(all);
	}
	median = median_of(values, all->values);
	free(values);
	return median;
}

double *metric_samples_step_values(const struct metric_samples *all)
{
	double *values = all->values ? xcalloc(all->values * sizeof *values) : NULL;

	for (uint32_t i = 0; is_duration(all) && i < all->values; i++) {
		const struct step *step = all->steps[i * all->step_stride];

		values[i] = (double)(step->end_ns - step->begin_ns);
	}
	for (uint32_t id = 1; !is_duration(all) && id < all->profile->tree->count; id++)
		if (all->nodes[id].values && has_own_share(all, id))
			for (uint32_t i = 0; i < all->values; i++)
				values[i] += all->nodes[id].values[i];
	return values;
}

void metric_samples_free(struct metric_samples *all)
{
	restart_samples(all);
	free(all->nodes);
	free(all->steps);
	profile_free(all->profile);
	free(all);
}
