/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/page/html_pages.h"
#include "report/page/page_columns.h"
#include "report/page/page_head.h"
#include "report/page/page_table.h"
#include "report/page/page_text.h"
#include "report/page/page_writer.h"
#include "report/page/run_data.h"
#include "report/print/next_command.h"
#include "report/run/output_file.h"
#include "report/run/warnings.h"
#include "report/scene/scene_json.h"
#include "report/scene/scene_ranks.h"
#include "report/text/paragraph.h"
#include "report/views/ranks_columns.h"
#include "report/views/ranks_words.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum page_asset assets[] = { PAGE_STYLE_TOKENS, PAGE_STYLE_PAGE, PAGE_STYLE_FLAME,
	PAGE_STYLE_RUN, PAGE_STYLE_MEMORY_MAP, PAGE_STYLE_SEVERAL, PAGE_SCRIPT_BASE,
	PAGE_SCRIPT_NUMBERS, PAGE_SCRIPT_FLAME_TREE, PAGE_SCRIPT_FLAME, PAGE_SCRIPT_HEAD,
	PAGE_SCRIPT_LANES, PAGE_SCRIPT_TIMELINE, PAGE_SCRIPT_TABLES, PAGE_SCRIPT_MEMORY_MAP,
	PAGE_SCRIPT_RUN, PAGE_SCRIPT_RANKS_PAGE };
#define ASSETS (sizeof assets / sizeof *assets)

/* The page parts of a rank, while they are not in the page yet. */
struct rank_part {
	struct run_spool spool;
	const char *left_out; /* NULL: nothing */
};

struct ranks_page {
	const struct options *options;
	struct ranks *ranks;
	struct style style;
	struct rank_part *parts; /* by rank */
};

/* ---- the parts of one rank ---- */

/* Returns a run of only this process, which borrows it. */
static struct processes only(const struct ranks *ranks, struct process *process)
{
	return (struct processes){
		.all = process, .count = 1, .shown = 1, .categories = ranks->processes.categories
	};
}

static void free_warnings(struct processes *processes)
{
	for (size_t i = 0; i < processes->warning_count; i++)
		free(processes->warnings[i]);
	free(processes->warnings);
}

/* Returns the options that select one rank. `file`: its trace. */
static struct options options_of(const struct ranks_page *page, const char **file, int64_t rank)
{
	struct options options = *page->options;

	options.files = file;
	options.file_count = 1;
	options.rank = rank;
	options.all = false;
	return options;
}

/* Writes the object of a rank to a temporary file. */
static struct run_spool spool_part(
	const struct ranks_page *page, struct process *process, const struct run_detail *detail)
{
	const char *path = process->path;
	const struct options options = options_of(page, &path, process->rank);
	struct processes processes = only(page->ranks, process);
	struct run_spool spool;

	warnings_collect(&options, &processes);
	spool = run_spool_write(&options, &processes, detail);
	free_warnings(&processes);
	return spool;
}

/* Makes the parts of a rank with as much detail as fits. */
static struct rank_part make_part(
	const struct ranks_page *page, struct process *process, uint64_t bytes)
{
	static const struct {
		struct run_detail detail;
		const char *left_out;
	} levels[] = {
		{ { .has_events = true, .frames_max = FLAME_FRAMES_MAX, .rows_max = SIZE_MAX },
			NULL },
		{ { .has_events = false, .frames_max = 1000, .rows_max = 100 },
			"Left out: single events, frames of flame graphs beyond 1,000, and rows "
			"of tables beyond 100." },
	};
	struct rank_part part;

	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		part.spool = spool_part(page, process, &levels[i].detail);
		part.left_out = levels[i].left_out;
		if (part.spool.bytes <= bytes)
			return part;
		run_spool_free(&part.spool);
	}
	return (struct rank_part){
		.left_out = "Its timeline, flame graphs and tables are left out: they "
			    "do not fit into this page."
	};
}

/* Lists the ranks in the order in which they get parts: stragglers, then the others. */
static uint32_t *order_ranks(const struct ranks *ranks)
{
	uint32_t *order = xcalloc((ranks->count + 1) * sizeof *order);
	bool *listed = xcalloc(ranks->count + 1);
	size_t count = 0;

	for (size_t i = 0; i < ranks->straggler_count; i++) {
		order[count++] = ranks->stragglers[i].rank;
		listed[ranks->stragglers[i].rank] = true;
	}
	for (uint32_t i = 0; i < ranks->count; i++)
		if (!listed[i])
			order[count++] = i;
	free(listed);
	return order;
}

/* What a rank does not use is left to those after it. */
static void make_parts(struct ranks_page *page)
{
	const struct ranks *ranks = page->ranks;
	const size_t most = ranks->count < HTML_RANK_PAGES_MAX ? ranks->count : HTML_RANK_PAGES_MAX;
	uint32_t *order = order_ranks(ranks);
	uint64_t left = HTML_RANK_PAGES_BYTES;

	page->parts = xcalloc((ranks->count + 1) * sizeof *page->parts);
	for (size_t i = 0; i < ranks->count; i++) {
		struct rank_part *part = &page->parts[order[i]];

		*part = (struct rank_part){
			.left_out = "Its timeline, flame graphs and tables are left out: this "
				    "page has those of 8 ranks."
		};
		if (i < most) {
			*part = make_part(page, ranks_open(ranks, order[i], page->options),
				left / (most - i));
			ranks_close(ranks, order[i]);
		}
		left -= part->spool.bytes;
	}
	free(order);
}

/* ---- sentences of the view `ranks` ---- */

static void write_sentences(struct json_writer *json, const struct ranks_page *page)
{
	const struct ranks *ranks = page->ranks;
	struct paragraph paragraph = { .style = &page->style };

	ranks_add_alignment(&paragraph, ranks);
	page_put_sentence(json, "alignment", &paragraph);
	ranks_add_matched(&paragraph, ranks);
	page_put_sentence(json, "matched", &paragraph);
	json_put_begin(json, "stragglers", '[');
	for (size_t i = 0; i < ranks->straggler_count; i++) {
		json_write_begin(json, '{');
		json_put_unsigned(json, "rank", ranks->stragglers[i].rank);
		ranks_add_straggler(&paragraph, ranks, &ranks->stragglers[i]);
		page_put_sentence(json, "text", &paragraph);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
	if (!ranks->straggler_count) {
		ranks_add_no_straggler(&paragraph, ranks);
		page_put_sentence(json, "no_straggler", &paragraph);
	}
}

/* ---- tables, in the shape of page_table_write ---- */

static void put_cell(const struct ranks_page *page, char text[FORMAT_NUMBER_BYTES], enum unit unit,
	const char *instead, int64_t value)
{
	if (instead)
		snprintf(text, FORMAT_NUMBER_BYTES, "%s", instead);
	else
		format_with_unit(text, unit, value, page->style.iec, false);
}

static void write_rank_column(
	struct json_writer *json, const struct ranks_page *page, size_t column)
{
	const struct rank_column *of = &rank_columns[column];
	char text[FORMAT_NUMBER_BYTES];
	int64_t value = 0;

	page_column_begin(json, of->key, of->title, of->help, false);
	json_put_begin(json, "text", '[');
	for (size_t i = 0; i < page->ranks->count; i++) {
		const bool known = rank_column_value(&page->ranks->all[i], column, &value);

		put_cell(page, text, of->unit,
			known ? NULL : rank_column_unknown(&page->ranks->all[i], column), value);
		json_write_string(json, text);
	}
	json_write_end(json, ']');
	json_put_begin(json, "value", '[');
	for (size_t i = 0; i < page->ranks->count; i++)
		if (rank_column_value(&page->ranks->all[i], column, &value))
			json_write_signed(json, value);
		else
			json_write_null(json);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_rank_table(struct json_writer *json, const struct ranks_page *page)
{
	json_put_begin(json, "table", '{');
	page_put_flat_rows(json, page->ranks->count, 0, "rank");
	json_put_begin(json, "label", '[');
	for (size_t i = 0; i < page->ranks->count; i++) {
		char text[32];

		snprintf(text, sizeof text, "rank %lld", (long long)page->ranks->all[i].number);
		json_write_string(json, text);
	}
	json_write_end(json, ']');
	json_put_begin(json, "columns", '[');
	for (size_t column = 0; column < RANK_COLUMN_COUNT; column++)
		write_rank_column(json, page, column);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

#define COLLECTIVE_ROWS_MAX 200u

/* The columns of a row of collectives. */
static const struct {
	const char *key, *title, *help;
	enum unit unit;
} collective_columns[] = {
	{ "wait_ns", "wait", "sum of the waits of all ranks", UNIT_TIME },
	{ "transfer_ns", "transfer", "the rest of their time in these collectives", UNIT_TIME },
	{ "calls", "calls", "matched collectives", UNIT_COUNT },
	{ "last", "rank last", "the rank that came last most often, and in how many", UNIT_COUNT },
	{ "bus_bytes_per_s", "bus rate", "bus bandwidth while they transfer, without the waits",
		UNIT_BYTE_RATE },
};
#define COLLECTIVE_COLUMNS (sizeof collective_columns / sizeof *collective_columns)
enum { COLUMN_LAST = 3, COLUMN_RATE };

static uint64_t collective_value(const struct collective_row *row, size_t column)
{
	const uint64_t values[COLLECTIVE_COLUMNS] = { row->wait_ns, row->transfer_ns, row->count,
		row->last_count, collective_row_rate(row, true) };

	return values[column];
}

static void write_collective_column(
	struct json_writer *json, const struct ranks_page *page, size_t column, size_t count)
{
	const struct ranks *ranks = page->ranks;
	char text[FORMAT_NUMBER_BYTES > 48 ? FORMAT_NUMBER_BYTES : 48];

	page_column_begin(json, collective_columns[column].key, collective_columns[column].title,
		collective_columns[column].help, false);
	json_put_begin(json, "text", '[');
	for (size_t i = 0; i < count; i++) {
		const uint64_t value = collective_value(&ranks->rows[i], column);

		if (column == COLUMN_LAST)
			ranks_last_text(text, sizeof text, ranks, &ranks->rows[i]);
		else
			put_cell(page, text, collective_columns[column].unit,
				column == COLUMN_RATE && !value ? "unknown" : NULL, (int64_t)value);
		json_write_string(json, text);
	}
	json_write_end(json, ']');
	json_put_begin(json, "value", '[');
	for (size_t i = 0; i < count; i++)
		json_write_unsigned(json, collective_value(&ranks->rows[i], column));
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_collectives(struct json_writer *json, const struct ranks_page *page)
{
	const struct ranks *ranks = page->ranks;
	const size_t count = ranks->row_count < COLLECTIVE_ROWS_MAX ? ranks->row_count
								    : COLLECTIVE_ROWS_MAX;

	json_put_begin(json, "collectives", '{');
	page_put_flat_rows(json, count, ranks->row_count - count, "collective");
	json_put_begin(json, "label", '[');
	for (size_t i = 0; i < count; i++)
		json_write_string(json, collective_name(ranks->rows[i].kind));
	json_write_end(json, ']');
	json_put_begin(json, "path", '[');
	for (size_t i = 0; i < count; i++) {
		char *path = ranks_place_text(ranks, ranks->rows[i].place, false);

		json_write_begin(json, '[');
		if (*path)
			json_write_string(json, path);
		json_write_end(json, ']');
		free(path);
	}
	json_write_end(json, ']');
	json_put_begin(json, "columns", '[');
	for (size_t column = 0; column < COLLECTIVE_COLUMNS; column++)
		write_collective_column(json, page, column, count);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

/* ---- the page ---- */

static void put_command(
	struct json_writer *json, const struct ranks_page *page, const struct process *process)
{
	struct shell_command command = { .ascii = false };
	const char *path = process->path;
	const struct options options = options_of(page, &path, process->rank);

	next_command_begin(&command, "html");
	next_command_add_files(&command, &options);
	text_add(&command.built, " -o rank.html");
	json_put_string(json, "command", command.built.text);
	free(command.built.text);
}

static void write_rank(struct json_writer *json, const struct ranks_page *page, uint32_t index)
{
	const struct rank_process *rank = &page->ranks->all[index];
	struct paragraph paragraph = { .style = &page->style };

	json_write_begin(json, '{');
	json_put_unsigned(json, "number", (uint64_t)rank->number);
	json_put_string(json, "file", rank->process->path);
	json_put_bool(json, "aligned", rank->aligned);
	if (index) {
		ranks_add_clock(&paragraph, page->ranks, rank);
		page_put_sentence(json, "clock", &paragraph);
	}
	json_put_bool(json, "has_parts", page->parts[index].spool.bytes > 0);
	json_put_string(json, "left_out", page->parts[index].left_out);
	put_command(json, page, rank->process);
	json_write_end(json, '}');
}

static void write_ranks(struct json_writer *json, const struct ranks_page *page)
{
	struct scene *scene = scene_ranks_read(page->ranks, page->options);

	json_put_begin(json, "ranks", '{');
	write_sentences(json, page);
	json_put_begin(json, "all", '[');
	for (uint32_t i = 0; i < page->ranks->count; i++)
		write_rank(json, page, i);
	json_write_end(json, ']');
	write_rank_table(json, page);
	write_collectives(json, page);
	json_write_key(json, "scene");
	scene_json_write(json, scene, NULL);
	json_write_end(json, '}');
	scene_free(scene);
}

static void write_page(struct output *out, struct ranks_page *page)
{
	struct json_writer json = { .out = out, .write_string = page_write_foreign_text };
	char *title = page_title(page->options, page->options->file_count);

	page_begin(out, title, assets, ASSETS);
	json_write_begin(&json, '{');
	page_head_write_ranks(&json, page->options, page->ranks);
	write_ranks(&json, page);
	json_put_begin(&json, "runs", '[');
	for (size_t i = 0; i < page->ranks->count; i++)
		if (page->parts[i].spool.bytes)
			run_spool_copy(&json, &page->parts[i].spool);
		else
			json_write_null(&json);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	page_end(out, assets, ASSETS);
	free(title);
}

static int strict_status(const struct ranks_page *page)
{
	for (size_t i = 0; page->options->strict && i < page->ranks->count; i++)
		if (!page->ranks->all[i].process->integrity.complete)
			return STATUS_UNREADABLE;
	return STATUS_OK;
}

int html_ranks_page(const struct options *options, struct ranks *ranks)
{
	struct ranks_page page = { .options = options, .ranks = ranks };
	struct output_file file;
	int status;

	page.style = (struct style){ .whole_names = true, .iec = options->style.iec };
	status = strict_status(&page);
	make_parts(&page);
	file = output_file_open(options, ".html");
	write_page(file.out, &page);
	if (!output_file_close(&file))
		status = STATUS_UNREADABLE;
	for (size_t i = 0; i < ranks->count; i++)
		run_spool_free(&page.parts[i].spool);
	free(page.parts);
	ranks_free(ranks);
	return status;
}
