/* SPDX-License-Identifier: MIT
 *
 * Prints what the rules found, as text, and in a few bytes as text or JSON for programs (--brief).
 */
#include "report/diagnose/diagnose.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/print/node_words.h"
#include "report/text/json_writer.h"
#include "report/base/alloc.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/run/call_stack.h"
#include "report/table/computed_row.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_COLUMNS 3u /* of the number before a finding */

static bool finding_number(const struct row *row, const char *key, uint64_t *value)
{
	const struct cell *cell = computed_row_cell(
		row->of.computed, column_find(key, strlen(key)));

	*value = cell && cell->kind == CELL_UNSIGNED ? cell->unsigned_value : 0;
	return cell && cell->kind == CELL_UNSIGNED;
}

/* ---- text ---- */

static void put_finding_text(
	const struct style *style, const struct row *row, const char *key, const char *title)
{
	struct paragraph paragraph = { .style = style, .indent = 14 };
	const struct string_view text = computed_row_text(row, key);
	char head[16];

	if (!text.length)
		return;
	snprintf(head, sizeof head, "  %s", title);
	paragraph_text(&paragraph, text.bytes, text.length);
	paragraph_print(&paragraph, head);
}

/* Adds where the user's own code launched the work that a finding is about, if that is recorded. */
static void add_launch_line(struct paragraph *paragraph, const struct row *row)
{
	const uint32_t stack = row->of.computed->launch_stack,
		       own = stack ? call_stack_own_frame(row->process, stack, 0) : 0;
	char *frame;
	size_t length;

	if (!stack || own >= call_stack_frames(row->process, stack))
		return;
	frame = xcalloc(CALL_STACK_TEXT);
	length = call_stack_frame(row->process, stack, own, true, frame, CALL_STACK_TEXT);
	paragraph_add(paragraph, "%slaunched at ", paragraph->built.used ? "; " : "");
	paragraph_text(paragraph, frame, length);
	free(frame);
}

static void put_finding_path(const struct style *style, const struct row *row)
{
	struct paragraph paragraph = { .style = style, .indent = 14 };
	uint64_t at;

	if (row->node)
		paragraph_add_place(&paragraph, row->process, row->node);
	if (row->node && computed_row_real(row, "share") > 0) {
		paragraph_add(&paragraph, "; ");
		finding_add_place_share(&paragraph, row, " of it");
	}
	add_launch_line(&paragraph, row);
	if (finding_number(row, "start_ns", &at)) {
		paragraph_add(&paragraph, paragraph.built.used ? "; example at " : "example at ");
		paragraph_value(&paragraph, UNIT_TIME, at);
	}
	if (paragraph.built.used)
		paragraph_print(&paragraph, "  where");
	free(paragraph.built.text);
}

/* Returns what can be gained by a finding that shortens GPU work, if that is less than its cost. */
static bool lower_gain(const struct row *row, uint64_t *gain_ns)
{
	return finding_number(row, "gain_ns", gain_ns) &&
	       *gain_ns < computed_row_number(row, "impact_ns");
}

static void add_bytes(struct paragraph *paragraph, const struct row *row, bool has_time)
{
	uint64_t bytes;

	if (!finding_number(row, "impact_bytes", &bytes))
		return;
	paragraph_add(paragraph, "%s", has_time ? ", " : "");
	paragraph_value(paragraph, UNIT_BYTES, bytes);
}

void finding_add_cost(struct paragraph *paragraph, const struct row *row)
{
	uint64_t impact, gain;
	const bool has_time = finding_number(row, "impact_ns", &impact),
		   has_gain = has_time && lower_gain(row, &gain);

	paragraph_add(paragraph, "%s",
		computed_row_is(row, "bound", "concerned")   ? "saves a part of "
		: has_gain                                   ? "saves at most "
		: !computed_row_is(row, "bound", "measured") ? "up to "
							     : "");
	if (has_time)
		paragraph_value(paragraph, UNIT_TIME, has_gain ? gain : impact);
	if (has_time)
		paragraph_add(paragraph, " (%.1f %% of %s)",
			100 * computed_row_real(row, has_gain ? "gain_share" : "impact_share"),
			computed_row_text(row, "impact_of").bytes);
	if (has_gain) {
		paragraph_add(paragraph, " of run time, and ");
		paragraph_value(paragraph, UNIT_TIME, impact);
		paragraph_add(paragraph, " of GPU time");
	}
	if (computed_row_is(row, "bound", "upper bound together"))
		paragraph_add(paragraph, " if all of them are removed");
	add_bytes(paragraph, row, has_time);
}

static bool has_cost(const struct row *row)
{
	uint64_t unused;

	return finding_number(row, "impact_ns", &unused) ||
	       finding_number(row, "impact_bytes", &unused);
}

static void add_impact(struct paragraph *paragraph, const struct row *row)
{
	if (!has_cost(row))
		return;
	paragraph_add(paragraph, ": ");
	finding_add_cost(paragraph, row);
}

void finding_add_place_share(
	struct paragraph *paragraph, const struct row *row, const char *of_cost)
{
	const struct string_view name = computed_row_text(row, "share_of");
	uint64_t whole;

	paragraph_add(paragraph, "%.0f %%", 100 * computed_row_real(row, "share"));
	if (finding_number(row, "share_of_ns", &whole) &&
		whole > computed_row_number(row, "impact_ns") / 200 * 201) {
		paragraph_add(paragraph, " of ");
		paragraph_value(paragraph, UNIT_TIME, whole);
		if (name.length)
			paragraph_add(paragraph, " %.*s", (int)name.length, name.bytes);
	} else {
		paragraph_add(paragraph, "%s", of_cost);
	}
}

/* Prints the name of a finding and, where there is room beside it, what the finding costs; else
 * below it. */
static void put_finding_head(const struct style *style, const struct row *row, unsigned number)
{
	const struct string_view name = row_name(row);
	struct paragraph cost = { .style = style, .indent = NUMBER_COLUMNS };
	size_t columns = NUMBER_COLUMNS + name.length;

	print_paint(style, PAINT_BOLD);
	print_line(style, number ? "%u. " : "-  ", number);
	output_bytes(style->out, name.bytes, name.length);
	print_paint(style, PAINT_NONE);
	if (has_cost(row))
		finding_add_cost(&cost, row);
	if (cost.built.used)
		columns += escaped_width(cost.built.text, cost.built.used) + 2;
	if (!cost.built.used) {
		output_char(style->out, '\n');
	} else if (columns <= style->width) {
		print_line(style, ": %s\n", cost.built.text);
		free(cost.built.text);
	} else {
		output_string(style->out, ":\n");
		paragraph_print(&cost, "");
	}
}

static void put_finding(const struct style *style, const struct row *row, unsigned number)
{
	const struct string_view sure = computed_row_text(row, "confidence"),
				 command = computed_row_text(row, "command");
	struct paragraph paragraph = { .style = style, .indent = 2 };

	put_finding_head(style, row, number);
	paragraph_text(&paragraph, computed_row_text(row, "finding").bytes,
		computed_row_text(row, "finding").length);
	paragraph_print(&paragraph, "");
	put_finding_text(style, row, "evidence", "evidence");
	put_finding_path(style, row);
	paragraph = (struct paragraph){ .style = style, .indent = 14 };
	paragraph_text(&paragraph, sure.bytes, sure.length);
	paragraph_add(&paragraph, ": ");
	paragraph_text(&paragraph, computed_row_text(row, "why").bytes,
		computed_row_text(row, "why").length);
	paragraph_print(&paragraph, "  confidence");
	put_finding_text(style, row, "next", "next");
	output_string(style->out, "  shown by    ");
	/* the command is escaped, and must not be broken into lines */
	output_bytes(style->out, command.bytes, command.length);
	output_string(style->out, "\n");
}

/* Returns true if what a finding costs or, if that is less, what it gains is below 1 % of what it
 * is a share of. */
static bool costs_little(const struct row *row)
{
	uint64_t impact_ns, gain_ns;
	double part = 1;

	if (!finding_number(row, "impact_ns", &impact_ns))
		return false;
	if (lower_gain(row, &gain_ns))
		part = (double)gain_ns / (double)impact_ns;
	return 1000 * computed_row_real(row, "impact_share") * part < LIMIT_MINOR;
}

/* Returns true if a finding gains so little of the run that its share is printed as 0.0 %. */
static bool gains_nothing(const struct row *row)
{
	uint64_t gain_ns;

	return lower_gain(row, &gain_ns) && 100 * computed_row_real(row, "gain_share") < 0.05;
}

/* Prints which findings gain nothing: next to none of the GPU work that they shorten is on the
 * critical path. */
static void put_findings_without_gain(
	const struct style *style, const struct row *rows, size_t count)
{
	struct paragraph paragraph = { .style = style, .indent = 16 };

	for (size_t i = 0; i < count; i++) {
		const struct string_view name = row_name(&rows[i]);

		if (computed_row_is(&rows[i], "kind", "finding") && gains_nothing(&rows[i]))
			paragraph_add(&paragraph, "%s%.*s", paragraph.built.used ? ", " : "",
				(int)name.length, name.bytes);
	}
	if (paragraph.built.used) {
		paragraph_add(&paragraph, " (less of this GPU work hardly shortens the run)");
		paragraph_print(&paragraph, "no gain");
	}
	free(paragraph.built.text);
}

/* Prints a finding in one sentence: it is not worth more. */
static void put_minor_finding(const struct style *style, const struct row *row)
{
	struct paragraph paragraph = { .style = style, .indent = 3 };
	const struct string_view name = row_name(row), sentence = computed_row_text(row, "finding");

	paragraph_text(&paragraph, name.bytes, name.length);
	add_impact(&paragraph, row);
	paragraph_add(&paragraph, ". ");
	paragraph_text(&paragraph, sentence.bytes, sentence.length);
	paragraph_print(&paragraph, "-");
}

/* Returns the name of the finding that has what a rule without a finding looked for. Or empty. */
static struct string_view reported_in(const struct row *row)
{
	return computed_row_text(row, "same_idle_as");
}

/* Prints which rules have no finding of their own, because another finding has their time. */
static void put_rules_in_others(const struct style *style, const struct row *rows, size_t count)
{
	struct paragraph paragraph = { .style = style, .indent = 16 };

	for (size_t i = 0; i < count; i++) {
		const struct string_view name = row_name(&rows[i]), other = reported_in(&rows[i]);

		if (!computed_row_is(&rows[i], "kind", "clear") || !other.length)
			continue;
		paragraph_add(&paragraph, "%s%.*s: its time is in the finding %.*s",
			paragraph.built.used ? "; " : "", (int)name.length, name.bytes,
			(int)other.length, other.bytes);
	}
	if (paragraph.built.used)
		paragraph_print(&paragraph, "found above");
	free(paragraph.built.text);
}

/* Prints the names of the rules that found nothing in one line: those that have measured some time,
 * with that, or the others. */
static void put_clear_rules(const struct style *style, const struct row *rows, size_t count,
	bool with_cost, const char *title)
{
	struct paragraph paragraph = { .style = style, .indent = 16 };

	for (size_t i = 0; i < count; i++) {
		const struct string_view name = row_name(&rows[i]);
		uint64_t cost_ns;

		if (!computed_row_is(&rows[i], "kind", "clear") || reported_in(&rows[i]).length ||
			finding_number(&rows[i], "impact_ns", &cost_ns) != with_cost)
			continue;
		paragraph_add(&paragraph, "%s%.*s", paragraph.built.used ? ", " : "",
			(int)name.length, name.bytes);
		if (!with_cost)
			continue;
		paragraph_add(&paragraph, " ");
		paragraph_value(&paragraph, UNIT_TIME, cost_ns);
		paragraph_add(&paragraph, " (%.1f %%%s)",
			100 * computed_row_real(&rows[i], "impact_share"),
			computed_row_is(&rows[i], "impact_of", PATH_TIME_NAME)
				? " of " PATH_TIME_NAME
				: "");
	}
	if (paragraph.built.used)
		paragraph_print(&paragraph, title);
	free(paragraph.built.text);
}

/* Returns true if the rows are of rules that could not be checked for the same reason. */
static bool lack_the_same(const struct row *a, const struct row *b)
{
	const struct string_view one = computed_row_text(a, "why"),
				 other = computed_row_text(b, "why");

	return computed_row_is(a, "kind", "not checked") &&
	       computed_row_is(b, "kind", "not checked") && one.length == other.length &&
	       !memcmp(one.bytes, other.bytes, one.length);
}

/* Returns true if an earlier row has the reason of row `index`. */
static bool is_reason_printed(const struct row *rows, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (lack_the_same(&rows[i], &rows[index]))
			return true;
	return false;
}

static void add_name(struct paragraph *paragraph, const struct row *row, const char *separator)
{
	const struct string_view name = row_name(row);

	paragraph_add(paragraph, "%s%.*s", separator, (int)name.length, name.bytes);
}

/* Prints each reason for which rules could not be checked, with these rules. */
static void put_unchecked(const struct style *style, const struct row *rows, size_t count)
{
	const char *title = "not checked";

	for (size_t i = 0; i < count; i++) {
		struct paragraph paragraph = { .style = style, .indent = 16 };
		const struct string_view reason = computed_row_text(&rows[i], "why");
		const char *separator = ": ";

		if (!computed_row_is(&rows[i], "kind", "not checked") || is_reason_printed(rows, i))
			continue;
		paragraph_text(&paragraph, reason.bytes, reason.length);
		for (size_t other = i; other < count; other++)
			if (lack_the_same(&rows[i], &rows[other])) {
				add_name(&paragraph, &rows[other], separator);
				separator = ", ";
			}
		paragraph_print(&paragraph, title);
		title = "";
	}
}

/* Prints that nothing was found. Adds how many rules were checked if fewer than half of them
 * were. */
static void put_nothing_found(
	struct output *out, const struct row *rows, size_t count, size_t columns)
{
	size_t unchecked = 0;
	char rules[64];

	for (size_t i = 0; i < count; i++)
		unchecked += computed_row_is(&rows[i], "kind", "not checked");
	snprintf(rules, sizeof rules, "%zu of %zu rules checked", count - unchecked, count);
	output_string(out, "no findings");
	if (unchecked > count / 2) {
		output_string(out,
			sizeof "no findings in" + strlen(rules) > columns ? " in\n  " : " in ");
		output_string(out, rules);
	}
	output_char(out, '\n');
}

/* Prints what bounds the run, and how its time is divided. */
static void put_verdict(const struct style *style, const struct row *row)
{
	struct paragraph paragraph = { .style = style };
	const struct string_view sentence = computed_row_text(row, "finding");

	paragraph_text(&paragraph, sentence.bytes, sentence.length);
	paragraph_print(&paragraph, "verdict");
	put_finding_text(style, row, "evidence", "evidence");
	paragraph = (struct paragraph){ .style = style, .indent = 14 };
	paragraph_text(&paragraph, computed_row_text(row, "confidence").bytes,
		computed_row_text(row, "confidence").length);
	paragraph_add(&paragraph, ": ");
	paragraph_text(&paragraph, computed_row_text(row, "why").bytes,
		computed_row_text(row, "why").length);
	paragraph_print(&paragraph, "  confidence");
	put_finding_text(style, row, "next", "next");
	output_string(style->out, "  shown by    ");
	output_bytes(style->out, computed_row_text(row, "command").bytes,
		computed_row_text(row, "command").length);
	output_string(style->out, "\n");
}

/* Returns true for the finding that is printed before the verdict: the run ended by it. */
static bool ends_run(const struct row *row)
{
	static const char rule[] = "out-of-memory";
	const struct string_view name = row_name(row);

	return name.length == sizeof rule - 1 && !memcmp(name.bytes, rule, name.length);
}

static void put_process_findings(
	const struct style *style, const struct row *rows, size_t count, bool several_processes)
{
	unsigned number = 0, minor = 0;

	if (several_processes) {
		if (rows->process->rank >= 0)
			print_line(style, "%s, ", process_name(rows->process));
		print_line(style, "pid %u  ", rows->process->pid);
		print_escaped(style, rows->process->path, strlen(rows->process->path), 0);
		output_char(style->out, '\n');
	}
	for (size_t i = 0; i < count; i++)
		if (computed_row_is(&rows[i], "kind", "finding") && ends_run(&rows[i]))
			put_finding(style, &rows[i], ++number);
	for (size_t i = 0; i < count; i++)
		if (computed_row_is(&rows[i], "kind", "verdict"))
			put_verdict(style, &rows[i]);
	for (size_t i = 0; i < count; i++) {
		if (!computed_row_is(&rows[i], "kind", "finding") || ends_run(&rows[i]))
			continue;
		if (costs_little(&rows[i]))
			minor++;
		else
			put_finding(style, &rows[i], ++number);
	}
	if (!number && minor)
		output_string(style->out, "no finding costs 1 % or more\n");
	else if (!number)
		put_nothing_found(style->out, rows, count, style->width);
	for (size_t i = 0; i < count; i++)
		if (computed_row_is(&rows[i], "kind", "note"))
			put_finding(style, &rows[i], 0);
	for (size_t i = 0; i < count && minor; i++)
		if (computed_row_is(&rows[i], "kind", "finding") && costs_little(&rows[i]) &&
			!gains_nothing(&rows[i]))
			put_minor_finding(style, &rows[i]);
	put_findings_without_gain(style, rows, count);
	put_rules_in_others(style, rows, count);
	put_clear_rules(style, rows, count, true, "below threshold");
	put_clear_rules(style, rows, count, false, "nothing found");
	put_unchecked(style, rows, count);
}

/* Returns the number of rows, from `first` on, that belong to one process. */
static size_t process_rows(const struct rows *rows, size_t first)
{
	size_t end = first;

	while (end < rows->count && rows->rows[end].process == rows->rows[first].process)
		end++;
	return end - first;
}

void draw_diagnose(const struct report *report, const struct style *style)
{
	const struct rows *rows = &report->rows;

	for (size_t i = 0, count; i < rows->count; i += count) {
		count = process_rows(rows, i);
		if (i)
			output_char(style->out, '\n');
		put_process_findings(style, &rows->rows[i], count, report->processes->shown > 1);
	}
}

/* ---- --brief ---- */

#define BRIEF_BYTES 8192u
#define BRIEF_END_BYTES 96u /* for the sentence about findings that did not fit */
#define BRIEF_COMMAND 4096u /* bytes; a longer command never fits */
#define BRIEF_PATH 240u

/* Prints the node's path, escaped and shortened to BRIEF_PATH columns. */
static void put_brief_path(struct output *out, const struct row *row, bool json, bool ascii)
{
	uint32_t nodes[64];
	const size_t length = row_path(row, nodes, 64);
	char text[8192];
	size_t used = 0;

	for (size_t i = 0; i < length && i < 64 && used + 16 < sizeof text; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		used += (size_t)snprintf(text + used, sizeof text - used, "%s", i ? "/" : "");
		used += escape_text(text + used, sizeof text - used, name.bytes,
			name.length < 1000 ? name.length : 1000, ascii);
	}
	text[used] = '\0';
	used = escaped_shorten(text, sizeof text, BRIEF_PATH, ascii);
	if (json)
		output_json_text(out, text, used);
	else
		output_bytes(out, text, used);
}

static void brief_json_string(struct json_writer *writer, const struct row *row, const char *key)
{
	const struct string_view text = computed_row_text(row, key);

	json_write_key(writer, key);
	json_write_text(writer, text.length ? text : (struct string_view){ NULL, 0 });
}

static void brief_json_number(struct json_writer *writer, const struct row *row, const char *key)
{
	uint64_t value;

	if (finding_number(row, key, &value))
		json_put_unsigned(writer, key, value);
}

static void brief_json_where(struct json_writer *writer, const struct row *row, bool ascii)
{
	if (!row->node)
		return;
	json_write_key(writer, "path");
	put_brief_path(writer->out, row, true, ascii);
	writer->needs_comma = true;
}

static void brief_json_finding(
	struct output *out, const struct row *row, bool ascii, bool several_processes)
{
	struct json_writer writer = { .out = out };

	json_write_begin(&writer, '{');
	json_put_text(&writer, "rule", row_name(row));
	brief_json_string(&writer, row, "kind");
	if (several_processes)
		json_put_unsigned(&writer, "pid", row->process->pid);
	brief_json_number(&writer, row, "impact_ns");
	brief_json_number(&writer, row, "gain_ns");
	brief_json_number(&writer, row, "impact_bytes");
	brief_json_string(&writer, row, "bound");
	brief_json_string(&writer, row, "confidence");
	brief_json_string(&writer, row, "finding");
	brief_json_string(&writer, row, "evidence");
	brief_json_where(&writer, row, ascii);
	brief_json_number(&writer, row, "count");
	brief_json_number(&writer, row, "start_ns");
	brief_json_string(&writer, row, "next");
	brief_json_string(&writer, row, "command");
	json_write_end(&writer, '}');
}

static void brief_text_line(
	struct output *out, const struct row *row, const char *key, const char *title)
{
	const struct string_view text = computed_row_text(row, key);

	if (!text.length)
		return;
	output_string(out, title);
	output_bytes(out, text.bytes, text.length);
	output_char(out, '\n');
}

static void brief_text_head(
	const struct style *style, const struct row *row, bool several_processes)
{
	const struct string_view name = row_name(row), sure = computed_row_text(row, "confidence");
	struct paragraph impact = { .style = style };

	output_bytes(style->out, name.bytes, name.length);
	if (several_processes)
		print_line(style, " (pid %u)", row->process->pid);
	add_impact(&impact, row);
	output_bytes(style->out, impact.built.used ? impact.built.text : "", impact.built.used);
	free(impact.built.text);
	output_string(style->out, " (confidence ");
	output_bytes(style->out, sure.bytes, sure.length);
	output_string(style->out, ")\n");
}

static void brief_text_finding(
	struct output *out, const struct row *row, bool ascii, bool several_processes)
{
	const struct style style = { .out = out, .ascii = ascii };

	brief_text_head(&style, row, several_processes);
	brief_text_line(out, row, "finding", "  ");
	brief_text_line(out, row, "evidence", "  evidence: ");
	if (row->node) {
		output_string(out, "  where: ");
		put_brief_path(out, row, false, ascii);
		output_char(out, '\n');
	}
	brief_text_line(out, row, "next", "  next: ");
	brief_text_line(out, row, "command", "  shown by: ");
}

/* Lists of names at the end of --brief. */
enum brief_list { BRIEF_WITHOUT_GAIN, BRIEF_CLEAR, BRIEF_UNCHECKED, BRIEF_LISTS };

static bool is_in_brief_list(const struct row *row, enum brief_list list)
{
	return list == BRIEF_WITHOUT_GAIN
		       ? computed_row_is(row, "kind", "finding") && gains_nothing(row)
	       : list == BRIEF_CLEAR
		       ? computed_row_is(row, "kind", "clear") && !reported_in(row).length
		       : computed_row_is(row, "kind", "not checked");
}

static void brief_names(
	struct output *out, const struct rows *rows, bool json, enum brief_list list)
{
	static const char *const titles[] = { "no gain", "nothing found by", "not checked" },
				 *const keys[] = { "no_gain", "clear", "not_checked" };
	struct text_builder names = { .text = NULL };

	for (size_t i = 0; i < rows->count; i++)
		if (is_in_brief_list(&rows->rows[i], list))
			text_add(&names, json ? "%s\"%.*s\"" : "%s%.*s", names.used ? ", " : "",
				(int)row_name(&rows->rows[i]).length,
				row_name(&rows->rows[i]).bytes);
	if (json || names.used || list != BRIEF_WITHOUT_GAIN) {
		output_string(out, json ? ", \"" : "");
		output_string(out, json ? keys[list] : titles[list]);
		output_string(out, json ? "\": [" : ": ");
		output_bytes(out, names.used ? names.text : "", names.used);
		output_string(out, json ? "]" : names.used ? "\n" : "none\n");
	}
	free(names.text);
}

/* Prints which findings gain nothing, which rules found nothing and which were not checked. Left
 * out for several processes, to save space. */
static void brief_tail(
	struct output *out, const struct rows *rows, bool json, bool several_processes)
{
	for (unsigned list = 0; list < BRIEF_LISTS && !several_processes; list++)
		brief_names(out, rows, json, (enum brief_list)list);
}

static void brief_end(
	struct output *out, const struct rows *rows, size_t found, size_t left, bool json)
{
	char text[BRIEF_END_BYTES];

	if (!json && !found) {
		put_nothing_found(out, rows->rows, rows->count, SIZE_MAX);
		return;
	}
	if (json)
		snprintf(text, sizeof text, ", \"findings_in_all\": %zu, \"left_out\": %zu}\n",
			found, left);
	else
		snprintf(text, sizeof text, "%zu finding%s%s\n", found, found == 1 ? "" : "s",
			left ? "; more findings than fit here: see diagnose without --brief" : "");
	output_string(out, text);
}

/* Returns an output that collects a piece in its buffer. The piece must fit into the buffer. */
static struct output *buffer_new(void)
{
	struct output *piece = xcalloc(sizeof *piece);

	piece->fd = -1;
	return piece;
}

void brief_diagnose(const struct report *report, struct output *out)
{
	const struct rows *rows = &report->rows;
	const bool json = report->options->format == FORMAT_JSON,
		   several = report->processes->shown > 1, simulated = report_is_simulated(report);
	struct output *tail = buffer_new(), *piece = buffer_new();
	size_t used, found = 0, shown = 0, left = 0;
	const char *head =
		json ? simulated ? "{\"schema\": \"pperf.diagnose-brief/1\", \"simulated\": true, "
				   "\"findings\": ["
				 : "{\"schema\": \"pperf.diagnose-brief/1\", \"findings\": ["
		: simulated ? "simulated device: GPU figures are not measurements\n"
			    : "";

	brief_tail(tail, rows, json, several);
	used = strlen(head) + 1 + tail->used + BRIEF_END_BYTES;
	output_string(out, head);
	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->rows[i];

		if ((!computed_row_is(row, "kind", "finding") &&
			    !computed_row_is(row, "kind", "note")) ||
			gains_nothing(row))
			continue;
		found += computed_row_is(row, "kind", "finding");
		piece->used = 0;
		if (computed_row_text(row, "command").length < BRIEF_COMMAND) {
			output_string(piece, json && shown ? ",\n" : "");
			(json ? brief_json_finding : brief_text_finding)(
				piece, row, report->options->style.ascii, several);
		}
		if (!piece->used || used + piece->used > BRIEF_BYTES) {
			left++;
			continue;
		}
		output_bytes(out, piece->buffer, piece->used);
		used += piece->used;
		shown++;
	}
	output_string(out, json ? "]" : "");
	output_bytes(out, tail->buffer, tail->used);
	brief_end(out, rows, found, left, json);
	free(tail);
	free(piece);
}
