/* SPDX-License-Identifier: MIT
 *
 * Prints the critical tree: one line for each instance, with a rule from the name to its values.
 * All values of a tree have one unit.
 *
 *	slam ──────────────────────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
 *	  └── track - kf: 71 ──────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
 */
#include "report/text/shorten_names.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/print/print.h"
#include "report/base/escape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_MIN 51
#define COLUMN_MAX 120
#define LABEL_MIN 12
#define LABEL_MIN_ALWAYS 5 /* even if lines become longer than the screen */
#define VALUES_BYTES 384

struct critical_layout {
	const struct rows *rows;
	const struct style *style;
	size_t first, count; /* the rows of one tree */
	struct scale scale;
	bool user; /* values in the program's own unit, which may not be integers */
	char unit[64];
	size_t column; /* screen column of the bar */
	bool narrow;   /* draw narrow tree lines, to leave room for names */
	const bool *last;
	struct shortened_name *names; /* of the rows; NULL: not computed yet */
};

static long double magnitude(long double value)
{
	return value < 0 ? -value : value;
}

static const struct instance *instance_at(const struct critical_layout *layout, size_t index)
{
	return layout->rows->rows[index].of.instance;
}

static bool shows_levels(const struct critical_layout *layout)
{
	return metrics[layout->rows->rows[layout->first].process->metric].nature == METRIC_LEVEL;
}

static long double largest_magnitude(const struct critical_layout *layout)
{
	long double largest = 0;

	for (size_t i = layout->first; i < layout->first + layout->count; i++) {
		const struct instance *instance = instance_at(layout, i);

		if (shows_levels(layout))
			largest = fmaxl(largest, fmaxl(magnitude(instance->level_before),
							 magnitude(instance->level_after)));
		else
			largest = fmaxl(largest, magnitude(instance->value));
	}
	return largest;
}

/* Selects the unit of the tree: that of its largest value. */
static void find_scale(struct critical_layout *layout)
{
	const struct process *process = layout->rows->rows[layout->first].process;
	const long double largest = largest_magnitude(layout);

	layout->user = process->metric == METRIC_USER;
	layout->scale = scale_for(metrics[process->metric].unit,
		largest < 9e18L ? (uint64_t)largest : UINT64_C(9000000000000000000),
		layout->style->iec, layout->style->ascii);
	if (layout->user) {
		const struct string_view unit = string_table_get(
			process->texts, process->profile->counter_unit);

		escape_text(layout->unit, sizeof layout->unit, unit.bytes, unit.length,
			layout->style->ascii);
	} else {
		snprintf(layout->unit, sizeof layout->unit, "%s", layout->scale.name);
	}
}

static size_t format_value(
	const struct critical_layout *layout, char *out, long double value, unsigned decimals)
{
	if (magnitude(value) < 9e18L && value == (long double)(int64_t)value)
		return format_fixed(out, (int64_t)value, layout->scale.divisor, decimals);
	return format_real(out, value / (long double)layout->scale.divisor, decimals);
}

/* Returns the sign before a level of which the trace has only a lower bound. */
static const char *lower_bound_sign(const struct critical_layout *layout)
{
	const struct process *process = layout->rows->rows[layout->first].process;

	if ((process->metric != METRIC_ALLOCATED && process->metric != METRIC_ALLOCATED_PEAK) ||
		!process_tensor_levels_are_least(process))
		return "";
	return layout->style->ascii ? ">= " : "\xe2\x89\xa5 ";
}

/* Writes the levels of `instance`, and their difference. */
static void format_levels(const struct critical_layout *layout, const struct instance *instance,
	char *out, size_t room)
{
	const enum metric metric = layout->rows->rows[layout->first].process->metric;
	const char *gap = *layout->unit ? " " : "", *least = lower_bound_sign(layout);
	char before[FORMAT_NUMBER_BYTES], after[FORMAT_NUMBER_BYTES], change[FORMAT_NUMBER_BYTES];

	format_value(layout, before, instance->level_before, 2);
	format_value(layout, after, instance->level_after, 2);
	format_value(layout, change, instance->change, 4);
	snprintf(out, room, "%s%s%s%s %s %s%s%s%s%s (%s %s)", least, before, gap, layout->unit,
		layout->style->ascii ? "->" : "\xe2\x86\x92", metric_is_peak(metric) ? "peak " : "",
		least, after, gap, layout->unit, change,
		layout->style->ascii ? "d" : "\xe2\x88\x86");
}

static void format_row(const struct critical_layout *layout, size_t index, char *out, size_t room)
{
	const struct instance *instance = instance_at(layout, index),
			      *root = instance_at(layout, layout->first);
	const char *gap = *layout->unit ? " " : "";
	char value[FORMAT_NUMBER_BYTES], share[FORMAT_NUMBER_BYTES];

	if (shows_levels(layout)) {
		format_levels(layout, instance, out, room);
		return;
	}
	format_value(layout, value, instance->value,
		metrics[layout->rows->rows[layout->first].process->metric].unit == UNIT_COUNT ? 0
											      : 2);
	format_percent(share, clamp_to_i64(instance->value), clamp_to_i64(root->value));
	snprintf(out, room, "%s%s%s (%s)", value, gap, layout->unit, share);
}

/* The minimum width of a label. */
static size_t min_label_width(size_t width)
{
	return width < LABEL_MIN ? width : LABEL_MIN;
}

/* Writes the tree's lines before a label, or the depth if there is no room for lines. Returns the
 * width. */
static size_t critical_branch(const struct critical_layout *layout, size_t index,
	size_t label_width, size_t max_width, char *text, size_t room)
{
	const struct row *row = &layout->rows->rows[index];
	const struct branches branches = {
		.last = layout->last, .ascii = layout->style->ascii, .narrow = layout->narrow
	};
	const size_t used = print_branch(text, room, layout->rows, index, &branches),
		     width = escaped_width(text, used);
	char depth[24];
	int length;

	if (!max_width || width + min_label_width(label_width) <= max_width)
		return width;
	length = snprintf(depth, sizeof depth, "  (%u) ", row->depth);
	if ((size_t)length >= width)
		return width;
	memcpy(text, depth, (size_t)length + 1);
	return (size_t)length;
}

/* Returns the escaped label; the caller frees it. */
static char *critical_label(const struct critical_layout *layout, size_t index)
{
	const struct string_view label = row_label(
		&layout->rows->rows[index], layout->style->ascii);
	const size_t room = (size_t)label.length * 10 + 16;
	char *text = xcalloc(room);

	escape_text(text, room, label.bytes, label.length, layout->style->ascii);
	return text;
}

static size_t branch_bytes(const struct critical_layout *layout, size_t index)
{
	return (size_t)layout->rows->rows[index].depth * 12 + 32;
}

/* Builds the tree's lines and the label, without the rule. The label is shortened to fit into
 * `max_width` (0: not shortened). Returns the width. */
static size_t critical_label_line(
	const struct critical_layout *layout, size_t index, size_t max_width, char **line)
{
	char *whole = critical_label(layout, index);
	const char *label = max_width && layout->names ? layout->names[index - layout->first].text
						       : whole;
	const size_t room = branch_bytes(layout, index) + strlen(label) + 1;
	char *text = xcalloc(room);
	const size_t width = critical_branch(layout, index, escaped_width(whole, strlen(whole)),
				     max_width, text, branch_bytes(layout, index)) +
			     escaped_width(label, strlen(label));

	strcpy(text + strlen(text), label);
	free(whole);
	*line = text;
	return width;
}

/* Shortens the labels to fit before the bar. Children of one parent keep distinct labels. */
static void shorten_labels(struct critical_layout *layout)
{
	const size_t max_width = layout->column - 3;

	layout->names = xcalloc((layout->count + 1) * sizeof *layout->names);
	for (size_t i = 0; i < layout->count; i++) {
		const size_t index = layout->first + i;
		struct shortened_name *name = &layout->names[i];
		char *branch = xcalloc(branch_bytes(layout, index));
		size_t width;

		name->whole = critical_label(layout, index);
		name->group = layout->rows->rows[index].parent;
		width = critical_branch(layout, index,
			escaped_width(name->whole, strlen(name->whole)), max_width, branch,
			branch_bytes(layout, index));
		name->columns = layout->style->whole_names             ? SIZE_MAX
				: max_width > width + LABEL_MIN_ALWAYS ? max_width - width
								       : LABEL_MIN_ALWAYS;
		free(branch);
	}
	shorten_names(layout->names, layout->count, layout->style->ascii);
}

static void find_bar_column(struct critical_layout *layout)
{
	size_t widest = 0, widest_values = 0;
	char text[VALUES_BYTES], *line;

	for (size_t i = layout->first; i < layout->first + layout->count; i++) {
		const size_t width = critical_label_line(layout, i, 0, &line);

		free(line);
		if (width > widest)
			widest = width;
		format_row(layout, i, text, sizeof text);
		if (escaped_width(text, strlen(text)) > widest_values)
			widest_values = escaped_width(text, strlen(text));
	}
	layout->column = widest + 3 > COLUMN_MIN ? widest + 3 : COLUMN_MIN;
	/* Without a terminal, lines have the same layout everywhere unless a width is given. Long
	 * template names are still cut. */
	if (!layout->style->terminal && !layout->style->width_given) {
		layout->column = layout->column < COLUMN_MAX ? layout->column : COLUMN_MAX;
		return;
	}
	if (layout->column + 2 + widest_values <= layout->style->width)
		return;
	layout->column = layout->style->width > widest_values + 2 + LABEL_MIN + 3
				 ? layout->style->width - widest_values - 2
				 : LABEL_MIN + 3;
	for (size_t i = layout->first; i < layout->first + layout->count; i++) {
		const size_t branch = print_branch_width(layout->rows->rows[i].depth, false),
			     width = critical_label_line(layout, i, 0, &line);

		free(line);
		layout->narrow |= branch + min_label_width(width - branch) + 3 > layout->column;
	}
}

static void put_critical_line(const struct critical_layout *layout, size_t index)
{
	const struct style *style = layout->style;
	char text[VALUES_BYTES], *line;
	size_t width = critical_label_line(layout, index, layout->column - 3, &line);

	output_string(style->out, line);
	output_char(style->out, ' ');
	print_paint(style, PAINT_DIM);
	for (width++; width < layout->column; width++)
		output_string(style->out, style->ascii ? "-" : "\xe2\x94\x80");
	output_string(style->out, style->ascii ? "|" : "\xe2\x94\x82");
	print_paint(style, PAINT_NONE);
	format_row(layout, index, text, sizeof text);
	output_char(style->out, ' ');
	output_string(style->out, text);
	output_char(style->out, '\n');
	free(line);
}

static void put_critical_tree(const struct rows *rows, size_t first, size_t count,
	const struct style *style, const bool *last)
{
	struct critical_layout layout = {
		.rows = rows, .style = style, .first = first, .count = count, .last = last
	};

	find_scale(&layout);
	find_bar_column(&layout);
	shorten_labels(&layout);
	for (size_t i = first; i < first + count; i++)
		put_critical_line(&layout, i);
	shorten_names_free(layout.names, count);
}

/* Writes the process above its tree. `blank_line`: after an empty line. */
static void put_process_title(
	const struct process *process, bool blank_line, const struct style *style)
{
	print_line(style, "%s%s%spid %u\n", blank_line ? "\n" : "",
		process->rank >= 0 ? process_name(process) : "", process->rank >= 0 ? ", " : "",
		process->pid);
}

void print_critical(
	const struct rows *rows, const struct options *options, const struct style *style)
{
	bool *last = print_last_children(rows);
	size_t first = 0, end;

	for (; first < rows->count; first = end) {
		for (end = first + 1; end < rows->count && rows->rows[end].depth > 0; end++)
			;
		if (options->all)
			put_process_title(rows->rows[first].process, first > 0, style);
		put_critical_tree(rows, first, end - first, style, last);
	}
	free(last);
}
