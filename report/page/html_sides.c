/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/page/flame_build.h"
#include "report/page/flame_data.h"
#include "report/page/html_pages.h"
#include "report/page/page_columns.h"
#include "report/page/page_head.h"
#include "report/page/page_text.h"
#include "report/page/page_writer.h"
#include "report/page/run_data.h"
#include "report/run/output_file.h"
#include "report/run/warnings.h"
#include "report/views/diff_words.h"
#include <math.h>
#include <stdlib.h>

static const enum page_asset assets[] = { PAGE_STYLE_TOKENS, PAGE_STYLE_PAGE, PAGE_STYLE_FLAME,
	PAGE_STYLE_RUN, PAGE_STYLE_MEMORY_MAP, PAGE_STYLE_SEVERAL, PAGE_SCRIPT_BASE,
	PAGE_SCRIPT_NUMBERS, PAGE_SCRIPT_FLAME_TREE, PAGE_SCRIPT_FLAME, PAGE_SCRIPT_HEAD,
	PAGE_SCRIPT_LANES, PAGE_SCRIPT_TIMELINE, PAGE_SCRIPT_TABLES, PAGE_SCRIPT_MEMORY_MAP,
	PAGE_SCRIPT_RUN, PAGE_SCRIPT_SIDES_PAGE };
#define ASSETS (sizeof assets / sizeof *assets)

struct sides_page {
	const struct options *options;
	struct processes *sides; /* two */
	struct diff *diff;
	struct style style;
	uint32_t *rows; /* nodes of the diff */
	size_t count, left_out;
};

/* ---- the rows of the view `diff` ---- */

/* Lists the nodes that have rows of their own, and the largest changes that have none. */
static void list_rows(struct sides_page *page)
{
	const struct diff *diff = page->diff;
	uint32_t left_out;
	bool *selected = diff_select_rows(diff, HTML_CHANGES_MAX, &left_out);

	page->rows = xcalloc((diff->nodes.count + 1) * sizeof *page->rows);
	for (uint32_t id = 1; id < diff->nodes.count; id++)
		if (selected[id] && diff_has_own_row(diff, &diff->nodes.all[id]) &&
			!diff_is_between(diff, id))
			page->rows[page->count++] = id;
	for (uint32_t i = 0; i < diff->mover_count; i++)
		if (!diff_has_own_row(diff, &diff->nodes.all[diff->movers[i]]))
			page->rows[page->count++] = diff->movers[i];
	page->left_out = left_out;
	free(selected);
}

static const struct diff_node *node_of(const struct sides_page *page, size_t row)
{
	return &page->diff->nodes.all[page->rows[row]];
}

enum diff_cell { CELL_BEFORE, CELL_AFTER, CELL_CHANGE, CELL_RELATIVE, CELL_P, CELL_REMARKS, CELLS };

static double cell_value(const struct diff_node *node, enum diff_cell cell)
{
	switch (cell) {
	case CELL_BEFORE:
		return node->value[0];
	case CELL_AFTER:
		return node->value[1];
	case CELL_CHANGE:
		return fabs(diff_node_change(node));
	case CELL_RELATIVE:
		return node->value[0] == 0 ? NAN : diff_node_change(node) / fabs(node->value[0]);
	case CELL_P:
		return node->test.tested ? node->test.p : NAN;
	default:
		return NAN;
	}
}

static void write_remarks(
	struct json_writer *json, const struct sides_page *page, const struct diff_node *node)
{
	struct text_builder remarks = { .text = NULL };
	const char *text = "";

	diff_add_remarks(page->diff, node, false, &remarks);
	for (text = remarks.text ? remarks.text : ""; *text == ' ';)
		text++;
	json_write_string(json, text);
	free(remarks.text);
}

static void write_cell(struct json_writer *json, const struct sides_page *page,
	const struct diff_node *node, enum diff_cell cell)
{
	char text[FORMAT_NUMBER_BYTES + DIFF_CELL_BYTES];

	if (cell == CELL_REMARKS) {
		write_remarks(json, page, node);
		return;
	}
	if (cell == CELL_RELATIVE)
		diff_relative_text(text, node->value[0], node->value[1]);
	else if (cell == CELL_P)
		diff_significance_text(text, node);
	else
		diff_format_value(page->diff, text,
			cell == CELL_CHANGE ? diff_node_change(node) : cell_value(node, cell),
			cell == CELL_CHANGE, page->style.iec, false);
	json_write_string(json, text);
}

static void write_column(
	struct json_writer *json, const struct sides_page *page, enum diff_cell cell)
{
	static const struct {
		const char *key, *title, *help;
	} columns[CELLS] = {
		[CELL_BEFORE] = { "before", "before", "value in the first trace" },
		[CELL_AFTER] = { "after", "after", "value in the second trace" },
		[CELL_CHANGE] = { "delta", "change", "after - before; sorted by its size" },
		[CELL_RELATIVE] = { "relative", "%", "change in percent of before" },
		[CELL_P] = { "p", "p", "of the test; or new, gone, - for not tested" },
		[CELL_REMARKS] = { "remarks", "remarks",
			"calls; why it was not tested, or how many values were compared" },
	};

	page_column_begin(json, columns[cell].key, columns[cell].title, columns[cell].help,
		cell == CELL_REMARKS);
	json_put_begin(json, "text", '[');
	for (size_t i = 0; i < page->count; i++)
		write_cell(json, page, node_of(page, i), cell);
	json_write_end(json, ']');
	json_put_begin(json, "value", '[');
	for (size_t i = 0; i < page->count; i++) {
		const double value = cell_value(node_of(page, i), cell);

		if (isnan(value))
			json_write_null(json);
		else
			json_write_double(json, value);
	}
	json_write_end(json, ']');
	json_write_end(json, '}');
}

/* Writes a name as a value: that of the node itself, with both names if it was renamed, or of an
 * ancestor. */
static void write_name(
	struct json_writer *json, const struct sides_page *page, uint32_t id, bool is_ancestor)
{
	struct paragraph name = { .style = &page->style };

	if (is_ancestor)
		diff_add_key_name(page->diff, &name, &page->diff->nodes.all[id].key);
	else
		diff_add_node_name(page->diff, &name, &page->diff->nodes.all[id]);
	json_write_string(json, name.built.text ? name.built.text : "");
	free(name.built.text);
}

static void write_path(struct json_writer *json, const struct sides_page *page, uint32_t id)
{
	const struct diff_node *nodes = page->diff->nodes.all;
	uint32_t *path = xcalloc((nodes[id].depth + 2u) * sizeof *path), count = 0;

	for (uint32_t at = id; at; at = nodes[at].parent)
		path[count++] = at;
	json_write_begin(json, '[');
	while (count--)
		write_name(json, page, path[count], path[count] != id);
	json_write_end(json, ']');
	free(path);
}

static void write_table(struct json_writer *json, const struct sides_page *page)
{
	json_put_begin(json, "table", '{');
	page_put_flat_rows(json, page->count, page->left_out, "change");
	json_put_begin(json, "label", '[');
	for (size_t i = 0; i < page->count; i++)
		write_name(json, page, page->rows[i], false);
	json_write_end(json, ']');
	json_put_begin(json, "path", '[');
	for (size_t i = 0; i < page->count; i++)
		write_path(json, page, page->rows[i]);
	json_write_end(json, ']');
	json_put_begin(json, "significant", '[');
	for (size_t i = 0; i < page->count; i++)
		json_write_bool(json, node_of(page, i)->significant);
	json_write_end(json, ']');
	json_put_begin(json, "columns", '[');
	for (enum diff_cell cell = 0; cell < CELLS; cell++)
		write_column(json, page, cell);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_diff(struct json_writer *json, const struct sides_page *page)
{
	struct paragraph sentence = { .style = &page->style };

	json_put_begin(json, "diff", '{');
	json_put_string(json, "metric", diff_metric_name(page->diff));
	json_put_bool(json, "by_steps", page->diff->by_steps);
	diff_add_basis(&sentence, page->diff);
	page_put_sentence(json, "compared", &sentence);
	diff_add_method(&sentence);
	page_put_sentence(json, "method", &sentence);
	diff_add_whole(&sentence, page->diff);
	page_put_sentence(json, "whole", &sentence);
	if (diff_add_spread(&sentence, page->diff))
		page_put_sentence(json, "runs", &sentence);
	diff_add_result(&sentence, page->diff);
	page_put_sentence(json, "result", &sentence);
	write_table(json, page);
	json_write_end(json, '}');
}

/* ---- the page ---- */

/* Writes what the page has of one trace alone: single events, if there is room for them. */
static void write_side(struct json_writer *json, const struct sides_page *page, size_t side)
{
	struct run_detail detail = { .has_events = true, .rows_max = 200, .is_side = true };
	struct options options = *page->options;
	struct run_spool spool;

	options.files = &page->options->files[side];
	options.file_count = 1;
	spool = run_spool_write(&options, &page->sides[side], &detail);
	if (spool.bytes > HTML_SIDE_BYTES) {
		run_spool_free(&spool);
		detail.has_events = false;
		spool = run_spool_write(&options, &page->sides[side], &detail);
	}
	run_spool_copy(json, &spool);
	run_spool_free(&spool);
}

static void write_flame(struct json_writer *json, const struct sides_page *page)
{
	struct flame *flame = flame_build_diff(page->options, &page->sides[0], &page->sides[1]);
	struct page_strings strings = { .from = flame->texts };

	for (size_t i = 0; i < FLAME_SHAPES; i++)
		flame_prune(&flame->shapes[i], flame->texts, FLAME_FRAMES_MAX);
	flame_data_write(json, flame, &strings, NULL,
		flame->has_shape[FLAME_FOLDED] ? FLAME_FOLDED : FLAME_EACH);
	page_strings_write(json, &strings);
	page_strings_free(&strings);
	flame_free(flame);
}

static void write_page(struct output *out, const struct sides_page *page)
{
	struct json_writer json = { .out = out, .write_string = page_write_foreign_text };
	char *title = page_title(page->options, 2);

	page_begin(out, title, assets, ASSETS);
	json_write_begin(&json, '{');
	page_head_write(&json, page->options, page->sides, 2);
	write_diff(&json, page);
	json_put_begin(&json, "sides", '[');
	for (size_t i = 0; i < 2; i++)
		write_side(&json, page, i);
	json_write_end(&json, ']');
	write_flame(&json, page);
	json_write_end(&json, '}');
	page_end(out, assets, ASSETS);
	free(title);
}

static int strict_status(const struct sides_page *page)
{
	for (size_t i = 0; page->options->strict && i < 2; i++)
		if (!page->sides[i].all[0].integrity.complete)
			return STATUS_UNREADABLE;
	return STATUS_OK;
}

int html_sides_page(const struct options *options, struct processes sides[2])
{
	struct sides_page page = { .options = options, .sides = sides };
	struct output_file file;
	int status;

	page.style = (struct style){ .whole_names = true, .iec = options->style.iec };
	status = strict_status(&page);
	for (size_t i = 0; i < 2; i++)
		warnings_collect(options, &sides[i]);
	page.diff = diff_read_unmatched(
		options, options->metric_name, options->files[0], options->files[1]);
	list_rows(&page);
	file = output_file_open(options, ".html");
	write_page(file.out, &page);
	if (!output_file_close(&file))
		status = STATUS_UNREADABLE;
	free(page.rows);
	diff_free(page.diff);
	for (size_t i = 0; i < 2; i++)
		processes_free(&sides[i]);
	return status;
}
