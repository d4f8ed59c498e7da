/* SPDX-License-Identifier: MIT
 * print_ruled.c: the critical tree: a line an instance, ruled to its figures, all in one unit.
 *
 *	slam ──────────────────────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
 *	  └── track - kf: 71 ──────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
 */
#include "report/text/shorten_names.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/print/print.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_COLUMN 51
#define MOST_COLUMN 120
#define LEAST_LABEL 12
#define LABEL_AT_ALL 5 /* even where lines become longer than the screen */
#define FIGURES_BYTES 384

struct ruled {
	const struct rows *rows;
	const struct style *style;
	size_t first, count; /* the rows of one tree */
	struct scale scale;
	bool user; /* figures that need not be integers, in the program's own unit */
	char unit[64];
	size_t column; /* where the bar stands */
	bool narrow;   /* the lines of the tree, so that names have room */
	const bool *last;
	struct apart_name *names; /* of the rows; NULL: not yet */
};

static long double size(long double value)
{
	return value < 0 ? -value : value;
}

static const struct instance *instance_at(const struct ruled *ruled, size_t index)
{
	return ruled->rows->rows[index].of.instance;
}

static bool has_levels(const struct ruled *ruled)
{
	return metrics[ruled->rows->rows[ruled->first].process->metric].nature == METRIC_LEVEL;
}

/* One unit for the tree: that of its largest figure. */
static void find_scale(struct ruled *ruled)
{
	const struct process *process = ruled->rows->rows[ruled->first].process;
	long double largest = 0;

	for (size_t i = ruled->first; i < ruled->first + ruled->count; i++) {
		const struct instance *instance = instance_at(ruled, i);
		const long double figures[] = { has_levels(ruled) ? instance->before : instance->value,
			has_levels(ruled) ? instance->after : 0 };

		for (size_t figure = 0; figure < 2; figure++)
			if (size(figures[figure]) > largest)
				largest = size(figures[figure]);
	}
	ruled->user = process->metric == METRIC_USER;
	ruled->scale = scale_for(metrics[process->metric].unit,
		largest < 9e18L ? (uint64_t)largest : UINT64_C(9000000000000000000), ruled->style->iec,
		ruled->style->ascii);
	if (ruled->user) {
		const struct text unit = text_of(process->texts, process->fold->counter_unit);

		visible(ruled->unit, sizeof ruled->unit, unit.bytes, unit.length, ruled->style->ascii);
	} else {
		snprintf(ruled->unit, sizeof ruled->unit, "%s", ruled->scale.name);
	}
}

static size_t figure(const struct ruled *ruled, char *out, long double value, unsigned decimals)
{
	if (size(value) < 9e18L && value == (long double)(int64_t)value)
		return number_fixed(out, (int64_t)value, ruled->scale.divisor, decimals);
	return number_real(out, value / (long double)ruled->scale.divisor, decimals);
}

static void figures(const struct ruled *ruled, size_t index, char *out, size_t room)
{
	const struct instance *instance = instance_at(ruled, index), *root = instance_at(ruled, ruled->first);
	const char *gap = *ruled->unit ? " " : "";
	char before[NUMBER_BYTES], after[NUMBER_BYTES], change[NUMBER_BYTES];

	if (has_levels(ruled)) {
		figure(ruled, before, instance->before, 2);
		figure(ruled, after, instance->after, 2);
		figure(ruled, change, instance->change, 4);
		snprintf(out, room, "%s%s%s %s %s%s%s (%s %s)", before, gap, ruled->unit,
			ruled->style->ascii ? "->" : "\xe2\x86\x92", after, gap, ruled->unit, change,
			ruled->style->ascii ? "d" : "\xe2\x88\x86");
		return;
	}
	figure(ruled, before, instance->value,
		metrics[ruled->rows->rows[ruled->first].process->metric].unit == UNIT_COUNT ? 0 : 2);
	number_percent(change, number_integer(instance->value), number_integer(root->value));
	snprintf(out, room, "%s%s%s (%s)", before, gap, ruled->unit, change);
}

/* What a label needs. */
static size_t least_label(size_t width)
{
	return width < LEAST_LABEL ? width : LEAST_LABEL;
}

/* The branch before a label, or its depth where it is too deep to draw. Returns its columns. */
static size_t branch_of(const struct ruled *ruled, size_t index, size_t label_width, size_t most, char *text, size_t room)
{
	const struct row *row = &ruled->rows->rows[index];
	const struct branches branches = { .last = ruled->last, .ascii = ruled->style->ascii, .narrow = ruled->narrow };
	const size_t used = print_branch(text, room, ruled->rows, index, &branches), width = visible_width(text, used);
	char depth[24];
	int length;

	if (!most || width + least_label(label_width) <= most)
		return width;
	length = snprintf(depth, sizeof depth, "  (%u) ", row->depth);
	if ((size_t)length >= width)
		return width;
	memcpy(text, depth, (size_t)length + 1);
	return (size_t)length;
}

/* The label, made visible; to be freed. */
static char *label_of(const struct ruled *ruled, size_t index)
{
	const struct text label = row_label(&ruled->rows->rows[index], ruled->style->ascii);
	const size_t room = (size_t)label.length * 10 + 16;
	char *text = need(room);

	visible(text, room, label.bytes, label.length, ruled->style->ascii);
	return text;
}

static size_t branch_room(const struct ruled *ruled, size_t index)
{
	return (size_t)ruled->rows->rows[index].depth * 12 + 32;
}

/* Label line without the rule: branch and label. Returns its width; label shortened to what is left of `most` (0:
 * not). */
static size_t label_line(const struct ruled *ruled, size_t index, size_t most, char **line)
{
	char *whole = label_of(ruled, index);
	const char *label = most && ruled->names ? ruled->names[index - ruled->first].text : whole;
	const size_t room = branch_room(ruled, index) + strlen(label) + 1;
	char *text = need(room);
	const size_t width = branch_of(ruled, index, visible_width(whole, strlen(whole)), most, text, branch_room(ruled, index)) +
			     visible_width(label, strlen(label));

	strcpy(text + strlen(text), label);
	free(whole);
	*line = text;
	return width;
}

/* Labels as short as the column asks for; those of one parent can still be told apart. */
static void name_rows(struct ruled *ruled)
{
	const size_t most = ruled->column - 3;

	ruled->names = need((ruled->count + 1) * sizeof *ruled->names);
	for (size_t i = 0; i < ruled->count; i++) {
		const size_t index = ruled->first + i;
		struct apart_name *name = &ruled->names[i];
		char *branch = need(branch_room(ruled, index));
		size_t width;

		name->whole = label_of(ruled, index);
		name->list = ruled->rows->rows[index].parent;
		width = branch_of(ruled, index, visible_width(name->whole, strlen(name->whole)), most, branch, branch_room(ruled, index));
		name->columns = most > width + LABEL_AT_ALL ? most - width : LABEL_AT_ALL;
		free(branch);
	}
	apart_names(ruled->names, ruled->count, ruled->style->ascii);
}

static void find_column(struct ruled *ruled)
{
	size_t widest = 0, widest_figures = 0;
	char text[FIGURES_BYTES], *line;

	for (size_t i = ruled->first; i < ruled->first + ruled->count; i++) {
		const size_t width = label_line(ruled, i, 0, &line);

		free(line);
		if (width > widest)
			widest = width;
		figures(ruled, i, text, sizeof text);
		if (visible_width(text, strlen(text)) > widest_figures)
			widest_figures = visible_width(text, strlen(text));
	}
	ruled->column = widest + 3 > LEAST_COLUMN ? widest + 3 : LEAST_COLUMN;
	/* Off a terminal the layout is the same everywhere, unless a width is asked for; names of templates are cut all the same. */
	if (!ruled->style->terminal && !ruled->style->width_given) {
		ruled->column = ruled->column < MOST_COLUMN ? ruled->column : MOST_COLUMN;
		return;
	}
	if (ruled->column + 2 + widest_figures <= ruled->style->width)
		return;
	ruled->column = ruled->style->width > widest_figures + 2 + LEAST_LABEL + 3 ? ruled->style->width - widest_figures - 2
										   : LEAST_LABEL + 3;
	for (size_t i = ruled->first; i < ruled->first + ruled->count; i++) {
		const size_t branch = print_branch_width(ruled->rows->rows[i].depth, false), width = label_line(ruled, i, 0, &line);

		free(line);
		ruled->narrow |= branch + least_label(width - branch) + 3 > ruled->column;
	}
}

static void put_line(const struct ruled *ruled, size_t index)
{
	const struct style *style = ruled->style;
	char text[FIGURES_BYTES], *line;
	size_t width = label_line(ruled, index, ruled->column - 3, &line);

	out_string(style->out, line);
	out_char(style->out, ' ');
	print_paint(style, PAINT_DIM);
	for (width++; width < ruled->column; width++)
		out_string(style->out, style->ascii ? "-" : "\xe2\x94\x80");
	out_string(style->out, style->ascii ? "|" : "\xe2\x94\x82");
	print_paint(style, PAINT_NONE);
	figures(ruled, index, text, sizeof text);
	out_char(style->out, ' ');
	out_string(style->out, text);
	out_char(style->out, '\n');
	free(line);
}

static void put_tree(const struct rows *rows, size_t first, size_t count, const struct style *style, const bool *last)
{
	struct ruled ruled = { .rows = rows, .style = style, .first = first, .count = count, .last = last };

	find_scale(&ruled);
	find_column(&ruled);
	name_rows(&ruled);
	for (size_t i = first; i < first + count; i++)
		put_line(&ruled, i);
	apart_free(ruled.names, count);
}

void print_ruled(const struct rows *rows, const struct options *options, const struct style *style)
{
	bool *last = print_last_children(rows);
	size_t first = 0, end;

	for (; first < rows->count; first = end) {
		for (end = first + 1; end < rows->count && rows->rows[end].depth > 0; end++)
			;
		if (options->all)
			print_line(style, "%spid %u\n", first ? "\n" : "", rows->rows[first].process->pid);
		put_tree(rows, first, end - first, style, last);
	}
	free(last);
}
