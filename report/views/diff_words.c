/* SPDX-License-Identifier: MIT */
#include "report/views/diff_words.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a node ---- */

const char *diff_status_name(const struct diff_node *node)
{
	static const char *const names[] = {
#define X(status, name) [status] = name,
		DIFF_STATUSES(X)
#undef X
	};

	return names[node->status];
}

bool diff_is_one_sided(const struct diff_node *node)
{
	return node->status == DIFF_NEW || node->status == DIFF_REMOVED;
}

void diff_add_remarks(const struct diff *diff, const struct diff_node *node, bool ascii,
	struct text_builder *behind)
{
	if (node->status == DIFF_REPLACED || node->status == DIFF_RENAMED)
		text_add(behind, "  %s", diff_status_name(node));
	if (!diff_is_one_sided(node) && node->calls[0] > 0 && node->calls[1] > 0 &&
		node->calls[0] != node->calls[1])
		text_add(behind, "  %.4g %s %.4g calls", node->calls[0], ascii ? "->" : "→",
			node->calls[1]);
	if (node->is_small)
		text_add(behind, "  below %g %%", 100 * DIFF_MIN_SHARE);
	else if (!node->test.tested && !diff_is_one_sided(node))
		text_add(behind, "  not tested (n=%u)",
			node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	else if (!diff->by_steps && node->test.tested)
		text_add(behind, "  n=%u, %u", node->n[0], node->n[1]);
}

void diff_add_key_name(const struct diff *diff, struct paragraph *whole, const struct diff_key *key)
{
	const struct string_view name = string_table_get(diff->texts, key->name),
				 class = string_table_get(diff->texts, key->class);

	paragraph_text(whole, name.bytes, name.length);
	if (!class.length)
		return;
	paragraph_add(whole, " (");
	paragraph_text(whole, class.bytes, class.length);
	paragraph_add(whole, ")");
}

void diff_add_node_name(
	const struct diff *diff, struct paragraph *whole, const struct diff_node *node)
{
	if (node->status == DIFF_REPLACED || node->status == DIFF_RENAMED) {
		diff_add_key_name(diff, whole, &node->before_key);
		paragraph_add(whole, whole->style->ascii ? " -> " : " → ");
	}
	diff_add_key_name(diff, whole, &node->key);
}

void diff_relative_text(char text[DIFF_CELL_BYTES], double before, double after)
{
	if (before == 0)
		snprintf(text, DIFF_CELL_BYTES, "-");
	else
		snprintf(text, DIFF_CELL_BYTES, "%+.1f %%", 100 * (after - before) / fabs(before));
}

void diff_significance_text(char text[DIFF_CELL_BYTES], const struct diff_node *node)
{
	if (diff_is_one_sided(node))
		snprintf(text, DIFF_CELL_BYTES, "%s", diff_status_name(node));
	else if (!node->test.tested)
		snprintf(text, DIFF_CELL_BYTES, "-");
	else if (node->test.p < 0.0001)
		snprintf(text, DIFF_CELL_BYTES, "<0.0001");
	else
		snprintf(text, DIFF_CELL_BYTES, "%.4f", node->test.p);
}

/* ---- rows ---- */

struct weighed_change {
	double change;
	uint32_t id;
};

COMPARE_BY_LARGEST(by_largest_change, struct weighed_change, change, id)

bool diff_has_own_row(const struct diff *diff, const struct diff_node *node)
{
	return node->significant || (!diff->by_steps && node->shown);
}

bool diff_is_between(const struct diff *diff, uint32_t id)
{
	const struct diff_node *node = &diff->nodes.all[id];

	if (node->status == DIFF_REPLACED || node->status == DIFF_RENAMED)
		return false;
	for (uint32_t child = node->first_child; child && node->same_as;
		child = diff->nodes.all[child].next)
		if (diff->nodes.all[child].same_as == node->same_as)
			return true;
	return false;
}

bool *diff_select_rows(const struct diff *diff, uint32_t limit, uint32_t *left_out)
{
	bool *selected = xcalloc(diff->nodes.count * sizeof *selected);
	struct weighed_change *all = xcalloc(diff->nodes.count * sizeof *all);
	uint32_t count = 0, rows = 0;

	for (uint32_t id = 1; id < diff->nodes.count; id++)
		if (diff_has_own_row(diff, &diff->nodes.all[id]) && !diff_is_between(diff, id))
			all[count++] = (struct weighed_change){
				fabs(diff_node_change(&diff->nodes.all[id])), id
			};
	if (count)
		qsort(all, count, sizeof *all, by_largest_change);
	*left_out = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t needed = 0;

		for (uint32_t id = all[i].id; id && !selected[id]; id = diff->nodes.all[id].parent)
			needed += !diff_is_between(diff, id);
		if (needed > limit - rows) {
			++*left_out;
			continue;
		}
		rows += needed;
		for (uint32_t id = all[i].id; id && !selected[id]; id = diff->nodes.all[id].parent)
			selected[id] = true;
	}
	free(all);
	return selected;
}

/* ---- sentences ---- */

static bool has_overlapping_steps(const struct compared_run *run)
{
	return run->process && steps_overlap(run->process->steps);
}

void diff_add_basis(struct paragraph *paragraph, const struct diff *diff)
{
	paragraph_add(paragraph, "%s of ", diff_metric_name(diff));
	if (diff->by_steps)
		paragraph_add(paragraph,
			"a steady-state step (mean; %zu before, %zu after; warm-up excluded)",
			diff->sides[0].steps, diff->sides[1].steps);
	else if (!diff->sides[0].steps && !diff->sides[1].steps)
		paragraph_add(paragraph, "the whole run (%s); instances were tested",
			has_overlapping_steps(&diff->sides[0]) ||
					has_overlapping_steps(&diff->sides[1])
				? "steps of several threads overlap"
				: "no steady-state steps were found");
	else
		paragraph_add(paragraph,
			"the whole run (%u steady-state steps of each are needed, %zu and %zu were "
			"found); instances were tested",
			CHANGE_TEST_SAMPLES_MIN, diff->sides[0].steps, diff->sides[1].steps);
}

void diff_add_method(struct paragraph *paragraph)
{
	paragraph_add(paragraph,
		CHANGE_TEST_METHOD "; significant: for the step p < %.2f; for a call path a false "
				   "discovery rate below %.2f and a change of at least %.0f %%; a "
				   "change of a time must also be at least %g %% of the whole",
		CHANGE_TEST_ALPHA, CHANGE_TEST_FDR, 100 * DIFF_MIN_SHIFT, 100 * DIFF_MIN_SHARE);
}

static void add_diff_value(const struct diff *diff, struct paragraph *paragraph, double value)
{
	char text[FORMAT_NUMBER_BYTES + 1];

	diff_format_value(diff, text, value, false, paragraph->style->iec, paragraph->style->ascii);
	paragraph_add(paragraph, "%s", text);
}

static void add_whole_test(struct paragraph *paragraph, const struct diff_whole *whole)
{
	paragraph_add(paragraph, "; %ssignificant (p ", whole->significant ? "" : "not ");
	if (whole->test.p < 0.0001)
		paragraph_add(paragraph, "<0.0001");
	else
		paragraph_add(paragraph, "%.4f", whole->test.p);
	paragraph_add(paragraph, ", n = %u v %u)", whole->n[0], whole->n[1]);
}

void diff_add_whole(struct paragraph *paragraph, const struct diff *diff)
{
	const struct diff_whole *whole = &diff->whole;

	paragraph_add(paragraph, "%s",
		!diff->by_steps                ? ""
		: diff_unit(diff) == UNIT_TIME ? "median "
					       : "mean ");
	add_diff_value(diff, paragraph, whole->typical[0]);
	paragraph_add(paragraph, paragraph->style->ascii ? " -> " : " → ");
	add_diff_value(diff, paragraph, whole->typical[1]);
	if (whole->typical[0] > 0)
		paragraph_add(paragraph, ", %+.1f %%",
			100 * (whole->typical[1] - whole->typical[0]) / whole->typical[0]);
	if (whole->test.tested)
		add_whole_test(paragraph, whole);
	else
		paragraph_add(paragraph, "; not tested (one value of each run)");
}

bool diff_add_spread(struct paragraph *paragraph, const struct diff *diff)
{
	if (diff->spread <= 0 && diff->common_change == 0)
		return false;
	paragraph_add(paragraph,
		"median change of all call paths %+.1f %%, MAD %.1f %%; outliers: beyond %d MAD",
		100 * diff->common_change, 100 * diff->spread, DIFF_MIN_DEVIATIONS);
	return true;
}

/* Adds "n = 6 v 6", where all call paths have as many samples. */
static void add_sample_counts(const struct diff *diff, struct paragraph *paragraph)
{
	if (diff->by_steps)
		paragraph_add(paragraph, ", n = %u v %u", diff->whole.n[0], diff->whole.n[1]);
}

static uint32_t count_status(const struct diff *diff, enum diff_status status)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id < diff->nodes.count; id++)
		count += diff->nodes.all[id].status == status;
	return count;
}

void diff_add_result(struct paragraph *paragraph, const struct diff *diff)
{
	static const struct {
		enum diff_status status;
		const char *words;
	} parts[] = { { DIFF_NEW, "new" }, { DIFF_REMOVED, "gone" }, { DIFF_REPLACED, "replaced" },
		{ DIFF_RENAMED, "renamed" } };
	uint32_t outliers = 0;

	for (uint32_t id = 1; id < diff->nodes.count; id++)
		outliers += diff->nodes.all[id].outlier && !diff->nodes.all[id].same_as;
	if (diff->significant)
		paragraph_add(paragraph, "%u call path%s changed significantly", diff->significant,
			diff->significant == 1 ? "" : "s");
	else
		paragraph_add(paragraph,
			diff_is_different(diff) && !diff->untested
				? "the step changed significantly, no call path by itself"
				: "no statistically significant change");
	paragraph_add(paragraph, " (%u call paths tested", diff->tested);
	add_sample_counts(diff, paragraph);
	paragraph_add(paragraph, ")");
	if (diff->untested)
		paragraph_add(paragraph, "; %u of %g %% or more are new or gone, not tested",
			diff->untested, 100 * DIFF_MIN_SHIFT);
	if (outliers)
		paragraph_add(paragraph, ", %u of them outliers", outliers);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const uint32_t count = count_status(diff, parts[i].status);

		if (count)
			paragraph_add(paragraph, "; %u %s", count, parts[i].words);
	}
}
