/* SPDX-License-Identifier: MIT
 *
 * The model of two traces: every node of either, compared by run_diff.h.
 */
#include "report/base/compare.h"
#include "report/analysis/run_diff.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/text/format_number.h"
#include "report/run/warnings.h"
#include "report/tui/model.h"
#include "report/base/escape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_OF_DIFF(X)                                                                        \
	X(BEFORE, "before", "before", false, "value of the metric in the first trace")            \
	X(AFTER, "after", "after", false, "value in the second trace")                            \
	X(CHANGE, "change", "change", false, "after - before; sorted by size, up or down")        \
	X(RELATIVE, "relative", "%", false, "change in percent of the value before")              \
	X(FOUND, "found", "noise?", true,                                                         \
		"more, less, new, gone: significant; within: not significant; untested: too few " \
		"values, or "                                                                     \
		"nothing to compare with")                                                        \
	X(P, "p", "p", false,                                                                     \
		"probability of a change this large by chance; adjusted for all nodes")           \
	X(N, "n", "n", false, "values compared, on the side with fewer")

enum {
#define X(id, key, title, left, help) DIFF_##id,
	COLUMNS_OF_DIFF(X)
#undef X
		DIFF_COLUMNS
};

static const struct tui_column diff_columns[] = {
#define X(id, name, heading, words, text) \
	{ .key = name,                    \
		.title = heading,         \
		.left = words,            \
		.help = text,             \
		.sortable = !(words),     \
		.filled = true,           \
		.shown = true },
	COLUMNS_OF_DIFF(X)
#undef X
};

struct diff_pair {
	struct diff *diff;
	uint32_t *nodes; /* by item: the node of the diff */
};

static const struct diff_node *diff_item_node(const struct tui_model *model, uint32_t item)
{
	const struct diff_pair *pair = model->context;

	return &pair->diff->nodes.all[pair->nodes[item]];
}

/* Returns the weight of a node when rows are sorted by `column`. The largest comes first. */
static double diff_sort_weight(const struct diff_node *node, uint32_t column)
{
	switch (column) {
	case DIFF_BEFORE:
		return node->value[0];
	case DIFF_AFTER:
		return node->value[1];
	case DIFF_RELATIVE:
		return node->value[0] != 0   ? fabs(diff_node_change(node) / node->value[0])
		       : node->value[1] != 0 ? HUGE_VAL
					     : 0;
	case DIFF_P:
		return node->test.tested ? 1 - node->test.p : -1;
	case DIFF_N:
		return node->n[0] < node->n[1] ? node->n[0] : node->n[1];
	default:
		return node->shown ? node->largest_change : 0;
	}
}

struct weighed_node {
	double weight, change;
	uint32_t node;
};

static int by_diff_weight(const void *a, const void *b)
{
	const struct weighed_node *left = a, *right = b;

	if (left->weight != right->weight)
		return left->weight > right->weight ? -1 : 1;
	if (left->change != right->change)
		return left->change > right->change ? -1 : 1;
	return COMPARE(left->node, right->node);
}

/* Stores the children of `node` in `out`, sorted. Returns their number. */
static size_t sorted_diff_children(
	const struct tui_model *model, uint32_t node, struct weighed_node **out, size_t *room)
{
	const struct diff_pair *pair = model->context;
	size_t count = 0;

	for (uint32_t id = pair->diff->nodes.all[node].first_child; id;
		id = pair->diff->nodes.all[id].next) {
		const struct diff_node *child = &pair->diff->nodes.all[id];

		array_grow_zeroed(out, room, count + 1, sizeof **out);
		(*out)[count++] = (struct weighed_node){ diff_sort_weight(child, model->sort),
			fabs(diff_node_change(child)), id };
	}
	if (count)
		qsort(*out, count, sizeof **out, by_diff_weight);
	return count;
}

static void diff_sort(struct tui_model *model, uint32_t column)
{
	struct diff_pair *pair = model->context;
	struct tui_item *stack = NULL;
	struct weighed_node *level = NULL;
	size_t room = 0, level_room = 0, count = 0;
	struct tui_item item = { .key = 0, .parent = TUI_NONE };

	model->sort = column;
	model->count = 0;
	for (;;) {
		const uint32_t depth = item.key ? item.depth + 1 : 0,
			       parent = item.key ? model->count - 1 : TUI_NONE;
		size_t kids = sorted_diff_children(model, item.key, &level, &level_room);

		ARRAY_GROW(stack, room, count + kids);
		while (kids) /* the first child is popped first */
			stack[count++] = (struct tui_item){
				.key = level[--kids].node, .parent = parent, .depth = depth
			};
		if (!count)
			break;
		item = stack[--count];
		pair->nodes[model->count] = item.key;
		model->items[model->count++] = item;
	}
	free(stack);
	free(level);
	tui_model_set_ends(model);
}

static void format_diff_value(const struct tui_model *model, char *out, double value, bool sign)
{
	const struct diff_pair *pair = model->context;

	diff_format_value(pair->diff, out, value, sign, model->style->iec, model->style->ascii);
}

static const char *found_word(const struct diff_node *node)
{
	if (node->significant)
		return node->status == DIFF_NEW          ? "new"
		       : node->status == DIFF_REMOVED    ? "gone"
		       : node->value[1] > node->value[0] ? "more"
							 : "less";
	return node->test.tested ? "within" : "untested";
}

static enum tui_paint diff_paint(struct tui_model *model, uint32_t item)
{
	const struct diff_node *node = diff_item_node(model, item);

	return !node->significant                ? TUI_PLAIN
	       : node->value[1] > node->value[0] ? TUI_BAD
						 : TUI_GOOD;
}

/* Formats a percentage of the value before: of the whole run, or of the focus. */
static void format_diff_percent(const struct tui_model *model, struct tui_cell *cell, double value,
	uint32_t focus, bool sign)
{
	const struct diff_pair *pair = model->context;
	const double before = focus == TUI_NONE ? pair->diff->whole.mean[0]
						: diff_item_node(model, focus)->value[0];

	if (before == 0)
		snprintf(cell->text, sizeof cell->text, "-");
	else
		snprintf(cell->text, sizeof cell->text, sign ? "%+.1f %%" : "%.1f %%",
			100 * value / fabs(before));
}

static struct tui_cell diff_cell(
	struct tui_model *model, uint32_t item, uint32_t column, bool percent, uint32_t focus)
{
	const struct diff_node *node = diff_item_node(model, item);
	struct tui_cell cell = { .paint = diff_paint(model, item) };
	const double value = column == DIFF_BEFORE  ? node->value[0]
			     : column == DIFF_AFTER ? node->value[1]
						    : diff_node_change(node);

	switch (column) {
	case DIFF_RELATIVE:
		if (node->value[0] != 0)
			snprintf(cell.text, sizeof cell.text, "%+.1f %%",
				100 * diff_node_change(node) / fabs(node->value[0]));
		else
			snprintf(cell.text, sizeof cell.text, "-");
		break;
	case DIFF_FOUND:
		snprintf(cell.text, sizeof cell.text, "%s", found_word(node));
		break;
	case DIFF_P:
		if (!node->test.tested)
			snprintf(cell.text, sizeof cell.text, "-");
		else if (node->test.p < 0.0001)
			snprintf(cell.text, sizeof cell.text, "<0.0001");
		else
			snprintf(cell.text, sizeof cell.text, "%.4f", node->test.p);
		break;
	case DIFF_N:
		snprintf(cell.text, sizeof cell.text, "%u",
			node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
		break;
	default:
		if (percent)
			format_diff_percent(model, &cell, value, focus, column == DIFF_CHANGE);
		else
			format_diff_value(model, cell.text, value, column == DIFF_CHANGE);
	}
	return cell;
}

static size_t diff_name(
	struct tui_model *model, uint32_t item, bool is_short, char **out, size_t *room)
{
	const struct diff_pair *pair = model->context;
	const struct diff_node *node = diff_item_node(model, item);
	const struct string_view name = string_table_get(pair->diff->texts, node->key.name),
				 class = string_table_get(pair->diff->texts, node->key.class);
	size_t used;

	array_grow_zeroed(out, room, ((size_t)name.length + class.length) * 10 + 32, 1);
	used = escape_text(*out, *room, name.length ? name.bytes : "(no name)",
		name.length ? name.length : 9, model->style->ascii);
	if (!class.length || is_short)
		return used;
	used += (size_t)snprintf(*out + used, *room - used, " (");
	used += escape_text(
		*out + used, *room - used, class.bytes, class.length, model->style->ascii);
	return used + (size_t)snprintf(*out + used, *room - used, ")");
}

/* Returns true if both traces have values of `metric`. */
static bool diff_has_metric(struct tui_model *model, const char *metric)
{
	const struct diff_pair *pair = model->context;
	const enum metric wanted = metric_find(metric);
	bool has = true;

	for (unsigned which = 0; which < 2; which++) {
		const struct profile_totals *totals =
			&pair->diff->sides[which].process->profile->totals;

		if (wanted == METRIC_GPU || wanted == METRIC_IDLE)
			has &= totals->gpu_sum_ns > 0;
		else if (wanted == METRIC_RESERVED || wanted == METRIC_ALLOC ||
			 wanted == METRIC_RESERVED_PEAK)
			has &= totals->alloc_bytes > 0;
		else if (wanted == METRIC_ALLOCATED || wanted == METRIC_TENSORS ||
			 wanted == METRIC_ALLOCATED_PEAK)
			has &= totals->has_tensors;
	}
	return has;
}

static void set_diff(struct tui_model *model, struct diff *diff)
{
	struct diff_pair *pair = model->context;

	diff_free(pair->diff);
	free(pair->nodes);
	free(model->items);
	pair->diff = diff;
	pair->nodes = xcalloc(diff->nodes.count * sizeof *pair->nodes);
	model->items = xcalloc(diff->nodes.count * sizeof *model->items);
	model->keys = diff->nodes.count;
	model->metric = diff_metric_name(diff);
	model->simulated = diff->sides[0].process->simulated || diff->sides[1].process->simulated;
	diff_sort(model, DIFF_CHANGE);
}

static bool diff_change_metric(struct tui_model *model, const char *metric)
{
	set_diff(model, diff_read_unmatched(model->options, metric, model->options->files[0],
				model->options->files[1]));
	return false;
}

/* Returns the child of `node` (0: of the root) with the largest change. Returns 0 if none is
 * shown. */
static uint32_t worst_below(const struct diff *diff, uint32_t node)
{
	uint32_t best = 0;

	for (uint32_t id = diff->nodes.all[node].first_child; id; id = diff->nodes.all[id].next)
		if (diff->nodes.all[id].shown &&
			(!best || diff->nodes.all[id].largest_change >
					  diff->nodes.all[best].largest_change))
			best = id;
	return best;
}

/* Follows the largest change down from `node`, as long as it is at least half of the node's own. */
static uint32_t deepest_change(const struct diff *diff, uint32_t node)
{
	while (node) {
		const uint32_t below = worst_below(diff, node);
		const double change = fabs(diff_node_change(&diff->nodes.all[node]));

		if (!below || diff->nodes.all[below].largest_change * 2 < change)
			break;
		node = below;
	}
	return node;
}

static uint32_t diff_next_critical(
	struct tui_model *model, uint32_t from, bool last, char *message, size_t room)
{
	const struct diff_pair *pair = model->context;
	const uint32_t at = from == TUI_NONE || last ? 0 : pair->nodes[from],
		       worst = worst_below(pair->diff, at),
		       next = last ? deepest_change(pair->diff, worst) : worst;

	if (!next && at)
		snprintf(message, room, "nothing inside it changed significantly");
	else if (!next)
		snprintf(message, room, "no node changed significantly");
	else
		snprintf(message, room, "%u of %u nodes changed significantly",
			pair->diff->significant, pair->diff->nodes.count - 1);
	return next ? tui_model_find(model, next) : TUI_NONE;
}

static void add_value_line(const struct tui_model *model, struct tui_lines *lines,
	const char *title, double value, bool sign)
{
	char text[FORMAT_NUMBER_BYTES + 1];

	format_diff_value(model, text, value, sign);
	tui_linef(lines, "  %-22s %s", title, text);
}

/* Adds the name in the first run of what was replaced or renamed. */
static void add_former_name(
	const struct tui_model *model, struct tui_lines *lines, const struct diff_node *node)
{
	const struct diff_pair *pair = model->context;
	const struct string_view name = string_table_get(pair->diff->texts, node->before_key.name);
	struct text_builder line = { .text = NULL };

	if (node->status != DIFF_REPLACED && node->status != DIFF_RENAMED)
		return;
	text_add(&line, "  %-22s ", node->status == DIFF_REPLACED ? "replaced" : "renamed from");
	text_add_bytes(&line, name.bytes, name.length);
	tui_line(lines, model->style, line.text, line.used);
	free(line.text);
}

static void add_comparison(
	const struct tui_model *model, struct tui_lines *lines, const struct diff_node *node)
{
	const struct diff_pair *pair = model->context;

	tui_linef(lines, "%s of %s", model->metric,
		pair->diff->by_steps ? "a steady-state step (mean of the steps of each run)"
				     : "the whole run");
	add_value_line(model, lines, "before", node->value[0], false);
	add_value_line(model, lines, "after", node->value[1], false);
	add_value_line(model, lines, "change", diff_node_change(node), true);
	tui_linef(lines, "  %-22s %s", "verdict", found_word(node));
	add_former_name(model, lines, node);
	tui_linef(lines, "  %-22s %u before, %u after", "values", node->n[0], node->n[1]);
	if (!node->test.tested)
		return;
	tui_linef(lines, "  %-22s %.4g (adjusted for the false discovery rate)", "p", node->test.p);
	add_value_line(model, lines, "shift (Hodges-Lehmann)", node->test.shift, true);
	add_value_line(model, lines, "median before", node->test.median[0], false);
}

static void diff_details(struct tui_model *model, uint32_t item, struct tui_lines *lines)
{
	const struct diff_pair *pair = model->context;
	const struct diff_node *node = diff_item_node(model, item);
	struct row rows[2];

	for (unsigned which = 0; which < 2; which++) {
		const struct compared_run *side = &pair->diff->sides[which];

		rows[which] = (struct row){ .process = side->process,
			.kind = ROW_NODE,
			.parent = NO_ROW,
			.node = node->of[which],
			.tree = side->metric_samples->profile->tree };
	}
	add_comparison(model, lines, node);
	tui_linef(lines, "%s", "");
	tui_details_diff(
		lines, model->style, node->of[0] ? &rows[0] : NULL, node->of[1] ? &rows[1] : NULL);
}

static bool diff_enter_shows_details(struct tui_model *model, uint32_t item)
{
	return diff_item_node(model, item)->key.kind == NODE_KERNEL;
}

static void diff_pair_free(struct tui_model *model)
{
	struct diff_pair *pair = model->context;

	diff_free(pair->diff);
	free(pair->nodes);
	free(pair);
}

static const struct tui_kind diff_kind = {
	.cell = diff_cell,
	.name = diff_name,
	.paint = diff_paint,
	.sort = diff_sort,
	.has_metric = diff_has_metric,
	.change_metric = diff_change_metric,
	.next_critical = diff_next_critical,
	.details = diff_details,
	.enter_shows_details = diff_enter_shows_details,
	.free = diff_pair_free,
};

static void add_diff_warnings(struct tui_model *model, unsigned which)
{
	const struct diff_pair *pair = model->context;
	struct processes *processes = &pair->diff->sides[which].processes;

	warnings_collect(model->options, processes);
	for (size_t i = 0; i < processes->warning_count; i++)
		tui_line(&model->warnings, model->style, processes->warnings[i],
			strlen(processes->warnings[i]));
}

struct tui_model *tui_model_of_diff(const struct options *options, const struct style *style)
{
	struct tui_model *model = xcalloc(sizeof *model);

	*model = (struct tui_model){ .kind = &diff_kind,
		.options = options,
		.style = style,
		.context = xcalloc(sizeof(struct diff_pair)) };
	model->columns = xcalloc(sizeof diff_columns);
	memcpy(model->columns, diff_columns, sizeof diff_columns);
	model->column_count = DIFF_COLUMNS;
	set_diff(model,
		diff_read(options, options->metric_name, options->files[0], options->files[1]));
	for (unsigned which = 0; which < 2; which++)
		add_diff_warnings(model, which);
	tui_set_title(model, options->files[0], options->files[1]);
	return model;
}
