/* SPDX-License-Identifier: MIT
 *
 * The program pperf-report: reads traces, profiles them and shows a view. Its steps are options,
 * processes (read, profile, choose), the rows of a view, and a format.
 */
#include "report/cli/command_line.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/cli/help.h"
#include "report/import/open_trace.h"
#include "report/live/live_trace.h"
#include "report/import/run_files.h"
#include "report/text/pager.h"
#include "report/print/print.h"
#include "report/base/progress.h"
#include "report/base/threads.h"
#include "report/cache/cache.h"
#include "report/run/warnings.h"
#include "report/table/kept_rows.h"
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum status strict_status(const struct options *options, const struct processes *processes)
{
	for (size_t i = 0; options->strict && i < processes->shown; i++)
		if (!processes->all[i].integrity.complete || !processes->all[i].integrity.conserved)
			return STATUS_UNREADABLE;
	return STATUS_OK;
}

static bool print_report(const struct report *report)
{
	const struct options *options = report->options;
	struct output *out = output_open(options->output);
	const struct style style = style_of(&options->style, out);

	if (options->brief)
		options->view->brief(report, out);
	else if (options->format == FORMAT_JSON)
		print_json(report, out);
	else if (options->format == FORMAT_CSV)
		print_csv(report, out);
	else
		print_text(report, &style);
	return output_close(out, options->output);
}

/* Adds the rows of a process. They are kept if the view prints nothing else. */
static void arrange_one(const struct options *options, struct process *process, struct rows *rows)
{
	const struct view *view = options->view;
	const bool only_rows = !view->header && !view->footer && !view->draw && !view->put_json;
	struct kept_rows kept = { .found = false };

	if (only_rows)
		kept = kept_rows_begin(options, process, rows, view->name, true, NULL);
	if (!kept.found)
		view->arrange_process(options, process, rows);
	if (!kept.found && only_rows)
		kept_rows_end(&kept);
}

/* Adds the rows of all processes. They are kept if the view can and there is one process. */
static void arrange_all(
	const struct options *options, struct processes *processes, struct rows *rows)
{
	const struct view *view = options->view;
	const bool is_kept = view->keeps_rows && processes->count == 1;
	struct kept_rows kept = { .found = false };

	if (is_kept)
		kept = kept_rows_begin(options, processes->all, rows, view->name, true, processes);
	if (!kept.found)
		view->arrange(options, processes, rows);
	if (!kept.found && is_kept)
		kept_rows_end(&kept);
}

static void arrange_report(struct report *report, const struct options *options)
{
	const struct processes *processes = report->processes;

	if (options->view->arrange)
		arrange_all(options, report->processes, &report->rows);
	for (size_t i = 0; options->view->arrange_process && i < processes->shown; i++)
		arrange_one(options, &processes->all[i], &report->rows);
}

static enum status show_view(const struct options *options)
{
	struct shared_pass pass = { .add = options->view->read_in };
	const struct process_join join = shared_pass_join(&pass);
	struct processes processes = processes_read_with(options, &join);
	struct report report = { .options = options, .processes = &processes };
	enum status status;

	warnings_check_metric(options, &processes);
	warnings_check_selection(options, &processes);
	warnings_collect(options, &processes);
	arrange_report(&report, options);
	status = print_report(&report) ? strict_status(options, &processes) : STATUS_UNREADABLE;
	free(report.rows.rows);
	processes_free(&processes);
	return status;
}

static bool is_directory(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* Adds the traces in the directory `folder`, or exactly one for a view with a fixed number of
 * traces (diff, gate, tui). Ends the program if there is no run or trace, or more than one, or if
 * such a view would have to choose one of several processes. */
static void add_directory(struct options *options, size_t *room, const char *folder)
{
	char error[READER_ERROR_BYTES];
	struct run_files found;
	const bool shows_ranks = !strcmp(options->view->name, "html");

	if (!run_files_in_directory(folder, shows_ranks, &found, error))
		fatal(STATUS_UNREADABLE, "%s", error);
	if (options->view->traces && options->rank < 0 && found.count > 1)
		fatal(STATUS_USAGE,
			"%s: has the traces of %u processes of one run; choose one with --rank N, "
			"or name its trace",
			folder, found.count);
	for (uint32_t i = 0; i < found.count && (i == 0 || !options->view->traces); i++) {
		array_grow_zeroed(
			&options->files, room, options->file_count + 1, sizeof *options->files);
		options->files[options->file_count++] = found.traces[i].path;
	}
}

/* Replaces each directory in options->files by the traces of the run in it. */
static void expand_directories(struct options *options)
{
	const char **const given = options->files;
	const size_t count = options->file_count;
	size_t room = 0;

	options->files = NULL;
	options->file_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_directory(given[i])) {
			add_directory(options, &room, given[i]);
			continue;
		}
		array_grow_zeroed(
			&options->files, &room, options->file_count + 1, sizeof *options->files);
		options->files[options->file_count++] = given[i];
	}
}

int main(int argc, char **argv)
{
	struct options options;
	char error[READER_ERROR_BYTES];

	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "ctl"))
		return live_ctl(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "top"))
		return live_top(argc - 2, argv + 2);
	options = command_line_parse(argc, argv);
	pager_allow(!options.no_pager);
	progress_allow(!options.no_progress);
	cache_allow(!options.no_cache);
	threads_set_limit(options.jobs);
	if (options.help || options.version || options.legend)
		return help_show(&options);
	if (options.redact)
		reader_redact();
	columns_select(&options);
	if (options.graphs && !open_trace_use_captures(options.graphs, error))
		fatal(STATUS_UNREADABLE, "%s", error);
	if (!options.view->takes_folders)
		expand_directories(&options);
	if (options.view->run)
		return options.view->run(&options);
	return (int)show_view(&options);
}
