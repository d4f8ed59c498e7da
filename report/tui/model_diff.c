/* SPDX-License-Identifier: MIT
 * tui_diff.c: two traces to browse: every place of either, as diff.h compares them.
 */
#include "report/analysis/run_diff.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/run/warnings.h"
#include "report/tui/model.h"
#include "report/base/escape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_OF_DIFF(X)                                                                                              \
	X(BEFORE, "before", "before", false, "what the first trace had of the metric")                                  \
	X(AFTER, "after", "after", false, "what the second had")                                                        \
	X(CHANGE, "change", "change", false, "after - before; ordered by how much it is, up or down")                   \
	X(RELATIVE, "relative", "%", false, "the change in percent of what was before")                                  \
	X(FOUND, "found", "noise?", true,                                                                               \
		"more, less, new, gone: beyond noise; within: not; untested: too few values, or nothing to compare with") \
	X(P, "p", "p", false, "how likely so much of a change is where there is none; corrected for all places")       \
	X(N, "n", "n", false, "values that were compared, of the side that has fewer")

enum {
#define X(id, key, title, left, help) DIFF_##id,
	COLUMNS_OF_DIFF(X)
#undef X
	DIFF_COLUMNS
};

static const struct tui_column list[] = {
#define X(id, name, heading, words, text) \
	{ .key = name, .title = heading, .left = words, .help = text, .sortable = !(words), .filled = true, .shown = true },
	COLUMNS_OF_DIFF(X)
#undef X
};

struct pair {
	struct diff *diff;
	uint32_t *nodes; /* by item */
};

static const struct diff_node *node_of(const struct tui_model *model, uint32_t item)
{
	const struct pair *pair = model->context;

	return &pair->diff->nodes[pair->nodes[item]];
}

static double change_of(const struct diff_node *node)
{
	return node->after - node->before;
}

/* By how much rows are ordered; the largest first. */
static double weight(const struct diff_node *node, uint32_t column)
{
	switch (column) {
	case DIFF_BEFORE:
		return node->before;
	case DIFF_AFTER:
		return node->after;
	case DIFF_RELATIVE:
		return node->before != 0 ? fabs(change_of(node) / node->before) : node->after != 0 ? HUGE_VAL : 0;
	case DIFF_P:
		return node->comparison.tested ? 1 - node->comparison.p : -1;
	case DIFF_N:
		return node->n[0] < node->n[1] ? node->n[0] : node->n[1];
	default:
		return node->shown ? node->most : 0;
	}
}

struct weighed {
	double weight, change;
	uint32_t node;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *left = a, *right = b;

	if (left->weight != right->weight)
		return left->weight > right->weight ? -1 : 1;
	if (left->change != right->change)
		return left->change > right->change ? -1 : 1;
	return (left->node > right->node) - (left->node < right->node);
}

/* The children of a node, ordered; returns how many. */
static size_t children(const struct tui_model *model, uint32_t node, struct weighed **out, size_t *room)
{
	const struct pair *pair = model->context;
	size_t count = 0;

	for (uint32_t id = pair->diff->nodes[node].first_child; id; id = pair->diff->nodes[id].next) {
		const struct diff_node *child = &pair->diff->nodes[id];

		grow(out, room, count + 1, sizeof **out);
		(*out)[count++] = (struct weighed){ weight(child, model->sort), fabs(change_of(child)), id };
	}
	if (count)
		qsort(*out, count, sizeof **out, by_weight);
	return count;
}

static void diff_sort(struct tui_model *model, uint32_t column)
{
	struct pair *pair = model->context;
	struct tui_item *waiting = NULL;
	struct weighed *level = NULL;
	size_t room = 0, level_room = 0, count = 0;
	struct tui_item item = { .key = 0, .parent = TUI_NONE };

	model->sort = column;
	model->count = 0;
	for (;;) {
		const uint32_t depth = item.key ? item.depth + 1 : 0, parent = item.key ? model->count - 1 : TUI_NONE;
		size_t kids = children(model, item.key, &level, &level_room);

		grow(&waiting, &room, count + kids, sizeof *waiting);
		while (kids) /* the first is taken first */
			waiting[count++] = (struct tui_item){ .key = level[--kids].node, .parent = parent, .depth = depth };
		if (!count)
			break;
		item = waiting[--count];
		pair->nodes[model->count] = item.key;
		model->items[model->count++] = item;
	}
	free(waiting);
	free(level);
	tui_model_ends(model);
}

static void put_figure(const struct tui_model *model, char *out, double value, bool sign)
{
	const struct pair *pair = model->context;

	diff_figure(pair->diff, out, value, sign, model->style->iec, model->style->ascii);
}

static const char *found_word(const struct diff_node *node)
{
	if (node->found)
		return node->status == DIFF_NEW ? "new" : node->status == DIFF_GONE ? "gone" : node->after > node->before ? "more" : "less";
	return node->comparison.tested ? "within" : "untested";
}

static enum tui_paint diff_paint(struct tui_model *model, uint32_t item)
{
	const struct diff_node *node = node_of(model, item);

	return !node->found ? TUI_PLAIN : node->after > node->before ? TUI_BAD : TUI_GOOD;
}

/* Of the whole, or of the focus: percent is of what was before. */
static void put_percent(const struct tui_model *model, struct tui_cell *cell, double value, uint32_t focus, bool sign)
{
	const struct pair *pair = model->context;
	const double before = focus == TUI_NONE ? pair->diff->before : node_of(model, focus)->before;

	if (before == 0)
		snprintf(cell->text, sizeof cell->text, "-");
	else
		snprintf(cell->text, sizeof cell->text, sign ? "%+.1f %%" : "%.1f %%", 100 * value / fabs(before));
}

static struct tui_cell diff_cell(struct tui_model *model, uint32_t item, uint32_t column, bool percent, uint32_t focus)
{
	const struct diff_node *node = node_of(model, item);
	struct tui_cell cell = { .paint = diff_paint(model, item) };
	const double value = column == DIFF_BEFORE ? node->before : column == DIFF_AFTER ? node->after : change_of(node);

	switch (column) {
	case DIFF_RELATIVE:
		if (node->before != 0)
			snprintf(cell.text, sizeof cell.text, "%+.1f %%", 100 * change_of(node) / fabs(node->before));
		else
			snprintf(cell.text, sizeof cell.text, "-");
		break;
	case DIFF_FOUND:
		snprintf(cell.text, sizeof cell.text, "%s", found_word(node));
		break;
	case DIFF_P:
		if (!node->comparison.tested)
			snprintf(cell.text, sizeof cell.text, "-");
		else if (node->comparison.p < 0.0001)
			snprintf(cell.text, sizeof cell.text, "<0.0001");
		else
			snprintf(cell.text, sizeof cell.text, "%.4f", node->comparison.p);
		break;
	case DIFF_N:
		snprintf(cell.text, sizeof cell.text, "%u", node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
		break;
	default:
		if (percent)
			put_percent(model, &cell, value, focus, column == DIFF_CHANGE);
		else
			put_figure(model, cell.text, value, column == DIFF_CHANGE);
	}
	return cell;
}

static size_t diff_name(struct tui_model *model, uint32_t item, bool is_short, char **out, size_t *room)
{
	const struct pair *pair = model->context;
	const struct diff_node *node = node_of(model, item);
	const struct text name = text_of(pair->diff->texts, node->name), class = text_of(pair->diff->texts, node->class);
	size_t used;

	grow(out, room, ((size_t)name.length + class.length) * 10 + 32, 1);
	used = visible(*out, *room, name.length ? name.bytes : "(no name)", name.length ? name.length : 9, model->style->ascii);
	if (!class.length || is_short)
		return used;
	used += (size_t)snprintf(*out + used, *room - used, " (");
	used += visible(*out + used, *room - used, class.bytes, class.length, model->style->ascii);
	return used + (size_t)snprintf(*out + used, *room - used, ")");
}

/* A metric that both have. */
static bool diff_has_metric(struct tui_model *model, const char *metric)
{
	const struct pair *pair = model->context;
	const enum metric wanted = metric_find(metric);
	bool has = true;

	for (unsigned which = 0; which < 2; which++) {
		const struct fold_totals *totals = &pair->diff->sides[which].process->fold->totals;

		if (wanted == METRIC_GPU || wanted == METRIC_IDLE)
			has &= totals->gpu_sum_ns > 0;
		else if (wanted == METRIC_RESERVED || wanted == METRIC_ALLOC)
			has &= totals->alloc_bytes > 0;
		else if (wanted == METRIC_ALLOCATED || wanted == METRIC_TENSORS)
			has &= totals->has_tensors;
	}
	return has;
}

static void take(struct tui_model *model, struct diff *diff)
{
	struct pair *pair = model->context;

	diff_free(pair->diff);
	free(pair->nodes);
	free(model->items);
	pair->diff = diff;
	pair->nodes = need(diff->count * sizeof *pair->nodes);
	model->items = need(diff->count * sizeof *model->items);
	model->keys = diff->count;
	model->metric = diff_metric_name(diff);
	model->simulated = diff->sides[0].process->simulated || diff->sides[1].process->simulated;
	diff_sort(model, DIFF_CHANGE);
}

static bool diff_measure(struct tui_model *model, const char *metric)
{
	take(model, diff_of(model->options, metric, model->options->files[0], model->options->files[1]));
	return false;
}

/* Inside of a place (0: everywhere), what changed most; 0: nothing that is worth a line. */
static uint32_t worst_below(const struct diff *diff, uint32_t node)
{
	uint32_t best = 0;

	for (uint32_t id = diff->nodes[node].first_child; id; id = diff->nodes[id].next)
		if (diff->nodes[id].shown && (!best || diff->nodes[id].most > diff->nodes[best].most))
			best = id;
	return best;
}

static uint32_t diff_worst(struct tui_model *model, uint32_t from, bool last, char *said, size_t room)
{
	const struct pair *pair = model->context;
	uint32_t at = from == TUI_NONE || last ? 0 : pair->nodes[from], next = worst_below(pair->diff, at);

	while (last && next) {
		const uint32_t below = worst_below(pair->diff, next);

		if (!below || pair->diff->nodes[below].most * 2 < fabs(change_of(&pair->diff->nodes[next])))
			break;
		next = below;
	}
	if (!next && at)
		snprintf(said, room, "nothing inside of it changed by more than noise");
	else if (!next)
		snprintf(said, room, "no place changed by more than noise");
	else
		snprintf(said, room, "%u of %u places changed by more than noise", pair->diff->found, pair->diff->count - 1);
	return next ? tui_item(model, next) : TUI_NONE;
}

static void put_pair(const struct tui_model *model, struct tui_lines *lines, const char *title, double value, bool sign)
{
	char text[NUMBER_BYTES + 1];

	put_figure(model, text, value, sign);
	tui_linef(lines, "  %-22s %s", title, text);
}

static void put_test(const struct tui_model *model, struct tui_lines *lines, const struct diff_node *node)
{
	const struct pair *pair = model->context;

	tui_linef(lines, "%s of %s", model->metric,
		pair->diff->by_steps ? "a usual step (mean of the steps of each run)" : "the whole run");
	put_pair(model, lines, "before", node->before, false);
	put_pair(model, lines, "after", node->after, false);
	put_pair(model, lines, "change", change_of(node), true);
	tui_linef(lines, "  %-22s %s", "verdict", found_word(node));
	tui_linef(lines, "  %-22s %u before, %u after", "values", node->n[0], node->n[1]);
	if (!node->comparison.tested)
		return;
	tui_linef(lines, "  %-22s %.4g (Mann-Whitney U, Holm over all places)", "p", node->comparison.p);
	put_pair(model, lines, "shift (Hodges-Lehmann)", node->comparison.shift, true);
	put_pair(model, lines, "median before", node->comparison.median, false);
}

static void diff_details(struct tui_model *model, uint32_t item, struct tui_lines *lines)
{
	const struct pair *pair = model->context;
	const struct diff_node *node = node_of(model, item);
	struct row rows[2];

	for (unsigned which = 0; which < 2; which++) {
		const struct diff_side *side = &pair->diff->sides[which];

		rows[which] = (struct row){ .process = side->process,
			.kind = ROW_NODE,
			.parent = NO_ROW,
			.node = node->of[which],
			.tree = side->amounts->fold->tree };
	}
	put_test(model, lines, node);
	tui_linef(lines, "%s", "");
	tui_details_both(lines, model->style, node->of[0] ? &rows[0] : NULL, node->of[1] ? &rows[1] : NULL);
}

static bool diff_details_first(struct tui_model *model, uint32_t item)
{
	return node_of(model, item)->kind == NODE_KERNEL;
}

static void pair_free(struct tui_model *model)
{
	struct pair *pair = model->context;

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
	.measure = diff_measure,
	.worst = diff_worst,
	.details = diff_details,
	.has_details_first = diff_details_first,
	.free = pair_free,
};

static void add_remarks(struct tui_model *model, unsigned which)
{
	const struct pair *pair = model->context;
	struct processes *processes = &pair->diff->sides[which].processes;

	remarks_collect(model->options, processes);
	for (size_t i = 0; i < processes->warning_count; i++)
		tui_line(&model->remarks, model->style, processes->warnings[i], strlen(processes->warnings[i]));
}

struct tui_model *tui_diff(const struct options *options, const struct style *style)
{
	struct tui_model *model = need(sizeof *model);

	*model = (struct tui_model){ .kind = &diff_kind, .options = options, .style = style, .context = need(sizeof(struct pair)) };
	model->columns = need(sizeof list);
	memcpy(model->columns, list, sizeof list);
	model->column_count = DIFF_COLUMNS;
	take(model, diff_read(options, options->metric_name, options->files[0], options->files[1]));
	for (unsigned which = 0; which < 2; which++)
		add_remarks(model, which);
	tui_title(model, options->files[0], options->files[1]);
	return model;
}
