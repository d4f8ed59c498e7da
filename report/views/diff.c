/* SPDX-License-Identifier: MIT
 * diff_print.c: two runs beside each other, as text, JSON, CSV.
 */
#include "report/analysis/run_diff.h"
#include "report/views/views.h"
#include "report/text/json_writer.h"
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

#define FIGURE 12u
#define NARROW 72u      /* columns; with fewer, only the change is shown, and not how sure it is */
#define NAME_LEAST 12u

static bool is_narrow(const struct style *style)
{
	return style->width < NARROW;
}

static const char *status_name(const struct diff_node *node)
{
	static const char *const names[] = { [DIFF_BOTH] = "both", [DIFF_NEW] = "new", [DIFF_GONE] = "gone" };

	return names[node->status];
}

static const char *basis(const struct diff *diff)
{
	return diff->by_steps ? "step" : "run";
}

/* The largest change in it or below first. */
static int by_change(const void *a, const void *b)
{
	const struct diff_node *left = *(struct diff_node *const *)a, *right = *(struct diff_node *const *)b;

	if (left->most != right->most)
		return left->most > right->most ? -1 : 1;
	return (left > right) - (left < right);
}

/* The children of a node, in order; to be freed. */
static const struct diff_node **children(const struct diff *diff, const struct diff_node *node, size_t *count)
{
	const struct diff_node **all;

	*count = 0;
	for (uint32_t id = node->first_child; id; id = diff->nodes[id].next)
		++*count;
	all = need((*count + 1) * sizeof(struct diff_node *));
	*count = 0;
	for (uint32_t id = node->first_child; id; id = diff->nodes[id].next)
		all[(*count)++] = &diff->nodes[id];
	qsort(all, *count, sizeof(struct diff_node *), by_change);
	return all;
}

static void put_figure(const struct diff *diff, const struct style *style, double value, bool sign)
{
	char text[NUMBER_BYTES + 1];
	const size_t width = visible_width(text, diff_figure(diff, text, value, sign, style->iec, style->ascii));

	print_line(style, "%*s%s", width < FIGURE ? (int)(FIGURE - width) : 1, "", text);
}

static void put_relative(const struct style *style, double before, double after)
{
	if (before == 0)
		print_line(style, "%10s", "-");
	else
		print_line(style, "%+8.1f %%", 100 * (after - before) / fabs(before));
}

static void put_word(const struct style *style, const struct diff_node *node)
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

static void put_figures(const struct diff *diff, const struct style *style, double before, double after)
{
	if (!is_narrow(style)) {
		put_figure(diff, style, before, false);
		put_figure(diff, style, after, false);
	}
	put_figure(diff, style, after - before, true);
	put_relative(style, before, after);
}

/* What stands behind a name: how many values were compared, where that differs from row to row. */
static size_t describe(const struct diff *diff, const struct diff_node *node, char *out, size_t room)
{
	int length = 0;

	*out = '\0';
	if (!node->comparison.tested)
		length = snprintf(out, room, "  not tested (n=%u)", node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	else if (!diff->by_steps)
		length = snprintf(out, room, "  n=%u, %u", node->n[0], node->n[1]);
	return (size_t)length;
}

/* The name, and the class of a module, in what the figures leave of the line. */
static void put_name(const struct diff *diff, const struct style *style, const struct diff_node *node)
{
	const struct text name = text_of(diff->texts, node->name), class = text_of(diff->texts, node->class);
	const uint32_t depth = node->depth < 20 ? node->depth : 20;
	const size_t figures = is_narrow(style) ? FIGURE + 12 : 3 * FIGURE + 20;
	struct paragraph whole = { .style = style };
	char behind[64];
	const size_t taken = figures + 2 * depth + describe(diff, node, behind, sizeof behind);

	paragraph_text(&whole, name.bytes, name.length);
	if (class.length) {
		paragraph_add(&whole, " (");
		paragraph_text(&whole, class.bytes, class.length);
		paragraph_add(&whole, ")");
	}
	print_line(style, "%*s", (int)(2 * depth + (is_narrow(style) ? 2 : 0)), "");
	if (whole.used)
		visible_shorten(whole.text, whole.room, style->width > taken + NAME_LEAST ? style->width - taken : NAME_LEAST, style->ascii);
	out_string(style->out, whole.used ? whole.text : "");
	out_string(style->out, behind);
	free(whole.text);
}

static void put_node(const struct diff *diff, const struct style *style, const struct diff_node *node)
{
	if (node->found)
		print_paint(style, node->after > node->before ? PAINT_HOT : PAINT_BOLD);
	put_figures(diff, style, node->before, node->after);
	if (!is_narrow(style))
		put_word(style, node);
	put_name(diff, style, node);
	if (node->found)
		print_paint(style, PAINT_NONE);
	out_char(style->out, '\n');
}

/* What is to be seen, and what lies around it. left: rows that there is room for. */
static void put_below(const struct diff *diff, const struct style *style, const struct diff_node *node, uint32_t *left,
	uint32_t *more)
{
	size_t count;
	const struct diff_node **all = children(diff, node, &count);

	for (size_t i = 0; i < count; i++) {
		if (!all[i]->shown)
			continue;
		if (*left) {
			put_node(diff, style, all[i]);
			--*left;
		} else {
			*more += all[i]->found;
		}
		put_below(diff, style, all[i], left, more);
	}
	free(all);
}

/* How much was taken for the test. */
static void put_method(const struct diff *diff, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "%s of ", diff_metric_name(diff));
	if (diff->by_steps)
		paragraph_add(&paragraph, "a usual step (mean; %zu before, %zu after; warm-up left out)", diff->sides[0].steps,
			diff->sides[1].steps);
	else if (!diff->sides[0].steps && !diff->sides[1].steps)
		paragraph_add(&paragraph, "the whole run (no usual steps were found); instances were tested");
	else
		paragraph_add(&paragraph,
			"the whole run (it takes %u usual steps of each, and %zu and %zu were found); instances were tested",
			COMPARE_LEAST, diff->sides[0].steps, diff->sides[1].steps);
	paragraph_put(&paragraph, "compared");
	paragraph_add(&paragraph, COMPARE_METHOD "; found: p < %.2f and a shift of %.0f %% or more, "
			       "of times also %g %% of the whole; n of %u on each side at least",
		DIFF_ALPHA, 100 * DIFF_LEAST, 100 * DIFF_SHARE, COMPARE_LEAST);
	paragraph_put(&paragraph, "method");
	if (diff->spread <= 0 && diff->common_change == 0)
		return;
	paragraph_add(&paragraph,
		"a place in the middle changed by %+.1f %%, the others by %.1f %% more or less (robust deviation); found: what "
		"is off by %d of these",
		100 * diff->common_change, 100 * diff->spread, DIFF_SPREADS);
	paragraph_put(&paragraph, "runs");
}

/* asked: for its rank. */
static void put_file(const struct diff *diff, const struct style *style, unsigned which, const char *title, bool asked)
{
	struct paragraph paragraph = { .style = style };
	const struct process *process = diff->sides[which].process;

	paragraph_text(&paragraph, process->path, __builtin_strlen(process->path));
	if (process->rank >= 0)
		paragraph_add(&paragraph, " (rank %lld%s)", (long long)process->rank, asked ? "" : "; --rank N: another");
	if (!process->complete)
		paragraph_add(&paragraph, " (incomplete: pperf-report says what is missing)");
	paragraph_put(&paragraph, title);
}

static void print_diff(const struct diff *diff, const struct options *options, struct out *out)
{
	const struct style style = style_of(&options->style, out);
	uint32_t left = options->top ? options->top : 40, more = 0;
	struct command command = { .ascii = style.ascii };

	put_file(diff, &style, 0, "before", options->rank >= 0);
	put_file(diff, &style, 1, "after", options->rank >= 0);
	put_method(diff, &style);
	if (is_narrow(&style))
		print_line(&style, "\n%12s%10s  %s\n", "change", "", "name");
	else
		print_line(&style, "\n%12s%12s%12s%10s  %-8s%s\n", "before", "after", "change", "", "p", "name");
	put_below(diff, &style, &diff->nodes[0], &left, &more);
	if (more)
		print_line(&style, "%u more that changed (-n 0 shows all)\n", more);
	put_figures(diff, &style, diff->before, diff->after);
	print_line(&style, "%*s%s\n\n", is_narrow(&style) ? 2 : 10, "", diff->by_steps ? "all, a step" : "all");
	print_line(&style, "%u of %u places changed by more%sthan noise; %u tested, %u new, %u gone\n", diff->found,
		diff->count - 1, is_narrow(&style) ? "\n  " : " ", diff->tested, diff->added, diff->gone);
	next_begin(&command, "gate");
	next_files(&command, options);
	next_put(&command, &style);
}

static void emit_number(struct emit *emit, const char *key, double value, bool known)
{
	emit_key(emit, key);
	if (known)
		emit_double(emit, value);
	else
		emit_null(emit);
}

static void emit_change(struct emit *emit, double before, double after)
{
	emit_number(emit, "before", before, true);
	emit_number(emit, "after", after, true);
	emit_number(emit, "delta", after - before, true);
	emit_number(emit, "relative", before != 0 ? (after - before) / fabs(before) : 0, before != 0);
}

static void emit_name(struct emit *emit, const struct diff *diff, const char *key, uint32_t id)
{
	const struct text text = text_of(diff->texts, id);

	emit_key(emit, key);
	emit_text(emit, text);
}

static void emit_path(struct emit *emit, const struct diff *diff, uint32_t id)
{
	uint32_t *path = need((diff->nodes[id].depth + 1u) * sizeof *path), depth = diff->nodes[id].depth + 1;
	const uint32_t count = depth;

	for (uint32_t node = id; node; node = diff->nodes[node].parent)
		path[--depth] = node;
	emit_key(emit, "path");
	emit_begin(emit, '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct text text = text_of(diff->texts, diff->nodes[path[i]].name);

		emit_text(emit, text);
	}
	emit_end(emit, ']');
	free(path);
}

static void emit_row(struct emit *emit, const struct diff *diff, uint32_t id)
{
	const struct diff_node *node = &diff->nodes[id];

	emit_begin(emit, '{');
	emit_put_unsigned(emit, "id", id - 1);
	emit_key(emit, "parent");
	if (node->parent)
		emit_unsigned(emit, node->parent - 1);
	else
		emit_null(emit);
	emit_put_unsigned(emit, "depth", node->depth);
	emit_name(emit, diff, "name", node->name);
	emit_put_string(emit, "kind", node_kind_name(node->kind));
	if (node->class)
		emit_name(emit, diff, "class", node->class);
	if (node->domain)
		emit_name(emit, diff, "domain", node->domain);
	emit_path(emit, diff, id);
	emit_put_string(emit, "status", status_name(node));
	emit_change(emit, node->before, node->after);
	emit_number(emit, "shift", node->comparison.shift, node->comparison.tested);
	emit_number(emit, "p", node->comparison.p, node->comparison.tested);
	emit_put_bool(emit, "significant", node->found);
	emit_put_unsigned(emit, "n", node->n[0] < node->n[1] ? node->n[0] : node->n[1]);
	emit_put_unsigned(emit, "n_before", node->n[0]);
	emit_put_unsigned(emit, "n_after", node->n[1]);
	emit_end(emit, '}');
}

static const char *unit_name(const struct diff *diff)
{
	return diff_unit(diff) == UNIT_TIME ? "ns" : diff_unit(diff) == UNIT_BYTES ? "bytes" : "count";
}

static void emit_unit(struct emit *emit, const struct diff *diff)
{
	if (diff->metric == METRIC_USER) {
		const struct text unit = text_of(diff->sides[1].process->texts, diff->sides[1].amounts->fold->counter_unit);

		emit_put_text(emit, "unit", unit);
	} else {
		emit_put_string(emit, "unit", unit_name(diff));
	}
}

static void print_diff_json(const struct diff *diff, struct out *out)
{
	struct emit emit = { .out = out };

	emit_begin(&emit, '{');
	emit_put_string(&emit, "schema", "pperf.report/1");
	emit_put_string(&emit, "view", "diff");
	emit_key(&emit, "files");
	emit_begin(&emit, '[');
	emit_string(&emit, diff->sides[0].process->path);
	emit_string(&emit, diff->sides[1].process->path);
	emit_end(&emit, ']');
	emit_put_string(&emit, "metric", diff_metric_name(diff));
	emit_unit(&emit, diff);
	emit_put_string(&emit, "basis", basis(diff));
	emit_put_unsigned(&emit, "steps_before", diff->sides[0].steps);
	emit_put_unsigned(&emit, "steps_after", diff->sides[1].steps);
	emit_key(&emit, "ranks");
	emit_begin(&emit, '[');
	emit_rank_number(&emit, diff->sides[0].process->rank);
	emit_rank_number(&emit, diff->sides[1].process->rank);
	emit_end(&emit, ']');
	emit_put_string(&emit, "method", COMPARE_METHOD);
	emit_number(&emit, "alpha", DIFF_ALPHA, true);
	emit_number(&emit, "least_change", DIFF_LEAST, true);
	emit_number(&emit, "common_change", diff->common_change, true);
	emit_number(&emit, "spread", diff->spread, true);
	emit_put_unsigned(&emit, "tested", diff->tested);
	emit_put_unsigned(&emit, "found", diff->found);
	emit_key(&emit, "totals");
	emit_begin(&emit, '{');
	emit_change(&emit, diff->before, diff->after);
	emit_end(&emit, '}');
	emit_key(&emit, "rows");
	emit_begin(&emit, '[');
	for (uint32_t id = 1; id < diff->count; id++)
		emit_row(&emit, diff, id);
	emit_end(&emit, ']');
	emit_end(&emit, '}');
	out_char(out, '\n');
}

static void csv_path(const struct diff *diff, struct out *out, uint32_t id)
{
	char *joined = NULL;
	size_t used = 0, room = 0;
	uint32_t path[1024], count = 0;

	for (uint32_t node = id; node && count < 1024; node = diff->nodes[node].parent)
		path[count++] = node;
	while (count) {
		const struct text text = text_of(diff->texts, diff->nodes[path[--count]].name);

		grow(&joined, &room, used + 2 * (size_t)text.length + 2, 1);
		for (uint32_t i = 0; i < text.length; i++) {
			if (text.bytes[i] == '/' || text.bytes[i] == '\\')
				joined[used++] = '\\';
			joined[used++] = text.bytes[i];
		}
		if (count)
			joined[used++] = '/';
	}
	out_csv_text(out, joined ? joined : "", used);
	free(joined);
}

static void csv_number(struct out *out, double value, bool known)
{
	out_char(out, ',');
	if (known)
		out_double(out, value);
}

static void print_diff_csv(const struct diff *diff, struct out *out)
{
	out_string(out, "path,kind,status,before,after,delta,relative,shift,p,significant,n_before,n_after\r\n");
	for (uint32_t id = 1; id < diff->count; id++) {
		const struct diff_node *node = &diff->nodes[id];

		csv_path(diff, out, id);
		out_char(out, ',');
		out_string(out, node_kind_name(node->kind));
		out_char(out, ',');
		out_string(out, status_name(node));
		csv_number(out, node->before, true);
		csv_number(out, node->after, true);
		csv_number(out, node->after - node->before, true);
		csv_number(out, (node->after - node->before) / fabs(node->before), node->before != 0);
		csv_number(out, node->comparison.shift, node->comparison.tested);
		csv_number(out, node->comparison.p, node->comparison.tested);
		out_string(out, node->found ? ",true," : ",false,");
		out_unsigned(out, node->n[0]);
		out_char(out, ',');
		out_unsigned(out, node->n[1]);
		out_string(out, "\r\n");
	}
}

int diff_view(const struct options *options)
{
	struct diff *diff;
	struct out *out;
	int status;

	if (options->file_count != 2)
		fatal(STATUS_USAGE, "diff compares two files: pperf-report diff BEFORE AFTER");
	diff = diff_read(options, options->metric_name, options->files[0], options->files[1]);
	out = out_open(options->output);
	if (options->format == FORMAT_JSON)
		print_diff_json(diff, out);
	else if (options->format == FORMAT_CSV)
		print_diff_csv(diff, out);
	else
		print_diff(diff, options, out);
	status = diff->found ? STATUS_DIFFERENT : STATUS_FINE;
	if (!out_close(out, options->output))
		status = STATUS_UNREADABLE;
	diff_free(diff);
	return status;
}
