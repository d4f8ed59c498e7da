/* SPDX-License-Identifier: MIT */
#include "report/run/warnings.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include "report/text/suggest.h"
#include <stdio.h>
#include <string.h>

/* The warnings that the library recorded in the trace. */
static void collect_recorded(struct processes *processes, const struct process *process)
{
	static const char prefix[] = "warning.";
	struct trace_text key, value;

	for (uint32_t i = 0; i < reader_meta_count(process->reader); i++) {
		reader_meta_at(process->reader, i, &key, &value);
		if (key.length >= sizeof prefix &&
			memcmp(key.bytes, prefix, sizeof prefix - 1) == 0)
			processes_warn(processes, "%s: %.*s", process->path,
				value.length < 800 ? (int)value.length : 800, value.bytes);
		else
			continue;
		if (key.length == strlen("warning.import_cut") &&
			memcmp(key.bytes, "warning.import_cut", key.length) == 0)
			processes_raise_warning(processes);
	}
}

static bool has_gpu(const struct process *process, int64_t device)
{
	return process->gpu_ns || process_device(process, (uint32_t)device);
}

void warnings_check_device(const struct options *options, const struct processes *processes)
{
	const struct trace_device *device;
	char known[256] = "";
	size_t used = 0;

	if (options->device < 0 || !processes->shown)
		return;
	for (size_t i = 0; i < processes->shown; i++)
		if (has_gpu(&processes->all[i], options->device))
			return;
	for (uint32_t i = 0;
		(device = reader_dictionary(processes->all[0].reader, TRACE_DEVICE, i)) &&
		used + 16 < sizeof known;
		i++)
		used += (size_t)snprintf(known + used, sizeof known - used, "%s%u",
			i ? ", " : "; it has GPU ", device->device);
	fatal(STATUS_USAGE, "%s has no records of GPU %lld%s", processes->all[0].path,
		(long long)options->device, known);
}

#define NAMES_COMPARED 20000u

/* Offers the names of ranges, without a number at their end. */
static void offer_range_names(struct suggestion *near, const struct process *process)
{
	const uint32_t count = reader_node_count(process->reader);

	for (uint32_t i = 1; i < count && i < NAMES_COMPARED; i++) {
		const struct trace_text text = reader_name(
			process->reader, reader_node(process->reader, i)->name);
		char name[SUGGEST_BYTES];
		size_t length = text.length < sizeof name ? text.length : sizeof name - 1;

		if (!text.known)
			continue;
		memcpy(name, text.bytes, length);
		while (length && strchr("0123456789#:_ ", name[length - 1]))
			length--;
		name[length] = '\0';
		if (length)
			suggest_offer(near, name);
	}
}

/* Ends the program if --step-marker names no range of any process. */
static void check_step_marker(const struct options *options, const struct processes *processes)
{
	struct suggestion near = suggest_for(options->step_marker, strlen(options->step_marker));

	for (size_t i = 0; i < processes->shown; i++) {
		const struct process *process = &processes->all[i];

		if (!process->steps || !*process->steps->warning)
			return;
		offer_range_names(&near, process);
	}
	fatal(STATUS_USAGE, "no range is named `%s`, or `%s` and a number (--step-marker)%s",
		options->step_marker, options->step_marker,
		suggest_text(&near, "pperf-report table lists the ranges"));
}

/* Ends the program if --steps selects no step of any process. */
static void check_steps(const struct processes *processes)
{
	uint64_t steps = 0, lowest = UINT64_MAX, highest = 0;

	for (size_t i = 0; i < processes->shown; i++) {
		const struct profile_counts *counts = &processes->all[i].profile->counts;

		if (counts->chosen_steps)
			return;
		if (counts->steps && counts->lowest_step < lowest)
			lowest = counts->lowest_step;
		if (counts->highest_step > highest)
			highest = counts->highest_step;
		steps += counts->steps;
	}
	if (!steps)
		fatal(STATUS_USAGE,
			"--steps selects nothing, because no step was detected; see --step-marker");
	fatal(STATUS_USAGE, "--steps selects nothing: the steps are %llu to %llu",
		(unsigned long long)lowest, (unsigned long long)highest);
}

void warnings_check_selection(const struct options *options, const struct processes *processes)
{
	warnings_check_device(options, processes);
	if (processes->shown && options->step_marker && !options->no_steps)
		check_step_marker(options, processes);
	if (processes->shown && options->steps)
		check_steps(processes);
}

void warnings_collect(const struct options *options, struct processes *processes)
{
	const char *warning;

	for (size_t i = 0; i < processes->shown; i++) {
		const struct process *process = &processes->all[i];

		collect_recorded(processes, process);
		if (!process->integrity.conserved)
			processes_warn(
				processes, "%s: %s", process->path, process->integrity.problem);
		for (unsigned index = 0; (warning = reader_warning(process->reader, index));
			index++) {
			processes_warn(processes, "%s", warning);
			processes_raise_warning(processes);
		}
		if (node_names_other_count(process->profile->names))
			processes_warn(processes,
				"%s: %llu ranges are shown as (other labels): they have labels or "
				"call paths that did not fit into the trace's dictionary, and the "
				"report keeps the first 65,536 of those",
				process->path,
				(unsigned long long)node_names_other_count(
					process->profile->names));
		if (process->steps && *process->steps->warning)
			processes_warn(processes, "%s: %s", process->path, process->steps->warning);
		if (options->device >= 0 && !has_gpu(process, options->device))
			processes_warn(processes, "%s: this trace has no records of GPU %lld",
				process->path, (long long)options->device);
	}
}

/* Writes the counters' names, as many as fit. */
static size_t list_counters(
	struct trace_reader *reader, char *out, size_t room, struct suggestion *near)
{
	const struct trace_counter *counter;
	size_t used = 0;

	for (uint32_t i = 0;
		(counter = reader_dictionary(reader, TRACE_COUNTER, i)) && room - used > 64; i++) {
		const struct trace_text name = reader_name(reader, counter->name);
		char shown[48];

		escape_text(shown, sizeof shown, name.bytes, name.length, true);
		used += (size_t)snprintf(
			out + used, room - used, "%s`%s`", i ? ", " : "the counters ", shown);
		suggest_offer(near, shown);
	}
	return used;
}

void warnings_check_metric(const struct options *options, const struct processes *processes)
{
	char known[512] = "no counters";
	const char *name = options->metric_name ? options->metric_name : "";
	struct suggestion near = suggest_for(name, strlen(name));
	size_t used = 0;

	metric_suggest(&near);

	for (size_t i = 0; i < processes->shown; i++) {
		if (processes->all[i].profile->counter_found || options->metric != METRIC_USER)
			return;
		used += list_counters(
			processes->all[i].reader, known + used, sizeof known - used, &near);
	}
	fatal(STATUS_USAGE, "unknown metric `%s`: the trace has %s%s", name, known,
		suggest_text(&near, "--legend lists the metrics"));
}
