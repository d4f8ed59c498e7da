/* SPDX-License-Identifier: MIT */
#include "report/legend.h"
#include "report/column.h"
#include "report/fatal.h"
#include <stdio.h>
#include <string.h>

static const char definitions[] =
	"GPU work      kernels, copies and memsets. A range owns what was launched in it; gpu has what was launched "
	"below it too. It is a sum:\n"
	"              two streams at work at once count twice.\n"
	"busy, idle    busy is the union over a device's streams; its span goes from its first work to its last; idle "
	"= span - busy.\n"
	"cpu           wall time inside, on the range's thread. cpu self: without the ranges inside; CUDA calls stay "
	"in (cpu self x: without them too).\n"
	"place         a path of names. An instance is one begin and end there.\n"
	"folding       labels that differ in numbers are one place: `kf: 71` and `kf: 72` are `kf: *`, layers.7.attn "
	"is layers.*.attn (xN: so many labels).\n"
	"              Only whole numbers after a blank, `=`, `#`, a dot or in brackets, only in ranges, modules and "
	"steps; --no-fold keeps all apart.\n"
	"percentiles   the value at rank ceil(p * calls); exact for up to 4096 instances of a place, beyond that at "
	"most 1 % off.\n"
	"levels        reserved is the device memory held (one device: --device), a counter is what the program says. "
	"A range has the level at its begin\n"
	"              and at its end; the difference is its own and that of other threads meanwhile. peak: the "
	"highest level in it.\n"
	"flows         alloc, free: bytes of device memory taken in a place, and of these given back since, wherever "
	"that was.\n"
	"start/end     ranges that may overlap and cross threads: a section of their own, with wall time and change of "
	"level; they own no GPU work.\n"
	"steps         ranges of kind step, or else ranges whose label begins with step, iter, ProfileStep, batch or "
	"epoch; their number is that in the\n"
	"              label, else their place in time.\n"
	"critical      the root with the most of the metric (of a level: with the largest growth), there its worst "
	"instance, and in it the instances that\n"
	"              make up at least 1 % of it, the largest first, equal ones latest first; at most 64 in one.\n"
	"left open     ranges without an end count up to the last record of their thread.\n"
	"parts         with --steps and --device figures are of that part only; integrity is always of the whole "
	"trace.\n"
	"method        correlation (high): CUPTI's id leads from the work to its launch. graph-level (low): to the "
	"graph's launch; the operator inside\n"
	"              is not known. none: no launch, or in no range: unattributed, a root of its own.\n"
	"conserved     attributed + unattributed = all, in whole nanoseconds and bytes; anything else is printed, and "
	"--strict exits with 2.\n"
	"simulated     recorded on pperf's simulated device: counts are right, times are made up.\n";

static void put_wrapped(const char *name, const char *text, size_t indent)
{
	printf("  %-*s  %s\n", (int)indent, name, text);
}

static void help(void)
{
	puts("usage: pperf-report [VIEW] TRACE... [options]\n\n"
	     "Shows what a program did, from the trace that libpperf.so wrote of it. A trace named like a view is "
	     "given as ./tree.\n\nviews");
	for (const struct view *view = views; view->name; view++)
		put_wrapped(view->name, view->summary, 10);
	puts("\noptions");
	options_help();
	puts("\nexit status: 0 fine; 1 a difference was found; 2 not a trace, not readable, not written, or incomplete "
	     "under --strict; 64 wrong usage");
}

static void legend(void)
{
	fputs(definitions, stdout);
	puts("\nmetrics (-m)");
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		put_wrapped(*metrics[metric].key ? metrics[metric].key : "NAME", metrics[metric].help, 10);
	puts("\ncolumns (-s, JSON, CSV)");
	for (size_t i = 0; i < all_column_count; i++)
		put_wrapped(all_columns[i].key, all_columns[i].help, 21);
}

int legend_show(const struct options *options)
{
	if (options->help)
		help();
	else if (options->version)
		puts("pperf-report " PPERF_VERSION);
	else
		legend();
	if (fflush(stdout) || ferror(stdout))
		fatal(STATUS_UNREADABLE, "standard output: cannot be written:");
	return STATUS_FINE;
}
