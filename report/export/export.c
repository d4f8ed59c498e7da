/* SPDX-License-Identifier: MIT */
#include "report/export/export.h"
#include "report/analysis/sample_tree.h"
#include "report/base/error.h"
#include "report/run/output_file.h"
#include "report/run/warnings.h"
#include "report/text/suggest.h"
#include <string.h>

const struct export_format export_formats[] = {
	{ "folded", "stacks, one per line, for flamegraph.pl, inferno and speedscope", ".folded",
		false, true, export_folded },
	{ "speedscope", "JSON for https://www.speedscope.app, a profile for each metric",
		".speedscope.json", false, true, export_speedscope },
	{ "pprof", "profile.proto for `go tool pprof`, Pyroscope and Parca", ".pb.gz", true, true,
		export_pprof },
	{ "dot", "the heaviest nodes of the tree for graphviz", ".dot", false, true, export_dot },
	{ "graph", "steps, modules, operators and kernels as text without times, to compare runs",
		".graph.txt", false, false, export_graph },
	{ "chrome",
		"the JSON of torch.profiler, for HTA, TensorBoard, Perfetto and chrome://tracing",
		".trace.json", false, false, export_chrome },
	{ "sqlite", "an SQLite database with a table for each kind of event", ".sqlite", false,
		false, export_sqlite },
	{ "opprof", "JSON of operators with their kernels, for yottalabsai/Profiler",
		".opprof.json", false, false, export_opprof },
	{ "perfetto",
		"protobuf for https://ui.perfetto.dev, which opens larger traces than chrome's",
		".pftrace", false, false, export_perfetto },
	{ .name = NULL },
};

static const struct export_format *find_format(const char *name)
{
	const struct export_format *format = export_formats;
	struct suggestion near = suggest_for(name, strlen(name));

	while (format->name && strcmp(format->name, name) != 0)
		suggest_offer(&near, (format++)->name);
	if (!format->name)
		fatal(STATUS_USAGE, "there is no export format `%s`%s", name,
			suggest_text(&near, "pperf-report export --help lists them"));
	return format;
}

static void print_warnings(const struct processes *processes)
{
	for (size_t i = 0; i < processes->warning_count; i++)
		warn_user("%s", processes->warnings[i]);
}

/* With --strict, a trace that is not complete is an error. */
static int export_status(const struct options *options, const struct processes *processes)
{
	for (size_t i = 0; options->strict && i < processes->shown; i++)
		if (!processes->all[i].integrity.complete || !processes->all[i].integrity.conserved)
			return STATUS_UNREADABLE;
	return STATUS_OK;
}

/* A file whose name ends in `.gz` is compressed, whatever the format is. */
static bool ends_with_gz(const char *path)
{
	const size_t length = path ? strlen(path) : 0;

	return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

int export_view(const struct options *given)
{
	const struct export_format *format = find_format(given->subject);
	struct options wanted = *given;
	const struct options *options = &wanted;
	struct processes processes;
	struct output_file file;
	int status;

	wanted.charges_idle = true;
	wanted.no_percentiles = true;
	processes = processes_read(options);
	warnings_collect(options, &processes);
	print_warnings(&processes);
	for (size_t i = 0; format->is_of_tree && i < processes.shown; i++)
		if (process_has_samples(&processes.all[i]))
			sample_tree_graft(sample_cells_of(&processes.all[i]), options->by);
	file = output_file_open(options, format->ending);
	if (format->is_compressed || ends_with_gz(file.name))
		output_compress(file.out);
	format->write(options, &processes, file.out);
	status = output_file_close(&file) ? export_status(options, &processes) : STATUS_UNREADABLE;
	processes_free(&processes);
	return status;
}
