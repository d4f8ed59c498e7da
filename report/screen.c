/* SPDX-License-Identifier: MIT
 * screen.c: what there is to know first: what ran, what is known of it and what not, where the time or the memory
 * went. Every figure here is measured; what is missing is said, with what to do about it.
 */
#include "report/command.h"
#include "report/paragraph.h"
#include "report/print.h"
#include "report/tensors.h"
#include "report/verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TREE_LINES 12 /* of the critical tree */

static const char *dot(const struct style *style)
{
	return style->ascii ? ", " : " \xc2\xb7 ";
}

static void put_what_ran(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct trace_text host = process_meta(process, "host");

	if (*process->command)
		paragraph_text(&paragraph, process->command, strlen(process->command));
	else
		paragraph_add(&paragraph, "(the trace does not say what)");
	paragraph_put(&paragraph, "ran");
	paragraph_add(&paragraph, "pid %u", process->pid);
	if (process->rank >= 0)
		paragraph_add(&paragraph, "%srank %lld", dot(style), (long long)process->rank);
	if (host.length) {
		paragraph_add(&paragraph, "%s", dot(style));
		paragraph_text(&paragraph, host.bytes, host.length);
	}
	paragraph_add(&paragraph, "%s", dot(style));
	paragraph_figure(&paragraph, UNIT_TIME, process->wall_ns);
	paragraph_add(&paragraph, "%s", dot(style));
	paragraph_figure(&paragraph, UNIT_COUNT, process->events);
	paragraph_add(&paragraph, " events%s", dot(style));
	paragraph_text(&paragraph, process->path, strlen(process->path));
	if (!(reader_header(process->reader)->flags & TRACE_ENDED) && !process_meta(process, "import.format").known)
		paragraph_add(&paragraph, "%sit did not end by exit(): killed, or still running", dot(style));
	paragraph_put(&paragraph, "");
}

static void add_version(struct paragraph *paragraph, const struct process *process, const char *key, const char *title)
{
	const struct trace_text version = process_meta(process, key);

	if (!version.length)
		return;
	paragraph_add(paragraph, "%s%s ", dot(paragraph->style), title);
	paragraph_text(paragraph, version.bytes, version.length);
}

/* How many devices from that one on have numbers in a row and one name. */
static uint32_t devices_alike(const struct process *process, uint32_t from)
{
	const struct trace_device *first = reader_dictionary(process->reader, TRACE_DEVICE, from), *next;
	uint32_t count = 1;

	while ((next = reader_dictionary(process->reader, TRACE_DEVICE, from + count)) && next->name == first->name &&
		next->device == first->device + count)
		count++;
	return count;
}

static void put_devices(const struct process *process, const struct style *style)
{
	const struct trace_device *device;
	struct paragraph paragraph = { .style = style };

	for (uint32_t i = 0, count; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i += count) {
		const struct trace_text name = reader_name(process->reader, device->name);

		count = devices_alike(process, i);
		paragraph_add(&paragraph, count > 1 ? "GPUs %u-%u " : "GPU %u ", device->device, device->device + count - 1);
		if (name.length)
			paragraph_text(&paragraph, name.bytes, name.length);
		else
			paragraph_add(&paragraph, "(the trace has no name of %s)", count > 1 ? "them" : "it");
		if (i == 0) {
			add_version(&paragraph, process, "version.cuda_runtime", "CUDA runtime");
			add_version(&paragraph, process, "version.cuda_driver", "driver");
			add_version(&paragraph, process, "version.cupti", "CUPTI");
		}
		paragraph_put(&paragraph, i ? "" : "device");
	}
	if (process->simulated) {
		paragraph_add(&paragraph,
			"SIMULATED: counts and bytes are what the program did; no time of this GPU is a measurement");
		paragraph_put(&paragraph, "");
	}
}

/* Where what is missing comes from, and what to do. */
static const struct {
	const char *key, *missing, *advice; /* NULL: the reason in the trace says it */
} sources[] = {
	{ "nvtx", "names of the program's parts",
		"if it uses NVTX, start it with libpperf.so's full path in LD_PRELOAD" },
	{ "cuda_symbols", "memory and launches seen on the CPU",
		"a program with a static CUDA runtime needs CUPTI for this" },
	{ "cupti", "times of kernels and copies",
		"let libcupti of the same CUDA version be found (beside libcudart, or in LD_LIBRARY_PATH), and no "
		"other profiler hold it" },
	{ "torch_ops", "PyTorch's operators", NULL },
	{ "torch_modules", "names of PyTorch's modules", NULL },
	{ "torch_memory", "memory of tensors", NULL },
	{ "python_stacks", "places in the program's Python files", NULL },
};

static bool begins(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

static void put_sources(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const char *before = "";

	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		char key[64];
		struct trace_text state;

		snprintf(key, sizeof key, "source.%s", sources[i].key);
		state = process_meta(process, key);
		if (!state.length)
			continue;
		paragraph_add(&paragraph, "%s%s ", before, sources[i].key);
		paragraph_text(&paragraph, state.bytes, state.length);
		before = dot(style);
	}
	if (!*before)
		paragraph_add(&paragraph, "none is noted in the trace");
	paragraph_put(&paragraph, "sources");
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		char key[64];
		struct trace_text state;

		snprintf(key, sizeof key, "source.%s", sources[i].key);
		state = process_meta(process, key);
		if (!begins(state, "off") && !begins(state, "partial"))
			continue;
		if (begins(state, "partial") && !sources[i].advice)
			continue;
		paragraph_add(&paragraph, "%s %s %s", style->ascii ? "->" : "\xe2\x86\x92",
			begins(state, "off") ? "no" : "not all", sources[i].missing);
		if (sources[i].advice)
			paragraph_add(&paragraph, ": %s", sources[i].advice);
		paragraph_put(&paragraph, "");
	}
}

/* Of a file that another tool wrote: what it is, and what of it is in no view. */
static void put_import(const struct process *process, const struct style *style)
{
	const struct trace_text format = process_meta(process, "import.format"),
				left_out = process_meta(process, "import.left_out");
	struct paragraph paragraph = { .style = style };

	if (!format.length)
		return;
	paragraph_add(&paragraph, "a file of ");
	paragraph_text(&paragraph, format.bytes, format.length);
	if (left_out.length) {
		paragraph_add(&paragraph, "; in no view: ");
		paragraph_text(&paragraph, left_out.bytes, left_out.length);
	}
	paragraph_put(&paragraph, "imported");
}

static void add_pair(struct paragraph *paragraph, const char *what, uint64_t seen, uint64_t of, const char **before)
{
	if (!seen && !of)
		return;
	paragraph_add(paragraph, "%s", *before);
	paragraph_figure(paragraph, UNIT_COUNT, seen);
	paragraph_add(paragraph, " of ");
	paragraph_figure(paragraph, UNIT_COUNT, of);
	paragraph_add(paragraph, " %s", what);
	*before = ", ";
}

/* How the GPU's records found their ranges, in time. */
static void put_methods(const struct process *process, const struct style *style)
{
	const struct fold_totals *totals = &process->fold->totals;
	struct paragraph paragraph = { .style = style };

	for (int method = METHOD_COUNT - 1; method >= 0; method--) {
		if (!totals->method_records[method])
			continue;
		paragraph_add(&paragraph, "%s%s ",
			paragraph.used ? ", " : "GPU time by method: ", method_name((enum method)method));
		paragraph_figure(&paragraph, UNIT_TIME, totals->method_ns[method]);
		paragraph_add(&paragraph, " (%s)", method_confidence((enum method)method));
	}
	if (paragraph.used)
		paragraph_put(&paragraph, "");
}

static void put_coverage(const struct process *process, const struct style *style)
{
	const struct integrity *integrity = &process->integrity;
	const uint64_t records = integrity->attributed + integrity->unattributed;
	const char *before = " ";
	struct paragraph paragraph = { .style = style };

	if (!records && !integrity->launches && !integrity->copies_called && !integrity->sets_called &&
		!integrity->graph_launches) {
		paragraph_add(&paragraph, "no GPU work in this trace: what follows is the time of ranges on the CPU");
		paragraph_put(&paragraph, "coverage");
		return;
	}
	if (records) {
		paragraph_percent(&paragraph, integrity->attributed, records);
		paragraph_add(&paragraph, " of ");
		paragraph_figure(&paragraph, UNIT_COUNT, records);
		paragraph_add(&paragraph, " GPU records have the range that asked for them");
		if (integrity->untimed)
			paragraph_add(&paragraph, " (%llu without a time)", (unsigned long long)integrity->untimed);
	} else {
		paragraph_add(&paragraph, "the GPU told of nothing");
	}
	paragraph_add(&paragraph, "; recorded:");
	add_pair(&paragraph, "launches", integrity->kernels - integrity->graph_kernels, integrity->launches, &before);
	add_pair(&paragraph, "copies", integrity->copies - integrity->graph_copies, integrity->copies_called, &before);
	add_pair(&paragraph, "memsets", integrity->sets - integrity->graph_sets, integrity->sets_called, &before);
	if (integrity->graph_launches) {
		paragraph_add(&paragraph, "%s", before);
		paragraph_figure(&paragraph, UNIT_COUNT,
			integrity->graph_kernels + integrity->graph_copies + integrity->graph_sets);
		paragraph_add(&paragraph, " by ");
		paragraph_figure(&paragraph, UNIT_COUNT, integrity->graph_launches);
		paragraph_add(&paragraph, " graph launches");
	}
	paragraph_put(&paragraph, "coverage");
	if (records)
		put_methods(process, style);
}

static void add_left_out(struct paragraph *paragraph, size_t count, const char *what)
{
	if (!count)
		return;
	paragraph_add(paragraph, ", ");
	paragraph_figure(paragraph, UNIT_COUNT, count);
	paragraph_add(paragraph, " %s left out", what);
}

/* Steps that nobody marked, if somebody looked for them. */
static void put_steps(const struct process *process, const struct style *style)
{
	const struct steps *steps = process->steps;
	struct paragraph paragraph = { .style = style };
	size_t usual;

	if (!steps)
		return;
	if (!steps->count) {
		paragraph_add(&paragraph, "none found: %s", steps->reason);
		paragraph_put(&paragraph, "steps");
		return;
	}
	usual = steps_usual(steps);
	paragraph_figure(&paragraph, UNIT_COUNT, usual);
	if (usual) {
		paragraph_add(&paragraph, usual == 1 ? " step of " : " steps of ");
		paragraph_figure(&paragraph, UNIT_TIME, steps->p50_ns);
		if (usual > 1)
			paragraph_add(&paragraph, " (p50)");
	} else {
		paragraph_add(&paragraph, " whole steps");
	}
	add_left_out(&paragraph, steps->warm_up, "warm-up");
	add_left_out(&paragraph, steps->captures, steps->captures == 1 ? "that captured a CUDA graph" : "that captured CUDA graphs");
	add_left_out(&paragraph, steps->unfinished, "unfinished");
	paragraph_add(&paragraph, "; found by %s (%s%s%s)", steps->evidence, steps_confidence_name(steps->confidence),
		*steps->reason ? ": " : "", steps->reason);
	paragraph_put(&paragraph, "steps");
}

static void add_window(struct paragraph *paragraph, const struct window *window, const char *before)
{
	const unsigned long long first = window->first, last = window->first + window->steps - (window->steps > 0);

	paragraph_add(paragraph, "%s%llu", before, first);
	if (last > first)
		paragraph_add(paragraph, "-%llu", last);
	if (!window->ended)
		paragraph_add(paragraph, " (unfinished)");
}

#define WINDOWS_TOLD 4u

/* When CUPTI was another client's, and what that means. */
static void put_away(const struct process *process, const struct style *style)
{
	const struct away *away = process->away;
	struct paragraph paragraph = { .style = style };

	if (!away || !away->count)
		return;
	paragraph_add(&paragraph, "CUPTI was left to another profiler ");
	paragraph_figure(&paragraph, UNIT_TIME, away->ns);
	paragraph_add(&paragraph, " long:");
	for (size_t i = 0; i < away->count && i < WINDOWS_TOLD; i++) {
		const struct away_span *span = &away->spans[AWAY_TRACE][i];

		paragraph_add(&paragraph, "%s from ", i ? "," : "");
		paragraph_figure(&paragraph, UNIT_TIME, span->begin_ns);
		paragraph_add(&paragraph, " to ");
		if (span->end_ns == UINT64_MAX)
			paragraph_add(&paragraph, "the end");
		else
			paragraph_figure(&paragraph, UNIT_TIME, span->end_ns);
	}
	if (away->count > WINDOWS_TOLD)
		paragraph_add(&paragraph, " and %zu times more", away->count - WINDOWS_TOLD);
	paragraph_add(&paragraph, " (PPERF_CUPTI=yield)");
	paragraph_put(&paragraph, "away");
	paragraph_add(&paragraph, "%s what the GPU did then is not known: it is in no figure, nor is that time idle", style->ascii ? "->" : "\xe2\x86\x92");
	if (process->integrity.yielded_calls) {
		paragraph_add(&paragraph, "; launches, copies and memsets seen then: ");
		paragraph_figure(&paragraph, UNIT_COUNT, process->integrity.yielded_calls);
	}
	paragraph_put(&paragraph, "");
}

/* What PPERF_SCHEDULE had recorded, of what there was. */
static void put_windows(const struct process *process, const struct style *style)
{
	const struct windows *windows = process->windows;
	const struct trace_text given = process_meta(process, "env.PPERF_SCHEDULE");
	struct paragraph paragraph = { .style = style };

	if (!windows)
		return;
	if (!windows->count)
		paragraph_add(&paragraph, "no step");
	for (size_t i = 0; i < windows->count && i < WINDOWS_TOLD; i++)
		add_window(&paragraph, &windows->windows[i], i ? ", " : windows->count > 1 || windows->windows[i].steps > 1 ? "steps " : "step ");
	if (windows->count > WINDOWS_TOLD)
		paragraph_add(&paragraph, " and %llu windows more", (unsigned long long)(windows->count - WINDOWS_TOLD));
	paragraph_add(&paragraph, " of ");
	paragraph_figure(&paragraph, UNIT_COUNT, windows->steps);
	paragraph_add(&paragraph, " recorded, ");
	paragraph_figure(&paragraph, UNIT_TIME, windows->ns);
	paragraph_add(&paragraph, " (PPERF_SCHEDULE=");
	paragraph_text(&paragraph, given.known ? given.bytes : windows->schedule.bytes,
		given.known ? given.length : windows->schedule.length);
	paragraph_add(&paragraph, ")");
	paragraph_put(&paragraph, "window");
}

/* What was not, and what looking at it cost. */
static void put_outside(const struct process *process, const struct style *style)
{
	const struct windows *windows = process->windows;
	struct paragraph paragraph = { .style = style };

	if (!windows)
		return;
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++) {
		if (!windows->skipped[kind].events)
			continue;
		paragraph_add(&paragraph, "%s", paragraph.used ? ", " : "seen and not recorded: ");
		paragraph_figure(&paragraph, UNIT_COUNT, windows->skipped[kind].events);
		paragraph_add(&paragraph, " %s", windows_skip_text((enum trace_skip_kind)kind));
	}
	if (!paragraph.used)
		return;
	paragraph_add(&paragraph, "; that cost about ");
	paragraph_figure(&paragraph, UNIT_TIME, windows->cost_ns);
	paragraph_add(&paragraph, " in pperf, from those that were measured%s", windows->unmeasured ? " (of some sort none was)" : "");
	paragraph_put(&paragraph, "outside");
}

/* Operators that are in no record. */
static void put_counted(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct trace_counted *counted;
	uint64_t calls = 0;
	uint32_t places;

	counted = reader_counted(process->reader, &places);
	for (uint32_t i = 0; i < places; i++)
		calls += counted[i].calls;
	if (!calls)
		return;
	paragraph_figure(&paragraph, UNIT_COUNT, calls);
	paragraph_add(&paragraph, " calls were counted, not recorded (PPERF_OPS=totals): ");
	paragraph_add(&paragraph, process->fold->options.steps ? "of the whole run, so they are left out of these steps"
							       : "the tree is of the whole run, not of its steps");
	paragraph_put(&paragraph, "operators");
}

static void put_losses(const struct process *process, const struct style *style)
{
	const struct integrity *integrity = &process->integrity;
	struct paragraph paragraph = { .style = style };

	for (size_t i = 0; i < integrity_item_count; i++) {
		const uint64_t value = integrity_value(integrity, i);
		const bool note = integrity_items[i].missing || strcmp(integrity_items[i].name, "left_open") == 0 ||
				  strcmp(integrity_items[i].name, "unmatched_ends") == 0 ||
				  strcmp(integrity_items[i].name, "clock_violations") == 0 ||
				  strcmp(integrity_items[i].name, "unknown_frees") == 0 ||
				  strcmp(integrity_items[i].name, "failed_calls") == 0;

		if (value && note)
			paragraph_add(&paragraph, "%s%llu %s", paragraph.used ? "; " : "", (unsigned long long)value,
				integrity_items[i].text);
	}
	if (!integrity->conserved)
		paragraph_add(&paragraph, "%s%s", paragraph.used ? "; " : "", integrity->problem);
	if (!paragraph.used)
		paragraph_add(&paragraph, "none");
	paragraph_put(&paragraph, integrity->complete ? "losses" : "LOSSES");
}

static void put_cost(const struct process *process, const struct style *style)
{
	const struct fold_totals *totals = &process->fold->totals;
	struct paragraph paragraph = { .style = style };

	if (process_meta(process, "import.format").known)
		return;
	paragraph_add(&paragraph, "pperf measured ");
	paragraph_figure(&paragraph, UNIT_TIME, totals->self_ns);
	paragraph_add(&paragraph, " of its own in the program (");
	paragraph_percent(&paragraph, totals->self_ns, process->wall_ns);
	paragraph_add(&paragraph, " of ");
	paragraph_figure(&paragraph, UNIT_TIME, process->wall_ns);
	paragraph_add(&paragraph, ")");
	if (totals->overhead_ns) {
		paragraph_add(&paragraph, ", CUPTI ");
		paragraph_figure(&paragraph, UNIT_TIME, totals->overhead_ns);
	}
	paragraph_put(&paragraph, "cost");
}

static const char *metric_name(const struct process *process)
{
	return process->metric == METRIC_USER ? process->fold->options.counter : metrics[process->metric].key;
}

static void put_critical(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	const struct instance *root = process_critical(process);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct paragraph paragraph = { .style = style };

	if (!root)
		return;
	options.depth = UINT32_MAX;
	options.top = UINT32_MAX;
	options.all = false;
	arrange_critical(&options, &only, &rows);
	paragraph_add(&paragraph, "by %s: ", metric_name(process));
	if (process->fold->tree->nodes[root->node].calls > 1) {
		paragraph_add(&paragraph, "the worst of ");
		paragraph_figure(&paragraph, UNIT_COUNT, process->fold->tree->nodes[root->node].calls);
		paragraph_add(&paragraph, " instances ");
	} else {
		paragraph_add(&paragraph, "the only instance ");
	}
	verdict_place(&paragraph, process, root->node);
	paragraph_put(&paragraph, "critical");
	critical_excerpt(&rows, TREE_LINES);
	print_ruled(&rows, &options, style);
	if (rows.more)
		print_line(style, "and %llu lines more\n", (unsigned long long)rows.more);
	free(rows.rows);
}

/* What they order by is held by the GPU. */
static bool metrics_are_memory(enum metric metric)
{
	return metric == METRIC_RESERVED || metric == METRIC_ALLOCATED;
}

/* Whether the traces are of several ranks of one job. */
static bool several_ranks(const struct processes *processes)
{
	int64_t first = -1;

	for (size_t i = 0; i < processes->count; i++) {
		if (processes->all[i].rank >= 0 && first >= 0 && processes->all[i].rank != first)
			return true;
		first = processes->all[i].rank >= 0 ? processes->all[i].rank : first;
	}
	return false;
}

static void put_command(struct command *command, const char *title, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_text(&paragraph, command->text, command->used); /* nothing in it needs to be made visible */
	paragraph_put(&paragraph, title);
	free(command->text);
}

static void put_next(const struct report *report, const struct process *process, const struct style *style)
{
	struct command command = { .ascii = style->ascii }, ranks = { .ascii = style->ascii },
		       diagnose = { .ascii = style->ascii };
	const struct fold_totals *totals = &process->fold->totals;
	const bool exhausted = process->fold->memory->counts.ooms > 0,
		   memory = !metrics_are_memory(process->metric) && (totals->reserved_peak || totals->allocated_peak);

	command_add(&command, exhausted ? "pperf-report memory" : "pperf-report critical");
	command_file(&command, process->path);
	if (!exhausted) {
		const char *metric = !memory                  ? metric_name(process)
				     : totals->allocated_peak ? metrics[METRIC_ALLOCATED].key
							      : metrics[METRIC_RESERVED].key;

		command_add(&command, " -m");
		command_word(&command, metric, strlen(metric));
	}
	put_command(&command, "next", style);
	if (process->fold->timeline) {
		command_add(&diagnose, "pperf-report diagnose");
		command_file(&diagnose, process->path);
		put_command(&diagnose, "", style);
	}
	if (!several_ranks(report->processes))
		return;
	command_add(&ranks, "pperf-report ranks");
	command_files(&ranks, report->options);
	put_command(&ranks, "", style);
}

void print_screen(const struct report *report, const struct style *style)
{
	const struct process *process = &report->processes->all[0];

	put_what_ran(process, style);
	put_devices(process, style);
	tensors_put_oom(process, style);
	put_import(process, style);
	put_sources(process, style);
	put_coverage(process, style);
	put_away(process, style);
	put_windows(process, style);
	put_outside(process, style);
	put_steps(process, style);
	put_counted(process, style);
	verdict_put(process, style);
	tensors_put_levels(process, style);
	put_losses(process, style);
	put_cost(process, style);
	out_char(style->out, '\n');
	put_critical(report, style);
	out_char(style->out, '\n');
	put_next(report, process, style);
	out_char(style->out, '\n');
	if (report->rows.count)
		print_table(report, &report->rows, LAYOUT_TREE, style);
}
