/* SPDX-License-Identifier: MIT
 *
 * The font has a fixed width, because only then is it known, without a browser, which text fits
 * into a frame.
 */
#include "report/page/flame_svg.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/escape.h"
#include "report/page/assets.h"
#include "report/page/flame_values.h"
#include "report/page/page_text.h"
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1200.0
#define MARGIN 8
#define ROW 18
#define HEAD 44
#define CHARACTER 6.7 /* of a fixed-width font of 11 pixels; most have 6.6 */
#define NARROWEST 0.6
#define DIFF_LEVELS 4

struct drawing {
	struct output *out;
	const struct flame *flame;
	const struct flame_tree *tree;
	const struct flame_metric *metric;
	long double *totals;    /* flame_totals of what is drawn */
	long double outside;    /* the sum of what is not, on the side `after` */
	long double *widths;    /* by frame: of its width */
	uint32_t *first, *next; /* by frame: its first child; the next one of its parent; 0: none */
	size_t before, after;   /* indexes of values */
	long double largest_change;
	uint64_t too_narrow;
	uint32_t deepest;
	bool iec;
};

static long double total(const struct drawing *drawing, uint32_t frame, size_t value)
{
	return drawing->totals[frame * drawing->tree->stride + value];
}

/* Whether most of a metric of time is outside of the steps, as after a long start: in the whole run
 * they would be too narrow to be seen. The page opens in the same way (flame.js). */
static bool are_steps_small(const struct drawing *drawing, const bool *outside)
{
	const struct flame_tree *tree = drawing->tree;
	long double steps = 0, whole = 0;

	for (uint32_t i = 0; i < tree->count; i++) {
		const long double *own = flame_values(tree, i);
		const long double before = own[drawing->before], after = own[drawing->after];
		const long double width = before > after ? before : after;

		whole += width;
		steps += outside[i] ? 0 : width;
	}
	return drawing->metric->unit == UNIT_TIME && steps > 0 && steps < whole / 2;
}

/* Removes the values outside of the steps, so that the steps are drawn alone. */
static void leave_steps(struct drawing *drawing, const bool *outside)
{
	const struct flame_tree *tree = drawing->tree;

	for (uint32_t i = 0; i < tree->count; i++) {
		long double *own = flame_values(tree, i);

		if (!outside[i])
			continue;
		drawing->outside += own[drawing->after];
		own[drawing->before] = own[drawing->after] = 0;
	}
}

static void select_steps(struct drawing *drawing)
{
	bool *outside = flame_outside_steps(drawing->tree);

	if (are_steps_small(drawing, outside))
		leave_steps(drawing, outside);
	free(outside);
}

static long double change(const struct drawing *drawing, uint32_t frame)
{
	return total(drawing, frame, drawing->after) - total(drawing, frame, drawing->before);
}

/* Sums the wider of the two sides of each frame, so that frames of one side only are drawn. */
static void add_widths(struct drawing *drawing)
{
	const struct flame_tree *tree = drawing->tree;

	drawing->widths = xcalloc((tree->count + 1) * sizeof *drawing->widths);
	for (uint32_t i = (uint32_t)tree->count; i-- > 0;) {
		const long double *own = flame_values(tree, i);
		const long double before = own[drawing->before], after = own[drawing->after];

		drawing->widths[i] += before > after ? before : after;
		if (i)
			drawing->widths[tree->frames[i].parent] += drawing->widths[i];
	}
}

/* ---- order: the widest child first ---- */

struct sized_child {
	long double width;
	uint32_t parent, frame;
};

static int by_parent_and_width(const void *a, const void *b)
{
	const struct sized_child *left = a, *right = b;

	if (left->parent != right->parent)
		return COMPARE(left->parent, right->parent);
	if (left->width != right->width)
		return COMPARE(right->width, left->width);
	return COMPARE(left->frame, right->frame);
}

static void order_children(struct drawing *drawing)
{
	const struct flame_tree *tree = drawing->tree;
	struct sized_child *sorted = xcalloc((tree->count + 1) * sizeof *sorted);

	drawing->first = xcalloc((tree->count + 1) * sizeof *drawing->first);
	drawing->next = xcalloc((tree->count + 1) * sizeof *drawing->next);
	for (uint32_t i = 1; i < tree->count; i++)
		sorted[i - 1] = (struct sized_child){
			.width = drawing->widths[i], .parent = tree->frames[i].parent, .frame = i
		};
	qsort(sorted, tree->count - 1, sizeof *sorted, by_parent_and_width);
	for (size_t i = tree->count - 1; i-- > 0;) {
		drawing->next[sorted[i].frame] = drawing->first[sorted[i].parent];
		drawing->first[sorted[i].parent] = sorted[i].frame;
	}
	free(sorted);
}

/* ---- text ---- */

static void write_format(struct output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void write_format(struct output *out, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	output_string(out, text);
}

static void format_value(const struct drawing *drawing, long double value, char *out)
{
	if (drawing->metric->unit == UNIT_USER)
		snprintf(out, FORMAT_NUMBER_BYTES, "%.6Lg %s", value, drawing->metric->unit_name);
	else
		format_with_unit(
			out, drawing->metric->unit, clamp_to_i64(value), drawing->iec, false);
}

static void write_text(struct output *out, const char *text, size_t length)
{
	struct page_text page = page_text_of(text, length);

	page_write_markup_text(out, page.text, page.length);
	free(page.text);
}

static void write_path(const struct drawing *drawing, uint32_t frame)
{
	const struct flame_frame *at = &drawing->tree->frames[frame];
	const struct string_view label = string_table_get(drawing->flame->texts, at->label);

	if (at->parent) {
		write_path(drawing, at->parent);
		output_string(drawing->out, " / ");
	}
	write_text(drawing->out, label.bytes, label.length);
}

static void write_share(const struct drawing *drawing, uint32_t frame)
{
	char share[FORMAT_NUMBER_BYTES];

	format_percent(share, clamp_to_i64(total(drawing, frame, drawing->after)),
		clamp_to_i64(total(drawing, 0, drawing->after)));
	output_string(drawing->out, share);
}

static void write_change(const struct drawing *drawing, uint32_t frame)
{
	char value[FORMAT_NUMBER_BYTES];
	const long double by = change(drawing, frame);

	format_value(drawing, total(drawing, frame, drawing->before), value);
	output_string(drawing->out, value);
	output_string(drawing->out, " \xe2\x86\x92 ");
	format_value(drawing, total(drawing, frame, drawing->after), value);
	output_string(drawing->out, value);
	format_value(drawing, by, value);
	output_string(drawing->out, by > 0 ? ", +" : ", ");
	output_string(drawing->out, value);
}

static void write_title(const struct drawing *drawing, uint32_t frame)
{
	char value[FORMAT_NUMBER_BYTES];

	output_string(drawing->out, "<title>");
	write_path(drawing, frame);
	output_string(drawing->out, "\n");
	if (drawing->flame->sides == 2) {
		write_change(drawing, frame);
	} else {
		format_value(drawing, total(drawing, frame, drawing->after), value);
		output_string(drawing->out, value);
		output_string(drawing->out, ", ");
		write_share(drawing, frame);
	}
	output_string(drawing->out, "</title>");
}

/* Writes as much of the label as fits into `width` pixels, if that is 3 characters or more. */
static void write_label(
	const struct drawing *drawing, uint32_t frame, double x, double y, double width)
{
	const struct string_view label = string_table_get(
		drawing->flame->texts, drawing->tree->frames[frame].label);
	const size_t columns = width > 8 ? (size_t)((width - 8) / CHARACTER) : 0;
	struct page_text text = page_text_of(label.bytes, label.length);

	if (columns >= 3) {
		text.length = escaped_shorten(text.text, text.length + 8, columns, false);
		write_format(drawing->out, "<text x=\"%.1f\" y=\"%.0f\">", x + 4, y + 12.5);
		page_write_markup_text(drawing->out, text.text, text.length);
		output_string(drawing->out, "</text>");
	}
	free(text.text);
}

/* ---- frames ---- */

static void write_class(const struct drawing *drawing, uint32_t frame)
{
	long double part;

	if (drawing->flame->sides == 1) {
		write_format(drawing->out, "k%d", drawing->tree->frames[frame].kind);
		return;
	}
	part = change(drawing, frame);
	if (part == 0) {
		output_string(drawing->out, "same");
		return;
	}
	/* The root of a change, so that changes of leaves are seen beside those of the whole. */
	write_format(drawing->out, part > 0 ? "up%d" : "down%d",
		(int)ceill(sqrtl(fabsl(part) / drawing->largest_change) * DIFF_LEVELS));
}

static void draw_frame(
	struct drawing *drawing, uint32_t frame, uint32_t depth, double x, double width)
{
	const double y = HEAD + (double)depth * ROW;

	drawing->deepest = depth > drawing->deepest ? depth : drawing->deepest;
	output_string(drawing->out, "<g class=\"");
	write_class(drawing, frame);
	output_string(drawing->out, "\">");
	write_title(drawing, frame);
	write_format(drawing->out,
		"<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" rx=\"2\"/>", x, y,
		width > 1.5 ? width - 0.8 : width, ROW - 1);
	write_label(drawing, frame, x, y, width);
	output_string(drawing->out, "</g>\n");
}

/* Draws the frames below the root, depth first. A frame's place on the page depends on its parent's
 * only, so a loop over the order of numbers suffices. */
static void draw_frames(struct drawing *drawing, bool measure_only)
{
	const struct flame_tree *tree = drawing->tree;
	double *x = xcalloc((tree->count + 1) * sizeof *x);
	uint32_t *depth = xcalloc((tree->count + 1) * sizeof *depth);
	const long double whole = drawing->widths[0];

	for (uint32_t parent = 0; parent < tree->count && whole > 0; parent++) {
		double at = parent ? x[parent] : 0;

		if (parent && (double)(drawing->widths[parent] / whole) * WIDTH < NARROWEST)
			continue;
		for (uint32_t i = drawing->first[parent]; i; i = drawing->next[i]) {
			const double width = (double)(drawing->widths[i] / whole) * WIDTH;

			x[i] = at;
			depth[i] = parent ? depth[parent] + 1 : 0;
			at += width;
			if (width < NARROWEST)
				drawing->too_narrow += measure_only && width > 0;
			else if (measure_only)
				drawing->deepest = depth[i] > drawing->deepest ? depth[i]
									       : drawing->deepest;
			else
				draw_frame(drawing, i, depth[i], x[i], width);
		}
	}
	free(x);
	free(depth);
}

/* Writes a colour of tokens.css, `NAME: light-dark(LIGHT, DARK)`, in one theme. Programs that draw
 * SVG files know neither custom properties nor light-dark(). */
static void write_colour(struct output *out, const char *name, bool is_dark)
{
	const char *text = asset_get(PAGE_STYLE_TOKENS).text, *at = strstr(text, name);

	assert(at);
	at = strchr(at, '#');
	if (is_dark)
		at = strchr(at + 1, '#');
	output_bytes(out, at, strspn(at, "#0123456789abcdef"));
}

/* Writes `SELECTOR{PROPERTY:COLOUR}`. */
static void write_rule(struct output *out, const char *selector, const char *property,
	const char *colour, bool is_dark)
{
	char name[32];

	snprintf(name, sizeof name, "--%s:", colour);
	output_string(out, selector);
	output_string(out, "{");
	output_string(out, property);
	output_string(out, ":");
	write_colour(out, name, is_dark);
	output_string(out, "}");
}

static void write_theme(struct output *out, bool is_dark)
{
	char selector[32], colour[32];

	write_rule(out, "svg", "background", "card", is_dark);
	write_rule(out, "text", "fill", "frame-ink", is_dark);
	write_rule(out, ".head", "fill", "ink", is_dark);
	write_rule(out, ".note", "fill", "soft", is_dark);
	for (int kind = 0; kind < FLAME_KIND_COUNT; kind++) {
		snprintf(selector, sizeof selector, ".k%d rect", kind);
		snprintf(colour, sizeof colour, "frame-%d", kind);
		write_rule(out, selector, "fill", colour, is_dark);
	}
	write_rule(out, ".same rect", "fill", "same", is_dark);
	for (int level = 1; level <= DIFF_LEVELS; level++) {
		snprintf(selector, sizeof selector, ".up%d rect", level);
		snprintf(colour, sizeof colour, "up-%d", level);
		write_rule(out, selector, "fill", colour, is_dark);
		snprintf(selector, sizeof selector, ".down%d rect", level);
		snprintf(colour, sizeof colour, "down-%d", level);
		write_rule(out, selector, "fill", colour, is_dark);
	}
}

static void write_style(struct output *out)
{
	output_string(out, "<style>text{font:11px ui-monospace,Menlo,Consolas,"
			   "\"DejaVu Sans Mono\",monospace}.head{font:600 14px "
			   "system-ui,sans-serif}.note{font:12px system-ui,sans-serif}\n");
	write_theme(out, false);
	output_string(out, "\n@media (prefers-color-scheme:dark){");
	write_theme(out, true);
	output_string(out, "}</style>\n");
}

static void write_head(const struct drawing *drawing, const char *title)
{
	char value[FORMAT_NUMBER_BYTES];

	format_value(drawing, total(drawing, 0, drawing->after), value);
	output_string(drawing->out, "<text class=\"head\" x=\"0\" y=\"16\">");
	write_text(drawing->out, drawing->metric->title, strlen(drawing->metric->title));
	output_string(drawing->out, " ");
	if (drawing->flame->sides == 2)
		write_change(drawing, 0);
	else
		output_string(drawing->out, value);
	output_string(drawing->out, "</text>\n<text class=\"note\" x=\"0\" y=\"34\">");
	write_text(drawing->out, title, strlen(title));
	output_string(drawing->out, ": ");
	output_string(drawing->out, drawing->metric->note);
	if (drawing->outside > 0) {
		format_value(drawing, drawing->outside, value);
		output_string(drawing->out, "; the steps only, without ");
		output_string(drawing->out, value);
		output_string(drawing->out, " outside of them (--whole draws all)");
	}
	if (drawing->too_narrow)
		write_format(drawing->out, "; %llu too narrow to draw",
			(unsigned long long)drawing->too_narrow);
	output_string(drawing->out, "</text>\n");
}

static void find_largest_change(struct drawing *drawing)
{
	for (uint32_t i = 1; i < drawing->tree->count; i++) {
		const long double by = change(drawing, i);

		if ((by < 0 ? -by : by) > drawing->largest_change)
			drawing->largest_change = by < 0 ? -by : by;
	}
}

void flame_svg_write(struct output *out, struct flame *flame, enum flame_shape shape, size_t metric,
	const char *title, bool is_whole, bool iec)
{
	const struct flame_tree *tree = &flame->shapes[shape];
	struct drawing drawing = { .out = out,
		.flame = flame,
		.tree = tree,
		.metric = &flame->metrics[metric],
		.before = flame_value_index(flame, metric, 0),
		.after = flame_value_index(flame, metric, flame->sides - 1),
		.iec = iec };
	int height;

	if (!is_whole)
		select_steps(&drawing);
	drawing.totals = flame_totals(tree);
	add_widths(&drawing);
	order_children(&drawing);
	find_largest_change(&drawing);
	draw_frames(&drawing, true);
	height = HEAD + ((int)drawing.deepest + 1) * ROW + 4;
	write_format(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
		"viewBox=\"%d 0 %.0f %d\">\n",
		WIDTH + 2 * MARGIN, height, -MARGIN, WIDTH + 2 * MARGIN, height);
	write_style(out);
	write_head(&drawing, title);
	draw_frames(&drawing, false);
	output_string(out, "</svg>\n");
	free(drawing.totals);
	free(drawing.widths);
	free(drawing.first);
	free(drawing.next);
}
