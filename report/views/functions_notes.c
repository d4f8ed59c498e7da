/* SPDX-License-Identifier: MIT */
#include "report/views/functions_notes.h"
#include "report/analysis/sample_cells.h"
#include "report/views/functions.h"
#include "report/text/json_writer.h"
#include <stdlib.h>
#include <string.h>

#define SAME_NS 100000u /* a smaller difference of CPU times is not worth a sentence */

struct sampled_clocks sampled_clocks_of(const struct process *process)
{
	const struct profile *profile = process->profile;
	struct sampled_clocks clocks = { .clock_ns = 0 };

	for (size_t i = 0; i < profile->sampled_thread_count; i++) {
		const struct sampled_thread *thread = &profile->sampled_threads[i];
		const struct sample_sums *sums = &thread->sums;

		clocks.threads += sums->samples || sums->waits_ns || sums->blocked_ns ||
				  thread->clock_ns;
		clocks.clock_ns += thread->clock_ns;
		clocks.sampled_ns += sums->cpu_ns;
	}
	return clocks;
}

/* Returns whether the weights of a thread's samples are its CPU time, within 1 %. */
static bool is_conserved(const struct sampled_thread *thread)
{
	const uint64_t sampled = thread->sums.cpu_ns, clock = thread->clock_ns,
		       difference = sampled < clock ? clock - sampled : sampled - clock;

	return difference <= SAME_NS || difference * 100 <= clock;
}

/* Adds the thread whose samples differ most from its clock, if they do by more than 1 %. */
static void add_worst_thread(struct paragraph *line, const struct profile *profile)
{
	const struct sampled_thread *worst = NULL;
	int64_t most = 0;

	for (size_t i = 0; i < profile->sampled_thread_count; i++) {
		const struct sampled_thread *thread = &profile->sampled_threads[i];
		const int64_t difference = (int64_t)(thread->sums.cpu_ns - thread->clock_ns);

		if (!is_conserved(thread) && llabs(difference) > most) {
			most = llabs(difference);
			worst = thread;
		}
	}
	if (!worst || profile->sampled_thread_count < 2)
		return;
	paragraph_add(line, ", most in thread %u with ", worst->tid);
	paragraph_value(line, UNIT_TIME, worst->sums.cpu_ns);
	paragraph_add(line, " of ");
	paragraph_value(line, UNIT_TIME, worst->clock_ns);
}

/* Adds what the clocks of the sampled threads counted beyond the samples. */
static void add_unsampled(struct paragraph *line, const struct process *process)
{
	const struct sampled_clocks clocks = sampled_clocks_of(process);
	const struct profile_options *options = &process->profile->options;
	const bool less = clocks.sampled_ns <= clocks.clock_ns;
	const uint64_t difference = less ? clocks.clock_ns - clocks.sampled_ns
					 : clocks.sampled_ns - clocks.clock_ns;

	if (!clocks.clock_ns || options->steps || options->windows)
		return;
	if (difference < SAME_NS) {
		paragraph_add(line, ", all that these threads' clocks counted");
	} else {
		paragraph_add(line, "; the clocks of these threads counted ");
		paragraph_value(line, UNIT_TIME, clocks.clock_ns);
		paragraph_add(line, ": ");
		paragraph_value(line, UNIT_TIME, difference);
		paragraph_add(line, less ? " (" : " more was sampled (");
		paragraph_percent(line, difference, clocks.clock_ns);
		paragraph_add(line, less ? ") not sampled" : ")");
	}
	add_worst_thread(line, process->profile);
}

void functions_add_count(struct paragraph *line, const struct process *process)
{
	const struct sample_sums *sums = &process->profile->sampled;
	const struct sampled_clocks clocks = sampled_clocks_of(process);

	paragraph_value(line, UNIT_COUNT, sums->samples);
	paragraph_add(line, " sample%s", sums->samples == 1 ? "" : "s");
	if (sums->cpu_ns) {
		paragraph_add(line, " of ");
		paragraph_value(line, UNIT_TIME, sums->cpu_ns);
		paragraph_add(line, " of CPU time");
	}
	paragraph_add(line, " in %u thread%s", clocks.threads, clocks.threads == 1 ? "" : "s");
	add_unsampled(line, process);
	if (sums->waits_ns) {
		paragraph_add(line, "; ");
		paragraph_value(line, UNIT_TIME, sums->waits_ns);
		paragraph_add(line, " of waiting for a core");
	}
	if (sums->blocked_ns) {
		paragraph_add(line, "; ");
		paragraph_value(line, UNIT_TIME, sums->blocked_ns);
		paragraph_add(line, " blocked");
	}
}

/* Adds a sentence on the part of the samples that is marked. */
static void add_mark(struct paragraph *line, uint64_t marked, uint64_t all, const char *words)
{
	if (!marked)
		return;
	paragraph_add(line, line->built.used ? "; " : "");
	paragraph_percent(line, marked, all);
	paragraph_add(line, " %s", words);
}

static void add_marks(struct paragraph *line, const struct sample_cells *cells)
{
	const uint64_t all = cells->sums.samples;

	add_mark(line, cells->guessed, all,
		"have guessed callers (above code without unwind information)");
	add_mark(line, cells->cut, all, "do not reach the first function of the thread");
	add_mark(line, cells->moved, all,
		"lack inner Python frames, which had changed when they were read");
	add_mark(line, cells->unequal, all,
		"have no Python frames, because these contradicted the native ones");
	add_mark(line, cells->no_python, all, "have Python frames that were not readable");
}

static void print_process(struct process *process, const struct style *style)
{
	const struct sample_cells *cells = sample_cells_of(process);
	struct paragraph line = { .style = style };
	const struct trace_text state = process_meta(process, "source.cpu_samples");

	if (!cells)
		return;
	functions_add_count(&line, process);
	paragraph_print(&line, "sampled");
	if (state.known && !(state.length == 2 && !memcmp(state.bytes, "on", 2))) {
		paragraph_text(&line, state.bytes, state.length);
		paragraph_print(&line, "source");
	}
	add_marks(&line, cells);
	if (line.built.used)
		paragraph_print(&line, "marks");
}

void functions_footer(const struct report *report, const struct style *style)
{
	output_char(style->out, '\n');
	for (size_t i = 0; i < report->processes->shown; i++)
		print_process(&report->processes->all[i], style);
}

void functions_explain_empty(const struct report *report, const struct style *style)
{
	const struct process *process = &report->processes->all[0];
	const struct trace_text state = process_meta(process, "source.cpu_samples");
	struct paragraph line = { .style = style };

	paragraph_add(&line, "the trace has no CPU samples: ");
	if (state.known)
		paragraph_text(&line, state.bytes, state.length);
	else if (process_meta(process, "import.format").known)
		paragraph_add(&line, "record with pperf run and PPERF_SAMPLE=99");
	else
		paragraph_add(&line, "set PPERF_SAMPLE=99 when the program is started");
	paragraph_print(&line, "no rows");
}

static void put_threads(struct json_writer *json, const struct profile *profile)
{
	json_put_begin(json, "by_thread", '[');
	for (size_t i = 0; i < profile->sampled_thread_count; i++) {
		const struct sampled_thread *thread = &profile->sampled_threads[i];

		json_write_begin(json, '{');
		json_put_unsigned(json, "tid", thread->tid);
		json_put_unsigned(json, "samples", thread->sums.samples);
		json_put_unsigned(json, "cpu_sampled_ns", thread->sums.cpu_ns);
		json_put_unsigned(json, "clock_ns", thread->clock_ns);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void put_process(struct json_writer *json, struct process *process)
{
	const struct sample_cells *cells = sample_cells_of(process);
	const struct sampled_clocks clocks = sampled_clocks_of(process);

	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_put_unsigned(json, "samples", process->profile->sampled.samples);
	json_put_unsigned(json, "cpu_sampled_ns", process->profile->sampled.cpu_ns);
	json_put_unsigned(json, "waits_for_core_ns", process->profile->sampled.waits_ns);
	json_put_unsigned(json, "blocked_ns", process->profile->sampled.blocked_ns);
	json_put_unsigned(json, "clock_ns", clocks.clock_ns);
	json_put_unsigned(json, "threads", clocks.threads);
	json_put_unsigned(json, "guessed", cells ? cells->guessed : 0);
	json_put_unsigned(json, "cut", cells ? cells->cut : 0);
	json_put_unsigned(json, "moved", cells ? cells->moved : 0);
	json_put_unsigned(json, "unequal", cells ? cells->unequal : 0);
	json_put_unsigned(json, "no_python", cells ? cells->no_python : 0);
	put_threads(json, process->profile);
	json_write_end(json, '}');
}

void functions_put_json(const struct report *report, struct output *out)
{
	struct json_writer json = { .out = out };

	output_string(out, ",\n\"cpu_samples\": ");
	json_write_begin(&json, '[');
	for (size_t i = 0; i < report->processes->shown; i++)
		put_process(&json, &report->processes->all[i]);
	json_write_end(&json, ']');
}
