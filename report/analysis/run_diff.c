/* SPDX-License-Identifier: MIT */
#include "report/analysis/run_diff.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include "report/text/suggest.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t copy_text_to_diff(struct diff *diff, const struct process *process, uint32_t id)
{
	const struct string_view text = string_table_get(process->texts, id);

	return string_table_intern(diff->texts, text.bytes, text.length);
}

static bool is_same_node(const struct diff_node *a, const struct diff_node *b)
{
	return a->parent == b->parent && a->name == b->name && a->domain == b->domain &&
	       a->class == b->class && a->kind == b->kind;
}

static uint64_t hash_of(const struct diff_node *node)
{
	const uint64_t hash_diff_node = hash_u64((uint64_t)node->parent << 32 | node->name);

	return hash_u64(hash_diff_node ^ node->domain ^ (uint64_t)node->class << 20 ^
			(uint64_t)node->kind << 44);
}

/* Returns the node equal to `wanted`, and adds it if there is none. */
static uint32_t find_or_add_diff_node(struct diff *diff, const struct diff_node *wanted)
{
	const uint64_t hash_diff_node = hash_of(wanted);
	struct hash_slot *slot;

	hash_index_reserve(&diff->index);
	for (slot = hash_index_first(&diff->index, hash_diff_node); slot->number;
		slot = hash_index_next(&diff->index, slot))
		if (is_same_node(&diff->nodes[slot->number], wanted))
			return slot->number;
	ARRAY_GROW(diff->nodes, diff->room, (size_t)diff->count + 1);
	diff->nodes[diff->count] = *wanted;
	hash_index_add(&diff->index, slot, hash_diff_node, diff->count);
	return diff->count++;
}

/* Selects the tree nodes that have a value of the metric, themselves or below. */
static uint8_t *select_nodes(const struct compared_run *side)
{
	const struct tree *tree = side->metric_samples->profile->tree;
	uint8_t *selected = xcalloc(tree->count);

	for (uint32_t id = tree->count - 1; id > 0; id--) {
		selected[id] |= side->metric_samples->nodes[id].total != 0 ||
				side->metric_samples->nodes[id].count > 0;
		selected[tree->nodes[id].parent] |= selected[id];
	}
	return selected;
}

static void add_side_nodes(struct diff *diff, unsigned which)
{
	struct compared_run *side = &diff->sides[which];
	const struct tree *tree = side->metric_samples->profile->tree;
	uint32_t *placed = xcalloc(tree->count * sizeof *placed);
	uint8_t *selected = select_nodes(side);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		struct diff_node wanted = { .parent = placed[node->parent], .kind = node->kind };

		if (!selected[id])
			continue;
		wanted.name = copy_text_to_diff(diff, side->process, node->name);
		wanted.domain = copy_text_to_diff(diff, side->process, node->domain);
		wanted.class = copy_text_to_diff(diff, side->process, node->class);
		wanted.depth = wanted.parent ? diff->nodes[wanted.parent].depth + 1 : 0;
		placed[id] = find_or_add_diff_node(diff, &wanted);
		if (!diff->nodes[placed[id]].of[which])
			diff->nodes[placed[id]].of[which] = id;
		*(which ? &diff->nodes[placed[id]].after : &diff->nodes[placed[id]].before) +=
			metric_samples_mean(
				side->metric_samples, side->metric_samples->nodes[id].total);
	}
	free(placed);
	free(selected);
}

/* By steps, a node that only one run has counts as 0 in each step of the other run. */
static const double *side_values(
	const struct diff *diff, struct diff_node *node, unsigned which, const double *zeros)
{
	const struct metric_samples *metric_samples = diff->sides[which].metric_samples;
	const struct node_samples *samples = node->of[which]
						     ? &metric_samples->nodes[node->of[which]]
						     : NULL;

	if (samples && samples->values) {
		node->n[which] = samples->count;
		return samples->values;
	}
	node->n[which] = diff->by_steps ? metric_samples->values : 0;
	return zeros;
}

static void test_nodes(struct diff *diff)
{
	const uint32_t zero_count = diff->sides[0].metric_samples->values +
				    diff->sides[1].metric_samples->values;
	double *zeros = xcalloc((zero_count + 1u) * sizeof *zeros);
	struct sample_pair *pairs = xcalloc(diff->count * sizeof *pairs);

	for (uint32_t id = 1; id < diff->count; id++) {
		struct diff_node *node = &diff->nodes[id];
		const double *before = side_values(diff, node, 0, zeros),
			     *after = side_values(diff, node, 1, zeros);

		pairs[id - 1] = (struct sample_pair){ { before, after }, { node->n[0], node->n[1] },
			&node->comparison };
	}
	diff->tested = (uint32_t)mann_whitney_test_all(pairs, diff->count - 1);
	free(zeros);
	free(pairs);
}

/* Two runs of one program differ as a whole, and their call paths vary by more than the steps of
 * one run. Measures both by the changes of the call paths: median and MAD. Only for times. */
static void measure_run_difference(struct diff *diff)
{
	double *changes = xcalloc(diff->count * sizeof *changes);
	size_t count = 0;

	for (uint32_t id = 1; id < diff->count && diff_unit(diff) == UNIT_TIME; id++) {
		const struct diff_node *node = &diff->nodes[id];

		if (node->comparison.tested && node->of[0] && node->of[1] &&
			node->comparison.median > 0)
			changes[count++] = node->comparison.shift / node->comparison.median;
	}
	if (count >= DIFF_MIN_NODES) {
		qsort(changes, count, sizeof *changes, compare_double);
		diff->common_change = changes[count / 2];
		for (size_t i = 0; i < count; i++)
			changes[i] = fabs(changes[i] - diff->common_change);
		qsort(changes, count, sizeof *changes, compare_double);
		diff->spread = 1.4826 * changes[count / 2]; /* of normal values: their deviation */
	}
	free(changes);
}

/* Whether the shift of a node is larger than the difference of the runs as a whole. */
static bool exceeds_run_difference(const struct diff *diff, const struct diff_node *node)
{
	const double base = fabs(node->comparison.median), shift = node->comparison.shift;
	const double off = base > 0 ? fabs(shift / base - diff->common_change) : 1;
	const double least = base > 0 && DIFF_MIN_DEVIATIONS * diff->spread > DIFF_MIN_SHIFT
				     ? DIFF_MIN_DEVIATIONS * diff->spread
				     : DIFF_MIN_SHIFT;

	return shift != 0 && fabs(shift) >= DIFF_MIN_SHIFT * base && off >= least;
}

/* Whether a change is a large enough part of the whole: smaller changes of times may come from
 * memory layout. Applies to times only. */
static bool is_large_enough(const struct diff *diff, const struct diff_node *node, double whole)
{
	const double change = node->status == DIFF_BOTH && node->comparison.median != 0
				      ? node->comparison.shift / node->comparison.median *
						node->before
				      : node->after - node->before;

	return diff_unit(diff) != UNIT_TIME || fabs(change) >= DIFF_MIN_SHARE * whole;
}

static void judge_change(const struct diff *diff, struct diff_node *node)
{
	const double whole = fabs(diff->before) > fabs(diff->after) ? fabs(diff->before)
								    : fabs(diff->after);

	if (node->of[0] && node->of[1])
		node->status = DIFF_BOTH;
	else
		node->status = node->of[1] ? DIFF_NEW : DIFF_REMOVED;
	if (node->comparison.tested)
		node->found = node->comparison.p < DIFF_ALPHA &&
			      is_large_enough(diff, node, whole) &&
			      (node->status != DIFF_BOTH || exceeds_run_difference(diff, node));
	else if (node->status != DIFF_BOTH)
		node->found = fabs(node->after - node->before) >= DIFF_MIN_SHIFT * whole;
	/* Without steps, also show large changes of nodes that were called more often, or too
	 * rarely for a test. */
	node->shown |= node->found ||
		       (!diff->by_steps &&
			       fabs(node->after - node->before) >= DIFF_MIN_SHIFT * whole &&
			       node->after != node->before);
}

static void sum_diff(struct diff *diff)
{
	for (uint32_t id = 1; id < diff->count; id++)
		judge_change(diff, &diff->nodes[id]);
	for (uint32_t id = diff->count - 1; id > 0; id--) {
		struct diff_node *node = &diff->nodes[id], *parent = &diff->nodes[node->parent];

		if (node->shown && fabs(node->after - node->before) > node->largest_change)
			node->largest_change = fabs(node->after - node->before);
		parent->shown |= node->shown;
		if (node->largest_change > parent->largest_change)
			parent->largest_change = node->largest_change;
		node->next = parent->first_child;
		parent->first_child = id;
		diff->found += node->found;
		diff->added += node->status == DIFF_NEW;
		diff->removed += node->status == DIFF_REMOVED;
		diff->common += node->status == DIFF_BOTH;
	}
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
	diff->count = 1;
	ARRAY_GROW(diff->nodes, diff->room, 1);
	compared_runs_open(diff->sides, options, before, after, false);
	choose_metric(diff, metric_name);
	diff->by_steps = diff->sides[0].by_steps;
	for (unsigned which = 0; which < 2; which++)
		diff->sides[which].metric_samples = metric_samples_read(
			diff->sides[which].process, diff->metric, metric_name, diff->by_steps);
	check_counter(diff);
	diff->before = metric_samples_whole(diff->sides[0].metric_samples);
	diff->after = metric_samples_whole(diff->sides[1].metric_samples);
	add_side_nodes(diff, 0);
	add_side_nodes(diff, 1);
	test_nodes(diff);
	measure_run_difference(diff);
	sum_diff(diff);
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

size_t diff_figure(
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
	free(diff->nodes);
	hash_index_free(&diff->index);
	free(diff);
}
