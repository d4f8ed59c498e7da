/* SPDX-License-Identifier: MIT */
#include "report/analysis/run_diff.h"
#include "report/stats/mann_whitney.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include "report/text/suggest.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By steps, a node that only one run has counts as 0 in each step of the other run. */
static const double *side_samples(
	const struct diff *diff, struct diff_node *node, unsigned which, const double *zeros)
{
	if (node->samples[which])
		return node->samples[which];
	node->n[which] = diff->by_steps ? diff->sides[which].metric_samples->values : 0;
	return zeros;
}

static bool is_same_sample(const double *const a[2], const uint32_t n[2], const double *const b[2],
	const uint32_t m[2])
{
	for (unsigned which = 0; which < 2; which++)
		if (n[which] != m[which] ||
			memcmp(a[which], b[which], n[which] * sizeof(double)) != 0)
			return false;
	return true;
}

/* Whether a change of the node cannot reach DIFF_MIN_SHARE. */
static bool is_too_small(const struct diff *diff, const struct diff_node *node)
{
	const double whole = fmax(fabs(diff->whole.mean[0]), fabs(diff->whole.mean[1]));

	return diff_unit(diff) == UNIT_TIME &&
	       fmax(fabs(node->value[0]), fabs(node->value[1])) < DIFF_MIN_SHARE * whole;
}

/* Whether the node is to be tested. Sets why not. */
static bool is_testable(struct diff *diff, uint32_t id, const struct sample_pair *pairs)
{
	struct diff_node *node = &diff->nodes.all[id];
	const uint32_t above = diff->nodes.all[node->parent].same_as
				       ? diff->nodes.all[node->parent].same_as
				       : node->parent;

	node->is_small = is_too_small(diff, node);
	if (above && node->n[0] + node->n[1] > 0 &&
		is_same_sample(
			pairs[id].values, node->n, pairs[above].values, diff->nodes.all[above].n))
		node->same_as = above;
	return !node->is_small && !node->same_as;
}

static void test_nodes(struct diff *diff)
{
	const uint32_t zero_count = diff->sides[0].metric_samples->values +
				    diff->sides[1].metric_samples->values;
	double *zeros = xcalloc((zero_count + 1u) * sizeof *zeros);
	struct sample_pair *pairs = xcalloc(diff->nodes.count * sizeof *pairs),
			   *tested = xcalloc(diff->nodes.count * sizeof *pairs);
	size_t count = 0;

	for (uint32_t id = 1; id < diff->nodes.count; id++) {
		struct diff_node *node = &diff->nodes.all[id];
		const double *before = side_samples(diff, node, 0, zeros),
			     *after = side_samples(diff, node, 1, zeros);

		node->test.p = 1;
		pairs[id] = (struct sample_pair){ { before, after }, { node->n[0], node->n[1] },
			&node->test };
		if (is_testable(diff, id, pairs))
			tested[count++] = pairs[id];
	}
	diff->tested = (uint32_t)change_test_all(tested, count);
	for (uint32_t id = 1; id < diff->nodes.count; id++)
		if (diff->nodes.all[id].same_as)
			diff->nodes.all[id].test =
				diff->nodes.all[diff->nodes.all[id].same_as].test;
	free(zeros);
	free(pairs);
	free(tested);
}

double relative_shift(const struct change_test *test)
{
	const double base = fabs(test->median[0]) + fabs(test->median[1]);

	return base > 0 ? 2 * test->shift / base : 0;
}

/* Sets the median of the relative shifts and their robust deviation. `errors`: the standard errors
 * of the shifts. Both arrays are sorted. */
static void measure_spread(struct diff *diff, double *shifts, double *errors, size_t count)
{
	const double common = median_of(shifts, count), noise = median_of(errors, count);

	for (size_t i = 0; i < count; i++)
		shifts[i] = fabs(shifts[i] - common);
	/* 1.4826: the standard deviation of normal values, over their MAD */
	diff->spread = 1.4826 * median_of(shifts, count);
	diff->between_runs = sqrt(fmax(0, diff->spread * diff->spread - noise * noise));
	/* A symmetric change is relative to the mean of before and after. */
	diff->common_change = common < 2 ? (2 + common) / (2 - common) - 1 : 0;
}

/* Two runs of one program differ as a whole, and their call paths vary by more than the steps of
 * one run. Measures both by the changes of the call paths: median and MAD. Only for times. */
static void measure_run_difference(struct diff *diff)
{
	double *shifts = xcalloc(diff->nodes.count * sizeof *shifts),
	       *errors = xcalloc(diff->nodes.count * sizeof *errors);
	size_t count = 0;

	for (uint32_t id = 1; id < diff->nodes.count && diff_unit(diff) == UNIT_TIME; id++) {
		const struct diff_node *node = &diff->nodes.all[id];

		if (!node->test.tested || node->same_as || !node->of[0] || !node->of[1] ||
			node->test.median[0] <= 0)
			continue;
		errors[count] = node->test.error;
		shifts[count++] = relative_shift(&node->test);
	}
	if (count >= DIFF_MIN_NODES)
		measure_spread(diff, shifts, errors, count);
	free(shifts);
	free(errors);
}

/* Whether the shift of a node is larger than differences between two runs of one program. */
static bool exceeds_run_difference(const struct diff *diff, const struct diff_node *node)
{
	const double floor = fmin(DIFF_MAX_FLOOR, DIFF_MIN_DEVIATIONS * diff->between_runs);

	return fabs(relative_shift(&node->test)) >= fmax(DIFF_MIN_SHIFT, floor);
}

/* Whether a change is a large enough part of the whole: smaller changes of times may come from
 * memory layout. Applies to times only. */
static bool is_large_enough(const struct diff *diff, const struct diff_node *node)
{
	const double whole = fmax(fabs(diff->whole.mean[0]), fabs(diff->whole.mean[1])),
		     mean = (fabs(node->value[0]) + fabs(node->value[1])) / 2,
		     change = node->status == DIFF_NEW || node->status == DIFF_REMOVED
				      ? diff_node_change(node)
				      : relative_shift(&node->test) * mean;

	return diff_unit(diff) != UNIT_TIME || fabs(change) >= DIFF_MIN_SHARE * whole;
}

/* Whether a change that was not tested is worth a row: of 1 % of the whole. */
static bool is_large_untested(const struct diff *diff, const struct diff_node *node)
{
	const double whole = fmax(fabs(diff->whole.mean[0]), fabs(diff->whole.mean[1])),
		     change = fabs(diff_node_change(node));

	return change > 0 && change >= DIFF_MIN_SHIFT * whole;
}

/* Whether the node changed by other than all call paths did. */
static bool is_far_from_common(const struct diff *diff, const struct diff_node *node)
{
	const double common = symmetric_change(1, 1 + diff->common_change);

	return diff->spread > 0 &&
	       fabs(relative_shift(&node->test) - common) > DIFF_MIN_DEVIATIONS * diff->spread;
}

static void judge_change(const struct diff *diff, struct diff_node *node)
{
	const bool one_sided = !node->of[0] || !node->of[1];

	if (node->test.tested)
		node->significant = node->test.p < CHANGE_TEST_FDR && is_large_enough(diff, node) &&
				    (one_sided || exceeds_run_difference(diff, node));
	else if (one_sided)
		node->significant = is_large_untested(diff, node);
	node->outlier = node->significant && !one_sided && is_far_from_common(diff, node);
	/* Without steps, also show large changes of nodes that were called more often, or too
	 * rarely for a test. */
	node->shown |= node->significant || (!diff->by_steps && is_large_untested(diff, node));
}

static void sum_diff(struct diff *diff)
{
	for (uint32_t id = 1; id < diff->nodes.count; id++)
		judge_change(diff, &diff->nodes.all[id]);
	for (uint32_t id = diff->nodes.count - 1; id > 0; id--) {
		struct diff_node *node = &diff->nodes.all[id],
				 *parent = &diff->nodes.all[node->parent];
		const double change = fabs(diff_node_change(node));

		if (node->shown && change > node->largest_change)
			node->largest_change = change;
		parent->shown |= node->shown;
		if (node->largest_change > parent->largest_change)
			parent->largest_change = node->largest_change;
		node->next = parent->first_child;
		parent->first_child = id;
		diff->significant += node->significant && node->test.tested && !node->same_as;
		diff->untested += node->significant && !node->test.tested;
		diff->common += node->of[0] && node->of[1];
	}
}

/* Whether the change of a node is mostly that of one child, which then is the mover. */
static bool is_change_of_child(const struct diff *diff, const struct diff_node *node)
{
	for (uint32_t id = node->first_child; id; id = diff->nodes.all[id].next)
		if (fabs(diff_node_change(&diff->nodes.all[id])) >=
			fabs(diff_node_change(node)) / 2)
			return true;
	return false;
}

/* Lists the nodes with the largest changes of their own, significant or not. */
static void find_movers(struct diff *diff)
{
	for (uint32_t id = 1; id < diff->nodes.count; id++) {
		const struct diff_node *node = &diff->nodes.all[id];
		const double change = fabs(diff_node_change(node));
		uint32_t at = diff->mover_count;

		if (change == 0 || is_change_of_child(diff, node))
			continue;
		for (; at &&
			fabs(diff_node_change(&diff->nodes.all[diff->movers[at - 1]])) < change;
			at--)
			if (at < DIFF_MOVERS)
				diff->movers[at] = diff->movers[at - 1];
		if (at < DIFF_MOVERS)
			diff->movers[at] = id;
		diff->mover_count += diff->mover_count < DIFF_MOVERS;
	}
}

bool is_significant_whole(const struct change_test *test)
{
	return test->tested && test->p < CHANGE_TEST_ALPHA && test->shift != 0;
}

static void test_whole(struct diff *diff)
{
	struct diff_whole *whole = &diff->whole;
	double *values[2];

	for (unsigned which = 0; which < 2; which++) {
		const struct metric_samples *samples = diff->sides[which].metric_samples;

		whole->mean[which] = metric_samples_whole(samples);
		whole->typical[which] = metric_samples_typical(samples);
		whole->n[which] = samples->values;
		values[which] = metric_samples_step_values(samples);
	}
	whole->test = change_test_alone(values[0], whole->n[0], values[1], whole->n[1]);
	whole->significant = is_significant_whole(&whole->test);
	free(values[0]);
	free(values[1]);
}

bool diff_is_different(const struct diff *diff)
{
	return diff->significant > 0 || diff->untested > 0 ||
	       (diff->whole.significant &&
		       fabs(relative_shift(&diff->whole.test)) >= DIFF_MIN_SHIFT);
}

static void check_counter(const struct diff *diff)
{
	const struct profile *before = diff->sides[0].metric_samples->profile,
			     *after = diff->sides[1].metric_samples->profile;
	struct string_view units[2];
	struct suggestion near;

	if (diff->metric != METRIC_USER)
		return;
	near = suggest_for(diff->counter, strlen(diff->counter));
	metric_suggest(&near);
	if (!before->counter_found || !after->counter_found)
		fatal(before->counter_found || after->counter_found ? STATUS_UNREADABLE
								    : STATUS_USAGE,
			"unknown metric `%s`: it is not a counter in both traces%s", diff->counter,
			suggest_text(&near, NULL));
	units[0] = string_table_get(diff->sides[0].process->texts, before->counter_unit);
	units[1] = string_table_get(diff->sides[1].process->texts, after->counter_unit);
	if (units[0].length != units[1].length ||
		memcmp(units[0].bytes, units[1].bytes, units[0].length) != 0)
		fatal(STATUS_UNREADABLE, "the counter `%s` has different units in %s and %s",
			diff->counter, diff->sides[0].process->path, diff->sides[1].process->path);
}

static void choose_metric(struct diff *diff, const char *name)
{
	diff->counter = name;
	if (name)
		diff->metric = metric_find(name);
	else if (diff->sides[0].process->metric == METRIC_GPU &&
		 diff->sides[1].process->metric == METRIC_GPU)
		diff->metric = METRIC_GPU;
	else
		diff->metric = METRIC_CPU;
	for (unsigned which = 0; which < 2; which++)
		if (diff->metric == METRIC_GPU &&
			diff->sides[which].process->profile->totals.gpu_sum_ns == 0)
			fatal(STATUS_UNREADABLE, "%s has no GPU time to compare",
				diff->sides[which].process->path);
}

struct diff *diff_read_unmatched(const struct options *options, const char *metric_name,
	const char *before, const char *after)
{
	struct diff *diff = xcalloc(sizeof *diff);

	diff->texts = string_table_new();
	compared_runs_open(diff->sides, options, before, after, false);
	choose_metric(diff, metric_name);
	diff->by_steps = diff->sides[0].by_steps;
	for (unsigned which = 0; which < 2; which++)
		diff->sides[which].metric_samples = metric_samples_read(
			diff->sides[which].process, diff->metric, metric_name, diff->by_steps);
	check_counter(diff);
	test_whole(diff);
	diff_nodes_match(&diff->nodes, diff->texts, diff->sides);
	test_nodes(diff);
	measure_run_difference(diff);
	sum_diff(diff);
	find_movers(diff);
	return diff;
}

struct diff *diff_read(const struct options *options, const char *metric_name, const char *before,
	const char *after)
{
	struct diff *diff = diff_read_unmatched(options, metric_name, before, after);

	if (!diff->common)
		fatal(STATUS_UNREADABLE, "%s and %s have no node in common with `%s` to compare",
			before, after, diff_metric_name(diff));
	return diff;
}

enum unit diff_unit(const struct diff *diff)
{
	return metrics[diff->metric].unit;
}

const char *diff_metric_name(const struct diff *diff)
{
	return diff->metric == METRIC_USER ? diff->counter : metrics[diff->metric].key;
}

size_t diff_format_value(
	const struct diff *diff, char *out, double value, bool sign, bool iec, bool ascii)
{
	const enum unit unit = diff_unit(diff);
	const size_t before = sign && value > 0;

	out[0] = '+';
	if (unit == UNIT_USER)
		return before + format_real(out + before, (long double)value, 4);
	if (unit == UNIT_COUNT && fabs(value) < 100 && value != floor(value))
		return before + format_real(out + before, (long double)value, 2);
	return before +
	       format_with_unit(out + before, unit, clamp_to_i64(round(value)), iec, ascii);
}

void diff_free(struct diff *diff)
{
	if (!diff)
		return;
	compared_run_free(&diff->sides[0]);
	compared_run_free(&diff->sides[1]);
	string_table_free(diff->texts);
	diff_nodes_free(&diff->nodes);
	free(diff);
}
