/* SPDX-License-Identifier: MIT */
#include "report/views/function_diff.h"
#include "report/analysis/sample_tree.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/stats/proportion_test.h"
#include "report/table/column.h"
#include "report/table/view.h"
#include <math.h>
#include <stdlib.h>

static uint32_t intern(struct function_diff *diff, struct string_view text)
{
	return string_table_intern(diff->texts, text.bytes, text.length);
}

static void add_node(
	struct function_diff *diff, unsigned which, const struct tree *tree, uint32_t id)
{
	struct process *process = diff->sides[which].process;
	const struct row row = tree_row(process, tree, id);
	const struct sample_sums *self = &tree->nodes[id].sampled->self;
	struct function_change change = { .kind = (uint8_t)tree->nodes[id].kind };

	if (!self->samples)
		return;
	change.label = intern(diff, row_label(&row, false));
	change.name = intern(diff, string_table_get(process->texts, tree->nodes[id].name));
	change.samples[which] = self->samples;
	change.cpu_ns[which] = self->cpu_ns;
	*ARRAY_ADD(diff->all, diff->room, diff->count) = change;
}

static void add_side(struct function_diff *diff, unsigned which, const struct options *options)
{
	struct process *process = diff->sides[which].process;
	struct sample_cells *cells = sample_cells_of(process);
	struct tree *tree;

	if (!cells || !process->profile->sampled.samples)
		fatal(STATUS_UNREADABLE,
			"%s has no CPU samples to compare; PPERF_SAMPLE=99 records them",
			diff->sides[which].path);
	diff->samples[which] = process->profile->sampled.samples;
	diff->cpu_ns[which] = process->profile->sampled.cpu_ns;
	tree = sample_tree_flat(
		cells, options->by, options->native_all ? SAMPLE_FRAMES_ALL : SAMPLE_FRAMES_MERGED);
	for (uint32_t id = 1; id < tree->count; id++)
		if (tree->nodes[id].sampled)
			add_node(diff, which, tree, id);
	tree_free(tree);
}

COMPARE_BY_TWO(by_label, struct function_change, label, kind)

/* Makes one of the entries of both runs with the same label. */
static void merge_equal(struct function_diff *diff)
{
	struct function_change *kept = diff->all;

	if (!diff->count)
		return;
	qsort(diff->all, diff->count, sizeof *diff->all, by_label);
	for (size_t i = 1; i < diff->count; i++) {
		const struct function_change *next = &diff->all[i];

		if (by_label(kept, next) != 0) {
			*++kept = *next;
			continue;
		}
		for (unsigned which = 0; which < 2; which++) {
			kept->samples[which] += next->samples[which];
			kept->cpu_ns[which] += next->cpu_ns[which];
		}
	}
	diff->count = (size_t)(kept - diff->all) + 1;
}

/* Imported samples have no time; all count the same. */
static double share_of(
	const struct function_diff *diff, const struct function_change *change, unsigned which)
{
	return diff->cpu_ns[which] ? (double)change->cpu_ns[which] / (double)diff->cpu_ns[which]
				   : (double)change->samples[which] / (double)diff->samples[which];
}

static void test_all(struct function_diff *diff)
{
	const double counts[2] = { (double)diff->samples[0], (double)diff->samples[1] };
	struct sample_pair *pairs = xcalloc((diff->count + 1) * sizeof *pairs);

	for (size_t i = 0; i < diff->count; i++) {
		struct function_change *change = &diff->all[i];

		for (unsigned which = 0; which < 2; which++)
			change->share[which] = share_of(diff, change, which);
		change->test = proportion_test(change->share, counts);
		pairs[i].result = &change->test;
	}
	diff->tested = change_test_adjust(pairs, diff->count);
	free(pairs);
	for (size_t i = 0; i < diff->count; i++) {
		struct function_change *change = &diff->all[i];

		change->significant = change->test.tested && change->test.p < CHANGE_TEST_FDR &&
				      fabs(change->test.shift) >= FUNCTION_DIFF_MIN_SHIFT;
		diff->significant += change->significant;
	}
}

static int by_shift(const void *a, const void *b)
{
	const struct function_change *left = a, *right = b;
	const double one = fabs(left->test.shift), other = fabs(right->test.shift);

	return one != other ? COMPARE(other, one) : by_label(a, b);
}

struct function_diff *function_diff_read(const struct options *options)
{
	struct function_diff *diff = xcalloc(sizeof *diff);

	diff->texts = string_table_new();
	compared_runs_open(diff->sides, options, options->files[0], options->files[1], false);
	add_side(diff, 0, options);
	add_side(diff, 1, options);
	merge_equal(diff);
	test_all(diff);
	qsort(diff->all, diff->count, sizeof *diff->all, by_shift);
	return diff;
}

void function_diff_free(struct function_diff *diff)
{
	compared_run_free(&diff->sides[0]);
	compared_run_free(&diff->sides[1]);
	string_table_free(diff->texts);
	free(diff->all);
	free(diff);
}
