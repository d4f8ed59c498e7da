/* SPDX-License-Identifier: MIT
 *
 * Prints the comparison of two runs as text, JSON and CSV.
 */
#include "report/base/compare.h"
#include "report/analysis/run_diff.h"
#include "report/views/diff_functions.h"
#include "report/views/diff_words.h"
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/print/next_command.h"
#include "report/text/format_number.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/table/view.h"
#include "report/base/escape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_COLUMNS 12u
#define NARROW 72u /* columns; below, only the change is shown, without its significance */
#define NAME_MIN 12u

static bool is_narrow(const struct style *style)
{
	return style->width < NARROW;
}

static const char *basis_name(const struct diff *diff)
{
	return diff->by_steps ? "step" : "run";
}

/* Orders by the largest change of the node itself or below it, descending. */
COMPARE_POINTERS_BY_LARGEST(by_change, struct diff_node, largest_change)

/* Returns the children of `node`, ordered by by_change(), in an array to be freed. */
static const struct diff_node **sorted_children(
	const struct diff *diff, const struct diff_node *node, size_t *count)
{
	const struct diff_node **all;

	*count = 0;
	for (uint32_t id = node->first_child; id; id = diff->nodes.all[id].next)
		++*count;
	all = xcalloc((*count + 1) * sizeof(struct diff_node *));
	*count = 0;
	for (uint32_t id = node->first_child; id; id = diff->nodes.all[id].next)
		all[(*count)++] = &diff->nodes.all[id];
	qsort(all, *count, sizeof(struct diff_node *), by_change);
	return all;
}

static void put_diff_value(
	const struct diff *diff, const struct style *style, double value, bool sign)
{
	char text[FORMAT_NUMBER_BYTES + 1];
	const size_t width = escaped_width(
		text, diff_format_value(diff, text, value, sign, style->iec, style->ascii));

	print_line(
		style, "%*s%s", width < VALUE_COLUMNS ? (int)(VALUE_COLUMNS - width) : 1, "", text);
}

static void put_relative(const struct style *style, double before, double after)
{
	char text[DIFF_CELL_BYTES];

	diff_relative_text(text, before, after);
	print_line(style, "%10s", text);
}

static void put_significance(const struct style *style, const struct diff_node *node)
{
	char text[DIFF_CELL_BYTES];

	diff_significance_text(text, node);
	print_line(style, "  %-8s", text);
}

static void put_diff_values(
	const struct diff *diff, const struct style *style, double before, double after)
{
	if (!is_narrow(style)) {
		put_diff_value(diff, style, before, false);
		put_diff_value(diff, style, after, false);
	}
	put_diff_value(diff, style, after - before, true);
	put_relative(style, before, after);
}

/* Prints the name, and what diff_add_remarks adds, within the width that the values leave. `level`:
 * the number of rows around it. */
static void put_diff_name(const struct diff *diff, const struct style *style,
	const struct diff_node *node, uint32_t level)
{
	const uint32_t depth = level < 20 ? level : 20;
	const size_t values_width = is_narrow(style) ? VALUE_COLUMNS + 12 : 3 * VALUE_COLUMNS + 20;
	struct paragraph whole = { .style = style };
	struct text_builder behind = { .text = NULL };
	size_t taken, left;

	diff_add_remarks(diff, node, style->ascii, &behind);
	taken = values_width + 2 * depth +
		(behind.text ? escaped_width(behind.text, behind.used) : 0);
	left = style->width > taken + NAME_MIN ? style->width - taken : NAME_MIN;
	diff_add_node_name(diff, &whole, node);
	print_line(style, "%*s", (int)(2 * depth + (is_narrow(style) ? 2 : 0)), "");
	paragraph_shorten(&whole, 0, left);
	output_string(style->out, whole.built.used ? whole.built.text : "");
	output_string(style->out, behind.text ? behind.text : "");
	free(whole.built.text);
	free(behind.text);
}

static void put_diff_node(const struct diff *diff, const struct style *style,
	const struct diff_node *node, uint32_t level)
{
	if (node->significant)
		print_paint(style, diff_node_change(node) > 0 ? PAINT_HOT : PAINT_BOLD);
	put_diff_values(diff, style, node->value[0], node->value[1]);
	if (!is_narrow(style))
		put_significance(style, node);
	put_diff_name(diff, style, node, level);
	if (node->significant)
		print_paint(style, PAINT_NONE);
	output_char(style->out, '\n');
}

/* Prints the selected nodes below `node`. `level`: the number of rows around them. */
static void put_subtree(const struct diff *diff, const struct style *style,
	const struct diff_node *node, const bool *selected, uint32_t level)
{
	size_t count;
	const struct diff_node **all = sorted_children(diff, node, &count);

	for (size_t i = 0; i < count; i++) {
		const uint32_t id = (uint32_t)(all[i] - diff->nodes.all);
		const bool has_row = !diff_is_between(diff, id);

		if (!selected[id])
			continue;
		if (has_row)
			put_diff_node(diff, style, all[i], level);
		put_subtree(diff, style, all[i], selected, level + has_row);
	}
	free(all);
}

static void put_sentences(const struct diff *diff, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	diff_add_basis(&paragraph, diff);
	paragraph_print(&paragraph, "compared");
	diff_add_method(&paragraph);
	paragraph_print(&paragraph, "method");
	diff_add_whole(&paragraph, diff);
	paragraph_print(&paragraph, diff->by_steps ? "step" : "run");
	if (diff_add_spread(&paragraph, diff))
		paragraph_print(&paragraph, "runs");
	diff_add_result(&paragraph, diff);
	paragraph_print(&paragraph, "result");
}

/* Prints the path of a node, and what diff_add_remarks adds, on the rest of the line. */
static void put_mover_path(
	const struct diff *diff, const struct style *style, const struct diff_node *node)
{
	const size_t values_width = is_narrow(style) ? VALUE_COLUMNS + 12 : 3 * VALUE_COLUMNS + 20;
	struct paragraph path = { .style = style };
	struct text_builder behind = { .text = NULL };
	uint32_t above[TREE_DEPTH_MAX + 8], count = 0;
	size_t taken;

	for (uint32_t id = node->parent; id && count < TREE_DEPTH_MAX + 8;
		id = diff->nodes.all[id].parent)
		above[count++] = id;
	while (count) {
		diff_add_key_name(diff, &path, &diff->nodes.all[above[--count]].key);
		paragraph_add(&path, "/");
	}
	diff_add_node_name(diff, &path, node);
	diff_add_remarks(diff, node, style->ascii, &behind);
	taken = values_width + (behind.text ? escaped_width(behind.text, behind.used) : 0);
	paragraph_shorten(
		&path, 0, style->width > taken + NAME_MIN ? style->width - taken : NAME_MIN);
	print_line(style, "%s%s%s\n", is_narrow(style) ? "  " : "", path.built.text,
		behind.text ? behind.text : "");
	free(path.built.text);
	free(behind.text);
}

static void put_movers_title(const struct diff *diff, const struct style *style)
{
	print_line(
		style, "\n%snot significant", is_narrow(style) ? "" : "largest changes that are ");
	if (diff->by_steps)
		print_line(style, " (n=%u v %u)", diff->whole.n[0], diff->whole.n[1]);
	print_line(style, ":\n");
}

/* Prints the largest changes that have no row, because they are not significant. */
static void put_movers(const struct diff *diff, const struct style *style)
{
	bool first = true;

	for (uint32_t i = 0; i < diff->mover_count; i++) {
		const struct diff_node *node = &diff->nodes.all[diff->movers[i]];

		if (diff_has_own_row(diff, node))
			continue;
		if (first)
			put_movers_title(diff, style);
		first = false;
		put_diff_values(diff, style, node->value[0], node->value[1]);
		if (!is_narrow(style))
			put_significance(style, node);
		put_mover_path(diff, style, node);
	}
}

/* Prints the line of one side. `rank_given`: --rank selected the process. */
static void put_diff_side(const struct diff *diff, const struct style *style, unsigned which,
	const char *title, bool rank_given)
{
	struct paragraph paragraph = { .style = style };
	const struct process *process = diff->sides[which].process;

	paragraph_text(&paragraph, process->path, __builtin_strlen(process->path));
	if (process->rank >= 0)
		paragraph_add(&paragraph, " (rank %lld%s)", (long long)process->rank,
			rank_given ? "" : "; --rank N selects another");
	if (!process->complete)
		paragraph_add(&paragraph, " (incomplete; run pperf-report on it for the reasons)");
	paragraph_print(&paragraph, title);
}

/* Prints the tree of significant changes, with a line for the whole at its end. */
static void put_diff_table(const struct diff *diff, const struct style *style, uint32_t limit)
{
	uint32_t more;
	bool *selected = diff_select_rows(diff, limit, &more);

	if (is_narrow(style))
		print_line(style, "\n%12s%10s  %s\n", "change", "", "name");
	else
		print_line(style, "\n%12s%12s%12s%10s  %-8s%s\n", "before", "after", "change", "",
			"p", "name");
	put_subtree(diff, style, &diff->nodes.all[0], selected, 0);
	if (more)
		print_line(style, "%u more changes (-n 0 shows all)\n", more);
	put_diff_values(diff, style, diff->whole.mean[0], diff->whole.mean[1]);
	print_line(style, "%*s%s\n", is_narrow(style) ? 2 : 10, "",
		!diff->by_steps    ? "total"
		: is_narrow(style) ? "total per step"
				   : "total per step (mean)");
	free(selected);
}

static void print_diff_text(
	const struct diff *diff, const struct options *options, struct output *out)
{
	const struct style style = style_of(&options->style, out);
	struct shell_command command = { .ascii = style.ascii };

	put_diff_side(diff, &style, 0, "before", options->rank >= 0);
	put_diff_side(diff, &style, 1, "after", options->rank >= 0);
	put_sentences(diff, &style);
	put_diff_table(diff, &style, options->top ? options->top : 40);
	put_movers(diff, &style);
	output_char(out, '\n');
	next_command_begin(&command, "gate");
	next_command_add_files(&command, options);
	next_command_put(&command, &style);
}

static void diff_json_change(struct json_writer *json, double before, double after)
{
	json_put_double(json, "before", before);
	json_put_double(json, "after", after);
	json_put_double(json, "delta", after - before);
	json_put_known_double(json, "relative", (after - before) / fabs(before), before != 0);
}

/* Returns the node's ancestors from the root, and the node, depth + 1 of them. The caller frees
 * them. */
static uint32_t *diff_path(const struct diff *diff, uint32_t id)
{
	uint32_t depth = diff->nodes.all[id].depth + 1, *path = xcalloc(depth * sizeof *path);

	for (; id; id = diff->nodes.all[id].parent)
		path[--depth] = id;
	return path;
}

static struct string_view diff_name(const struct diff *diff, uint32_t id)
{
	return string_table_get(diff->texts, diff->nodes.all[id].key.name);
}

static void diff_json_path(struct json_writer *json, const struct diff *diff, uint32_t id)
{
	uint32_t *path = diff_path(diff, id);

	json_put_begin(json, "path", '[');
	for (uint32_t i = 0; i <= diff->nodes.all[id].depth; i++)
		json_write_text(json, diff_name(diff, path[i]));
	json_write_end(json, ']');
	free(path);
}

static void diff_json_row(struct json_writer *json, const struct diff *diff, uint32_t id)
{
	const struct diff_node *node = &diff->nodes.all[id];

	json_write_begin(json, '{');
	json_put_unsigned(json, "id", id - 1);
	json_put_known_unsigned(json, "parent", node->parent - 1, node->parent);
	json_put_unsigned(json, "depth", node->depth);
	json_put_text(json, "name", diff_name(diff, id));
	json_put_string(json, "kind", node_kind_name(node->key.kind));
	if (node->key.class)
		json_put_text(json, "class", string_table_get(diff->texts, node->key.class));
	if (node->key.domain)
		json_put_text(json, "domain", string_table_get(diff->texts, node->key.domain));
	diff_json_path(json, diff, id);
	json_put_string(json, "status", diff_status_name(node));
	if (node->status == DIFF_REPLACED || node->status == DIFF_RENAMED)
		json_put_text(
			json, "name_before", string_table_get(diff->texts, node->before_key.name));
	if (node->before_key.class != node->key.class)
		json_put_text(json, "class_before",
			string_table_get(diff->texts, node->before_key.class));
	diff_json_change(json, node->value[0], node->value[1]);
	json_put_known_double(json, "shift", node->test.shift, node->test.tested);
	json_put_known_double(json, "p", node->test.p, node->test.tested);
	json_put_bool(json, "significant", node->significant);
	json_put_bool(json, "outlier", node->outlier);
	json_put_unsigned(json, "n", node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	json_put_unsigned(json, "n_before", node->n[0]);
	json_put_unsigned(json, "n_after", node->n[1]);
	json_put_double(json, "calls_before", node->calls[0]);
	json_put_double(json, "calls_after", node->calls[1]);
	json_write_end(json, '}');
}

static void diff_json_unit(struct json_writer *json, const struct diff *diff)
{
	if (diff->metric == METRIC_USER)
		json_put_text(json, "unit",
			string_table_get(diff->sides[1].process->texts,
				diff->sides[1].metric_samples->profile->counter_unit));
	else
		json_put_string(json, "unit", json_unit_name(diff_unit(diff)));
}

/* Writes the comparison of the step or run, with the figures that `gate` has. */
static void diff_json_whole(struct json_writer *json, const struct diff *diff)
{
	const struct diff_whole *whole = &diff->whole;

	json_put_begin(json, "whole", '{');
	diff_json_change(json, whole->typical[0], whole->typical[1]);
	json_put_known_double(json, "p", whole->test.p, whole->test.tested);
	json_put_bool(json, "significant", whole->significant);
	json_put_unsigned(json, "n_before", whole->n[0]);
	json_put_unsigned(json, "n_after", whole->n[1]);
	json_write_end(json, '}');
}

static void print_diff_json(const struct diff *diff, struct output *out)
{
	struct json_writer json = { .out = out };

	json_begin_comparison(
		&json, "diff", diff->sides[0].process->path, diff->sides[1].process->path);
	json_put_string(&json, "metric", diff_metric_name(diff));
	diff_json_unit(&json, diff);
	json_put_string(&json, "basis", basis_name(diff));
	json_put_unsigned(&json, "steps_before", diff->sides[0].steps);
	json_put_unsigned(&json, "steps_after", diff->sides[1].steps);
	json_put_test_method(&json, diff->sides);
	json_put_double(&json, "fdr", CHANGE_TEST_FDR);
	json_put_double(&json, "least_change", DIFF_MIN_SHIFT);
	json_put_double(&json, "common_change", diff->common_change);
	json_put_double(&json, "spread", diff->spread);
	json_put_double(&json, "between_runs", diff->between_runs);
	json_put_unsigned(&json, "tested", diff->tested);
	json_put_unsigned(&json, "found", diff->significant);
	diff_json_whole(&json, diff);
	json_put_begin(&json, "totals", '{');
	diff_json_change(&json, diff->whole.mean[0], diff->whole.mean[1]);
	json_write_end(&json, '}');
	json_put_begin(&json, "rows", '[');
	for (uint32_t id = 1; id < diff->nodes.count; id++)
		diff_json_row(&json, diff, id);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

static void diff_csv_path(const struct diff *diff, struct output *out, uint32_t id)
{
	struct text_builder joined = { .text = NULL };
	uint32_t *path = diff_path(diff, id);

	for (uint32_t i = 0; i <= diff->nodes.all[id].depth; i++) {
		const struct string_view text = diff_name(diff, path[i]);

		text_add_bytes(&joined, "/", i > 0);
		text_add_path_name(&joined, text.bytes, text.length);
	}
	output_csv_text(out, joined.text ? joined.text : "", joined.used);
	free(joined.text);
	free(path);
}

static void diff_csv_number(struct output *out, double value, bool known)
{
	output_char(out, ',');
	if (known)
		output_double(out, value);
}

/* Writes the name in the first run, where it differs, and the calls. */
static void diff_csv_before(
	const struct diff *diff, struct output *out, const struct diff_node *node)
{
	const struct string_view name = string_table_get(diff->texts, node->before_key.name);

	output_char(out, ',');
	if (node->status == DIFF_REPLACED || node->status == DIFF_RENAMED)
		output_csv_text(out, name.bytes, name.length);
	diff_csv_number(out, node->calls[0], true);
	diff_csv_number(out, node->calls[1], true);
}

static void print_diff_csv(const struct diff *diff, struct output *out)
{
	output_string(out, "path,kind,status,before,after,delta,relative,shift,p,significant,n_"
			   "before,n_after,name_before,calls_before,calls_after\r\n");
	for (uint32_t id = 1; id < diff->nodes.count; id++) {
		const struct diff_node *node = &diff->nodes.all[id];

		diff_csv_path(diff, out, id);
		output_char(out, ',');
		output_string(out, node_kind_name(node->key.kind));
		output_char(out, ',');
		output_string(out, diff_status_name(node));
		diff_csv_number(out, node->value[0], true);
		diff_csv_number(out, node->value[1], true);
		diff_csv_number(out, diff_node_change(node), true);
		diff_csv_number(
			out, diff_node_change(node) / fabs(node->value[0]), node->value[0] != 0);
		diff_csv_number(out, node->test.shift, node->test.tested);
		diff_csv_number(out, node->test.p, node->test.tested);
		output_string(out, node->significant ? ",true," : ",false,");
		output_unsigned(out, node->n[0]);
		output_char(out, ',');
		output_unsigned(out, node->n[1]);
		diff_csv_before(diff, out, node);
		output_string(out, "\r\n");
	}
}

int diff_view(const struct options *options)
{
	struct diff *diff;
	struct output *out;
	int status;

	if (options->file_count != 2)
		fatal(STATUS_USAGE, "diff compares two files: pperf-report diff BEFORE AFTER");
	if (rows_by_samples(options->by))
		return diff_functions_view(options);
	diff = diff_read(options, options->metric_name, options->files[0], options->files[1]);
	out = output_open(options->output);
	if (options->format == FORMAT_JSON)
		print_diff_json(diff, out);
	else if (options->format == FORMAT_CSV)
		print_diff_csv(diff, out);
	else
		print_diff_text(diff, options, out);
	status = diff_is_different(diff) ? STATUS_DIFFERENT : STATUS_OK;
	if (!output_close(out, options->output))
		status = STATUS_UNREADABLE;
	diff_free(diff);
	return status;
}
