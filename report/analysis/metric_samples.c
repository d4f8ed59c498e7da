/* SPDX-License-Identifier: MIT */
#include "report/analysis/metric_samples.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct fold_options *options, const struct step *step)
{
	return step->kind == STEP_USUAL &&
	       (!options->steps || (step->number >= options->first_step && step->number <= options->last_step));
}

size_t amounts_steps(const struct process *process)
{
	size_t count = 0;

	for (size_t i = 0; process->steps && i < process->steps->count; i++)
		count += is_wanted(&process->fold->options, &process->steps->steps[i]);
	for (uint32_t id = 1; id < process->fold->tree->count; id++)
		if (process->fold->tree->nodes[id].is_counted)
			return 0;
	return count;
}

static void take_steps(struct amounts *amounts, const struct process *process)
{
	const struct steps *found = process->steps;

	amounts->steps = need((found->count + 1) * sizeof *amounts->steps);
	for (size_t i = 0; i < found->count; i++)
		if (is_wanted(&process->fold->options, &found->steps[i]))
			amounts->steps[amounts->step_count++] = &found->steps[i];
	amounts->step_stride = (amounts->step_count + AMOUNTS_MOST - 1) / AMOUNTS_MOST;
	if (amounts->step_stride)
		amounts->values = (uint32_t)((amounts->step_count + amounts->step_stride - 1) / amounts->step_stride);
}

/* The number of the step in which that moment lies; SIZE_MAX: in none. */
static size_t step_at(struct amounts *amounts, uint64_t at_ns)
{
	size_t low = 0, high = amounts->step_count;
	const struct step *step = low < high ? amounts->steps[amounts->cursor] : NULL;

	if (step && at_ns >= step->begin_ns && at_ns < step->end_ns)
		return amounts->cursor;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (amounts->steps[middle]->begin_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at_ns >= amounts->steps[low - 1]->end_ns)
		return SIZE_MAX;
	return amounts->cursor = low - 1;
}

static struct amount *amount_of(struct amounts *amounts, uint32_t node)
{
	grow(&amounts->nodes, &amounts->room, (size_t)node + 1, sizeof *amounts->nodes);
	return &amounts->nodes[node];
}

static void add_in_step(struct amounts *amounts, uint32_t node, uint64_t at_ns, long double value)
{
	struct amount *amount = amount_of(amounts, node);
	const size_t step = step_at(amounts, at_ns);

	if (step == SIZE_MAX)
		return;
	amount->total += value;
	if (step % amounts->step_stride)
		return;
	if (!amount->values) {
		amount->values = need(amounts->values * sizeof *amount->values);
		amount->count = amounts->values;
	}
	amount->values[step / amounts->step_stride] += (double)value;
}

/* Full: every second one stays, and of those to come. */
static void thin_out(struct amount *amount)
{
	for (uint32_t i = 0; i < amount->count / 2; i++)
		amount->values[i] = amount->values[2 * i];
	amount->count /= 2;
	amount->stride *= 2;
}

static void keep_value(struct amount *amount, long double value)
{
	size_t room = amount->room;

	if (!amount->stride)
		amount->stride = 1;
	if (amount->passed++ % amount->stride)
		return;
	if (amount->count == AMOUNTS_MOST) {
		thin_out(amount);
		if ((amount->passed - 1) % amount->stride)
			return;
	}
	grow(&amount->values, &room, (size_t)amount->count + 1, sizeof *amount->values);
	amount->room = (uint32_t)room;
	amount->values[amount->count++] = (double)value;
}

static void begins(void *context)
{
	struct amounts *amounts = context;

	for (size_t i = 0; i < amounts->room; i++) {
		free(amounts->nodes[i].values);
		amounts->nodes[i] = (struct amount){ .total = 0 };
	}
	amounts->cursor = 0;
}

static void add(struct amounts *amounts, uint32_t node, uint64_t at_ns, long double value)
{
	struct amount *amount;

	if (amounts->steps) {
		add_in_step(amounts, node, at_ns, value);
		return;
	}
	amount = amount_of(amounts, node);
	amount->total += value;
	keep_value(amount, value);
}

static void leaf(void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct amounts *amounts = context;

	if (amounts->metric == METRIC_CALLS)
		add(amounts, node, at_ns, 1);
	else if (is_work ? amounts->metric == METRIC_GPU
			 : amounts->metric == METRIC_CPU || amounts->metric == METRIC_WALL)
		add(amounts, node, at_ns, duration_ns);
}

static void instance(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	struct amounts *amounts = context;

	if (amounts->metric == METRIC_CALLS)
		value = 1;
	if (amounts->metric != METRIC_GPU)
		add(amounts, node, at_ns, value);
	else if (!amounts->steps) /* its total is that of the work in it */
		keep_value(amount_of(amounts, node), value);
}

static void add_to_parent(struct amounts *amounts, uint32_t parent, uint32_t id)
{
	struct amount *to = amount_of(amounts, parent);
	const struct amount *from = amount_of(amounts, id);

	to->total += from->total;
	if (!amounts->steps || !from->values)
		return;
	if (!to->values) {
		to->values = need(amounts->values * sizeof *to->values);
		to->count = amounts->values;
	}
	for (uint32_t i = 0; i < amounts->values; i++)
		to->values[i] += from->values[i];
}

/* What is known of the parts alone. GPU work is a part of all that it is in; groups are what the ranges in them are. */
static void sum(struct amounts *amounts)
{
	const struct tree *tree = amounts->fold->tree;

	amount_of(amounts, tree->count);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		const struct node *node = &tree->nodes[id];
		const bool is_range = node_kind_class(node->kind) == NODE_RANGES;

		if (node->is_counted && (amounts->metric == METRIC_CPU || amounts->metric == METRIC_WALL))
			amounts->nodes[id].total = node->total_ns;
		if (node->is_counted && amounts->metric == METRIC_CALLS)
			amounts->nodes[id].total = node->calls;
		if (amounts->metric == METRIC_GPU ||
			(amounts->metric != METRIC_CALLS && is_range && tree->nodes[node->parent].is_group))
			add_to_parent(amounts, node->parent, id);
	}
}

struct amounts *amounts_read(struct process *process, enum metric metric, const char *counter, bool by_steps)
{
	struct amounts *amounts = need(sizeof *amounts);
	const struct fold_observer observer = { .context = amounts, .begins = begins, .leaf = leaf, .instance = instance };
	struct fold_options options = process->fold->options;

	amounts->metric = metric;
	if (by_steps)
		take_steps(amounts, process);
	options.metric = metric;
	options.counter = counter;
	options.pick_metric = false;
	options.observer = &observer;
	amounts->fold = fold_run(process->reader, process->texts, &options);
	sum(amounts);
	return amounts;
}

long double amounts_wall(const struct amounts *amounts)
{
	long double sum = amounts->steps ? 0 : amounts->fold->totals.wall_ns;

	for (size_t i = 0; i < amounts->step_count; i++)
		sum += amounts->steps[i]->end_ns - amounts->steps[i]->begin_ns;
	return sum;
}

double amounts_figure(const struct amounts *amounts, long double total)
{
	return (double)(amounts->steps && amounts->step_count ? total / amounts->step_count : total);
}

void amounts_free(struct amounts *amounts)
{
	begins(amounts);
	free(amounts->nodes);
	free(amounts->steps);
	fold_free(amounts->fold);
	free(amounts);
}
