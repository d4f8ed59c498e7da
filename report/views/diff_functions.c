/* SPDX-License-Identifier: MIT
 *
 * Prints the comparison of the CPU samples of two runs (diff --by function, line or library) as
 * text, JSON and CSV.
 */
#include "report/views/diff_functions.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include "report/print/next_command.h"
#include "report/text/format_number.h"
#include "report/text/paragraph.h"
#include "report/views/function_diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NARROW 72u /* columns; below, CPU times are left out */
#define VALUES_WIDTH 38u
#define TIMES_WIDTH 24u
#define NAME_MIN 12u
#define MOVERS 5u /* changes that are shown although they are not significant */

static const char *key_name(const struct options *options)
{
	return options->by == BY_LINE ? "line" : options->by == BY_LIBRARY ? "library" : "function";
}

static const char *keys_name(const struct options *options)
{
	return options->by == BY_LINE      ? "lines"
	       : options->by == BY_LIBRARY ? "libraries"
					   : "functions";
}

static const char *status_of(const struct function_change *change)
{
	return !change->samples[0] ? "new" : !change->samples[1] ? "gone" : "both";
}

/* ---- text ---- */

static void put_side(const struct function_diff *diff, const struct style *style, unsigned which,
	const char *title)
{
	struct paragraph line = { .style = style };
	const struct process *process = diff->sides[which].process;

	paragraph_text(&line, process->path, strlen(process->path));
	if (process->rank >= 0)
		paragraph_add(&line, " (rank %lld)", (long long)process->rank);
	paragraph_add(&line, ": ");
	paragraph_value(&line, UNIT_COUNT, diff->samples[which]);
	paragraph_add(&line, " CPU sample%s", diff->samples[which] == 1 ? "" : "s");
	if (diff->cpu_ns[which]) {
		paragraph_add(&line, " of ");
		paragraph_value(&line, UNIT_TIME, diff->cpu_ns[which]);
	}
	if (!process->complete)
		paragraph_add(&line, " (incomplete; run pperf-report on it for the reasons)");
	paragraph_print(&line, title);
}

static void put_sentences(
	const struct function_diff *diff, const struct options *options, const struct style *style)
{
	struct paragraph line = { .style = style };

	paragraph_add(&line,
		"share of CPU samples in each %s itself, without what it calls; p: probability of "
		"a difference this large by chance, of a " FUNCTION_DIFF_METHOD
		", adjusted for all that were tested",
		key_name(options));
	paragraph_print(&line, "compared");
	paragraph_add(&line,
		"%zu of %zu %s changed significantly: p < %g and at least %g percentage "
		"point; %zu have too few samples to be tested",
		diff->significant, diff->count, keys_name(options), CHANGE_TEST_FDR,
		100 * FUNCTION_DIFF_MIN_SHIFT, diff->count - diff->tested);
	paragraph_print(&line, "result");
}

static void put_time(const struct style *style, uint64_t ns)
{
	char text[FORMAT_NUMBER_BYTES + 1];
	const size_t bytes = ns ? format_with_unit(
					  text, UNIT_TIME, (int64_t)ns, style->iec, style->ascii)
				: (size_t)snprintf(text, sizeof text, "-");

	print_line(style, "%*s%.*s", (int)(TIMES_WIDTH / 2 - escaped_width(text, bytes)), "",
		(int)bytes, text);
}

static void put_share(
	const struct style *style, const struct function_change *change, unsigned which)
{
	if (change->samples[which])
		print_line(style, "%7.1f %%", 100 * change->share[which]);
	else
		print_line(style, "%9s", "-");
}

static void put_p(const struct style *style, const struct change_test *test)
{
	if (!test->tested)
		print_line(style, "  %-8s", "-");
	else if (test->p < 0.0001)
		print_line(style, "  %-8s", "<0.0001");
	else
		print_line(style, "  %-8.4f", test->p);
}

static void put_row(const struct function_diff *diff, const struct style *style,
	const struct function_change *change)
{
	const bool narrow = style->width < NARROW;
	const size_t taken = VALUES_WIDTH + (narrow ? 0 : TIMES_WIDTH);
	const struct string_view label = string_table_get(diff->texts, change->label);
	struct paragraph name = { .style = style };

	if (change->significant)
		print_paint(style, change->test.shift > 0 ? PAINT_HOT : PAINT_BOLD);
	put_share(style, change, 0);
	put_share(style, change, 1);
	print_line(style, "%+8.1f", 100 * change->test.shift);
	put_p(style, &change->test);
	for (unsigned which = 0; which < 2 && !narrow; which++)
		put_time(style, change->cpu_ns[which]);
	paragraph_text(&name, label.bytes, label.length);
	paragraph_shorten(
		&name, 0, style->width > taken + NAME_MIN ? style->width - taken : NAME_MIN);
	print_line(style, "  %s", name.built.text ? name.built.text : "");
	free(name.built.text);
	if (change->significant)
		print_paint(style, PAINT_NONE);
	output_char(style->out, '\n');
}

static void put_titles(const struct style *style)
{
	print_line(style, "\n%9s%9s%8s  %-8s", "before", "after", "points", "p");
	if (style->width >= NARROW)
		print_line(style, "%12s%12s", "CPU before", "CPU after");
	print_line(style, "  name\n");
}

/* Prints the rows that are significant, or those that are not, at most `limit`. Returns how many
 * others there are. */
static size_t put_rows(
	const struct function_diff *diff, const struct style *style, bool significant, size_t limit)
{
	size_t shown = 0, others = 0;

	for (size_t i = 0; i < diff->count; i++)
		if (diff->all[i].significant != significant)
			continue;
		else if (shown < limit) {
			put_row(diff, style, &diff->all[i]);
			shown++;
		} else
			others++;
	return others;
}

static void put_text(
	const struct function_diff *diff, const struct options *options, struct output *out)
{
	const struct style style = style_of(&options->style, out);
	struct shell_command command = { .ascii = style.ascii };
	size_t more;

	put_side(diff, &style, 0, "before");
	put_side(diff, &style, 1, "after");
	put_sentences(diff, options, &style);
	put_titles(&style);
	more = put_rows(diff, &style, true, options->top ? options->top : 40);
	if (more)
		print_line(&style, "%zu more changes (-n 0 shows all)\n", more);
	if (diff->significant < diff->count) {
		print_line(&style, "\nlargest changes that are not significant:\n");
		put_rows(diff, &style, false, MOVERS);
	}
	output_char(out, '\n');
	next_command_begin(&command, "diff");
	next_command_add_files(&command, options);
	next_command_put(&command, &style);
}

/* ---- JSON and CSV ---- */

static void put_json_row(struct json_writer *json, const struct function_diff *diff,
	const struct function_change *change)
{
	json_write_begin(json, '{');
	json_put_text(json, "name", string_table_get(diff->texts, change->name));
	json_put_text(json, "label", string_table_get(diff->texts, change->label));
	json_put_string(json, "kind", node_kind_name(change->kind));
	json_put_string(json, "status", status_of(change));
	json_put_unsigned(json, "samples_before", change->samples[0]);
	json_put_unsigned(json, "samples_after", change->samples[1]);
	json_put_unsigned(json, "cpu_before_ns", change->cpu_ns[0]);
	json_put_unsigned(json, "cpu_after_ns", change->cpu_ns[1]);
	json_put_double(json, "share_before", change->share[0]);
	json_put_double(json, "share_after", change->share[1]);
	json_put_double(json, "shift", change->test.shift);
	json_put_known_double(json, "p", change->test.p, change->test.tested);
	json_put_bool(json, "significant", change->significant);
	json_write_end(json, '}');
}

static void put_json(
	const struct function_diff *diff, const struct options *options, struct output *out)
{
	struct json_writer json = { .out = out };

	json_begin_comparison(
		&json, "diff", diff->sides[0].process->path, diff->sides[1].process->path);
	json_put_string(&json, "by", key_name(options));
	json_put_string(&json, "method", FUNCTION_DIFF_METHOD);
	json_put_double(&json, "fdr", CHANGE_TEST_FDR);
	json_put_double(&json, "least_change", FUNCTION_DIFF_MIN_SHIFT);
	json_put_unsigned(&json, "samples_before", diff->samples[0]);
	json_put_unsigned(&json, "samples_after", diff->samples[1]);
	json_put_unsigned(&json, "cpu_before_ns", diff->cpu_ns[0]);
	json_put_unsigned(&json, "cpu_after_ns", diff->cpu_ns[1]);
	json_put_unsigned(&json, "tested", diff->tested);
	json_put_unsigned(&json, "found", diff->significant);
	json_put_begin(&json, "rows", '[');
	for (size_t i = 0; i < diff->count; i++)
		put_json_row(&json, diff, &diff->all[i]);
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

static void put_csv_numbers(struct output *out, const uint64_t values[2])
{
	for (unsigned which = 0; which < 2; which++) {
		output_char(out, ',');
		output_unsigned(out, values[which]);
	}
}

static void put_csv(const struct function_diff *diff, struct output *out)
{
	output_string(out,
		"label,kind,status,samples_before,samples_after,cpu_before_ns,cpu_after_ns,"
		"share_before,share_after,shift,p,significant\r\n");
	for (size_t i = 0; i < diff->count; i++) {
		const struct function_change *change = &diff->all[i];
		const struct string_view label = string_table_get(diff->texts, change->label);

		output_csv_text(out, label.bytes, label.length);
		output_char(out, ',');
		output_string(out, node_kind_name(change->kind));
		output_char(out, ',');
		output_string(out, status_of(change));
		put_csv_numbers(out, change->samples);
		put_csv_numbers(out, change->cpu_ns);
		output_char(out, ',');
		output_double(out, change->share[0]);
		output_char(out, ',');
		output_double(out, change->share[1]);
		output_char(out, ',');
		output_double(out, change->test.shift);
		output_char(out, ',');
		if (change->test.tested)
			output_double(out, change->test.p);
		output_string(out, change->significant ? ",true\r\n" : ",false\r\n");
	}
}

int diff_functions_view(const struct options *options)
{
	struct function_diff *diff = function_diff_read(options);
	struct output *out = output_open(options->output);
	int status = diff->significant ? STATUS_DIFFERENT : STATUS_OK;

	if (options->format == FORMAT_JSON)
		put_json(diff, options, out);
	else if (options->format == FORMAT_CSV)
		put_csv(diff, out);
	else
		put_text(diff, options, out);
	if (!output_close(out, options->output))
		status = STATUS_UNREADABLE;
	function_diff_free(diff);
	return status;
}
