/* SPDX-License-Identifier: MIT */
#include "report/export/export.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/text_builder.h"
#include "report/run/warnings.h"
#include "report/text/suggest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct export_format export_formats[] = {
	{ "folded", "stacks, one per line, for flamegraph.pl, inferno and speedscope", ".folded",
		false, false, export_folded },
	{ "speedscope", "JSON for https://www.speedscope.app, a profile for each metric",
		".speedscope.json", false, false, export_speedscope },
	{ "pprof", "profile.proto for `go tool pprof`, Pyroscope and Parca", ".pb.gz", true, true,
		export_pprof },
	{ "dot", "the heaviest nodes of the tree for graphviz", ".dot", false, false, export_dot },
	{ "graph", "steps, modules, operators and kernels as text without times, to compare runs",
		".graph.txt", false, false, export_graph },
	{ "chrome",
		"the JSON of torch.profiler, for HTA, TensorBoard, Perfetto and chrome://tracing",
		".trace.json", false, false, export_chrome },
	{ "sqlite", "an SQLite database with a table for each kind of event", ".sqlite", true,
		false, export_sqlite },
	{ "opprof", "JSON of operators with their kernels, for yottalabsai/Profiler",
		".opprof.json", false, false, export_opprof },
	{ "perfetto",
		"protobuf for https://ui.perfetto.dev, which opens larger traces than chrome's",
		".pftrace", true, false, export_perfetto },
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

/* Returns the file to write, which the caller frees; NULL: standard output. A terminal gets no
 * export: a file beside the trace is written instead. */
static char *output_path(const struct options *options, const struct export_format *format)
{
	struct text_builder path = { .text = NULL };

	if (options->output)
		text_add(&path, "%s", options->output);
	else if (isatty(STDOUT_FILENO))
		text_add(&path, "%s%s",
			strcmp(options->files[0], "-") != 0 ? options->files[0] : "trace",
			format->ending);
	return path.text;
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
	char *path = output_path(given, format);
	struct processes processes;
	struct output *out;
	int status;

	wanted.charges_idle = true;
	wanted.no_percentiles = true;
	processes = processes_read(options);
	out = output_open_whole(path, format->is_compressed || ends_with_gz(path));
	warnings_collect(options, &processes);
	print_warnings(&processes);
	format->write(options, &processes, out);
	status = output_close(out, path) ? export_status(options, &processes) : STATUS_UNREADABLE;
	if (path && !options->output)
		fprintf(stderr, "pperf-report: wrote %s\n", path);
	processes_free(&processes);
	free(path);
	return status;
}
