/* SPDX-License-Identifier: MIT
 *
 * Selects the page. Two traces are before and after, unless they are different ranks.
 */
#include "report/page/html.h"
#include "report/base/error.h"
#include "report/diagnose/diagnose.h"
#include "report/page/html_pages.h"
#include "report/page/page_head.h"
#include "report/page/page_text.h"
#include "report/page/page_writer.h"
#include "report/page/run_data.h"
#include "report/run/output_file.h"
#include "report/run/warnings.h"
#include <stdlib.h>

static const enum page_asset assets[] = { PAGE_STYLE_TOKENS, PAGE_STYLE_PAGE, PAGE_STYLE_FLAME,
	PAGE_STYLE_RUN, PAGE_STYLE_MEMORY_MAP, PAGE_SCRIPT_BASE, PAGE_SCRIPT_NUMBERS,
	PAGE_SCRIPT_FLAME_TREE, PAGE_SCRIPT_FLAME, PAGE_SCRIPT_HEAD, PAGE_SCRIPT_LANES,
	PAGE_SCRIPT_TIMELINE, PAGE_SCRIPT_TABLES, PAGE_SCRIPT_MEMORY_MAP, PAGE_SCRIPT_RUN,
	PAGE_SCRIPT_RUN_PAGE };
#define ASSETS (sizeof assets / sizeof *assets)

static void write_page(
	struct output *out, const struct options *options, struct processes *processes)
{
	struct json_writer json = { .out = out, .write_string = page_write_foreign_text };
	char *title = page_title(options, 1);

	page_begin(out, title, assets, ASSETS);
	json_write_begin(&json, '{');
	page_head_write(&json, options, processes, 1);
	run_data_write(&json, options, processes, &RUN_DETAIL_FULL);
	json_write_end(&json, '}');
	page_end(out, assets, ASSETS);
	free(title);
}

/* Writes the page of one process, and frees `processes`. Returns the exit status. */
static int write_one(const struct options *options, struct processes *processes)
{
	struct output_file file;
	int status;

	warnings_check_selection(options, processes);
	warnings_collect(options, processes);
	status = options->strict && !processes->all[0].integrity.complete ? STATUS_UNREADABLE
									  : STATUS_OK;
	processes->shown = 1;
	file = output_file_open(options, ".html");
	write_page(file.out, options, processes);
	if (!output_file_close(&file))
		status = STATUS_UNREADABLE;
	processes_free(processes);
	return status;
}

static bool has_several_ranks(const struct processes *processes)
{
	int64_t first = -1;

	for (size_t i = 0; i < processes->count; i++) {
		const int64_t rank = processes->all[i].rank;

		if (rank >= 0 && first >= 0 && rank != first)
			return true;
		first = rank >= 0 ? rank : first;
	}
	return false;
}

/* Of a run whose ranks cannot be compared, the page shows one process. */
static int show_run(const struct options *options)
{
	struct shared_pass pass = { .add = diagnose_read_in };
	const struct process_join join = shared_pass_join(&pass);
	struct processes processes = processes_read_with(options, &join);
	struct ranks ranks;

	if (options->rank >= 0 || !has_several_ranks(&processes))
		return write_one(options, &processes);
	if (ranks_read(&ranks, options)) {
		processes_free(&processes);
		return html_ranks_page(options, &ranks);
	}
	ranks_free(&ranks);
	return write_one(options, &processes);
}

static int show_ranks(const struct options *options)
{
	struct ranks ranks;

	if (!ranks_read(&ranks, options))
		fatal(STATUS_USAGE, "%s; of one process: pperf-report html TRACE",
			ranks.problem.text);
	return html_ranks_page(options, &ranks);
}

/* Two traces: ranks of one run, or before and after. */
static int show_two(const struct options *options)
{
	struct processes sides[2];

	for (size_t i = 0; i < 2; i++)
		sides[i] = processes_read_side(options, options->files[i]);
	if (options->rank >= 0 || sides[0].all[0].rank < 0 || sides[1].all[0].rank < 0 ||
		sides[0].all[0].rank == sides[1].all[0].rank)
		return html_sides_page(options, sides);
	processes_free(&sides[0]);
	processes_free(&sides[1]);
	return show_ranks(options);
}

int html_view(const struct options *given)
{
	struct options options = *given;

	options.format = FORMAT_HTML;
	if (options.trends)
		return html_trends_page(&options);
	if (options.file_count == 2 && !options.all)
		return show_two(&options);
	if (options.rank < 0 && options.file_count > 1)
		return show_ranks(&options);
	return show_run(&options);
}
