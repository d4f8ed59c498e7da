/* SPDX-License-Identifier: MIT
 * pperf-report: reads traces, folds them, shows views. The one way through it: options, processes (read, fold,
 * choose), a view's rows, a format.
 */
#include "report/fatal.h"
#include "report/legend.h"
#include "report/print.h"
#include "report/visible.h"
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the program's side wants to be known. */
static void collect_recorded(struct processes *processes, const struct process *process)
{
	static const char prefix[] = "warning.";
	struct trace_text key, value;

	for (uint32_t i = 0; i < reader_metas(process->reader); i++) {
		reader_meta_at(process->reader, i, &key, &value);
		if (key.length >= sizeof prefix && memcmp(key.bytes, prefix, sizeof prefix - 1) == 0)
			processes_warn(processes, "%s: %.*s", process->path,
				value.length < 800 ? (int)value.length : 800, value.bytes);
	}
}

/* What must be said beside any view. */
static void collect_warnings(const struct options *options, struct processes *processes)
{
	const char *warning;

	for (size_t i = 0; i < processes->shown; i++) {
		const struct process *process = &processes->all[i];

		collect_recorded(processes, process);
		if (!process->integrity.conserved)
			processes_warn(processes, "%s: %s", process->path, process->integrity.problem);
		for (unsigned index = 0; (warning = reader_warning(process->reader, index)); index++)
			processes_warn(processes, "%s", warning);
		if (names_others(process->fold->names))
			processes_warn(processes,
				"%s: %llu ranges with labels that never repeat are shown as (other labels)",
				process->path, (unsigned long long)names_others(process->fold->names));
		if (process->steps && *process->steps->warning)
			processes_warn(processes, "%s: %s", process->path, process->steps->warning);
		if (options->steps && !process->fold->counts.steps)
			processes_warn(processes, "%s: no range is a step, so --steps leaves nothing", process->path);
	}
}

/* Their names, as many as fit. */
static size_t list_counters(struct trace_reader *reader, char *out, size_t room)
{
	const struct trace_counter *counter;
	size_t used = 0;

	for (uint32_t i = 0; (counter = reader_dictionary(reader, TRACE_COUNTER, i)) && room - used > 64; i++) {
		const struct trace_text name = reader_name(reader, counter->name);
		char shown[48];

		visible(shown, sizeof shown, name.bytes, name.length, true);
		used += (size_t)snprintf(out + used, room - used, "%s`%s`", i ? ", " : "the counters ", shown);
	}
	return used;
}

/* A counter's name must be one that the trace has. */
static void check_metric(const struct options *options, const struct processes *processes)
{
	char known[512] = "no counters";
	size_t used = 0;

	for (size_t i = 0; i < processes->shown; i++) {
		if (processes->all[i].fold->counter_found || options->metric != METRIC_USER)
			return;
		used += list_counters(processes->all[i].reader, known + used, sizeof known - used);
	}
	fatal(STATUS_USAGE, "there is no metric and no counter `%s`; this trace has %s, and --legend lists the metrics",
		options->metric_name, known);
}

static void check_sort(const struct options *options)
{
	if (options->sort && !column_find(options->sort, strlen(options->sort)))
		fatal(STATUS_USAGE, "there is no column `%s` to order by; pperf-report --legend lists them",
			options->sort);
}

static enum status judge(const struct options *options, const struct processes *processes)
{
	for (size_t i = 0; options->strict && i < processes->shown; i++)
		if (!processes->all[i].integrity.complete || !processes->all[i].integrity.conserved)
			return STATUS_UNREADABLE;
	return STATUS_FINE;
}

static bool print(const struct report *report)
{
	const struct options *options = report->options;
	struct out *out = out_open(options->output);
	const struct style style = style_of(options, out);

	if (options->format == FORMAT_JSON)
		print_json(report, out);
	else if (options->format == FORMAT_CSV)
		print_csv(report, out);
	else
		print_text(report, &style);
	return out_close(out, options->output);
}

#define SCREEN_ROWS 40u

/* The first screen is one that can be taken in: of a large tree only so much is shown as has room. */
static void arrange(struct report *report, struct options *fitted)
{
	static const double steps[] = { 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 15, 20 };
	const bool fits = fitted->format != FORMAT_TEXT || fitted->view->layout != LAYOUT_SCREEN ||
			  fitted->min_percent >= 0 || fitted->all || fitted->focus;

	fitted->view->arrange(fitted, report->processes, &report->rows);
	for (size_t i = 0; !fits && report->rows.count > SCREEN_ROWS && i < sizeof steps / sizeof steps[0]; i++) {
		free(report->rows.rows);
		report->rows = (struct rows){ 0 };
		fitted->min_percent = steps[i];
		fitted->view->arrange(fitted, report->processes, &report->rows);
	}
}

static enum status show(const struct options *options)
{
	struct processes processes = processes_read(options);
	struct options fitted = *options;
	struct report report = { .options = &fitted, .processes = &processes };
	enum status status;

	check_metric(options, &processes);
	collect_warnings(options, &processes);
	arrange(&report, &fitted);
	status = print(&report) ? judge(options, &processes) : STATUS_UNREADABLE;
	free(report.rows.rows);
	processes_free(&processes);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;

	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	options = options_read(argc, argv);
	if (options.help || options.version || options.legend)
		return legend_show(&options);
	check_sort(&options);
	if (options.view->run)
		return options.view->run(&options);
	return (int)show(&options);
}
