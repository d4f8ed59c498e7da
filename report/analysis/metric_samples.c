/* SPDX-License-Identifier: MIT */
#include "report/analysis/metric_samples.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

static bool is_step_wanted(const struct profile_options *options, const struct step *step)
{
	return step->kind == STEP_USUAL &&
	       (!options->steps ||
		       (step->number >= options->first_step && step->number <= options->last_step));
}

size_t metric_samples_steps(const struct process *process)
{
	size_t count = 0;

	for (size_t i = 0; process->steps && i < process->steps->count; i++)
		count += is_step_wanted(&process->profile->options, &process->steps->steps[i]);
	for (uint32_t id = 1; id < process->profile->tree->count; id++)
		if (process->profile->tree->nodes[id].is_counted)
			return 0;
	return count;
}

static void collect_steps(struct metric_samples *metric_samples, const struct process *process)
{
	const struct steps *found = process->steps;

	metric_samples->steps = xcalloc((found->count + 1) * sizeof *metric_samples->steps);
	for (size_t i = 0; i < found->count; i++)
		if (is_step_wanted(&process->profile->options, &found->steps[i]))
			metric_samples->steps[metric_samples->step_count++] = &found->steps[i];
	metric_samples->step_stride = (metric_samples->step_count + METRIC_SAMPLES_MAX - 1) /
				      METRIC_SAMPLES_MAX;
	if (metric_samples->step_stride)
		metric_samples->values = (uint32_t)((metric_samples->step_count +
							    metric_samples->step_stride - 1) /
						    metric_samples->step_stride);
}

/* Returns the index of the steady-state step at `at_ns`, or SIZE_MAX. */
static size_t sample_step_at(struct metric_samples *metric_samples, uint64_t at_ns)
{
	size_t low = 0, high = metric_samples->step_count;
	const struct step *step = low < high ? metric_samples->steps[metric_samples->cursor] : NULL;

	if (step && at_ns >= step->begin_ns && at_ns < step->end_ns)
		return metric_samples->cursor;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (metric_samples->steps[middle]->begin_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at_ns >= metric_samples->steps[low - 1]->end_ns)
		return SIZE_MAX;
	return metric_samples->cursor = low - 1;
}

static struct node_samples *node_samples_of(struct metric_samples *metric_samples, uint32_t node)
{
	array_grow_zeroed(&metric_samples->nodes, &metric_samples->room, (size_t)node + 1,
		sizeof *metric_samples->nodes);
	return &metric_samples->nodes[node];
}

static void add_step_sample(
	struct metric_samples *metric_samples, uint32_t node, uint64_t at_ns, long double value)
{
	struct node_samples *samples = node_samples_of(metric_samples, node);
	const size_t step = sample_step_at(metric_samples, at_ns);

	if (step == SIZE_MAX)
		return;
	samples->total += value;
	if (step % metric_samples->step_stride)
		return;
	if (!samples->values) {
		samples->values = xcalloc(metric_samples->values * sizeof *samples->values);
		samples->count = metric_samples->values;
	}
	samples->values[step / metric_samples->step_stride] += (double)value;
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
	array_grow_zeroed(
		&samples->values, &room, (size_t)samples->count + 1, sizeof *samples->values);
	samples->room = (uint32_t)room;
	samples->values[samples->count++] = (double)value;
}

static void restart_samples(void *context)
{
	struct metric_samples *metric_samples = context;

	for (size_t i = 0; i < metric_samples->room; i++) {
		free(metric_samples->nodes[i].values);
		metric_samples->nodes[i] = (struct node_samples){ .total = 0 };
	}
	metric_samples->cursor = 0;
}

static void add_metric_value(
	struct metric_samples *metric_samples, uint32_t node, uint64_t at_ns, long double value)
{
	struct node_samples *samples;

	if (metric_samples->steps) {
		add_step_sample(metric_samples, node, at_ns, value);
		return;
	}
	samples = node_samples_of(metric_samples, node);
	samples->total += value;
	keep_instance_value(samples, value);
}

static void add_leaf_sample(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct metric_samples *metric_samples = context;

	if (metric_samples->metric == METRIC_CALLS)
		add_metric_value(metric_samples, node, at_ns, 1);
	else if (is_work ? metric_samples->metric == METRIC_GPU
			 : metric_samples->metric == METRIC_CPU ||
				   metric_samples->metric == METRIC_WALL)
		add_metric_value(metric_samples, node, at_ns, duration_ns);
}

static void add_instance_sample(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	struct metric_samples *metric_samples = context;

	if (metric_samples->metric == METRIC_CALLS)
		value = 1;
	if (metric_samples->metric != METRIC_GPU)
		add_metric_value(metric_samples, node, at_ns, value);
	/* Only samples are kept: the total of the range is added up from its GPU work. */
	else if (!metric_samples->steps)
		keep_instance_value(node_samples_of(metric_samples, node), value);
}

static void add_samples_to_parent(
	struct metric_samples *metric_samples, uint32_t parent, uint32_t id)
{
	struct node_samples *to = node_samples_of(metric_samples, parent);
	const struct node_samples *from = node_samples_of(metric_samples, id);

	to->total += from->total;
	if (!metric_samples->steps || !from->values)
		return;
	if (!to->values) {
		to->values = xcalloc(metric_samples->values * sizeof *to->values);
		to->count = metric_samples->values;
	}
	for (uint32_t i = 0; i < metric_samples->values; i++)
		to->values[i] += from->values[i];
}

/* Adds up values that are known only of parts. GPU work counts in all its ancestors, and a group is
 * the sum of the ranges in it. */
static void sum_samples(struct metric_samples *metric_samples)
{
	const struct tree *tree = metric_samples->profile->tree;

	node_samples_of(metric_samples, tree->count);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];
		const bool is_range = node_kind_class(node->kind) == NODE_RANGES;

		if (node->is_counted && (metric_samples->metric == METRIC_CPU ||
						metric_samples->metric == METRIC_WALL))
			metric_samples->nodes[id].total = node->total_ns;
		if (node->is_counted && metric_samples->metric == METRIC_CALLS)
			metric_samples->nodes[id].total = node->calls;
		if (metric_samples->metric == METRIC_GPU ||
			(metric_samples->metric != METRIC_CALLS && is_range &&
				tree->nodes[node->parent].is_group))
			add_samples_to_parent(metric_samples, node->parent, id);
	}
}

struct metric_samples *metric_samples_read(
	struct process *process, enum metric metric, const char *counter, bool by_steps)
{
	struct metric_samples *metric_samples = xcalloc(sizeof *metric_samples);
	const struct profile_observer observer = { .context = metric_samples,
		.restart = restart_samples,
		.leaf = add_leaf_sample,
		.instance = add_instance_sample };
	struct profile_options options = process->profile->options;

	metric_samples->metric = metric;
	if (by_steps)
		collect_steps(metric_samples, process);
	options.metric = metric;
	options.counter = counter;
	options.pick_metric = false;
	options.observer = &observer;
	metric_samples->profile = profile_build(process->reader, process->texts, &options);
	sum_samples(metric_samples);
	return metric_samples;
}

long double metric_samples_wall(const struct metric_samples *metric_samples)
{
	long double sum = metric_samples->steps ? 0 : metric_samples->profile->totals.wall_ns;

	for (size_t i = 0; i < metric_samples->step_count; i++)
		sum += metric_samples->steps[i]->end_ns - metric_samples->steps[i]->begin_ns;
	return sum;
}

double metric_samples_mean(const struct metric_samples *metric_samples, long double total)
{
	return (double)(metric_samples->steps && metric_samples->step_count
				? total / metric_samples->step_count
				: total);
}

void metric_samples_free(struct metric_samples *metric_samples)
{
	restart_samples(metric_samples);
	free(metric_samples->nodes);
	free(metric_samples->steps);
	profile_free(metric_samples->profile);
	free(metric_samples);
}
