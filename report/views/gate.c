/* SPDX-License-Identifier: MIT */
#include "report/views/views.h"
#include "report/stats/mann_whitney.h"
#include "report/text/json_writer.h"
#include "report/base/error.h"
#include "report/print/next_command.h"
#include "report/text/format_number.h"
#include "report/run/options.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/analysis/baseline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_LIMIT 5.0 /* percent */
#define METRICS_MOST 32

/* One metric, judged. */
struct verdict {
	const char *name;
	const struct figure *before, *after;
	const char *worst; /* path of the place with most of the difference; NULL: none */
	double worst_delta;
	struct comparison comparison; /* of its steps; p: corrected for all that were tested */
	bool beyond, failed;          /* beyond the limit, and by more than noise or by what cannot be told from it */
};

struct gate {
	struct sheet *before, *after;
	double limit; /* percent */
	struct verdict verdicts[METRICS_MOST];
	size_t count, tested, failed;
};

/* The names that were asked for, in a copy that lives until the next call. */
static size_t names_asked(const char *list, const char **names)
{
	static char *copy;
	char *rest = NULL;
	size_t count = 0;

	free(copy);
	copy = strdup(list);
	if (!copy)
		fatal(STATUS_UNREADABLE, "no memory for the metrics");
	for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		if (!sheet_knows(name))
			fatal(STATUS_USAGE,
				"a gate knows gpu, cpu, wall, idle, calls, alloc, tensors, reserved_peak and allocated_peak, not `%s`",
				name);
		if (count == METRICS_MOST)
			fatal(STATUS_USAGE, "a gate takes %d metrics at most", METRICS_MOST);
		names[count++] = name;
	}
	if (!count)
		fatal(STATUS_USAGE, "-m names no metric");
	return count;
}

static bool ends_component(const char *path, size_t length)
{
	return path[length] == '/' && (length == 0 || path[length - 1] != '\\');
}

/* Whether `path` lies below `around`; NULL: everything does. */
static bool is_below(const char *path, const char *around)
{
	const size_t length = around ? strlen(around) : 0;

	return !around || (strncmp(path, around, length) == 0 && ends_component(path, length));
}

/* The place with the most of what came to it; then what in it has most, as long as that is more than half of it. */
static void find_worst(struct verdict *verdict)
{
	for (bool again = true; again;) {
		const struct figure *after = verdict->after;
		const char *best = NULL;
		double most = verdict->worst ? verdict->worst_delta / 2 : 0;

		for (size_t i = 0; i < after->row_count; i++) {
			const double delta = after->rows[i].value - sheet_value_at(verdict->before, after->rows[i].path);

			if (is_below(after->rows[i].path, verdict->worst) && delta > most) {
				most = delta;
				best = after->rows[i].path;
			}
		}
		again = best != NULL;
		if (best) {
			verdict->worst = best;
			verdict->worst_delta = most;
		}
	}
}

static void judge(struct gate *gate, const char *name, bool asked)
{
	struct verdict *verdict = &gate->verdicts[gate->count];

	*verdict = (struct verdict){ .name = name };
	verdict->before = sheet_figure(gate->before, name);
	verdict->after = sheet_figure(gate->after, name);
	if (!verdict->before || !verdict->after) {
		if (asked)
			fatal(STATUS_UNREADABLE, "%s has nothing of `%s` to compare",
				verdict->before ? gate->after->path : gate->before->path, name);
		return;
	}
	gate->count++;
}

/* Whether the steps of the two runs differ by more than steps do. */
static void test(struct gate *gate)
{
	double p[METRICS_MOST];

	for (size_t i = 0; i < gate->count; i++) {
		struct verdict *verdict = &gate->verdicts[i];

		verdict->comparison = compare(verdict->before->values, verdict->before->value_count, verdict->after->values,
			verdict->after->value_count);
		if (verdict->comparison.tested)
			p[gate->tested++] = verdict->comparison.p;
	}
	compare_holm(p, gate->tested);
	for (size_t i = 0, at = 0; i < gate->count; i++)
		if (gate->verdicts[i].comparison.tested)
			gate->verdicts[i].comparison.p = p[at++];
}

static bool is_noise(const struct verdict *verdict)
{
	const struct comparison *comparison = &verdict->comparison;

	return comparison->tested && !(comparison->p < COMPARE_ALPHA && comparison->shift > 0);
}

/* Figures do not stay where they are while more are made. */
static void conclude(struct gate *gate)
{
	for (size_t i = 0; i < gate->count; i++) {
		gate->verdicts[i].before = sheet_figure(gate->before, gate->verdicts[i].name);
		gate->verdicts[i].after = sheet_figure(gate->after, gate->verdicts[i].name);
	}
	test(gate);
	for (size_t i = 0; i < gate->count; i++) {
		struct verdict *verdict = &gate->verdicts[i];

		verdict->beyond = verdict->after->value > verdict->before->value + fabs(verdict->before->value) * gate->limit / 100;
		verdict->failed = verdict->beyond && !is_noise(verdict);
		if (verdict->failed)
			find_worst(verdict);
		gate->failed += verdict->failed;
	}
}

static void add_figure(struct paragraph *paragraph, enum unit unit, double value)
{
	char text[NUMBER_BYTES];

	number_scaled(text, unit, number_integer(round(value)), paragraph->style->iec, paragraph->style->ascii);
	paragraph_add(paragraph, "%s", text);
}

static void put_verdict(const struct gate *gate, const struct verdict *verdict, const struct style *style)
{
	const double before = verdict->before->value, after = verdict->after->value;
	struct style whole = *style;
	struct paragraph line = { .style = &whole, .indent = 5 };

	if (!style->terminal && !style->width_given) /* scripts look for lines */
		whole.width = UINT32_MAX;
	paragraph_add(&line, "%s: ", verdict->name);
	add_figure(&line, verdict->after->unit, before);
	paragraph_add(&line, style->ascii ? " -> " : " → ");
	add_figure(&line, verdict->after->unit, after);
	if (before > 0)
		paragraph_add(&line, ", %+.1f %%", 100 * (after - before) / before);
	paragraph_add(&line, " (limit +%g %%", gate->limit);
	if (verdict->comparison.tested)
		paragraph_add(&line, verdict->comparison.p < 0.0001 ? "; p <0.0001, n=%zu, %zu" : "; n=%zu, %zu",
			verdict->before->value_count, verdict->after->value_count);
	if (verdict->comparison.tested && verdict->comparison.p >= 0.0001)
		paragraph_add(&line, ", p %.4f", verdict->comparison.p);
	paragraph_add(&line, ")");
	if (verdict->beyond && !verdict->failed)
		paragraph_add(&line, "; beyond the limit, but no more than noise");
	if (verdict->worst) {
		paragraph_add(&line, "; most of it in ");
		paragraph_text(&line, verdict->worst, strlen(verdict->worst));
		paragraph_add(&line, " (+");
		add_figure(&line, verdict->after->unit, verdict->worst_delta);
		paragraph_add(&line, ")");
	}
	paragraph_put(&line, verdict->failed ? "FAIL" : "pass");
}

static void emit_test(struct emit *emit, const struct verdict *verdict)
{
	emit_key(emit, "p");
	if (verdict->comparison.tested)
		emit_double(emit, verdict->comparison.p);
	else
		emit_null(emit);
	emit_put_unsigned(emit, "n_before", verdict->before->value_count);
	emit_put_unsigned(emit, "n_after", verdict->after->value_count);
}

static void print_gate_json(const struct gate *gate, struct out *out)
{
	struct emit emit = { .out = out };

	emit_begin(&emit, '{');
	emit_put_string(&emit, "schema", "pperf.report/1");
	emit_put_string(&emit, "view", "gate");
	emit_key(&emit, "files");
	emit_begin(&emit, '[');
	emit_string(&emit, gate->before->path);
	emit_string(&emit, gate->after->path);
	emit_end(&emit, ']');
	emit_put_string(&emit, "basis", gate->after->by_steps ? "step" : "run");
	emit_key(&emit, "ranks");
	emit_begin(&emit, '[');
	emit_rank_number(&emit, gate->before->rank);
	emit_rank_number(&emit, gate->after->rank);
	emit_end(&emit, ']');
	emit_put_string(&emit, "method", COMPARE_METHOD);
	emit_key(&emit, "alpha");
	emit_double(&emit, COMPARE_ALPHA);
	emit_key(&emit, "max_regression");
	emit_double(&emit, gate->limit / 100);
	emit_put_bool(&emit, "passed", gate->failed == 0);
	emit_key(&emit, "rows");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < gate->count; i++) {
		const struct verdict *verdict = &gate->verdicts[i];

		emit_begin(&emit, '{');
		emit_put_string(&emit, "metric", verdict->name);
		emit_key(&emit, "before");
		emit_double(&emit, verdict->before->value);
		emit_key(&emit, "after");
		emit_double(&emit, verdict->after->value);
		emit_key(&emit, "delta");
		emit_double(&emit, verdict->after->value - verdict->before->value);
		emit_put_bool(&emit, "passed", !verdict->failed);
		emit_put_bool(&emit, "beyond", verdict->beyond);
		emit_test(&emit, verdict);
		emit_put_string(&emit, "worst_path", verdict->worst);
		emit_key(&emit, "worst_delta");
		emit_double(&emit, verdict->worst_delta);
		emit_end(&emit, '}');
	}
	emit_end(&emit, ']');
	emit_end(&emit, '}');
	out_char(out, '\n');
}

static void print_gate_csv(const struct gate *gate, struct out *out)
{
	out_string(out, "metric,before,after,passed,worst_path,worst_delta,beyond,p,n_before,n_after\r\n");
	for (size_t i = 0; i < gate->count; i++) {
		const struct verdict *verdict = &gate->verdicts[i];

		out_string(out, verdict->name);
		out_char(out, ',');
		out_double(out, verdict->before->value);
		out_char(out, ',');
		out_double(out, verdict->after->value);
		out_string(out, verdict->failed ? ",false," : ",true,");
		if (verdict->worst)
			out_csv_text(out, verdict->worst, strlen(verdict->worst));
		out_char(out, ',');
		out_double(out, verdict->worst_delta);
		out_string(out, verdict->beyond ? ",true," : ",false,");
		if (verdict->comparison.tested)
			out_double(out, verdict->comparison.p);
		out_char(out, ',');
		out_unsigned(out, verdict->before->value_count);
		out_char(out, ',');
		out_unsigned(out, verdict->after->value_count);
		out_string(out, "\r\n");
	}
}

static void add_rank(struct paragraph *paragraph, int64_t rank)
{
	if (rank < 0)
		paragraph_add(paragraph, "none");
	else
		paragraph_add(paragraph, "%lld", (long long)rank);
}

/* How noise was told, and of whom the figures are. */
static void put_method(const struct gate *gate, const struct options *options, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (gate->tested) {
		paragraph_add(&paragraph, COMPARE_METHOD "; steps are compared, p of %.2f or more is noise", COMPARE_ALPHA);
		paragraph_put(&paragraph, "method");
	}
	if (gate->before->rank < 0 && gate->after->rank < 0)
		return;
	paragraph.indent = 5;
	add_rank(&paragraph, gate->before->rank);
	paragraph_add(&paragraph, " before, ");
	add_rank(&paragraph, gate->after->rank);
	paragraph_add(&paragraph, options->rank < 0 ? " after; --rank N: another" : " after");
	paragraph_put(&paragraph, "rank");
}

/* A baseline is no trace: diff needs two. */
static void put_next(const struct gate *gate, const struct options *options, const struct style *style)
{
	struct command command = { .ascii = style->ascii };

	if (!gate->failed || !gate->before->process)
		return;
	next_begin(&command, "diff");
	next_files(&command, options);
	next_put(&command, style);
}

static bool print_gate(const struct gate *gate, const struct options *options)
{
	struct out *out = out_open(options->output);
	const struct style style = style_of(&options->style, out);

	if (options->format == FORMAT_JSON)
		print_gate_json(gate, out);
	else if (options->format == FORMAT_CSV)
		print_gate_csv(gate, out);
	else {
		for (size_t i = 0; i < gate->count; i++)
			put_verdict(gate, &gate->verdicts[i], &style);
		put_method(gate, options, &style);
		put_next(gate, options, &style);
	}
	return out_close(out, options->output);
}

/* Figures of steps are compared with figures of steps. */
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
	fatal(STATUS_UNREADABLE, "the baseline is of steps, and %s has too few of them: there is nothing to compare",
		gate->before->process ? gate->before->path : gate->after->path);
}

static int write_baseline(const struct options *options, const char **names, size_t count)
{
	struct sheet *sheet = sheet_open(options, options->files[0]);
	struct out *out;

	for (size_t i = 0; i < count; i++)
		if (!sheet_figure(sheet, names[i]) && options->metric_name)
			fatal(STATUS_UNREADABLE, "%s has nothing of `%s` to compare", sheet->path, names[i]);
	out = out_open(options->baseline);
	sheet_write(sheet, out);
	sheet_free(sheet);
	return out_close(out, options->baseline) ? STATUS_FINE : STATUS_UNREADABLE;
}

int gate_view(const struct options *options)
{
	struct gate gate = { .limit = options->max_regression >= 0 ? options->max_regression : USUAL_LIMIT };
	const char *names[METRICS_MOST];
	size_t count = 0;
	int status;

	if (options->file_count != (options->baseline ? 1 : 2))
		fatal(STATUS_USAGE, "gate compares two files: pperf-report gate BEFORE AFTER, or writes what it compares with: "
				    "pperf-report gate --write-baseline FILE TRACE");
	if (options->metric_name)
		count = names_asked(options->metric_name, names);
	else
		for (; sheet_name(count); count++)
			names[count] = sheet_name(count);
	if (options->baseline)
		return write_baseline(options, names, count);
	gate.before = sheet_open(options, options->files[0]);
	gate.after = sheet_open(options, options->files[1]);
	agree_on_basis(&gate);
	if (!options->metric_name)
		count = 0;
	for (size_t i = 0; i < count; i++)
		judge(&gate, names[i], true);
	if (!options->metric_name) {
		judge(&gate, "gpu", false);
		if (!gate.count)
			judge(&gate, "cpu", false);
		judge(&gate, "reserved_peak", false);
		judge(&gate, "allocated_peak", false);
	}
	if (!gate.count)
		fatal(STATUS_UNREADABLE, "%s and %s have no figure in common", gate.before->path, gate.after->path);
	conclude(&gate);
	status = print_gate(&gate, options) ? (gate.failed ? STATUS_DIFFERENT : STATUS_FINE) : STATUS_UNREADABLE;
	sheet_free(gate.before);
	sheet_free(gate.after);
	return status;
}
