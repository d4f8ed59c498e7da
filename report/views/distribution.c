/* SPDX-License-Identifier: MIT
 *
 * Shows how the durations of a node are distributed: as rows, and as text with bars.
 */
#include "report/views/views.h"
#include "report/analysis/duration_distribution.h"
#include "report/base/text_builder.h"
#include "report/print/print.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char distributions_key; /* the key of process_attach() */

static struct distributions *distributions_of(const struct process *process)
{
	return process_attached(process, &distributions_key);
}

static void release_distributions(void *distributions)
{
	distributions_free(distributions);
}

static void add_distribution_row(
	struct rows *rows, struct process *process, const struct distribution_row *part)
{
	const bool has_node = part->kind == DISTRIBUTION_OUTLIER ||
			      distributions_of(process)->selected.count == 1;
	const struct row row = { .process = process,
		.kind = ROW_DISTRIBUTION,
		.parent = NO_ROW,
		.node = has_node ? part->node : 0,
		.tree = has_node ? process->profile->tree : NULL,
		.of.part = part };

	rows_add(rows, &row);
}

static void add_distribution_rows(const struct options *options, struct rows *rows,
	struct process *process, const struct distribution *of)
{
	const uint32_t most = options->top && options->top < of->worst_outlier_count
				      ? options->top
				      : of->worst_outlier_count;

	if (!of->count)
		return;
	add_distribution_row(rows, process, &of->whole);
	for (uint32_t i = 0; i < of->bin_count; i++)
		add_distribution_row(rows, process, &of->bins[i]);
	for (uint32_t i = 0; i < of->mode_count; i++)
		add_distribution_row(rows, process, &of->modes[i]);
	for (uint32_t i = 0; i < most; i++)
		add_distribution_row(rows, process, &of->worst_outliers[i]);
}

void arrange_distribution(
	const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++) {
		struct process *process = &processes->all[i];
		struct distributions *distributions = distributions_read(
			process, node_lookup_name(process, options->no_fold, options->subject));

		process_attach(process, &distributions_key, distributions, release_distributions);
		add_distribution_rows(options, rows, process, &distributions->cpu);
		add_distribution_rows(options, rows, process, &distributions->gpu);
	}
}

#define TIME_WIDTH 10
#define NARROW 60u /* columns; below, lines are shortened or broken */

static void put_time(const struct style *style, uint64_t ns, size_t width)
{
	char text[FORMAT_NUMBER_BYTES];
	const size_t length = format_with_unit(
		text, UNIT_TIME, clamp_to_i64(ns), style->iec, style->ascii);
	const size_t shown = escaped_width(text, length);

	for (size_t i = shown; i < width; i++)
		output_char(style->out, ' ');
	output_bytes(style->out, text, length);
}

static void put_count(const struct style *style, uint64_t count, size_t width)
{
	char text[FORMAT_NUMBER_BYTES];

	format_with_unit(text, UNIT_COUNT, (int64_t)count, style->iec, style->ascii);
	print_line(style, "%*s", (int)width, text);
}

/* Prints a bar of `eighths` eighths of a column. */
static void put_histogram_bar(const struct style *style, uint64_t eighths)
{
	static const char *const parts[] = { "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
		"\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89" };

	for (; eighths >= 8; eighths -= 8)
		output_string(style->out, style->ascii ? "#" : "\xe2\x96\x88");
	if (style->ascii)
		output_string(style->out, eighths >= 4 ? "#" : "");
	else
		output_string(style->out, parts[eighths]);
}

static uint64_t largest_bin(const struct distribution *of)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < of->bin_count; i++)
		most = of->bins[i].count > most ? of->bins[i].count : most;
	return most;
}

static void put_bins(const struct style *style, const struct distribution *of)
{
	const unsigned left = 2 * TIME_WIDTH + 18,
		       room = style->width > left ? style->width - left : 1;
	const uint64_t least = style->ascii ? 4 : 1;
	const uint64_t most = largest_bin(of);

	for (uint32_t i = 0; i < of->bin_count; i++) {
		const struct distribution_row *bin = &of->bins[i];
		const uint64_t eighths = (uint64_t)((double)bin->count / (double)most * 8 * room);

		put_time(style, bin->from, 2 + TIME_WIDTH);
		output_string(style->out, " to ");
		put_time(style, bin->to, TIME_WIDTH);
		put_count(style, bin->count, 10);
		if (bin->count)
			output_string(style->out, "  ");
		put_histogram_bar(style, bin->count && eighths < least ? least : eighths);
		output_char(style->out, '\n');
	}
}

static void put_percentiles(const struct style *style, const struct distribution *of)
{
	const struct {
		const char *name;
		uint64_t ns;
	} percentiles[] = { { "min", of->min_ns }, { "p25", of->p25 }, { "p50", of->p50 },
		{ "p75", of->p75 }, { "p95", of->p95 }, { "p99", of->p99 }, { "max", of->max_ns } };
	size_t used = 0;

	for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++) {
		if (used + 6 + TIME_WIDTH > style->width) {
			output_char(style->out, '\n');
			used = 0;
		}
		print_line(style, "  %s ", percentiles[i].name);
		put_time(style, percentiles[i].ns, 0);
		used += 6 + TIME_WIDTH;
	}
	output_char(style->out, '\n');
}

static void put_modes(const struct style *style, const struct distribution *of)
{
	if (of->count < DISTRIBUTION_COUNT_MIN) {
		print_line(style, "  too few instances for modes and outliers (%u)\n",
			DISTRIBUTION_COUNT_MIN);
		return;
	}
	print_line(style, "  %s",
		of->mode_count == 1 ? "one mode: "
		: of->mode_count    ? "modes: "
				    : "no mode");
	for (uint32_t i = 0; i < of->mode_count; i++) {
		output_string(style->out, !i ? "" : style->width < NARROW ? ",\n         " : ", ");
		put_time(style, of->modes[i].value, 0);
		print_line(
			style, " (%.0f %%)", 100 * (double)of->modes[i].count / (double)of->count);
	}
	output_char(style->out, '\n');
}

/* Prints the names of the nodes around the outlier, the outermost first. */
static void put_outlier_path(const struct style *style, const struct row *row, size_t room)
{
	uint32_t nodes[64];
	const size_t length = row_path(row, nodes, sizeof nodes / sizeof *nodes);
	struct text_builder path = { .text = NULL };

	for (size_t i = 0; i + 1 < length && i < sizeof nodes / sizeof *nodes; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		text_add(&path, "%s", i ? " / " : "");
		text_add_bytes(&path, name.bytes, name.length);
	}
	if (path.used)
		output_string(style->out, "  in ");
	print_escaped(style, path.text ? path.text : "", path.used, room);
	free(path.text);
}

#define SHOWN_OUTLIERS 10u

static void put_outlier_limits(const struct style *style, const struct distribution *of)
{
	const bool narrow = style->width < NARROW;

	output_string(style->out, "  outliers: ");
	put_count(style, of->outliers, 0);
	output_string(style->out, ", above ");
	put_time(style, of->high, 0);
	if (of->low) {
		output_string(style->out, narrow ? "\n            or below " : " or below ");
		put_time(style, of->low, 0);
	}
	output_string(style->out, narrow ? "\n" : " (3 interquartile ranges away)\n");
}

static void put_outlier(const struct style *style, const struct row *row)
{
	const struct distribution_row *part = row->of.part;
	uint64_t step;

	put_time(style, part->value, 2 + TIME_WIDTH);
	output_string(style->out, "  #");
	put_count(style, part->number, 0);
	output_string(style->out, " at ");
	put_time(style, part->at_ns, 0);
	if (distribution_step(row->process, part->at_ns, &step))
		print_line(style, ", step %llu", (unsigned long long)step);
	if (style->width >= NARROW)
		put_outlier_path(style, row, style->width > 64 ? style->width - 50 : 14);
	output_char(style->out, '\n');
}

static void put_outliers(const struct style *style, const struct options *options,
	const struct row *rows, size_t count, const struct distribution *of)
{
	const size_t most = options->top ? options->top : SHOWN_OUTLIERS;
	size_t shown = 0;

	if (!of->outliers)
		return;
	put_outlier_limits(style, of);
	for (size_t i = 0; i < count && shown < most; i++) {
		if (rows[i].of.part->of != of || rows[i].of.part->kind != DISTRIBUTION_OUTLIER)
			continue;
		shown++;
		put_outlier(style, &rows[i]);
	}
	if (of->outliers > shown)
		print_line(style, "  and %llu more\n", (unsigned long long)(of->outliers - shown));
}

static void put_distribution_title(const struct style *style, const struct row *row)
{
	const struct distribution *of = row->of.part->of;
	const struct string_view name = row_name(row);
	const size_t node_count = distributions_of(row->process)->selected.count;
	const bool is_range =
		node_kind_class(row->process->profile->tree->nodes[row->of.part->node].kind) ==
		NODE_RANGES;

	print_paint(style, PAINT_BOLD);
	print_escaped(style, name.bytes, name.length, style->width > 42 ? style->width - 30 : 12);
	print_paint(style, PAINT_NONE);
	if (node_count > 1)
		print_line(style, " (%zu nodes)", node_count);
	output_string(style->out, of->of_gpu ? " on the GPU:" : " on the CPU:");
	output_string(style->out, style->width < NARROW ? "\n  " : " ");
	put_count(style, of->count, 0);
	print_line(style, " instance%s%s, ", of->count == 1 ? "" : "s",
		is_range && of->of_gpu ? " with GPU work" : "");
	put_time(style, of->total_ns, 0);
	output_string(style->out, "\n");
}

void draw_distribution(const struct report *report, const struct style *style)
{
	const struct rows *rows = &report->rows;

	for (size_t i = 0; i < rows->count; i++) {
		const struct distribution_row *part = rows->rows[i].of.part;

		if (part->kind != DISTRIBUTION_WHOLE)
			continue;
		if (i)
			output_char(style->out, '\n');
		put_distribution_title(style, &rows->rows[i]);
		put_percentiles(style, part->of);
		put_bins(style, part->of);
		put_modes(style, part->of);
		put_outliers(style, report->options, rows->rows, rows->count, part->of);
	}
}
