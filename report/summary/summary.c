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
#include "report/summary/sampled_line.h"
#include "report/views/functions.h"
#include "report/summary/steps_sentence.h"
#include "report/summary/summary_tree.h"
#include "report/summary/verdict.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"
#include "report/views/memory_growth.h"
#include "report/views/memory_summary.h"
#include "report/views/summary_coverage.h"
#include "report/views/views.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CRITICAL_LINES 12 /* rows of the critical tree */
/* Lines of the first screen: a terminal beside an editor shows them all. Many findings or losses
 * make it longer. */
#define SCREEN_LINES 45u
#define LINES_AROUND_TREE 4u /* its titles and what is said below it */
#define TREE_LINES_MIN 6u

/* Returns the name of a file without the folders. The commands to run next have the whole path. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_program(const struct process *process, const struct style *style)
{
	const char *separator = coverage_separator(style), *file = file_name(process->path);
	struct paragraph paragraph = { .style = style };
	const struct trace_text host = process_meta(process, "host");

	if (*process->command)
		paragraph_text(&paragraph, process->command, strlen(process->command));
	else
		paragraph_add(&paragraph, "(the trace does not record the command)");
	paragraph_add(&paragraph, "%spid %u", separator, process->pid);
	if (process->rank >= 0)
		paragraph_add(&paragraph, "%srank %lld", separator, (long long)process->rank);
	if (host.length) {
		paragraph_add(&paragraph, "%s", separator);
		paragraph_text(&paragraph, host.bytes, host.length);
	}
	paragraph_add(&paragraph, "%s", separator);
	paragraph_value(&paragraph, UNIT_TIME, process->wall_ns);
	paragraph_add(&paragraph, "%s", separator);
	paragraph_value(&paragraph, UNIT_COUNT, process->events);
	paragraph_add(&paragraph, " events%s", separator);
	paragraph_text(&paragraph, file, strlen(file));
	if (!(reader_header(process->reader)->flags & TRACE_ENDED) &&
		!process_meta(process, "import.format").known)
		paragraph_add(&paragraph, "%sdid not end with exit(): killed, or still running",
			separator);
	paragraph_print(&paragraph, "ran");
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

/* Prints the steps that were found. Prints nothing if steps were not looked for. */
static void put_summary_steps(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (!process->steps)
		return;
	steps_sentence_add(&paragraph, process->steps);
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

/* Returns true for a finding whose place is the launch of the operation after the idle time. What
 * the host did meanwhile is elsewhere. */
static bool is_at_next_launch(const struct row *row)
{
	const struct string_view name = row_name(row);

	return (name.length == 10 && !memcmp(name.bytes, "host-bound", 10)) ||
	       (name.length == 12 && !memcmp(name.bytes, "launch-bound", 12));
}

/* Adds where most of a finding is. */
static void add_finding_place(struct paragraph *paragraph, const struct row *row)
{
	const struct node *node = &row->process->profile->tree->nodes[row->node];
	const bool outside = node->kind == NODE_UNATTRIBUTED && is_at_next_launch(row);

	paragraph_add(paragraph, outside ? " After most of it"
				 : row->of.computed->is_second_place
					 ? " Of the call paths, the largest part"
					 : " The largest part");
	if (computed_row_real(row, "share") > 0) {
		paragraph_add(paragraph, " (");
		finding_add_place_share(paragraph, row, "");
		paragraph_add(paragraph, ")");
	}
	paragraph_add(paragraph, outside ? " the next operation is launched " : " is ");
	paragraph_add_in_place(paragraph, row->process, row->node);
	paragraph_add(paragraph, ".");
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
	if (row->node && row->tree == row->process->profile->tree)
		add_finding_place(&paragraph, row);
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

/* Adds the evidence of the verdict without the critical path, which `diagnose` has. */
static void add_shares(struct paragraph *paragraph, const struct row *row)
{
	static const char mark[] = "; critical path: ";
	const struct string_view text = computed_row_text(row, "evidence");
	const char *path = memmem(text.bytes, text.length, mark, sizeof mark - 1), *end;

	if (!path) {
		paragraph_text(paragraph, text.bytes, text.length);
		return;
	}
	end = memchr(path + 1, ';', text.length - (size_t)(path + 1 - text.bytes));
	paragraph_text(paragraph, text.bytes, (size_t)(path - text.bytes));
	if (end)
		paragraph_text(paragraph, end, text.length - (size_t)(end - text.bytes));
}

static void put_bound(const struct style *style, const struct row *row)
{
	struct paragraph paragraph = { .style = style };

	add_row_text(&paragraph, row, "finding");
	paragraph_add(&paragraph, " (confidence: ");
	add_row_text(&paragraph, row, "confidence");
	paragraph_add(&paragraph, ")");
	paragraph_print(&paragraph, "verdict");
	add_shares(&paragraph, row);
	if (paragraph.built.used)
		paragraph_print(&paragraph, "");
	add_row_text(&paragraph, row, "next");
	if (paragraph.built.used)
		paragraph_print(&paragraph, "");
}

/* Prints the verdict on a run without GPU work: compilation, or else where its CPU time went. */
static void put_cpu_verdict(
	const struct process *process, const struct rows *rows, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct row *finding = verdict_add_compilation(&paragraph, process, rows);

	if (!finding) {
		headline_put_time(process, style);
		return;
	}
	paragraph_add(&paragraph, " (confidence: high)");
	paragraph_print(&paragraph, "verdict");
	add_row_text(&paragraph, finding, "next");
	paragraph_print(&paragraph, "");
}

/* Prints where the host's time went, where there is too little GPU work for a verdict. */
static void put_host_time(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	headline_add(&paragraph, process, HEADLINE_CPU, false);
	paragraph_print(&paragraph, "cpu time");
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
		BOUND_DATA, BOUND_COMPILATION, BOUND_FIRST, BOUND_ALLOCATION, BOUND_SYNC,
		BOUND_EVENT, BOUND_UNEXPLAINED };

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (name.length == strlen(bound_name(classes[i])) &&
			!memcmp(name.bytes, bound_name(classes[i]), name.length))
			return true;
	return false;
}

/* Prints that there are more findings than those on the first screen. */
static void put_left_findings(const struct style *style, unsigned shown, unsigned found)
{
	struct paragraph paragraph = { .style = style };

	if (shown >= found)
		return;
	paragraph_add(
		&paragraph, "%u of %u findings are shown; see them all: diagnose", shown, found);
	paragraph_print(&paragraph, "");
}

/* Prints the findings that gain most. One whose time is that of another has no place among them.
 * The first finding on memory is shown whatever time others cost. */
static void put_summary_findings(const struct style *style, const struct rows *rows)
{
	unsigned shown = 0, found = 0;
	bool of_memory = false;

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->rows[i];
		const bool only_bytes = costs_bytes_only(row);

		if (!is_shown_finding(row))
			continue;
		found++;
		if (row->of.computed->is_duplicate ||
			(shown >= FINDINGS && (of_memory || !only_bytes)))
			continue;
		of_memory |= only_bytes;
		put_summary_finding(style, row, !shown++);
	}
	put_left_findings(style, shown, found);
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

	options.view = view_find("diagnose");
	options.top = 0;
	arrange_diagnose(&options, &only, &rows);
	for (size_t i = 0; i < rows.count; i++)
		if (computed_row_is(&rows.rows[i], "kind", "verdict")) {
			put_bound(style, &rows.rows[i]);
			verdict.has_classes = computed_row_text(&rows.rows[i], "evidence").length >
					      0;
			if (verdict_is_unjudged(&rows.rows[i]))
				put_host_time(only.all, style);
			if (verdict.has_classes)
				text_add(&verdict.command.built, "%s",
					computed_row_text(&rows.rows[i], "command").bytes);
			verdict.is_path = verdict.has_classes &&
					  strstr(verdict.command.built.text, " critical-path ");
			verdict.is_of_gpu_work = !verdict.is_path &&
						 !waits_for_host(row_name(&rows.rows[i]));
		}
	if (!only.all->profile->totals.gpu_sum_ns && !only.all->profile->totals.reserved_peak)
		put_cpu_verdict(only.all, &rows, style);
	put_summary_findings(style, &rows);
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

/* Returns the node of an instance with the figures of all instances: those of the critical tree end
 * with its target. */
static const struct node *node_of(const struct process *process, const struct instance *instance)
{
	const struct tree *tree = process->profile->tree;

	return &tree->nodes[tree_find_path(tree, process->critical->tree, instance->node)];
}

static bool is_outlier(const struct process *process, const struct instance *instance)
{
	const struct node *node = node_of(process, instance);

	return instance->form == INSTANCE_ONE && node->calls > 1 &&
	       node_kind_class(node->kind) == NODE_RANGES &&
	       instance->value >= OUTLIER_RATIO * mean_value(process, node);
}

/* Returns the instance of the critical tree that is much worse than others of its node, of several
 * the worst. Returns NULL if all are alike: then the worst one says nothing. */
static const struct instance *find_outlier(
	const struct process *process, const struct instance *instance, long double whole)
{
	const struct instance *worst = is_outlier(process, instance) ? instance : NULL;

	for (const struct instance *child = instance->children; child; child = child->next) {
		const struct instance *below = child->value >= OUTLIER_SHARE * whole
						       ? find_outlier(process, child, whole)
						       : NULL;

		if (below && (!worst || below->value > worst->value))
			worst = below;
	}
	return worst;
}

/* Returns true if the metric is a time, so that instances of one node can be compared. */
static bool is_time(enum metric metric)
{
	return metric == METRIC_GPU || metric == METRIC_CPU || metric == METRIC_WALL;
}

/* Prints the worst of the instances that are much worse than others of their node. */
static void put_outlier(
	const struct process *process, const struct instance *root, const struct style *style)
{
	const struct instance *outlier = find_outlier(process, root, root->value);
	struct paragraph paragraph = { .style = style };
	const struct node *node;
	char times[FORMAT_NUMBER_BYTES];

	if (!outlier)
		return;
	node = node_of(process, outlier);
	format_real(times, outlier->value / mean_value(process, node), 1);
	paragraph_add(&paragraph, "one of ");
	paragraph_value(&paragraph, UNIT_COUNT, node->calls);
	paragraph_add(&paragraph, " instances of `");
	paragraph_add_node(&paragraph, process, (uint32_t)(node - process->profile->tree->nodes));
	paragraph_add(&paragraph, "` has ");
	paragraph_value(&paragraph, UNIT_TIME, (uint64_t)outlier->value);
	paragraph_add(&paragraph, " of %s, %s times their mean: pperf-report critical",
		process->metric == METRIC_GPU ? "GPU time (summed over streams)"
					      : summary_metric_name(process),
		times);
	paragraph_print(&paragraph, "worst");
}

/* Prints the worst instance as a tree. Of times, which the tree below has, it prints the worst
 * outlier in a line. */
static void put_summary_critical(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	const struct instance *root = process_critical(process);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct paragraph paragraph = { .style = style };

	if (root && is_time(process->metric))
		put_outlier(process, root, style);
	if (!root || is_time(process->metric))
		return;
	output_char(style->out, '\n');
	options.depth = UINT32_MAX;
	options.top = UINT32_MAX;
	options.all = false;
	arrange_critical(&options, &only, &rows);
	paragraph_add(&paragraph, "by %s: ", summary_metric_name(process));
	if (process->profile->tree->nodes[root->node].calls > 1) {
		paragraph_add(&paragraph, "the worst of ");
		paragraph_value(
			&paragraph, UNIT_COUNT, process->profile->tree->nodes[root->node].calls);
		paragraph_add(&paragraph, " instances ");
	} else {
		paragraph_add(&paragraph, "the only instance ");
	}
	paragraph_add_path(&paragraph, process, root->node);
	paragraph_print(&paragraph, "worst");
	critical_keep_largest(&rows, CRITICAL_LINES);
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

/* Names the view of a trace that has nothing but samples. */
static void put_functions_command(const struct process *process, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };

	text_add(&command.built, "pperf-report table --by function --callers");
	shell_command_add_file(&command, process->path);
	put_command(&command, "next", style);
}

/* Names the other views to run next. Only the first command has the path of the trace, which may be
 * long. */
static void put_other_views(
	const struct process *process, const struct verdict *verdict, const struct style *style)
{
	const char *path = verdict->is_path ? "categories" : "critical-path";
	const bool has_path = verdict->has_classes && !has_no_memory_left(process),
		   has_diagnosis = process->profile->timeline != NULL;
	struct paragraph paragraph = { .style = style };

	if (!has_path && !has_diagnosis)
		return;
	paragraph_add(
		&paragraph, "then, with the same trace: %s", has_diagnosis ? "diagnose" : path);
	if (has_path && has_diagnosis)
		paragraph_add(&paragraph, ", %s", path);
	if (style->terminal)
		paragraph_add(&paragraph, ", html");
	paragraph_print(&paragraph, "");
}

/* Prints the commands to run next: the one that shows what bounds the run comes first, unless the
 * program ran out of memory. */
static void put_summary_next(const struct report *report, const struct process *process,
	struct verdict *verdict, const struct style *style)
{
	struct shell_command ranks = { .ascii = style->ascii };
	const bool verdict_first = verdict->has_classes && !has_no_memory_left(process);

	if (process->profile->only_samples) {
		put_functions_command(process, style);
		return;
	}
	if (verdict_first)
		put_command(&verdict->command, "next", style);
	else
		put_critical_command(process, "next", style);
	if (!verdict_first && verdict->has_classes)
		put_command(&verdict->command, "", style);
	put_other_views(process, verdict, style);
	if (!has_several_ranks(report->processes))
		return;
	text_add(&ranks.built, "pperf-report ranks");
	shell_command_add_files(&ranks, report->options);
	put_command(&ranks, "", style);
}

/* Returns how many rows of the tree fit on the first screen. What is printed so far is still in the
 * buffer: a first screen that was flushed is too long anyway. */
static size_t tree_lines(const struct output *out)
{
	size_t used = LINES_AROUND_TREE;

	for (size_t i = 0; i < out->used; i++)
		used += out->buffer[i] == '\n';
	return used + TREE_LINES_MIN < SCREEN_LINES ? SCREEN_LINES - used : TREE_LINES_MIN;
}

/* Prints the functions with most CPU time by samples, at most `most` of them. */
static void put_functions(const struct report *report, size_t most, const struct style *style)
{
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct report functions = { .options = &options, .processes = report->processes };

	options.view = &functions_view;
	options.by = BY_FUNCTION;
	options.only_telling = true;
	options.sort = NULL;
	options.top = options.top ? options.top : (uint32_t)most;
	arrange_functions(&options, &report->processes->all[0], &rows);
	print_table(&functions, &rows, LAYOUT_TABLE, style);
	free(rows.rows);
}

void summary_read_in(const struct options *options, struct shared_pass *pass)
{
	if (options->format != FORMAT_CSV)
		diagnose_read_in(options, pass);
}

void draw_summary(const struct report *report, const struct style *of_output)
{
	const struct process *process = &report->processes->all[0];
	struct written_paths written = { .count = 0 };
	struct style screen = *of_output;
	const struct style *style = &screen;
	struct verdict verdict;

	screen.written = &written;

	memory_summary_put_oom(process, style);
	verdict = put_diagnosis(report, style);
	memory_growth_put(&report->processes->all[0], style);
	put_summary_next(report, process, &verdict, style);
	output_char(style->out, '\n');
	headline_put_where(process, style, verdict.has_classes);
	memory_summary_put_levels(process, style);
	put_program(process, style);
	put_summary_devices(process, style);
	coverage_put_sources(process, style);
	sampled_line_put(&report->processes->all[0], process->profile->only_samples, style);
	put_summary_steps(process, style);
	coverage_put_counted(process, style);
	coverage_put_losses(process, style);
	if (verdict.is_of_gpu_work || process->metric != METRIC_GPU)
		put_summary_critical(report, style);
	output_char(style->out, '\n');
	if (process->profile->only_samples)
		put_functions(report, tree_lines(style->out), style);
	else
		summary_tree_put(report, tree_lines(style->out), style);
}

void put_summary_json(const struct report *report, struct output *out)
{
	struct json_writer json = { .out = out, .spaced = true };
	struct rows rows = { .count = 0 };
	struct run_verdict *verdict;

	if (!report->processes->shown)
		return;
	verdict = run_verdict_read(
		report->options, report->processes, &report->processes->all[0], &rows);
	output_string(out, ",\n \"verdict\": ");
	run_verdict_write_json(&json, verdict);
	run_verdict_free(verdict);
	free(rows.rows);
}
