/* SPDX-License-Identifier: MIT */
#include "report/views/views.h"
#include "report/stats/mann_whitney.h"
#include "report/text/json_writer.h"
#include "report/base/error.h"
#include "report/print/next_command.h"
#include "report/text/format_number.h"
#include "report/run/options.h"
#include "report/text/paragraph.h"
#include "report/text/suggest.h"
#include "report/print/print.h"
#include "report/analysis/baseline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT_PERCENT 5.0
#define METRICS_MAX 32

/* The comparison of one metric. */
struct gate_result {
	const char *name;
	const struct baseline_metric *before, *after;
	const char *worst; /* path of the node with the largest increase; NULL: none */
	double worst_delta;
	/* of the steps; p is corrected for all metrics that were tested */
	struct mann_whitney_result comparison;
	/* beyond: more than the limit allows. failed: beyond, and not noise; without a test, beyond
	 * is enough. */
	bool beyond, failed;
};

struct gate {
	struct baseline *before, *after;
	double limit; /* percent */
	struct gate_result results[METRICS_MAX];
	size_t count, tested, failed;
};

/* Splits `list` into metric names. They point into a copy that is valid until the next call. An
 * unknown name ends the program. */
static size_t parse_metric_names(const char *list, const char **names)
{
	static char *copy;
	char *rest = NULL;
	size_t count = 0;

	free(copy);
	copy = strdup(list);
	if (!copy)
		fatal(STATUS_UNREADABLE, "no memory for the metrics");
	for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		struct suggestion near = suggest_for(name, strlen(name));

		for (size_t i = 0; baseline_metric_name(i); i++)
			suggest_offer(&near, baseline_metric_name(i));
		if (!baseline_has_metric(name))
			fatal(STATUS_USAGE,
				"unknown metric; supported: gpu, cpu, wall, idle, calls, alloc, "
				"tensors, reserved_peak and allocated_peak, not `%s`%s",
				name, suggest_text(&near, NULL));
		if (count == METRICS_MAX)
			fatal(STATUS_USAGE, "gate accepts at most %d metrics", METRICS_MAX);
		names[count++] = name;
	}
	if (!count)
		fatal(STATUS_USAGE, "-m names no metric; see pperf-report gate --help");
	return count;
}

static bool ends_component(const char *path, size_t length)
{
	return path[length] == '/' && (length == 0 || path[length - 1] != '\\');
}

/* Returns true if `path` is below `around`. NULL contains every path. */
static bool is_below(const char *path, const char *around)
{
	const size_t length = around ? strlen(around) : 0;

	return !around || (strncmp(path, around, length) == 0 && ends_component(path, length));
}

/* Finds the node with the largest increase, then descends while one node below has more than half
 * of it. */
static void find_worst_path(struct gate_result *result)
{
	for (bool again = true; again;) {
		const struct baseline_metric *after = result->after;
		const char *best = NULL;
		double most = result->worst ? result->worst_delta / 2 : 0;

		for (size_t i = 0; i < after->row_count; i++) {
			const double delta = after->rows[i].value -
					     baseline_value_at(result->before, after->rows[i].path);

			if (is_below(after->rows[i].path, result->worst) && delta > most) {
				most = delta;
				best = after->rows[i].path;
			}
		}
		again = best != NULL;
		if (best) {
			result->worst = best;
			result->worst_delta = most;
		}
	}
}

static void add_gate_metric(struct gate *gate, const char *name, bool required)
{
	struct gate_result *result = &gate->results[gate->count];

	*result = (struct gate_result){ .name = name };
	result->before = baseline_find_metric(gate->before, name);
	result->after = baseline_find_metric(gate->after, name);
	if (!result->before || !result->after) {
		if (required)
			fatal(STATUS_UNREADABLE, "%s has no values of `%s` to compare",
				result->before ? gate->after->path : gate->before->path, name);
		return;
	}
	gate->count++;
}

/* Tests whether the steps of the two runs differ by more than steps differ among themselves. */
static void test_metrics(struct gate *gate)
{
	double p[METRICS_MAX];

	for (size_t i = 0; i < gate->count; i++) {
		struct gate_result *result = &gate->results[i];

		result->comparison = mann_whitney_test(result->before->values,
			result->before->value_count, result->after->values,
			result->after->value_count);
		if (result->comparison.tested)
			p[gate->tested++] = result->comparison.p;
	}
	mann_whitney_holm(p, gate->tested);
	for (size_t i = 0, at = 0; i < gate->count; i++)
		if (gate->results[i].comparison.tested)
			gate->results[i].comparison.p = p[at++];
}

static bool is_noise(const struct gate_result *result)
{
	const struct mann_whitney_result *comparison = &result->comparison;

	return comparison->tested && !(comparison->p < MANN_WHITNEY_ALPHA && comparison->shift > 0);
}

/* Looks up all metrics again, because earlier pointers become invalid while metrics are added, and
 * compares them. */
static void compare_metrics(struct gate *gate)
{
	for (size_t i = 0; i < gate->count; i++) {
		gate->results[i].before = baseline_find_metric(gate->before, gate->results[i].name);
		gate->results[i].after = baseline_find_metric(gate->after, gate->results[i].name);
	}
	test_metrics(gate);
	for (size_t i = 0; i < gate->count; i++) {
		struct gate_result *result = &gate->results[i];

		result->beyond = result->after->value >
				 result->before->value +
					 fabs(result->before->value) * gate->limit / 100;
		result->failed = result->beyond && !is_noise(result);
		if (result->failed)
			find_worst_path(result);
		gate->failed += result->failed;
	}
}

static void add_gate_value(struct paragraph *paragraph, enum unit unit, double value)
{
	char text[FORMAT_NUMBER_BYTES];

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
	paragraph_add(&line, "%s: ", result->name);
	add_gate_value(&line, result->after->unit, before);
	paragraph_add(&line, style->ascii ? " -> " : " → ");
	add_gate_value(&line, result->after->unit, after);
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
		add_gate_value(&line, result->after->unit, result->worst_delta);
		paragraph_add(&line, ")");
	}
	paragraph_print(&line, result->failed ? "FAIL" : "pass");
}

static void gate_json_test(struct json_writer *json, const struct gate_result *result)
{
	json_write_key(json, "p");
	if (result->comparison.tested)
		json_write_double(json, result->comparison.p);
	else
		json_write_null(json);
	json_put_unsigned(json, "n_before", result->before->value_count);
	json_put_unsigned(json, "n_after", result->after->value_count);
}

static void print_gate_json(const struct gate *gate, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.report/1");
	json_put_string(&json, "view", "gate");
	json_write_key(&json, "files");
	json_write_begin(&json, '[');
	json_write_string(&json, gate->before->path);
	json_write_string(&json, gate->after->path);
	json_write_end(&json, ']');
	json_put_string(&json, "basis", gate->after->by_steps ? "step" : "run");
	json_write_key(&json, "ranks");
	json_write_begin(&json, '[');
	json_write_rank(&json, gate->before->rank);
	json_write_rank(&json, gate->after->rank);
	json_write_end(&json, ']');
	json_put_string(&json, "method", MANN_WHITNEY_METHOD);
	json_write_key(&json, "alpha");
	json_write_double(&json, MANN_WHITNEY_ALPHA);
	json_write_key(&json, "max_regression");
	json_write_double(&json, gate->limit / 100);
	json_put_bool(&json, "passed", gate->failed == 0);
	json_write_key(&json, "rows");
	json_write_begin(&json, '[');
	for (size_t i = 0; i < gate->count; i++) {
		const struct gate_result *result = &gate->results[i];

		json_write_begin(&json, '{');
		json_put_string(&json, "metric", result->name);
		json_write_key(&json, "before");
		json_write_double(&json, result->before->value);
		json_write_key(&json, "after");
		json_write_double(&json, result->after->value);
		json_write_key(&json, "delta");
		json_write_double(&json, result->after->value - result->before->value);
		json_put_bool(&json, "passed", !result->failed);
		json_put_bool(&json, "beyond", result->beyond);
		gate_json_test(&json, result);
		json_put_string(&json, "worst_path", result->worst);
		json_write_key(&json, "worst_delta");
		json_write_double(&json, result->worst_delta);
		json_write_end(&json, '}');
	}
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

		output_string(out, result->name);
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

/* Prints how noise was recognized, and of which ranks the values are. */
static void put_gate_method(
	const struct gate *gate, const struct options *options, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (gate->tested) {
		paragraph_add(&paragraph,
			MANN_WHITNEY_METHOD "; steps are compared, p of %.2f or more is not "
					    "significant",
			MANN_WHITNEY_ALPHA);
		paragraph_print(&paragraph, "method");
	}
	if (gate->before->rank < 0 && gate->after->rank < 0)
		return;
	paragraph.indent = 5;
	add_rank(&paragraph, gate->before->rank);
	paragraph_add(&paragraph, " before, ");
	add_rank(&paragraph, gate->after->rank);
	paragraph_add(
		&paragraph, options->rank < 0 ? " after; --rank N selects another" : " after");
	paragraph_print(&paragraph, "rank");
}

/* Suggests diff, which needs two traces. A baseline is not one. */
static void put_gate_next(
	const struct gate *gate, const struct options *options, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };

	if (!gate->failed || !gate->before->process)
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

/* Makes both sides compare steps, or both whole runs. Ends the program if a baseline of steps meets
 * a trace with too few steps. */
static void agree_on_basis(struct gate *gate)
{
	if (gate->before->by_steps == gate->after->by_steps)
		return;
	if (gate->before->process && gate->after->process) {
		gate->before->by_steps = gate->after->by_steps = false;
		return;
	}
	if (gate->after->process && gate->after->by_steps) {
		gate->after->by_steps = false;
		return;
	}
	if (gate->before->process && gate->before->by_steps) {
		gate->before->by_steps = false;
		return;
	}
	fatal(STATUS_UNREADABLE, "the baseline is per step, and %s has too few steps to compare",
		gate->before->process ? gate->before->path : gate->after->path);
}

static int write_baseline(const struct options *options, const char **names, size_t count)
{
	struct baseline *sheet = baseline_open(options, options->files[0]);
	struct output *out;

	for (size_t i = 0; i < count; i++)
		if (!baseline_find_metric(sheet, names[i]) && options->metric_name)
			fatal(STATUS_UNREADABLE, "%s has no values of `%s` to compare", sheet->path,
				names[i]);
	out = output_open(options->baseline);
	baseline_write(sheet, out);
	baseline_free(sheet);
	return output_close(out, options->baseline) ? STATUS_OK : STATUS_UNREADABLE;
}

int gate_view(const struct options *options)
{
	struct gate gate = { .limit = options->max_regression >= 0 ? options->max_regression
								   : DEFAULT_LIMIT_PERCENT };
	const char *names[METRICS_MAX];
	size_t count = 0;
	int status;

	if (options->file_count != (options->baseline ? 1 : 2))
		fatal(STATUS_USAGE,
			"gate compares two files: pperf-report gate BEFORE AFTER; or writes a "
			"baseline: pperf-report gate --write-baseline FILE TRACE");
	if (options->metric_name)
		count = parse_metric_names(options->metric_name, names);
	else
		for (; baseline_metric_name(count); count++)
			names[count] = baseline_metric_name(count);
	if (options->baseline)
		return write_baseline(options, names, count);
	gate.before = baseline_open(options, options->files[0]);
	gate.after = baseline_open(options, options->files[1]);
	agree_on_basis(&gate);
	if (!options->metric_name)
		count = 0;
	for (size_t i = 0; i < count; i++)
		add_gate_metric(&gate, names[i], true);
	if (!options->metric_name) {
		add_gate_metric(&gate, "gpu", false);
		if (!gate.count)
			add_gate_metric(&gate, "cpu", false);
		add_gate_metric(&gate, "reserved_peak", false);
		add_gate_metric(&gate, "allocated_peak", false);
	}
	if (!gate.count)
		fatal(STATUS_UNREADABLE, "%s and %s have no metric in common", gate.before->path,
			gate.after->path);
	compare_metrics(&gate);
	status = print_gate(&gate, options) ? (gate.failed ? STATUS_DIFFERENT : STATUS_OK)
					    : STATUS_UNREADABLE;
	baseline_free(gate.before);
	baseline_free(gate.after);
	return status;
}
