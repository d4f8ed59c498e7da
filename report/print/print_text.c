/* SPDX-License-Identifier: MIT
 *
 * Prints rows as text: with units, aligned, with the columns that fit, and long names shortened in
 * the middle. In a file or a pipe names are whole, and a long one moves the figures after it.
 */
#include "report/text/shorten_names.h"
#include "report/base/compare.h"
#include "report/table/cell_text.h"
#include "report/base/alloc.h"
#include "report/print/next_command.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 512 /* more than there are */
/* Percent of the width reserved for names, if they need it, before another column is added.
 * TREE_SHARE applies to ranges in a tree, where call paths matter more than another column. */
#define NAME_SHARE 45
#define TABLE_NAME_SHARE 40 /* of the view table, so that times with and without children fit */
#define TREE_SHARE 60

/* A column that is shown. */
struct text_column {
	const struct column *column;
	size_t width;
};

struct text_table {
	const struct rows *rows;
	const struct style *style;
	struct text_column shown[COLUMNS_MAX];
	size_t count;
	/* Screen columns; widest_range: of ranges in a tree, with the tree's lines. */
	size_t name_width, widest_name, widest_range;
	struct branches branches;
	struct shortened_name *names; /* of the rows */
	const char *share_title;      /* of the column "share"; NULL: its own */
	size_t blanks; /* written before the next text, so that no line ends in blanks */
};

/* Returns true for a text that the row's own name or that of its parent row already says. */
static bool repeats_name(const struct text_table *table, const struct column *column,
	const struct row *row, const char *text, size_t length)
{
	const struct row *named = row;

	for (int i = 0; i < 2 && column->unit == UNIT_TEXT && length; i++) {
		const struct string_view label = row_label(named, table->style->ascii);

		if (label.length == length && !memcmp(label.bytes, text, length))
			return true;
		if (row->parent == NO_ROW)
			return false;
		named = &table->rows->rows[row->parent];
	}
	return false;
}

/* Writes a cell as it is shown: empty if it repeats a name. Returns its length. */
static size_t shown_cell_text(const struct text_table *table, const struct column *column,
	const struct row *row, char *text)
{
	const size_t length = cell_text(text, table->style, column, row, table->rows);

	return repeats_name(table, column, row, text, length) ? 0 : length;
}

static const char *title_of(const struct text_table *table, const struct column *column)
{
	return table->share_title && !strcmp(column->key, "share") ? table->share_title
								   : column->title;
}

/* Returns the width that a column needs; 0: all its values are empty or zero. */
static size_t text_column_width(const struct text_table *table, const struct column *column)
{
	size_t width = 0;
	bool any = false;
	char text[CELL_TEXT_BYTES];

	for (size_t i = 0; i < table->rows->count; i++) {
		const struct cell cell = column_value(column, &table->rows->rows[i], table->rows);
		const size_t length = shown_cell_text(table, column, &table->rows->rows[i], text);
		const size_t cell_width = escaped_width(text, length);
		long double number = 1;

		cell_number(&cell, &number);
		any |= length > 0 && number != 0;
		if (cell_width > width)
			width = cell_width;
	}
	return any ? max_u64(width, strlen(title_of(table, column))) : 0;
}

static void measure_names(struct text_table *table, enum layout layout)
{
	table->widest_name = table->widest_range = 0;
	for (size_t i = 0; i < table->rows->count; i++) {
		const struct row *row = &table->rows->rows[i];
		const struct string_view label = row_label(row, table->style->ascii);
		const size_t room = (size_t)label.length * 10 + 1;
		char *text = xcalloc(room);
		size_t width = escaped_width(text,
			escape_text(text, room, label.bytes, label.length, table->style->ascii));

		if (layout == LAYOUT_TREE)
			width += print_branch_width(row->depth, table->branches.narrow);
		if (width > table->widest_name)
			table->widest_name = width;
		if (layout == LAYOUT_TREE && row->kind == ROW_NODE && width > table->widest_range &&
			node_kind_class(row->tree->nodes[row->node].kind) == NODE_RANGES)
			table->widest_range = width;
		free(text);
	}
}

#define NAME_MIN 24 /* minimum width of names, whatever columns are requested */

static void set_name_width(struct text_table *table, size_t width)
{
	table->name_width = width < table->widest_name ? width : table->widest_name;
}

/* Shows all requested columns in the order given, even if lines become longer than the screen. */
static void add_requested_columns(struct text_table *table, const char *keys)
{
	const struct column *column;
	size_t used = 0;

	while ((column = column_next(&keys)) && table->count < COLUMNS_MAX) {
		const size_t width = text_column_width(table, column),
			     title = strlen(title_of(table, column));

		table->shown[table->count] = (struct text_column){ .column = column,
			.width = width ? width : title };
		used += table->shown[table->count++].width + 2;
	}
	set_name_width(table,
		table->style->width > used + NAME_MIN ? table->style->width - used : NAME_MIN);
}

/* Returns how wide the column of names should be: a share of the line, or more for a tree. */
static size_t wanted_name_width(const struct text_table *table, const struct options *options)
{
	const bool flat = !strcmp(options->view->name, "table");
	const size_t share = table->style->width * (flat ? TABLE_NAME_SHARE : NAME_SHARE) / 100,
		     ranges = table->style->width * TREE_SHARE / 100,
		     least = table->widest_range < ranges ? table->widest_range : ranges,
		     most = least > share ? least : share;

	return table->widest_name < most ? table->widest_name : most;
}

static const struct column *next_text_column(const char **extra_keys, const char **keys)
{
	return column_next(**extra_keys ? extra_keys : keys);
}

/* Chooses the columns that fit beside the names. The view lists the most important ones first. */
static void choose_text_columns(struct text_table *table, const struct options *options)
{
	const size_t names = wanted_name_width(table, options), room = table->style->width;
	const char *keys = options->view->text, *extra_keys = options->sources ? "source" : "";
	const struct column *first = options->view->sorts_silently && !options->sort
					     ? next_text_column(&extra_keys, &keys)
					     : view_sort(options, table->rows->rows[0].process),
			    *column = first;
	size_t used = names;

	if (options->columns) {
		add_requested_columns(table, options->columns);
		return;
	}
	for (; column && table->count < COLUMNS_MAX;
		column = next_text_column(&extra_keys, &keys)) {
		const bool repeated = column == first && table->count;
		const size_t width = repeated ? 0 : text_column_width(table, column);

		if (!width || used + width + 2 > room)
			continue;
		used += width + 2;
		table->shown[table->count++] = (struct text_column){ column, width };
	}
	set_name_width(table, room - (used - names));
}

static void put_text(struct text_table *table, const char *text, size_t length)
{
	for (; length && table->blanks; table->blanks--)
		output_char(table->style->out, ' ');
	output_bytes(table->style->out, text, length);
}

static void end_line(struct text_table *table)
{
	table->blanks = 0;
	output_char(table->style->out, '\n');
}

/* Writes a text in its column: padded to the width of the column, with two blanks before it if
 * `name_first`, else after it. A text that is too wide is written as a whole. */
static void put_aligned(struct text_table *table, const struct text_column *shown, const char *text,
	size_t length, bool name_first)
{
	const size_t width = escaped_width(text, length),
		     fill = shown->width > width ? shown->width - width : 0;
	const bool left = cell_is_left_aligned(shown->column);

	table->blanks += (name_first ? 2 : 0) + (left ? 0 : fill);
	put_text(table, text, length);
	table->blanks += (name_first ? 0 : 2) + (left ? fill : 0);
}

/* Writes the titles. `name_first`: the column of names is the first one, and has no title. */
static void put_text_header(struct text_table *table, bool name_first)
{
	print_paint(table->style, PAINT_BOLD);
	if (name_first)
		table->blanks = table->name_width;
	for (size_t i = 0; i < table->count; i++) {
		const char *title = title_of(table, table->shown[i].column);

		put_aligned(table, &table->shown[i], title, strlen(title), name_first);
	}
	if (!name_first)
		put_text(table, "name", 4);
	print_paint(table->style, PAINT_NONE);
	end_line(table);
}

static enum paint text_cell_paint(
	const struct text_table *table, const struct column *column, const struct row *row)
{
	const struct cell cell = column_value(column, row, table->rows);

	if (strcmp(column->key, "share") != 0 || cell.kind != CELL_REAL)
		return PAINT_NONE;
	return cell.real >= 0.5 ? PAINT_HOT : cell.real >= 0.1 ? PAINT_WARM : PAINT_NONE;
}

static void put_cells(struct text_table *table, const struct row *row, bool name_first)
{
	char text[CELL_TEXT_BYTES];

	for (size_t i = 0; i < table->count; i++) {
		const struct column *column = table->shown[i].column;
		const size_t length = shown_cell_text(table, column, row, text);
		const enum paint paint = text_cell_paint(table, column, row);

		if (paint)
			print_paint(table->style, paint);
		put_aligned(table, &table->shown[i], text, length, name_first);
		if (paint)
			print_paint(table->style, PAINT_NONE);
	}
}

#define BRANCH_BYTES 512

static char *escaped_label(const struct text_table *table, struct string_view label, size_t *width)
{
	const size_t room = (size_t)label.length * 10 + 16;
	char *text = xcalloc(room);

	*width = escaped_width(
		text, escape_text(text, room, label.bytes, label.length, table->style->ascii));
	return text;
}

/* Writes the tree's lines before a name. Returns their width. */
static size_t text_branch(
	const struct text_table *table, size_t index, enum layout layout, char *branch, size_t room)
{
	const struct row *row = &table->rows->rows[index];
	size_t label;

	*branch = '\0';
	if (layout != LAYOUT_TREE || !row->depth)
		return 0;
	free(escaped_label(table, row_short_label(row, table->style->ascii), &label));
	if (table->style->whole_names || print_branch_width(row->depth, table->branches.narrow) +
							 (label < 12 ? label : 12) <=
						 table->name_width)
		print_branch(branch, room, table->rows, index, &table->branches);
	else
		snprintf(branch, room, "  (%u) ", row->depth); /* too deep to draw */
	return escaped_width(branch, strlen(branch));
}

/* Call paths that a view computed may be on several rows, such as below several causes. They are
 * shortened as one group, to one width, so that equal paths look equal. */
static bool is_computed_path(const struct row *row)
{
	return row->kind == ROW_COMPUTED && row_has_path(row);
}

static void equalize_path_columns(struct text_table *table)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < table->rows->count; i++)
		if (is_computed_path(&table->rows->rows[i]) && table->names[i].columns < least)
			least = table->names[i].columns;
	for (size_t i = 0; i < table->rows->count; i++)
		if (is_computed_path(&table->rows->rows[i]))
			table->names[i].columns = least;
}

/* Takes the row's short label if the label is too wide. */
static void prepare_row_name(struct text_table *table, size_t index, enum layout layout)
{
	const bool ascii = table->style->ascii;
	const struct row *row = &table->rows->rows[index];
	struct shortened_name *name = &table->names[index];
	char branch[BRANCH_BYTES];
	const size_t before = text_branch(table, index, layout, branch, sizeof branch);
	size_t width;

	name->whole = escaped_label(table, row_label(row, ascii), &width);
	if (before + width > table->name_width) {
		free(name->whole);
		name->whole = escaped_label(table, row_short_label(row, ascii), &width);
	}
	name->columns = table->style->whole_names    ? SIZE_MAX
			: table->name_width > before ? table->name_width - before
						     : 1;
	name->is_path = row_has_path(row);
	name->two_lines = layout == LAYOUT_TREE && is_computed_path(row);
	name->group = layout != LAYOUT_TREE ? 0 : is_computed_path(row) ? NO_ROW : row->parent;
}

/* Shortens all names before the first row is printed, so that similar names stay distinct. */
static void shorten_row_names(struct text_table *table, enum layout layout)
{
	table->names = xcalloc((table->rows->count + 1) * sizeof *table->names);
	for (size_t i = 0; i < table->rows->count; i++)
		prepare_row_name(table, i, layout);
	if (layout == LAYOUT_TREE)
		equalize_path_columns(table);
	shorten_names(table->names, table->rows->count, table->style->ascii);
}

static void put_branch(struct text_table *table, const char *branch)
{
	if (!*branch)
		return;
	print_paint(table->style, PAINT_DIM);
	put_text(table, branch, strlen(branch));
	print_paint(table->style, PAINT_NONE);
}

/* Prints the tree's lines and the first line of the name. Returns their width. */
static size_t put_row_name(struct text_table *table, size_t index, enum layout layout)
{
	const char *text = table->names[index].text;
	const size_t length = strcspn(text, "\n");
	char branch[BRANCH_BYTES] = "";
	const size_t width = text_branch(table, index, layout, branch, sizeof branch);

	put_branch(table, branch);
	put_text(table, text, length);
	return width + escaped_width(text, length);
}

/* Prints the second line of the name, if it has one, below the first. */
static void put_rest_of_name(struct text_table *table, size_t index)
{
	const char *rest = strchr(table->names[index].text, '\n');
	char branch[BRANCH_BYTES];

	if (!rest)
		return;
	print_branch_below(branch, sizeof branch, table->rows, index, &table->branches);
	put_branch(table, branch);
	put_text(table, "  ", 2);
	put_text(table, rest + 1, strlen(rest + 1));
	end_line(table);
}

static bool shows_column(const struct text_table *table, const char *key)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->shown[i].column->key, key))
			return true;
	return false;
}

#define OF_GPU "all GPU time"
#define OF_RANGES "the time of all threads in ranges"

/* Columns of percentages, and what they are fractions of. */
struct share_base {
	char titles[64];
	const char *of;
	enum unit unit;
	uint64_t base;
};

struct share_bases {
	struct share_base of[3];
	size_t count;
};

/* Adds a column. Columns with one base are listed together. */
static void add_share_base(struct share_bases *bases, const char *title, const char *of,
	enum unit unit, long double base)
{
	struct share_base *one = bases->of;
	const size_t used = bases->count ? strlen(one->titles) : 0;

	if (base <= 0)
		return;
	if (used && !strcmp(one->of, of) && one->base == (uint64_t)base) {
		snprintf(one->titles + used, sizeof one->titles - used, ", %s", title);
		return;
	}
	one = &bases->of[bases->count++];
	*one = (struct share_base){ .of = of, .unit = unit, .base = (uint64_t)base };
	snprintf(one->titles, sizeof one->titles, "%s", title);
}

/* Adds the column `share`, whose base follows from the metric. */
static void add_metric_base(struct share_bases *bases, const struct row *row)
{
	const enum metric metric = row->process->metric;
	const long double whole = row_share_whole(row);

	if (row->kind == ROW_SHAPE || metric == METRIC_GPU)
		add_share_base(bases, "%", OF_GPU, UNIT_TIME, whole);
	else if (metric != METRIC_CPU && metric != METRIC_WALL)
		add_share_base(
			bases, "%", "that of the outermost ranges", metrics[metric].unit, whole);
	else
		add_share_base(bases, "%",
			(uint64_t)whole == row->process->profile->totals.cpu_self_ns ? OF_RANGES
										     : OF_RANGES
				", and in CUDA calls outside of them",
			UNIT_TIME, whole);
}

static bool has_value(const struct text_table *table, const struct column *column)
{
	char text[CELL_TEXT_BYTES];

	for (size_t i = 0; i < table->rows->count; i++)
		if (cell_text(text, table->style, column, &table->rows->rows[i], table->rows))
			return true;
	return false;
}

/* Adds the titles of the view's own columns that have values. */
static void add_filled_columns(
	struct paragraph *line, const struct text_table *table, const char *keys)
{
	const char *separator = "";
	const struct column *column;

	while ((column = column_next(&keys)))
		if (has_value(table, column)) {
			paragraph_add(line, "%s%s", separator, title_of(table, column));
			separator = ", ";
		}
}

/* Says which requested columns have a value in no row, and which columns of the view have some. */
static void put_empty_columns(
	const struct text_table *table, const struct report *report, const struct style *style)
{
	const struct view *view = report->options->view;
	struct paragraph line = { .style = style };

	for (size_t i = 0; report->options->columns && i < table->count; i++)
		if (!has_value(table, table->shown[i].column))
			paragraph_add(&line, "%s%s", line.built.used ? ", " : "in ",
				title_of(table, table->shown[i].column));
	if (!line.built.used)
		return;
	paragraph_add(&line, ": %s has ", view->name);
	add_filled_columns(&line, table, view->text);
	if (!strcmp(view->name, "steps"))
		paragraph_add(&line, "; table --by step has the CPU and GPU time of each step");
	paragraph_print(&line, "no value");
}

/* Says what the percentages of nodes and launch configurations are fractions of. Views with
 * percentages of their own say it in their titles. */
static void put_share_bases(
	const struct text_table *table, const struct report *report, const struct style *style)
{
	const struct row *row = &table->rows->rows[0];
	const struct profile_totals *totals = &row->process->profile->totals;
	struct paragraph line = { .style = style };
	struct share_bases bases = { .count = 0 };

	if ((row->kind != ROW_NODE && row->kind != ROW_SHAPE) || table->share_title ||
		report->processes->shown > 1)
		return;
	if (shows_column(table, "share"))
		add_metric_base(&bases, row);
	if (shows_column(table, "gpu_self_share"))
		add_share_base(&bases, "gpu self %", OF_GPU, UNIT_TIME, totals->gpu_sum_ns);
	if (shows_column(table, "cpu_self_share"))
		add_share_base(&bases, "cpu self %", OF_RANGES, UNIT_TIME, totals->cpu_self_ns);
	for (size_t i = 0; i < bases.count; i++) {
		paragraph_add(
			&line, "%s%s: of %s, ", i ? "; " : "", bases.of[i].titles, bases.of[i].of);
		paragraph_value(&line, bases.of[i].unit, bases.of[i].base);
	}
	if (bases.count)
		paragraph_print(&line, "legend");
}

void print_table(const struct report *report, const struct rows *rows, enum layout layout,
	const struct style *style)
{
	struct text_table table = {
		.rows = rows, .style = style, .share_title = report->options->view->share_title
	};
	const bool name_first = layout == LAYOUT_TREE;
	bool *last;

	if (!rows->count) /* all rows are too small; put_hidden_counts reports them */
		return;
	last = print_last_children(rows);
	table.branches = (struct branches){ .last = last, .ascii = style->ascii };
	measure_names(&table, layout);
	if (table.widest_range > style->width * TREE_SHARE / 100) {
		table.branches.narrow = true;
		measure_names(&table, layout);
	}
	choose_text_columns(&table, report->options);
	shorten_row_names(&table, layout);
	put_text_header(&table, name_first);
	for (size_t i = 0; i < rows->count; i++) {
		if (name_first) {
			const size_t width = put_row_name(&table, i, layout);

			table.blanks = table.name_width > width ? table.name_width - width : 0;
		}
		put_cells(&table, &rows->rows[i], name_first);
		if (!name_first)
			put_row_name(&table, i, layout);
		end_line(&table);
		put_rest_of_name(&table, i);
	}
	shorten_names_free(table.names, rows->count);
	free(last);
	if (layout == LAYOUT_TABLE)
		put_share_bases(&table, report, style);
	put_empty_columns(&table, report, style);
}

static void put_how_to_read(const struct report *report, const struct style *style)
{
	struct paragraph line = { .style = style };

	if (!report->options->view->reads || !report->rows.count)
		return;
	paragraph_add(&line, "%s", report->options->view->reads);
	paragraph_print(&line, strlen(report->options->view->name) < PARAGRAPH_INDENT
				       ? report->options->view->name
				       : "legend");
}

/* Prints how many rows are hidden, and the option that shows them. */
static void put_hidden_counts(const struct report *report, const struct style *style)
{
	const struct rows *rows = &report->rows;
	struct paragraph line = { .style = style, .indent = sizeof "not shown: " - 1 };

	if (rows->hidden_by_percent)
		paragraph_add(&line, "%llu below %g %% (--min-percent 0)",
			(unsigned long long)rows->hidden_by_percent,
			view_min_percent(report->options));
	if (rows->hidden_by_depth)
		paragraph_add(&line, "%s%llu deeper (--depth)", line.built.used ? ", " : "",
			(unsigned long long)rows->hidden_by_depth);
	if (rows->hidden_by_top)
		paragraph_add(&line, "%s%llu more (--top 0)", line.built.used ? ", " : "",
			(unsigned long long)rows->hidden_by_top);
	if (line.built.used)
		paragraph_print(&line, "not shown:");
}

static void put_other_processes(const struct report *report, const struct style *style)
{
	struct paragraph line = { .style = style, .indent = 5 };

	for (size_t i = report->processes->shown; i < report->processes->count; i++) {
		const struct process *process = &report->processes->all[i];
		char gpu[FORMAT_NUMBER_BYTES], wall[FORMAT_NUMBER_BYTES];

		format_with_unit(
			gpu, UNIT_TIME, (int64_t)process->gpu_ns, style->iec, style->ascii);
		format_with_unit(
			wall, UNIT_TIME, (int64_t)process->wall_ns, style->iec, style->ascii);
		if (process->rank >= 0)
			paragraph_add(&line, "%s, ", process_name(process));
		paragraph_add(&line, "pid %u: %llu events, GPU %s, %s  ", process->pid,
			(unsigned long long)process->events, gpu, wall);
		if (process->rank < 0) {
			paragraph_name(&line, process->command, strlen(process->command));
			paragraph_add(&line, "  ");
		}
		paragraph_text(&line, process->path, strlen(process->path));
		paragraph_print(&line, "also");
	}
}

static void put_simulated(const struct style *style)
{
	print_paint(style, PAINT_BOLD);
	output_string(style->out, "simulated device:");
	print_paint(style, PAINT_NONE);
	print_line(style, " GPU figures are%snot measurements\n", style->width < 60 ? "\n  " : " ");
}

static void put_empty_report(const struct report *report, const struct style *style)
{
	const struct process *process = &report->processes->all[0];

	if (report->rows.empty_explained)
		return;
	if (report->options->view->layout == LAYOUT_CRITICAL &&
		!process->profile->totals.has_tensors &&
		(process->metric == METRIC_ALLOCATED || process->metric == METRIC_TENSORS ||
			process->metric == METRIC_ALLOCATED_PEAK))
		output_string(style->out,
			process->profile->totals.reserved_peak
				? "no GPU tensor in this trace (CPU tensors are not recorded); "
				  "try -m reserved\n"
				: "no GPU tensor and no other memory of a GPU in this trace (CPU "
				  "tensors are not recorded)\n");
	else if (report->options->kinds)
		print_line(style, "no rows of kind %s; without --kind all rows are shown\n",
			report->options->kinds);
	else if (report->options->view->layout == LAYOUT_CRITICAL)
		print_line(style, "no range has a value of this metric; `pperf-report info` shows "
				  "what was recorded\n");
	else if (report->options->view->explain_empty)
		report->options->view->explain_empty(report, style);
	else
		output_string(style->out,
			"no rows: the trace has no data for this view (see pperf-report info)\n");
}

/* Printed in every view, because running out of memory is probably why the program ended. */
static void put_oom_warning(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		const struct process *process = &report->processes->all[i];
		const struct memory_owners *memory = process->profile->memory;
		const uint64_t ooms = memory->counts.ooms ? memory->counts.ooms
							  : memory->counts.failed_allocations;

		if (!ooms)
			continue;
		print_line(style, "warning: %s ran out of memory %llu time%s: pperf-report memory ",
			memory->counts.ooms ? "PyTorch" : "a CUDA allocation",
			(unsigned long long)ooms, ooms == 1 ? "" : "s");
		print_escaped(style, process->path, strlen(process->path), 0);
		output_char(style->out, '\n');
	}
}

static void put_text_warnings(
	const struct report *report, const struct style *style, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const char *warning = report->processes->warnings[i];

		output_string(style->out, "warning: ");
		print_escaped(style, warning, strlen(warning), 0);
		output_char(style->out, '\n');
	}
}

void print_text(const struct report *report, const struct style *style)
{
	const enum layout layout = report->options->view->layout;

	put_text_warnings(report, style, 0, report->processes->warnings_first);
	if (layout == LAYOUT_SUMMARY)
		report->options->view->draw(report, style);
	else if (!report->rows.count && !report->rows.hidden_by_percent &&
		 !report->rows.hidden_by_depth)
		put_empty_report(report, style);
	else if (report->options->view->draw)
		report->options->view->draw(report, style);
	else if (layout == LAYOUT_CRITICAL)
		print_critical(&report->rows, report->options, style);
	else {
		if (report->options->view->header)
			report->options->view->header(report, style);
		put_how_to_read(report, style);
		if (report->rows.count)
			print_table(report, &report->rows, layout, style);
	}
	if (report->rows.count && report->options->view->footer)
		report->options->view->footer(report, style);
	if (layout != LAYOUT_SUMMARY)
		put_hidden_counts(report, style);
	if (layout != LAYOUT_SUMMARY && report_is_simulated(report))
		put_simulated(style);
	put_other_processes(report, style);
	if (layout != LAYOUT_SUMMARY && !report->options->view->header)
		put_oom_warning(report, style);
	put_text_warnings(
		report, style, report->processes->warnings_first, report->processes->warning_count);
	if (layout != LAYOUT_SUMMARY)
		next_command_of_view(report, style);
}
