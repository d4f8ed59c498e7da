/* SPDX-License-Identifier: MIT
 *
 * Prints the comparison of two runs as text, JSON and CSV.
 */
#include "report/base/compare.h"
#include "report/analysis/run_diff.h"
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

static const char *status_name(const struct diff_node *node)
{
	static const char *const names[] = {
		[DIFF_BOTH] = "both", [DIFF_NEW] = "new", [DIFF_REMOVED] = "gone"
	};

	return names[node->status];
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
	for (uint32_t id = node->first_child; id; id = diff->nodes[id].next)
		++*count;
	all = xcalloc((*count + 1) * sizeof(struct diff_node *));
	*count = 0;
	for (uint32_t id = node->first_child; id; id = diff->nodes[id].next)
		all[(*count)++] = &diff->nodes[id];
	qsort(all, *count, sizeof(struct diff_node *), by_change);
	return all;
}

static void put_diff_value(
	const struct diff *diff, const struct style *style, double value, bool sign)
{
	char text[FORMAT_NUMBER_BYTES + 1];
	const size_t width = escaped_width(
		text, diff_figure(diff, text, value, sign, style->iec, style->ascii));

	print_line(
		style, "%*s%s", width < VALUE_COLUMNS ? (int)(VALUE_COLUMNS - width) : 1, "", text);
}

static void put_relative(const struct style *style, double before, double after)
{
	if (before == 0)
		print_line(style, "%10s", "-");
	else
		print_line(style, "%+8.1f %%", 100 * (after - before) / fabs(before));
}

static void put_significance(const struct style *style, const struct diff_node *node)
{
	if (node->status != DIFF_BOTH)
		print_line(style, "  %-8s", status_name(node));
	else if (!node->comparison.tested)
		print_line(style, "  %-8s", "-");
	else if (node->comparison.p < 0.0001)
		print_line(style, "  %-8s", "<0.0001");
	else
		print_line(style, "  %-8.4f", node->comparison.p);
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

/* Formats what follows the name: the number of values compared, where it differs between rows. */
static size_t format_sample_count(
	const struct diff *diff, const struct diff_node *node, char *out, size_t room)
{
	int length = 0;

	*out = '\0';
	if (!node->comparison.tested)
		length = snprintf(out, room, "  not tested (n=%u)",
			node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	else if (!diff->by_steps)
		length = snprintf(out, room, "  n=%u, %u", node->n[0], node->n[1]);
	return (size_t)length;
}

/* Prints the name, and the class of a module, within the width that the values leave. */
static void put_diff_name(
	const struct diff *diff, const struct style *style, const struct diff_node *node)
{
	const struct string_view name = string_table_get(diff->texts, node->name),
				 class = string_table_get(diff->texts, node->class);
	const uint32_t depth = node->depth < 20 ? node->depth : 20;
	const size_t values_width = is_narrow(style) ? VALUE_COLUMNS + 12 : 3 * VALUE_COLUMNS + 20;
	struct paragraph whole = { .style = style };
	char behind[64];
	const size_t taken = values_width + 2 * depth +
			     format_sample_count(diff, node, behind, sizeof behind);

	paragraph_text(&whole, name.bytes, name.length);
	if (class.length) {
		paragraph_add(&whole, " (");
		paragraph_text(&whole, class.bytes, class.length);
		paragraph_add(&whole, ")");
	}
	print_line(style, "%*s", (int)(2 * depth + (is_narrow(style) ? 2 : 0)), "");
	paragraph_shorten(
		&whole, 0, style->width > taken + NAME_MIN ? style->width - taken : NAME_MIN);
	output_string(style->out, whole.built.used ? whole.built.text : "");
	output_string(style->out, behind);
	free(whole.built.text);
}

static void put_diff_node(
	const struct diff *diff, const struct style *style, const struct diff_node *node)
{
	if (node->found)
		print_paint(style, node->after > node->before ? PAINT_HOT : PAINT_BOLD);
	put_diff_values(diff, style, node->before, node->after);
	if (!is_narrow(style))
		put_significance(style, node);
	put_diff_name(diff, style, node);
	if (node->found)
		print_paint(style, PAINT_NONE);
	output_char(style->out, '\n');
}

/* Prints the nodes below `node` that are to be shown. `left` is the number of rows that may still
 * be printed; significant nodes without a row are added to `more`. */
static void put_subtree(const struct diff *diff, const struct style *style,
	const struct diff_node *node, uint32_t *left, uint32_t *more)
{
	size_t count;
	const struct diff_node **all = sorted_children(diff, node, &count);

	for (size_t i = 0; i < count; i++) {
		if (!all[i]->shown)
			continue;
		if (*left) {
			put_diff_node(diff, style, all[i]);
			--*left;
		} else {
			*more += all[i]->found;
		}
		put_subtree(diff, style, all[i], left, more);
	}
	free(all);
}

/* Prints what was compared, how it was tested, and the spread between the runs. */
static void put_test_method(const struct diff *diff, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "%s of ", diff_metric_name(diff));
	if (diff->by_steps)
		paragraph_add(&paragraph,
			"a steady-state step (mean; %zu before, %zu after; warm-up excluded)",
			diff->sides[0].steps, diff->sides[1].steps);
	else if (!diff->sides[0].steps && !diff->sides[1].steps)
		paragraph_add(&paragraph,
			"the whole run (no steady-state steps were found); instances were tested");
	else
		paragraph_add(&paragraph,
			"the whole run (%u steady-state steps of each are needed, %zu and %zu were "
			"found); instances were tested",
			MANN_WHITNEY_VALUES_MIN, diff->sides[0].steps, diff->sides[1].steps);
	paragraph_print(&paragraph, "compared");
	paragraph_add(&paragraph,
		MANN_WHITNEY_METHOD "; significant: p < %.2f and a shift of %.0f %% or more, for "
				    "times also %g %% of the whole; n of at least %u on each side",
		DIFF_ALPHA, 100 * DIFF_MIN_SHIFT, 100 * DIFF_MIN_SHARE, MANN_WHITNEY_VALUES_MIN);
	paragraph_print(&paragraph, "method");
	if (diff->spread <= 0 && diff->common_change == 0)
		return;
	paragraph_add(&paragraph, "median change %+.1f %%, MAD %.1f %%; significant: beyond %d MAD",
		100 * diff->common_change, 100 * diff->spread, DIFF_MIN_DEVIATIONS);
	paragraph_print(&paragraph, "runs");
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

static void print_diff_text(
	const struct diff *diff, const struct options *options, struct output *out)
{
	const struct style style = style_of(&options->style, out);
	uint32_t left = options->top ? options->top : 40, more = 0;
	struct shell_command command = { .ascii = style.ascii };

	put_diff_side(diff, &style, 0, "before", options->rank >= 0);
	put_diff_side(diff, &style, 1, "after", options->rank >= 0);
	put_test_method(diff, &style);
	if (is_narrow(&style))
		print_line(&style, "\n%12s%10s  %s\n", "change", "", "name");
	else
		print_line(&style, "\n%12s%12s%12s%10s  %-8s%s\n", "before", "after", "change", "",
			"p", "name");
	put_subtree(diff, &style, &diff->nodes[0], &left, &more);
	if (more)
		print_line(&style, "%u more changes (-n 0 shows all)\n", more);
	put_diff_values(diff, &style, diff->before, diff->after);
	print_line(&style, "%*s%s\n\n", is_narrow(&style) ? 2 : 10, "",
		diff->by_steps ? "total per step" : "total");
	print_line(&style, "%u of %u nodes changed significantly;%s%u tested, %u new, %u gone\n",
		diff->found, diff->count - 1, is_narrow(&style) ? "\n  " : " ", diff->tested,
		diff->added, diff->removed);
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
	uint32_t depth = diff->nodes[id].depth + 1, *path = xcalloc(depth * sizeof *path);

	for (; id; id = diff->nodes[id].parent)
		path[--depth] = id;
	return path;
}

static struct string_view diff_name(const struct diff *diff, uint32_t id)
{
	return string_table_get(diff->texts, diff->nodes[id].name);
}

static void diff_json_path(struct json_writer *json, const struct diff *diff, uint32_t id)
{
	uint32_t *path = diff_path(diff, id);

	json_put_begin(json, "path", '[');
	for (uint32_t i = 0; i <= diff->nodes[id].depth; i++)
		json_write_text(json, diff_name(diff, path[i]));
	json_write_end(json, ']');
	free(path);
}

static void diff_json_row(struct json_writer *json, const struct diff *diff, uint32_t id)
{
	const struct diff_node *node = &diff->nodes[id];

	json_write_begin(json, '{');
	json_put_unsigned(json, "id", id - 1);
	json_put_known_unsigned(json, "parent", node->parent - 1, node->parent);
	json_put_unsigned(json, "depth", node->depth);
	json_put_text(json, "name", diff_name(diff, id));
	json_put_string(json, "kind", node_kind_name(node->kind));
	if (node->class)
		json_put_text(json, "class", string_table_get(diff->texts, node->class));
	if (node->domain)
		json_put_text(json, "domain", string_table_get(diff->texts, node->domain));
	diff_json_path(json, diff, id);
	json_put_string(json, "status", status_name(node));
	diff_json_change(json, node->before, node->after);
	json_put_known_double(json, "shift", node->comparison.shift, node->comparison.tested);
	json_put_known_double(json, "p", node->comparison.p, node->comparison.tested);
	json_put_bool(json, "significant", node->found);
	json_put_unsigned(json, "n", node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	json_put_unsigned(json, "n_before", node->n[0]);
	json_put_unsigned(json, "n_after", node->n[1]);
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
	json_put_double(&json, "least_change", DIFF_MIN_SHIFT);
	json_put_double(&json, "common_change", diff->common_change);
	json_put_double(&json, "spread", diff->spread);
	json_put_unsigned(&json, "tested", diff->tested);
	json_put_unsigned(&json, "found", diff->found);
	json_put_begin(&json, "totals", '{');
	diff_json_change(&json, diff->before, diff->after);
	json_write_end(&json, '}');
	json_put_begin(&json, "rows", '[');
	for (uint32_t id = 1; id < diff->count; id++)
		diff_json_row(&json, diff, id);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

static void diff_csv_path(const struct diff *diff, struct output *out, uint32_t id)
{
	struct text_builder joined = { .text = NULL };
	uint32_t *path = diff_path(diff, id);

	for (uint32_t i = 0; i <= diff->nodes[id].depth; i++) {
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

static void print_diff_csv(const struct diff *diff, struct output *out)
{
	output_string(out, "path,kind,status,before,after,delta,relative,shift,p,significant,n_"
			   "before,n_after\r\n");
	for (uint32_t id = 1; id < diff->count; id++) {
		const struct diff_node *node = &diff->nodes[id];

		diff_csv_path(diff, out, id);
		output_char(out, ',');
		output_string(out, node_kind_name(node->kind));
		output_char(out, ',');
		output_string(out, status_name(node));
		diff_csv_number(out, node->before, true);
		diff_csv_number(out, node->after, true);
		diff_csv_number(out, node->after - node->before, true);
		diff_csv_number(
			out, (node->after - node->before) / fabs(node->before), node->before != 0);
		diff_csv_number(out, node->comparison.shift, node->comparison.tested);
		diff_csv_number(out, node->comparison.p, node->comparison.tested);
		output_string(out, node->found ? ",true," : ",false,");
		output_unsigned(out, node->n[0]);
		output_char(out, ',');
		output_unsigned(out, node->n[1]);
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
	diff = diff_read(options, options->metric_name, options->files[0], options->files[1]);
	out = output_open(options->output);
	if (options->format == FORMAT_JSON)
		print_diff_json(diff, out);
	else if (options->format == FORMAT_CSV)
		print_diff_csv(diff, out);
	else
		print_diff_text(diff, options, out);
	status = diff->found ? STATUS_DIFFERENT : STATUS_OK;
	if (!output_close(out, options->output))
		status = STATUS_UNREADABLE;
	diff_free(diff);
	return status;
}
