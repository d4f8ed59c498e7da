/* SPDX-License-Identifier: MIT */
#include "report/views/summary_coverage.h"
#include "report/text/paragraph.h"
#include "report/views/source_reasons.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *coverage_separator(const struct style *style)
{
	return style->ascii ? ", " : " \xc2\xb7 ";
}

/* In the order of the first screen. */
static const char *const sources[] = { "nvtx", "cuda_symbols", "cupti", "roctracer", "torch_ops",
	"torch_modules", "torch_compile", "torch_memory", "python_stacks", "cpu_samples" };

static struct trace_text source_state(const struct process *process, size_t source)
{
	return reader_meta_of(process->reader, "source", sources[source]);
}

/* CPU tensors are not recorded, so `on` alone would be misleading where no tensor is on a GPU. */
static bool only_gpu_is_watched(const struct process *process, size_t source)
{
	const struct trace_text state = source_state(process, source);

	return strcmp(sources[source], "torch_memory") == 0 && state.length == 2 &&
	       memcmp(state.bytes, "on", 2) == 0 && !process->profile->totals.has_tensors &&
	       !process_meta(process, "import.format").known;
}

/* Adds by what CPU samples are taken, and of which time. */
static void add_sampling(struct paragraph *paragraph, const struct process *process)
{
	const struct trace_text source = process_meta(process, "sample.source"),
				clock = process_meta(process, "sample.clock"),
				hz = process_meta(process, "sample.hz");

	if (!source.length || !clock.length || !hz.length)
		return;
	paragraph_add(paragraph, " (");
	paragraph_text(paragraph, hz.bytes, hz.length);
	paragraph_add(paragraph, " Hz of ");
	paragraph_text(paragraph, clock.bytes, clock.length);
	paragraph_add(paragraph, " time, by ");
	paragraph_text(paragraph, source.bytes, source.length);
	paragraph_add(paragraph, ")");
}

static void put_source_states(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const char *before = "";

	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		const struct trace_text state = source_state(process, i);

		if (!state.length)
			continue;
		paragraph_add(&paragraph, "%s%s ", before, sources[i]);
		paragraph_text(&paragraph, state.bytes, state.length);
		if (only_gpu_is_watched(process, i))
			paragraph_add(&paragraph, " (no GPU tensor; CPU tensors are not recorded)");
		if (strcmp(sources[i], "cpu_samples") == 0)
			add_sampling(&paragraph, process);
		before = coverage_separator(style);
	}
	if (!*before)
		paragraph_add(
			&paragraph, process->events && !process_meta(process, "import.format").known
					    ? "only what the program reports to pperf itself"
					    : "none recorded in the trace");
	paragraph_print(&paragraph, "sources");
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		struct text_builder advice = { .text = NULL };

		source_add_advice(&advice, sources[i], source_state(process, i), style->ascii);
		if (!advice.text)
			continue;
		paragraph_add(&paragraph, "%s", advice.text);
		paragraph_print(&paragraph, "");
		free(advice.text);
	}
}

#define METRICS_NAMED 6u

/* Prints the names of the counters that the program reports, and how to see one. */
static void put_metrics(const struct process *process, const struct style *style)
{
	const uint32_t count = reader_dictionary_count(process->reader, TRACE_COUNTER);
	struct paragraph paragraph = { .style = style };

	if (!count)
		return;
	for (uint32_t i = 0; i < count && i < METRICS_NAMED; i++) {
		const struct trace_counter *counter = reader_dictionary(
			process->reader, TRACE_COUNTER, i);
		const struct trace_text name = reader_name(process->reader, counter->name),
					unit = reader_name(process->reader, counter->unit);

		paragraph_add(&paragraph, "%s`", i ? ", " : "");
		paragraph_text(&paragraph, name.bytes, name.length);
		paragraph_add(&paragraph, unit.length ? "` (" : "`");
		paragraph_text(&paragraph, unit.bytes, unit.length);
		paragraph_add(&paragraph, unit.length ? ")" : "");
	}
	if (count > METRICS_NAMED)
		paragraph_add(&paragraph, " and %u more", count - METRICS_NAMED);
	paragraph_add(&paragraph, ", levels of the program: -m NAME shows one in tree, table, "
				  "critical, steps and diff");
	paragraph_print(&paragraph, "metrics");
}

/* Prints the format of an imported file, and which of its contents no view shows. */
static void put_import(const struct process *process, const struct style *style)
{
	const struct trace_text format = process_meta(process, "import.format"),
				left_out = process_meta(process, "import.left_out"),
				begin = process_meta(process, "import.begin_ns");
	struct paragraph paragraph = { .style = style };
	char number[24] = "";

	if (!format.length)
		return;
	paragraph_add(&paragraph, "a file of ");
	paragraph_text(&paragraph, format.bytes, format.length);
	if (left_out.length) {
		paragraph_add(&paragraph, "; not shown in any view: ");
		paragraph_text(&paragraph, left_out.bytes, left_out.length);
	}
	if (begin.length && begin.length < sizeof number) {
		memcpy(number, begin.bytes, begin.length);
		paragraph_add(&paragraph, "; times here are ");
		paragraph_value(&paragraph, UNIT_TIME, strtoull(number, NULL, 10));
		paragraph_add(&paragraph, " less than in the file");
	}
	paragraph_print(&paragraph, "imported");
}

static void add_pair(struct paragraph *paragraph, const char *what, uint64_t seen, uint64_t of,
	const char **before)
{
	if (seen == of)
		return;
	paragraph_add(paragraph, "%s", *before);
	paragraph_value(paragraph, UNIT_COUNT, seen);
	paragraph_add(paragraph, " / ");
	paragraph_value(paragraph, UNIT_COUNT, of);
	paragraph_add(paragraph, " %s", what);
	*before = ", ";
}

/* Adds how much GPU time was attributed to a range by each method, and how much was not, unless
 * all of it was by correlation. */
static void add_methods(struct paragraph *paragraph, const struct process *process)
{
	const struct profile_totals *totals = &process->profile->totals;
	static const char *const how_placed[METHOD_COUNT] = {
		[METHOD_CORRELATION] = "its range is known",
		[METHOD_ENCLOSURE] = "the file names its range",
		[METHOD_GRAPH_LEVEL] = "only the range that launched its graph is known",
		[METHOD_GRAPH_NODE] = "its range is known",
	};
	const char *before = "; GPU time ";
	bool others = false;

	for (int method = 0; method < METHOD_COUNT; method++)
		others |= method != METHOD_CORRELATION && totals->method_records[method];
	for (int method = METHOD_COUNT - 1; method >= 0 && others; method--) {
		if (!totals->method_records[method])
			continue;
		paragraph_add(paragraph, "%s", before);
		before = ", ";
		paragraph_value(paragraph, UNIT_TIME, totals->method_ns[method]);
		if (method == METHOD_NONE)
			paragraph_add(paragraph, " unattributed");
		else
			paragraph_add(paragraph, " by %s (%s)", method_name((enum method)method),
				how_placed[method]);
	}
}

static void add_unmatched_records(struct paragraph *paragraph, const struct integrity *integrity)
{
	const uint64_t other = integrity->without_launch - integrity->launched_before;

	if (integrity->launched_before) {
		paragraph_add(paragraph, "; ");
		paragraph_value(paragraph, UNIT_COUNT, integrity->launched_before);
		paragraph_add(paragraph, " records were launched before the trace began");
	}
	if (other) {
		paragraph_add(paragraph, "; ");
		paragraph_value(paragraph, UNIT_COUNT, other);
		paragraph_add(paragraph, " records have no launch in the trace");
	}
}

void coverage_add(struct paragraph *paragraph, const struct process *process)
{
	const struct integrity *integrity = &process->integrity;
	const uint64_t records = integrity->attributed + integrity->unattributed;
	const char *before;

	if (!records && !integrity->launches && !integrity->copies_called &&
		!integrity->sets_called && !integrity->graph_launches) {
		paragraph_add(paragraph,
			"no GPU work in this trace; the following figures are CPU times of %s",
			process->profile->only_samples ? "samples" : "ranges");
		return;
	}
	if (records) {
		paragraph_percent(paragraph, integrity->attributed, records);
		paragraph_add(paragraph, " of ");
		paragraph_value(paragraph, UNIT_COUNT, records);
		paragraph_add(paragraph, " GPU records attributed to the range that launched them");
		if (integrity->untimed)
			paragraph_add(paragraph, " (%llu without timestamps)",
				(unsigned long long)integrity->untimed);
	} else {
		paragraph_add(paragraph, "no GPU records");
	}
	before = "; GPU records / calls: ";
	add_pair(paragraph, "launches", integrity->kernels - integrity->graph_kernels,
		integrity->launches, &before);
	add_pair(paragraph, "copies", integrity->copies - integrity->graph_copies,
		integrity->copies_called, &before);
	add_pair(paragraph, "memsets", integrity->sets - integrity->graph_sets,
		integrity->sets_called, &before);
	if (integrity->graph_launches) {
		paragraph_add(paragraph, "%s", before);
		paragraph_value(paragraph, UNIT_COUNT,
			integrity->graph_kernels + integrity->graph_copies + integrity->graph_sets);
		paragraph_add(paragraph, " by ");
		paragraph_value(paragraph, UNIT_COUNT, integrity->graph_launches);
		paragraph_add(paragraph, " graph launches");
	}
	add_unmatched_records(paragraph, integrity);
	if (records)
		add_methods(paragraph, process);
}

static void put_coverage(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	coverage_add(&paragraph, process);
	paragraph_print(&paragraph, "coverage");
}

static void add_recording_window(
	struct paragraph *paragraph, const struct recording_window *window, const char *before)
{
	const unsigned long long first = window->first,
				 last = window->first + window->steps - (window->steps > 0);

	paragraph_add(paragraph, "%s%llu", before, first);
	if (last > first)
		paragraph_add(paragraph, "-%llu", last);
	if (!window->ended)
		paragraph_add(paragraph, " (unfinished)");
}

#define WINDOWS_SHOWN 4u

/* Prints when CUPTI was handed over, and what that means for the figures. */
static void put_handover(const struct process *process, const struct style *style)
{
	const struct handover_list *handovers = process->handovers;
	struct paragraph paragraph = { .style = style };

	if (!handovers || !handovers->count)
		return;
	paragraph_add(&paragraph, "CUPTI was released to another profiler for ");
	paragraph_value(&paragraph, UNIT_TIME, handovers->ns);
	paragraph_add(&paragraph, ":");
	for (size_t i = 0; i < handovers->count && i < WINDOWS_SHOWN; i++) {
		const struct handover_span *span = &handovers->spans[HANDOVER_TRACE_TIME][i];

		paragraph_add(&paragraph, "%s from ", i ? "," : "");
		paragraph_value(&paragraph, UNIT_TIME, span->begin_ns);
		paragraph_add(&paragraph, " to ");
		if (span->end_ns == UINT64_MAX)
			paragraph_add(&paragraph, "the end");
		else
			paragraph_value(&paragraph, UNIT_TIME, span->end_ns);
	}
	if (handovers->count > WINDOWS_SHOWN)
		paragraph_add(&paragraph, " and %zu more times", handovers->count - WINDOWS_SHOWN);
	paragraph_add(&paragraph, " (PPERF_CUPTI=yield)");
	paragraph_print(&paragraph, "away");
	paragraph_add(&paragraph,
		"%s GPU activity in that time is not recorded; it is in no figure and does not "
		"count as idle",
		style->ascii ? "->" : "\xe2\x86\x92");
	if (process->integrity.yielded_calls) {
		paragraph_add(
			&paragraph, "; launches, copies and memsets requested in that time: ");
		paragraph_value(&paragraph, UNIT_COUNT, process->integrity.yielded_calls);
	}
	paragraph_print(&paragraph, "");
}

/* Why nothing was overwritten any more, or was about to be no more. */
static const char *stop_text(const struct process *process)
{
	switch (reader_header(process->reader)->control.stop) {
	case TRACE_STOP_COMMAND:
		return "; stopped by pperf ctl";
	case TRACE_STOP_OOM:
		return "; kept because memory ran out (PPERF_RING_KEEP)";
	case TRACE_STOP_SLOW_STEP:
		return "; kept because of a slow step (PPERF_RING_KEEP)";
	default:
		return "";
	}
}

/* Prints which part of the run a ring holds, and what it has overwritten. */
static void put_ring(const struct process *process, const struct style *style)
{
	const struct trace_ring *ring = &reader_header(process->reader)->ring;
	const struct recording_windows *windows = process->windows;
	const struct trace_text given = process_meta(process, "env.PPERF_RING");
	struct paragraph paragraph = { .style = style };

	if (!windows || !windows->ring)
		return;
	paragraph_add(&paragraph, "the last ");
	paragraph_value(&paragraph, UNIT_TIME, windows->ns);
	paragraph_add(&paragraph, " of the run, from ");
	paragraph_value(&paragraph, UNIT_TIME, windows->windows->begin_ns);
	paragraph_add(&paragraph, " on; ");
	paragraph_value(&paragraph, UNIT_COUNT, ring->events);
	paragraph_add(&paragraph, " earlier events in ");
	paragraph_value(&paragraph, UNIT_BYTES, ring->chunk_bytes);
	paragraph_add(&paragraph, " were overwritten (PPERF_RING=");
	paragraph_text(&paragraph, given.known ? given.bytes : "", given.known ? given.length : 0);
	paragraph_add(&paragraph, ")%s", stop_text(process));
	paragraph_print(&paragraph, "window");
}

/* Prints which steps PPERF_SCHEDULE recorded, and of how many. */
static void put_recording_windows(const struct process *process, const struct style *style)
{
	const struct recording_windows *windows = process->windows;
	const struct trace_text given = process_meta(process, "env.PPERF_SCHEDULE");
	struct paragraph paragraph = { .style = style };

	put_ring(process, style);
	if (!windows || windows->ring)
		return;
	if (!windows->count)
		paragraph_add(&paragraph, "no step");
	for (size_t i = 0; i < windows->count && i < WINDOWS_SHOWN; i++)
		add_recording_window(&paragraph, &windows->windows[i],
			i                                                     ? ", "
			: windows->count > 1 || windows->windows[i].steps > 1 ? "steps "
									      : "step ");
	if (windows->count > WINDOWS_SHOWN)
		paragraph_add(&paragraph, " and %llu more windows",
			(unsigned long long)(windows->count - WINDOWS_SHOWN));
	paragraph_add(&paragraph, " of ");
	paragraph_value(&paragraph, UNIT_COUNT, windows->steps);
	paragraph_add(&paragraph, " recorded, ");
	paragraph_value(&paragraph, UNIT_TIME, windows->ns);
	paragraph_add(&paragraph, " (PPERF_SCHEDULE=");
	paragraph_text(&paragraph, given.known ? given.bytes : windows->schedule.bytes,
		given.known ? given.length : windows->schedule.length);
	paragraph_add(&paragraph, ")");
	paragraph_print(&paragraph, "window");
}

/* Prints which events PPERF_SCHEDULE left unrecorded, and what skipping them cost. */
static void put_unrecorded(const struct process *process, const struct style *style)
{
	const struct recording_windows *windows = process->windows;
	struct paragraph paragraph = { .style = style };

	if (!windows)
		return;
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++) {
		if (!windows->skipped[kind].events)
			continue;
		paragraph_add(
			&paragraph, "%s", paragraph.built.used ? ", " : "seen but not recorded: ");
		paragraph_value(&paragraph, UNIT_COUNT, windows->skipped[kind].events);
		paragraph_add(
			&paragraph, " %s", recording_windows_skip_text((enum trace_skip_kind)kind));
	}
	if (!paragraph.built.used)
		return;
	paragraph_add(&paragraph, "; estimated cost about ");
	paragraph_value(&paragraph, UNIT_TIME, windows->cost_ns);
	paragraph_add(&paragraph, " in pperf, from a measured sample%s",
		windows->unmeasured ? " (some kinds have no sample)" : "");
	paragraph_print(&paragraph, "outside");
}

void coverage_put_counted(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	uint32_t node_count;
	const uint64_t calls = reader_counted_calls(process->reader, &node_count);

	if (!calls)
		return;
	paragraph_value(&paragraph, UNIT_COUNT, calls);
	paragraph_add(&paragraph, " calls were counted, not recorded (PPERF_OPS=totals): ");
	paragraph_add(
		&paragraph, process->profile->options.steps
				    ? "they cover the whole run, so they are not shown with --steps"
				    : "the tree covers the whole run, not its steps");
	paragraph_print(&paragraph, "operators");
}

/* How the first screen shows an item of integrity.h. */
enum item_line {
	LINE_NONE,   /* a figure of the whole, which the line `coverage` shows */
	LINE_LOSSES, /* data are missing */
	LINE_ERRORS, /* the program's own: nothing is missing in the trace */
	LINE_NOTES   /* the trace is complete, and this explains a figure */
};

static enum item_line line_of_item(const struct integrity_item *item)
{
	static const char *const notes[] = { "captured", "empty_calls", "before_gpu", "after_gpu",
		"range_profiled", "left_open", "unmatched_ends", "clock_violations",
		"unknown_frees", "lost_samples" };

	if (item->missing)
		return LINE_LOSSES;
	if (strcmp(item->name, "failed_calls") == 0)
		return LINE_ERRORS;
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		if (strcmp(item->name, notes[i]) == 0)
			return LINE_NOTES;
	return LINE_NONE;
}

static void add_items(
	struct paragraph *paragraph, const struct integrity *integrity, enum item_line line)
{
	for (size_t i = 0; i < integrity_item_count; i++) {
		const uint64_t value = integrity_value(integrity, i);

		if (value && line_of_item(&integrity_items[i]) == line)
			paragraph_add(paragraph, "%s%s: %llu", paragraph->built.used ? "; " : "",
				integrity_items[i].text, (unsigned long long)value);
	}
}

static void put_loss_line(const struct process *process, const struct style *style)
{
	const struct integrity *integrity = &process->integrity;
	struct paragraph paragraph = { .style = style };

	add_items(&paragraph, integrity, LINE_ERRORS);
	if (paragraph.built.used)
		paragraph_print(&paragraph, "errors");
	add_items(&paragraph, integrity, LINE_NOTES);
	if (paragraph.built.used)
		paragraph_print(&paragraph, "notes");
	add_items(&paragraph, integrity, LINE_LOSSES);
	if (!integrity->conserved)
		paragraph_add(
			&paragraph, "%s%s", paragraph.built.used ? "; " : "", integrity->problem);
	if (!paragraph.built.used)
		paragraph_add(&paragraph, integrity->complete ? "none" : "the file is cut");
	paragraph_print(&paragraph, integrity->complete ? "losses" : "LOSSES");
}

/* Adds what recording cost in the program's threads. It is not part of the measured overhead, which
 * is writing, flushing and reading call stacks. */
static void add_recording_estimate(const struct process *process, struct paragraph *paragraph)
{
	uint64_t event_ns, ns = process_recording_ns(process, &event_ns);

	if (ns) {
		paragraph_add(paragraph, "; recording ");
		paragraph_value(paragraph, UNIT_COUNT, process->events);
		paragraph_add(paragraph, " events: about ");
		paragraph_value(paragraph, UNIT_TIME, ns);
		paragraph_add(paragraph,
			" more, estimated from %llu ns an event, as measured at "
			"the program's end",
			(unsigned long long)event_ns);
	} else {
		paragraph_add(paragraph, "; without the time of recording each event");
	}
}

/* Adds the callbacks of the program's metrics that take more than 1 ms in the mean. */
static void add_slow_callbacks(const struct process *process, struct paragraph *paragraph)
{
	static const char prefix[] = "cost.metric.";
	struct trace_text key, value;
	unsigned long long calls, ns;
	char text[48];

	for (uint32_t i = 0; i < reader_meta_count(process->reader); i++) {
		reader_meta_at(process->reader, i, &key, &value);
		if (key.length < sizeof prefix || memcmp(key.bytes, prefix, sizeof prefix - 1) ||
			value.length >= sizeof text)
			continue;
		memcpy(text, value.bytes, value.length);
		text[value.length] = 0;
		if (sscanf(text, "%llu %llu", &calls, &ns) != 2 || !calls)
			continue;
		paragraph_add(paragraph, "; the callback of the metric `");
		paragraph_text(
			paragraph, key.bytes + sizeof prefix - 1, key.length - sizeof prefix + 1);
		paragraph_add(paragraph, "` takes ");
		paragraph_value(paragraph, UNIT_TIME, ns / calls);
		paragraph_add(paragraph, " each time, ");
		paragraph_value(paragraph, UNIT_TIME, ns);
		paragraph_add(paragraph, " of the program's own time in %llu calls", calls);
	}
}

static void put_profiler_cost(const struct process *process, const struct style *style)
{
	const struct profile_totals *totals = &process->profile->totals;
	const struct profile_options *options = &process->profile->options;
	/* of the whole run, because the cost of its parts is not known */
	const uint64_t run_ns = reader_duration_ns(process->reader);
	struct paragraph paragraph = { .style = style };

	if (process_meta(process, "import.format").known)
		return;
	if (totals->self_ns) {
		paragraph_add(&paragraph, "overhead ");
		paragraph_value(&paragraph, UNIT_TIME, totals->self_ns);
		paragraph_add(&paragraph, " in pperf (");
		paragraph_percent(&paragraph, totals->self_ns, run_ns);
		paragraph_add(&paragraph,
			options->steps || options->windows ? " of the whole run's " : " of ");
		paragraph_value(&paragraph, UNIT_TIME, run_ns);
		paragraph_add(&paragraph, ")");
	} else {
		paragraph_add(&paragraph,
			"overhead in pperf not measured: the trace has no record of it");
	}
	if (totals->overhead_ns) {
		paragraph_add(&paragraph, ", CUPTI ");
		paragraph_value(&paragraph, UNIT_TIME, totals->overhead_ns);
	}
	add_recording_estimate(process, &paragraph);
	add_slow_callbacks(process, &paragraph);
	paragraph_print(&paragraph, "cost");
}

void coverage_put_sources(const struct process *process, const struct style *style)
{
	put_import(process, style);
	put_source_states(process, style);
	put_metrics(process, style);
	put_coverage(process, style);
	put_handover(process, style);
	put_recording_windows(process, style);
	put_unrecorded(process, style);
}

void coverage_put_losses(const struct process *process, const struct style *style)
{
	put_loss_line(process, style);
	put_profiler_cost(process, style);
}
