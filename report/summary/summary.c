/* SPDX-License-Identifier: MIT
 * Prints the view `summary`, a paragraph for each topic. Upper bounds are marked as such. What is
 * missing is named, with its remedy.
 */
#include "report/summary/summary.h"
#include "report/diagnose/diagnose.h"
#include "report/diagnose/run_bound.h"
#include "report/print/node_words.h"
#include "report/print/shell_command.h"
#include "report/summary/headline.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"
#include "report/views/memory_growth.h"
#include "report/views/memory_summary.h"
#include "report/views/summary_coverage.h"
#include "report/views/views.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TREE_LINES 12 /* rows of the critical tree */

static void put_program(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct trace_text host = process_meta(process, "host");

	if (*process->command)
		paragraph_text(&paragraph, process->command, strlen(process->command));
	else
		paragraph_add(&paragraph, "(the trace does not record the command)");
	paragraph_print(&paragraph, "ran");
	paragraph_add(&paragraph, "pid %u", process->pid);
	if (process->rank >= 0)
		paragraph_add(&paragraph, "%srank %lld", coverage_separator(style),
			(long long)process->rank);
	if (host.length) {
		paragraph_add(&paragraph, "%s", coverage_separator(style));
		paragraph_text(&paragraph, host.bytes, host.length);
	}
	paragraph_add(&paragraph, "%s", coverage_separator(style));
	paragraph_value(&paragraph, UNIT_TIME, process->wall_ns);
	paragraph_add(&paragraph, "%s", coverage_separator(style));
	paragraph_value(&paragraph, UNIT_COUNT, process->events);
	paragraph_add(&paragraph, " events%s", coverage_separator(style));
	paragraph_text(&paragraph, process->path, strlen(process->path));
	if (!(reader_header(process->reader)->flags & TRACE_ENDED) &&
		!process_meta(process, "import.format").known)
		paragraph_add(&paragraph, "%sdid not end with exit(): killed, or still running",
			coverage_separator(style));
	paragraph_print(&paragraph, "");
}

static void add_version(struct paragraph *paragraph, const struct process *process, const char *key,
	const char *title)
{
	const struct trace_text version = process_meta(process, key);

	if (!version.length)
		return;
	paragraph_add(paragraph, "%s%s ", coverage_separator(paragraph->style), title);
	paragraph_text(paragraph, version.bytes, version.length);
}

/* Counts the devices from index `from` on that have consecutive numbers and the same name. */
static uint32_t devices_alike(const struct process *process, uint32_t from)
{
	const struct trace_device *first = reader_dictionary(process->reader, TRACE_DEVICE, from),
				  *next;
	uint32_t count = 1;

	while ((next = reader_dictionary(process->reader, TRACE_DEVICE, from + count)) &&
		next->name == first->name && next->device == first->device + count)
		count++;
	return count;
}

#define USED_NAMED 4u /* GPUs with work that are listed by number */

/* Adds which of the devices `first` to `last` had work, if some of them had none. */
static void add_used_devices(
	struct paragraph *paragraph, const struct process *process, uint32_t first, uint32_t last)
{
	const struct timeline *timeline = process->profile->timeline;
	const struct timeline_device *devices;
	const size_t count = timeline && process->profile->options.device < 0
				     ? timeline_devices(timeline, &devices)
				     : 0;
	uint32_t used = 0, named = 0;

	for (size_t i = 0; i < count; i++)
		used += devices[i].device >= first && devices[i].device <= last;
	if (!used || used > last - first)
		return;
	if (used > USED_NAMED)
		paragraph_add(paragraph, "%u GPUs", used);
	for (size_t i = 0; i < count && used <= USED_NAMED; i++)
		if (devices[i].device >= first && devices[i].device <= last)
			paragraph_add(paragraph, "%s%u",
				named++    ? ", "
				: used > 1 ? "GPUs "
					   : "GPU ",
				devices[i].device);
	paragraph_add(paragraph, " had work, of ");
}

static void put_summary_devices(const struct process *process, const struct style *style)
{
	const struct trace_device *device;
	struct paragraph paragraph = { .style = style };

	for (uint32_t i = 0, count; (device = reader_dictionary(process->reader, TRACE_DEVICE, i));
		i += count) {
		const struct trace_text name = reader_name(process->reader, device->name);

		count = devices_alike(process, i);
		if (count > 1)
			add_used_devices(
				&paragraph, process, device->device, device->device + count - 1);
		paragraph_add(&paragraph, count > 1 ? "GPUs %u-%u " : "GPU %u ", device->device,
			device->device + count - 1);
		if (name.length)
			paragraph_text(&paragraph, name.bytes, name.length);
		else
			paragraph_add(&paragraph, "(the trace does not record the name of %s)",
				count > 1 ? "them" : "it");
		if (i == 0) {
			add_version(&paragraph, process, "version.cuda_runtime", "CUDA runtime");
			add_version(&paragraph, process, "version.cuda_driver", "driver");
			add_version(&paragraph, process, "version.cupti", "CUPTI");
		}
		paragraph_print(&paragraph, i ? "" : "device");
	}
	if (process->simulated) {
		paragraph_add(&paragraph, "SIMULATED: counts and bytes are those of the program; "
					  "times of this GPU are not measurements");
		paragraph_print(&paragraph, "");
	}
}

static void add_excluded_steps(struct paragraph *paragraph, size_t count, const char *what)
{
	if (!count)
		return;
	paragraph_add(paragraph, ", ");
	paragraph_value(paragraph, UNIT_COUNT, count);
	paragraph_add(paragraph, " %s excluded", what);
}

#define THREADS_NAMED 4u

/* Appends `38 + 40 steps` for few threads, `1,234 steps` for one or many. */
static void add_step_counts(struct paragraph *paragraph, const struct steps *steps, size_t usual)
{
	const bool each = steps->thread_count > 1 && steps->thread_count <= THREADS_NAMED;

	for (size_t i = 0; each && i < steps->thread_count; i++) {
		paragraph_add(paragraph, i ? " + " : "");
		paragraph_value(paragraph, UNIT_COUNT, steps->threads[i].usual);
	}
	if (!each)
		paragraph_value(paragraph, UNIT_COUNT, usual);
	paragraph_add(paragraph, usual == 1 ? " step of " : " steps of ");
	paragraph_value(paragraph, UNIT_TIME, steps->p50_ns);
	if (usual > 1)
		paragraph_add(paragraph, " (p50)");
	if (steps->thread_count > 1) {
		paragraph_add(paragraph, " on ");
		paragraph_value(paragraph, UNIT_COUNT, steps->thread_count);
		paragraph_add(paragraph, " threads");
	}
}

/* Prints the steps that were found. Prints nothing if steps were not looked for. */
static void put_summary_steps(const struct process *process, const struct style *style)
{
	const struct steps *steps = process->steps;
	struct paragraph paragraph = { .style = style };
	size_t usual;

	if (!steps)
		return;
	if (!steps->count) {
		paragraph_add(&paragraph, "%s", steps->reason);
		paragraph_print(&paragraph, "steps");
		return;
	}
	usual = steps_usual(steps);
	if (usual)
		add_step_counts(&paragraph, steps, usual);
	else
		paragraph_add(&paragraph, "0 steady-state steps");
	add_excluded_steps(&paragraph, steps->warm_up, "warm-up");
	add_excluded_steps(&paragraph, steps->captures,
		steps->captures == 1 ? "that captured a CUDA graph" : "that captured CUDA graphs");
	add_excluded_steps(&paragraph, steps->unfinished, "unfinished");
	if (steps->on_gpu) {
		paragraph_add(&paragraph, ", on the GPU ");
		paragraph_value(&paragraph, UNIT_TIME, steps->window_p50_ns);
		paragraph_add(&paragraph, ": the host is ");
		paragraph_value(&paragraph, UNIT_TIME, steps->ahead_ns);
		paragraph_add(&paragraph, " ahead of it");
	}
	paragraph_add(&paragraph, "; found by %s (%s%s%s)", steps->evidence,
		steps_confidence_name(steps->confidence), *steps->reason ? ": " : "",
		steps->reason);
	paragraph_print(&paragraph, "steps");
}

static const char *summary_metric_name(const struct process *process)
{
	return process->metric == METRIC_USER ? process->profile->options.counter
					      : metrics[process->metric].key;
}

#define FINDINGS 2u /* that the first screen shows */
/* percent: findings that cost less are left to `diagnose` */
#define FINDING_MIN_PERCENT 1
/* An instance is an outlier if it has this many times the mean of its node's instances ... */
#define OUTLIER_RATIO 1.5L
/* ... and this part of the value of the whole. */
#define OUTLIER_SHARE 0.1L

static void add_row_text(struct paragraph *paragraph, const struct row *row, const char *key)
{
	const struct string_view text = computed_row_text(row, key);

	paragraph_text(paragraph, text.bytes, text.length);
}

/* Returns true for findings on memory. That it ran out has a paragraph of its own. */
static bool costs_bytes_only(const struct row *row)
{
	static const char ran_out[] = "out-of-memory";
	const struct string_view name = row_name(row);

	return computed_row_number(row, "impact_bytes") && !computed_row_number(row, "impact_ns") &&
	       !(name.length == sizeof ran_out - 1 && !memcmp(name.bytes, ran_out, name.length));
}

static void put_summary_finding(const struct style *style, const struct row *row, bool first)
{
	struct paragraph paragraph = { .style = style };
	const struct string_view name = row_name(row);

	paragraph_text(&paragraph, name.bytes, name.length);
	paragraph_add(&paragraph, ", ");
	finding_add_cost(&paragraph, row);
	paragraph_add(&paragraph, ": ");
	add_row_text(&paragraph, row, "finding");
	if (row->node && row->tree == row->process->profile->tree) {
		paragraph_add(&paragraph, " The largest part");
		if (computed_row_real(row, "share") > 0) {
			paragraph_add(&paragraph, " (");
			finding_add_place_share(&paragraph, row, "");
			paragraph_add(&paragraph, ")");
		}
		paragraph_add(&paragraph, " is ");
		paragraph_add_path(&paragraph, row->process, row->node);
		paragraph_add(&paragraph, ".");
	}
	paragraph_print(&paragraph, first ? "findings" : "");
}

/* Returns true if a finding shortens GPU work, and that hardly shortens the run. */
static bool gains_nothing(const struct row *row)
{
	const struct cell *gain = computed_row_cell(
		row->of.computed, column_find("gain_ns", sizeof "gain_ns" - 1));
	const double impact = (double)computed_row_number(row, "impact_ns");

	return gain && impact > 0 &&
	       100 * computed_row_real(row, "impact_share") * (double)gain->unsigned_value <
		       FINDING_MIN_PERCENT * impact;
}

static bool is_shown_finding(const struct row *row)
{
	return !gains_nothing(row) && computed_row_is(row, "kind", "finding") &&
	       (costs_bytes_only(row) ||
		       100 * computed_row_real(row, "impact_share") >= FINDING_MIN_PERCENT);
}

static void put_bound(const struct style *style, const struct row *row)
{
	struct paragraph paragraph = { .style = style };

	add_row_text(&paragraph, row, "finding");
	paragraph_add(&paragraph, " (confidence: ");
	add_row_text(&paragraph, row, "confidence");
	paragraph_add(&paragraph, ")");
	paragraph_print(&paragraph, "verdict");
	add_row_text(&paragraph, row, "evidence");
	if (paragraph.built.used)
		paragraph_print(&paragraph, "");
	add_row_text(&paragraph, row, "next");
	if (paragraph.built.used)
		paragraph_print(&paragraph, "");
}

/* What the first screen keeps of the verdict. */
struct verdict {
	bool has_classes;             /* the time of the GPU is divided into classes */
	bool is_path;                 /* the command shows the critical path */
	bool is_of_gpu_work;          /* GPU work bounds the run, or there is no verdict */
	struct shell_command command; /* that shows more; empty: it has no classes */
};

/* Returns true for the name of a class of time in which the GPU has nothing to do. */
static bool waits_for_host(struct string_view name)
{
	static const enum bound classes[] = { BOUND_COPY_CALLS, BOUND_LAUNCH, BOUND_HOST,
		BOUND_DATA, BOUND_COMPILATION, BOUND_ALLOCATION, BOUND_SYNC, BOUND_WAITING };

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (name.length == strlen(bound_name(classes[i])) &&
			!memcmp(name.bytes, bound_name(classes[i]), name.length))
			return true;
	return false;
}

/* Prints what bounds the run and the findings that cost most, as the view `diagnose` has them. */
static struct verdict put_diagnosis(const struct report *report, const struct style *style)
{
	struct processes only = {
		.all = &report->processes->all[0], .count = report->processes->count, .shown = 1
	};
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct verdict verdict = { .is_of_gpu_work = true, .command.ascii = style->ascii };
	unsigned shown = 0;
	bool of_memory = false;

	options.view = view_find("diagnose");
	options.top = 0;
	arrange_diagnose(&options, &only, &rows);
	for (size_t i = 0; i < rows.count; i++)
		if (computed_row_is(&rows.rows[i], "kind", "verdict")) {
			put_bound(style, &rows.rows[i]);
			verdict.has_classes = computed_row_text(&rows.rows[i], "evidence").length >
					      0;
			if (verdict.has_classes)
				text_add(&verdict.command.built, "%s",
					computed_row_text(&rows.rows[i], "command").bytes);
			verdict.is_path = verdict.has_classes &&
					  strstr(verdict.command.built.text, " critical-path ");
			verdict.is_of_gpu_work = !verdict.is_path &&
						 !waits_for_host(row_name(&rows.rows[i]));
		}
	if (!only.all->profile->totals.gpu_sum_ns && !only.all->profile->totals.reserved_peak)
		headline_put_time(only.all, style);
	/* The first finding on memory is shown whatever time others cost. */
	for (size_t i = 0; i < rows.count && (shown < FINDINGS || !of_memory); i++)
		if (is_shown_finding(&rows.rows[i]) &&
			(shown < FINDINGS || costs_bytes_only(&rows.rows[i]))) {
			of_memory |= costs_bytes_only(&rows.rows[i]);
			put_summary_finding(style, &rows.rows[i], !shown++);
		}
	free(rows.rows);
	return verdict;
}

static long double mean_value(const struct process *process, const struct node *node)
{
	const uint64_t total = process->metric != METRIC_GPU ? node->total_ns
			       : node->gpu                   ? node->gpu->total_ns
							     : 0;

	return node->calls ? (long double)total / (long double)node->calls : 0;
}

/* Returns true if some instance of the critical tree is much worse than others of its node. If all
 * are alike, the worst one says nothing. */
static bool has_outlier(
	const struct process *process, const struct instance *instance, long double whole)
{
	const struct node *node = &process->critical->tree->nodes[instance->node];

	if (instance->form == INSTANCE_ONE && node->calls > 1 &&
		node_kind_class(node->kind) == NODE_RANGES &&
		instance->value >= OUTLIER_RATIO * mean_value(process, node))
		return true;
	for (const struct instance *child = instance->children; child; child = child->next)
		if (child->value >= OUTLIER_SHARE * whole && has_outlier(process, child, whole))
			return true;
	return false;
}

/* Returns true if the metric is a time, so that instances of one node can be compared. */
static bool is_time(enum metric metric)
{
	return metric == METRIC_GPU || metric == METRIC_CPU || metric == METRIC_WALL;
}

/* Returns true if a row is the backward pass as a whole. */
static bool has_backward(const struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].tree && rows->rows[i].node &&
			rows->rows[i].tree->nodes[rows->rows[i].node].kind == NODE_BACKWARD)
			return true;
	return false;
}

/* Prints the worst instance as a tree. */
static void put_summary_critical(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	const struct instance *root = process_critical(process);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct paragraph paragraph = { .style = style };

	if (!root || (is_time(process->metric) && !has_outlier(process, root, root->value)))
		return;
	output_char(style->out, '\n');
	options.depth = UINT32_MAX;
	options.top = UINT32_MAX;
	options.all = false;
	arrange_critical(&options, &only, &rows);
	paragraph_add(&paragraph, "by %s: ",
		process->metric == METRIC_GPU ? "GPU time (summed over streams)"
					      : summary_metric_name(process));
	if (process->profile->tree->nodes[root->node].calls > 1) {
		paragraph_add(&paragraph, "the worst of ");
		paragraph_value(
			&paragraph, UNIT_COUNT, process->profile->tree->nodes[root->node].calls);
		paragraph_add(&paragraph, " instances ");
	} else {
		paragraph_add(&paragraph, "the only instance ");
	}
	paragraph_add_path(&paragraph, process, root->node);
	if (has_backward(&rows))
		paragraph_add(&paragraph,
			"; (backward) is the backward pass as it ran, which the tree below has "
			"with the forward pass");
	paragraph_print(&paragraph, "worst");
	critical_keep_largest(&rows, TREE_LINES);
	print_critical(&rows, &options, style);
	if (rows.hidden_by_top)
		print_line(style, "and %llu more lines\n", (unsigned long long)rows.hidden_by_top);
	free(rows.rows);
}

/* Returns true if the metric is a level of GPU memory. */
static bool metrics_are_memory(enum metric metric)
{
	return metric == METRIC_RESERVED || metric == METRIC_ALLOCATED || metric_is_peak(metric);
}

/* Returns true if an allocation failed for want of memory. */
static bool has_no_memory_left(const struct process *process)
{
	return process->profile->memory->counts.ooms > 0 ||
	       process->profile->memory->failed_count > 0;
}

/* Returns true if the traces are of several ranks of one job. */
static bool has_several_ranks(const struct processes *processes)
{
	int64_t first = -1;

	for (size_t i = 0; i < processes->count; i++) {
		if (processes->all[i].rank >= 0 && first >= 0 && processes->all[i].rank != first)
			return true;
		first = processes->all[i].rank >= 0 ? processes->all[i].rank : first;
	}
	return false;
}

static void put_command(struct shell_command *command, const char *title, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	/* The command is already quoted, so paragraph_text() has nothing to escape. */
	paragraph_text(&paragraph, command->built.text, command->built.used);
	paragraph_print(&paragraph, title);
	free(command->built.text);
}

/* Prints the command for the critical path or, if the verdict has that already, for categories. */
static void put_path_command(
	const struct process *process, bool verdict_is_path, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };

	text_add(&command.built, "pperf-report %s",
		verdict_is_path ? "categories" : "critical-path");
	shell_command_add_file(&command, process->path);
	put_command(&command, "", style);
}

/* Prints the view of memory if that ran out, else the critical tree by the metric, or by the peak
 * of memory if there is one. */
static void put_critical_command(
	const struct process *process, const char *title, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };
	const struct profile_totals *totals = &process->profile->totals;
	const bool exhausted = has_no_memory_left(process),
		   memory = !metrics_are_memory(process->metric) &&
			    (totals->reserved_peak || totals->allocated_peak);

	text_add(&command.built, "pperf-report %s", exhausted ? "memory" : "critical");
	shell_command_add_file(&command, process->path);
	if (!exhausted) {
		const char *metric = !memory                  ? summary_metric_name(process)
				     : totals->allocated_peak ? metrics[METRIC_ALLOCATED_PEAK].key
							      : metrics[METRIC_RESERVED_PEAK].key;

		text_add(&command.built, " -m");
		shell_command_add_word(&command, metric, strlen(metric));
	}
	put_command(&command, title, style);
}

/* Prints the commands to run next: the one that shows what bounds the run comes first, unless the
 * program ran out of memory. */
static void put_summary_next(const struct report *report, const struct process *process,
	struct verdict *verdict, const struct style *style)
{
	struct shell_command ranks = { .ascii = style->ascii },
			     diagnose = { .ascii = style->ascii };
	const bool verdict_first = verdict->has_classes && !has_no_memory_left(process);

	if (verdict_first)
		put_command(&verdict->command, "next", style);
	else
		put_critical_command(process, "next", style);
	if (process->profile->timeline) {
		text_add(&diagnose.built, "pperf-report diagnose");
		shell_command_add_file(&diagnose, process->path);
		put_command(&diagnose, "", style);
	}
	if (verdict_first)
		put_path_command(process, verdict->is_path, style);
	else if (verdict->has_classes)
		put_command(&verdict->command, "", style);
	if (!has_several_ranks(report->processes))
		return;
	text_add(&ranks.built, "pperf-report ranks");
	shell_command_add_files(&ranks, report->options);
	put_command(&ranks, "", style);
}

static bool label_has(const struct row *row, const char *sign, bool ascii)
{
	const struct string_view label = row_label(row, ascii);

	return memmem(label.bytes, label.length, sign, strlen(sign)) != NULL;
}

/* Prints what the signs in the tree mean, of those that it has. */
static void put_tree_legend(const struct report *report, const struct style *style)
{
	const char *times = style->ascii ? " x" : " \xc3\x97";
	struct paragraph paragraph = { .style = style };
	bool has_times = false, has_star = false, has_backward = false;

	for (size_t i = 0; i < report->rows.count; i++) {
		const struct row *row = &report->rows.rows[i];

		if (row->kind != ROW_NODE || !row->node)
			continue;
		has_times |= row_labels(&row->tree->nodes[row->node]) > 1;
		has_star |= label_has(row, ".*", style->ascii) ||
			    label_has(row, "#*", style->ascii);
		has_backward |= label_has(row, "(bwd)", style->ascii) ||
				label_has(row, "(recompute)", style->ascii);
	}
	if (report->rows.count)
		paragraph_add(
			&paragraph, "%%: of %s", summary_metric_name(&report->processes->all[0]));
	if (has_star)
		paragraph_add(&paragraph, "; *: any number");
	if (has_times)
		paragraph_add(&paragraph, ";%sN: N labels that differ only in numbers", times);
	if (has_backward)
		paragraph_add(&paragraph, "; (time): no part of the row above");
	if (paragraph.built.used)
		paragraph_print(&paragraph, "legend");
}

void draw_summary(const struct report *report, const struct style *style)
{
	const struct process *process = &report->processes->all[0];
	struct verdict verdict;

	memory_summary_put_oom(process, style);
	verdict = put_diagnosis(report, style);
	memory_growth_put(&report->processes->all[0], style);
	headline_put_where(process, style, verdict.has_classes);
	memory_summary_put_levels(process, style);
	put_program(process, style);
	put_summary_devices(process, style);
	coverage_put_sources(process, style);
	put_summary_steps(process, style);
	coverage_put_counted(process, style);
	coverage_put_losses(process, style);
	if (verdict.is_of_gpu_work || process->metric != METRIC_GPU)
		put_summary_critical(report, style);
	output_char(style->out, '\n');
	put_summary_next(report, process, &verdict, style);
	output_char(style->out, '\n');
	if (report->rows.count)
		print_table(report, &report->rows, LAYOUT_TREE, style);
	put_tree_legend(report, style);
}
