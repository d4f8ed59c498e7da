/* SPDX-License-Identifier: MIT */
#include "report/views/views.h"
#include "report/base/error.h"
#include "report/print/next_command.h"
#include "report/text/format_number.h"
#include "report/run/options.h"
#include "report/text/paragraph.h"
#include "report/text/suggest.h"
#include "report/print/print.h"
#include "report/analysis/run_diff.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT_PERCENT 5.0
#define METRICS_MAX 32

/* The comparison of one metric. */
struct gate_result {
	const struct run_metric *before, *after;
	const char *worst; /* path of the node with most of the difference; NULL: none */
	double worst_delta;
	struct change_test comparison; /* of its steps */
	bool beyond;                   /* beyond the limit */
	bool failed; /* beyond the limit, and by more than noise if that could be tested */
};

struct gate {
	struct compared_run runs[2];
	double limit; /* percent */
	struct gate_result results[METRICS_MAX];
	size_t count, tested, failed;
};

/* Lists the metrics that `list` names, or all if it is NULL. Returns their number. */
static size_t list_kinds(const char *list, const struct run_metric_kind **kinds)
{
	char *copy = strdup(list ? list : ""), *rest = NULL;
	size_t count = 0;

	if (!copy)
		fatal(STATUS_UNREADABLE, "no memory for the metrics");
	for (; !list && count < RUN_METRICS; count++)
		kinds[count] = &run_metric_kinds[count];
	for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		const struct run_metric_kind *kind = run_metric_find(name);
		struct suggestion near = suggest_for(name, strlen(name));

		for (size_t i = 0; !kind && i < RUN_METRICS; i++)
			suggest_offer(&near, run_metric_kinds[i].name);
		if (!kind)
			fatal(STATUS_USAGE,
				"unknown metric; supported: gpu, cpu, wall, idle, calls, alloc, "
				"tensors, reserved_peak, allocated_peak, waste_peak, "
				"fragmentation_peak, growth_per_step, largest_place_peak, retries "
				"and ooms, not `%s`%s",
				name, suggest_text(&near, NULL));
		if (count == METRICS_MAX)
			fatal(STATUS_USAGE, "gate accepts at most %d metrics", METRICS_MAX);
		kinds[count++] = kind;
	}
	free(copy);
	if (!count)
		fatal(STATUS_USAGE, "-m names no metric; see pperf-report gate --help");
	return count;
}

static void add_gate_metric(struct gate *gate, const struct run_metric_kind *kind, bool is_required)
{
	const struct run_metric *before = compared_run_metric(&gate->runs[0], kind),
				*after = compared_run_metric(&gate->runs[1], kind);

	if (before && after)
		gate->results[gate->count++] = (struct gate_result){ .before = before,
			.after = after };
	else if (is_required)
		fatal(STATUS_UNREADABLE, "%s has no values of `%s` to compare",
			gate->runs[before != NULL].path, kind->name);
}

/* Whether the increase may be noise: the same test as that of the step in `diff`. */
static bool is_noise(const struct gate_result *result)
{
	const struct change_test *comparison = &result->comparison;

	return comparison->tested && !(is_significant_whole(comparison) && comparison->shift > 0);
}

static void compare_metrics(struct gate *gate)
{
	for (size_t i = 0; i < gate->count; i++) {
		struct gate_result *result = &gate->results[i];

		result->comparison = change_test_alone(result->before->values,
			result->before->value_count, result->after->values,
			result->after->value_count);
		gate->tested += result->comparison.tested;
		result->beyond = result->after->value >
				 result->before->value +
					 fabs(result->before->value) * gate->limit / 100;
		result->failed = result->beyond && !is_noise(result);
		if (result->failed)
			result->worst = run_metric_worst_path(
				result->before, result->after, &result->worst_delta);
		gate->failed += result->failed;
	}
}

static void add_gate_value(struct paragraph *paragraph, enum unit unit, double value)
{
	char text[FORMAT_NUMBER_BYTES];

	if (unit == UNIT_PERCENT) {
		paragraph_add(paragraph, "%.1f %%", value);
		return;
	}
	format_with_unit(text, unit, clamp_to_i64(round(value)), paragraph->style->iec,
		paragraph->style->ascii);
	paragraph_add(paragraph, "%s", text);
}

static void put_gate_result(
	const struct gate *gate, const struct gate_result *result, const struct style *style)
{
	const double before = result->before->value, after = result->after->value;
	struct style whole = *style;
	struct paragraph line = { .style = &whole, .indent = 5 };

	if (!style->terminal && !style->width_given) /* scripts match whole lines */
		whole.width = UINT32_MAX;
	paragraph_add(&line, "%s: ", result->after->kind->name);
	add_gate_value(&line, run_metric_unit(result->after), before);
	paragraph_add(&line, style->ascii ? " -> " : " → ");
	add_gate_value(&line, run_metric_unit(result->after), after);
	if (before > 0)
		paragraph_add(&line, ", %+.1f %%", 100 * (after - before) / before);
	paragraph_add(&line, " (limit +%g %%", gate->limit);
	if (result->comparison.tested)
		paragraph_add(&line,
			result->comparison.p < 0.0001 ? "; p <0.0001, n=%zu, %zu" : "; n=%zu, %zu",
			result->before->value_count, result->after->value_count);
	if (result->comparison.tested && result->comparison.p >= 0.0001)
		paragraph_add(&line, ", p %.4f", result->comparison.p);
	paragraph_add(&line, ")");
	if (result->beyond && !result->failed)
		paragraph_add(&line, "; beyond the limit, but not significant");
	if (result->worst) {
		paragraph_add(&line, "; largest increase in ");
		paragraph_text(&line, result->worst, strlen(result->worst));
		paragraph_add(&line, " (+");
		add_gate_value(&line, run_metric_unit(result->after), result->worst_delta);
		paragraph_add(&line, ")");
	}
	paragraph_print(&line, result->failed ? "FAIL" : "pass");
}

static void gate_json_row(struct json_writer *json, const struct gate_result *result)
{
	const double before = result->before->value, after = result->after->value;

	json_write_begin(json, '{');
	json_put_string(json, "metric", result->after->kind->name);
	json_put_double(json, "before", before);
	json_put_double(json, "after", after);
	json_put_double(json, "delta", after - before);
	json_put_bool(json, "passed", !result->failed);
	json_put_bool(json, "beyond", result->beyond);
	json_put_known_double(json, "p", result->comparison.p, result->comparison.tested);
	json_put_unsigned(json, "n_before", result->before->value_count);
	json_put_unsigned(json, "n_after", result->after->value_count);
	json_put_string(json, "worst_path", result->worst);
	json_put_double(json, "worst_delta", result->worst_delta);
	json_write_end(json, '}');
}

static void print_gate_json(const struct gate *gate, struct output *out)
{
	struct json_writer json = { .out = out };

	json_begin_comparison(&json, "gate", gate->runs[0].path, gate->runs[1].path);
	json_put_string(&json, "basis", gate->runs[1].by_steps ? "step" : "run");
	json_put_test_method(&json, gate->runs);
	json_put_double(&json, "max_regression", gate->limit / 100);
	json_put_bool(&json, "passed", gate->failed == 0);
	json_put_begin(&json, "rows", '[');
	for (size_t i = 0; i < gate->count; i++)
		gate_json_row(&json, &gate->results[i]);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

static void print_gate_csv(const struct gate *gate, struct output *out)
{
	output_string(out,
		"metric,before,after,passed,worst_path,worst_delta,beyond,p,n_before,n_after\r\n");
	for (size_t i = 0; i < gate->count; i++) {
		const struct gate_result *result = &gate->results[i];

		output_string(out, result->after->kind->name);
		output_char(out, ',');
		output_double(out, result->before->value);
		output_char(out, ',');
		output_double(out, result->after->value);
		output_string(out, result->failed ? ",false," : ",true,");
		if (result->worst)
			output_csv_text(out, result->worst, strlen(result->worst));
		output_char(out, ',');
		output_double(out, result->worst_delta);
		output_string(out, result->beyond ? ",true," : ",false,");
		if (result->comparison.tested)
			output_double(out, result->comparison.p);
		output_char(out, ',');
		output_unsigned(out, result->before->value_count);
		output_char(out, ',');
		output_unsigned(out, result->after->value_count);
		output_string(out, "\r\n");
	}
}

static void add_rank(struct paragraph *paragraph, int64_t rank)
{
	if (rank < 0)
		paragraph_add(paragraph, "none");
	else
		paragraph_add(paragraph, "%lld", (long long)rank);
}

/* Says so if whole runs are compared that have different numbers of steps. */
static void put_gate_basis(const struct gate *gate, const struct style *style)
{
	const struct compared_run *before = &gate->runs[0], *after = &gate->runs[1];
	struct paragraph paragraph = { .style = style };

	if (after->by_steps || !before->process || !before->process->steps ||
		!after->process->steps ||
		before->process->steps->count == after->process->steps->count)
		return;
	paragraph_add(&paragraph,
		"whole runs are compared, of %zu and %zu steps: one of them has too few to compare "
		"steps",
		before->process->steps->count, after->process->steps->count);
	paragraph_print(&paragraph, "basis");
}

/* Prints how noise was recognized, and of which ranks the values are. */
static void put_gate_method(
	const struct gate *gate, const struct options *options, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	put_gate_basis(gate, style);
	if (gate->tested) {
		paragraph_add(&paragraph,
			CHANGE_TEST_METHOD
			"; steps are compared, p of %.2f or more is not significant",
			CHANGE_TEST_ALPHA);
		paragraph_print(&paragraph, "method");
	}
	if (gate->runs[0].rank < 0 && gate->runs[1].rank < 0)
		return;
	paragraph.indent = 5;
	add_rank(&paragraph, gate->runs[0].rank);
	paragraph_add(&paragraph, " before, ");
	add_rank(&paragraph, gate->runs[1].rank);
	paragraph_add(
		&paragraph, options->rank < 0 ? " after; --rank N selects another" : " after");
	paragraph_print(&paragraph, "rank");
}

/* Suggests diff, which needs two traces. A baseline is not one. */
static void put_gate_next(
	const struct gate *gate, const struct options *options, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };

	if (!gate->failed || !gate->runs[0].process)
		return;
	next_command_begin(&command, "diff");
	next_command_add_files(&command, options);
	next_command_put(&command, style);
}

static bool print_gate(const struct gate *gate, const struct options *options)
{
	struct output *out = output_open(options->output);
	const struct style style = style_of(&options->style, out);

	if (options->format == FORMAT_JSON)
		print_gate_json(gate, out);
	else if (options->format == FORMAT_CSV)
		print_gate_csv(gate, out);
	else {
		for (size_t i = 0; i < gate->count; i++)
			put_gate_result(gate, &gate->results[i], &style);
		put_gate_method(gate, options, &style);
		put_gate_next(gate, options, &style);
	}
	return output_close(out, options->output);
}

static int write_baseline(
	const struct options *options, const struct run_metric_kind **kinds, size_t count)
{
	struct compared_run run;
	struct output *out;

	compared_run_open(&run, options, options->files[0], true);
	for (size_t i = 0; i < count; i++)
		if (!compared_run_metric(&run, kinds[i]) && options->metric_name)
			fatal(STATUS_UNREADABLE, "%s has no values of `%s` to compare", run.path,
				kinds[i]->name);
	out = output_open(options->baseline);
	baseline_write(&run, out);
	compared_run_free(&run);
	return output_close(out, options->baseline) ? STATUS_OK : STATUS_UNREADABLE;
}

static void add_usual_metrics(struct gate *gate)
{
	add_gate_metric(gate, run_metric_find("gpu"), false);
	if (!gate->count)
		add_gate_metric(gate, run_metric_find("cpu"), false);
	add_gate_metric(gate, run_metric_find("reserved_peak"), false);
	add_gate_metric(gate, run_metric_find("allocated_peak"), false);
	if (!gate->count)
		fatal(STATUS_UNREADABLE, "%s and %s have no metric in common", gate->runs[0].path,
			gate->runs[1].path);
}

int gate_view(const struct options *options)
{
	struct gate gate = { .limit = options->max_regression >= 0 ? options->max_regression
								   : DEFAULT_LIMIT_PERCENT };
	const struct run_metric_kind *kinds[METRICS_MAX];
	size_t count;
	bool is_printed;

	if (options->file_count != (options->baseline ? 1 : 2))
		fatal(STATUS_USAGE,
			"gate compares two files: pperf-report gate BEFORE AFTER; or writes a "
			"baseline: pperf-report gate --write-baseline FILE TRACE");
	count = list_kinds(options->metric_name, kinds);
	if (options->baseline)
		return write_baseline(options, kinds, count);
	compared_runs_open(gate.runs, options, options->files[0], options->files[1], true);
	for (size_t i = 0; i < count && options->metric_name; i++)
		add_gate_metric(&gate, kinds[i], true);
	if (!options->metric_name)
		add_usual_metrics(&gate);
	compare_metrics(&gate);
	is_printed = print_gate(&gate, options);
	compared_run_free(&gate.runs[0]);
	compared_run_free(&gate.runs[1]);
	return !is_printed ? STATUS_UNREADABLE : gate.failed ? STATUS_DIFFERENT : STATUS_OK;
}
