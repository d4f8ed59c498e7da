/* SPDX-License-Identifier: MIT */
#include "report/summary/verdict.h"
#include "report/analysis/step_stats.h"
#include "report/base/alloc.h"
#include "report/diagnose/diagnose.h"
#include "report/diagnose/run_bound.h"
#include "report/print/print_json.h"
#include "report/summary/headline.h"
#include "report/summary/steps_sentence.h"
#include "report/table/computed_row.h"
#include "report/views/summary_coverage.h"
#include <stdlib.h>
#include <string.h>

/* Returns a copy of a column's text, or NULL if it is empty. */
static char *copy_row_text(const struct row *row, const char *key)
{
	const struct string_view text = computed_row_text(row, key);
	char *copy = text.length ? xcalloc(text.length + 1) : NULL;

	if (copy)
		memcpy(copy, text.bytes, text.length);
	return copy;
}

static void add_headline(
	struct run_verdict *verdict, enum verdict_topic topic, enum headline_topic of)
{
	const struct style style = { .ascii = true, .whole_names = true };
	struct paragraph paragraph = { .style = &style };
	struct verdict_place *place = &verdict->places[topic];

	headline_add(&paragraph, verdict->process, of, verdict->bound != NULL);
	verdict->sentences[topic] = paragraph.built.text;
	if (paragraph.built.used)
		place->node = headline_place(verdict->process, of, &place->amount, &place->whole);
}

/* Adds what the figures rest on: the lines `coverage` and `steps` of the first screen. */
static void add_evidence_lines(struct run_verdict *verdict)
{
	const struct style style = { .ascii = false, .whole_names = true };
	struct paragraph coverage = { .style = &style }, steps = { .style = &style };

	coverage_add(&coverage, verdict->process);
	verdict->sentences[VERDICT_COVERAGE] = coverage.built.text;
	if (verdict->process->steps)
		steps_sentence_add(&steps, verdict->process->steps);
	verdict->sentences[VERDICT_STEPS] = steps.built.text;
}

static void add_bound(struct run_verdict *verdict, const struct row *row)
{
	const struct string_view name = row_name(row);

	verdict->bound = xcalloc(name.length + 1);
	memcpy(verdict->bound, name.bytes, name.length);
	verdict->sentences[VERDICT_BOUND] = copy_row_text(row, "finding");
	verdict->sentences[VERDICT_EVIDENCE] = copy_row_text(row, "evidence");
	verdict->sentences[VERDICT_NEXT] = copy_row_text(row, "next");
	verdict->confidence = copy_row_text(row, "confidence");
	verdict->command = copy_row_text(row, "command");
	if (verdict_is_unjudged(row)) {
		free(verdict->sentences[VERDICT_EVIDENCE]);
		add_headline(verdict, VERDICT_EVIDENCE, HEADLINE_CPU);
	}
}

bool verdict_is_unjudged(const struct row *row)
{
	const struct string_view name = row_name(row);

	return name.length == strlen(bound_name(BOUND_UNJUDGED)) &&
	       !memcmp(name.bytes, bound_name(BOUND_UNJUDGED), name.length);
}

/* Returns the row of the finding of a rule; NULL: it found nothing. */
static const struct row *finding_of_rule(const struct rows *rows, const char *rule)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct string_view name = row_name(&rows->rows[i]);

		if (computed_row_is(&rows->rows[i], "kind", "finding") &&
			name.length == strlen(rule) && !memcmp(name.bytes, rule, name.length))
			return &rows->rows[i];
	}
	return NULL;
}

const struct row *verdict_add_compilation(
	struct paragraph *paragraph, const struct process *process, const struct rows *rows)
{
	const struct row *first = finding_of_rule(rows, "compilation"),
			 *again = finding_of_rule(rows, "recompilation");
	const uint64_t first_ns = first ? computed_row_number(first, "impact_ns") : 0,
		       again_ns = again ? computed_row_number(again, "impact_ns") : 0;

	if (!run_bound_is_percent(first_ns + again_ns, process->wall_ns, BOUND_SHARE_MIN))
		return NULL;
	paragraph_add(paragraph, "The run is bound by compilation: torch.compile takes ");
	paragraph_value(paragraph, UNIT_TIME, first_ns + again_ns);
	paragraph_add(paragraph, " of ");
	paragraph_value(paragraph, UNIT_TIME, process->wall_ns);
	paragraph_add(paragraph, " (");
	paragraph_percent(paragraph, first_ns + again_ns, process->wall_ns);
	paragraph_add(paragraph, ")");
	if (again_ns) {
		paragraph_add(paragraph, ", of which it compiles again for ");
		paragraph_value(paragraph, UNIT_TIME, again_ns);
	}
	paragraph_add(paragraph, ".");
	return again_ns > first_ns ? again : first;
}

/* Sets the verdict of a run without GPU work: compilation, or else where its CPU time went. */
static void add_cpu_verdict(struct run_verdict *verdict, const struct rows *rows)
{
	const struct style style = { .ascii = true, .whole_names = true };
	struct paragraph paragraph = { .style = &style };

	if (!verdict_add_compilation(&paragraph, verdict->process, rows))
		add_headline(verdict, VERDICT_BOUND, HEADLINE_CPU);
	else
		verdict->sentences[VERDICT_BOUND] = paragraph.built.text;
}

struct run_verdict *run_verdict_read(const struct options *options,
	const struct processes *processes, struct process *process, struct rows *rows)
{
	struct run_verdict *verdict = xcalloc(sizeof *verdict);
	struct processes only = { .all = process, .count = processes->count, .shown = 1 };
	const struct profile_totals *totals = &process->profile->totals;
	struct options all = *options;

	all.view = view_find("diagnose");
	all.top = 0;
	verdict->process = process;
	arrange_diagnose(&all, &only, rows);
	for (size_t i = 0; i < rows->count; i++)
		if (computed_row_is(&rows->rows[i], "kind", "verdict"))
			add_bound(verdict, &rows->rows[i]);
	if (!verdict->bound && !totals->gpu_sum_ns && !totals->reserved_peak)
		add_cpu_verdict(verdict, rows);
	add_headline(verdict, VERDICT_GPU_TIME, HEADLINE_GPU);
	add_headline(verdict, VERDICT_MEMORY, HEADLINE_MEMORY);
	add_evidence_lines(verdict);
	step_busy_read(process, &verdict->steps_busy_ns, &verdict->steps_idle_ns);
	verdict->busy_ns = totals->gpu_busy_ns;
	verdict->idle_ns = totals->gpu_idle_ns;
	return verdict;
}

void run_verdict_free(struct run_verdict *verdict)
{
	if (!verdict)
		return;
	for (size_t i = 0; i < VERDICT_TOPIC_COUNT; i++)
		free(verdict->sentences[i]);
	free(verdict->bound);
	free(verdict->confidence);
	free(verdict->command);
	free(verdict);
}

static void write_sentences(struct json_writer *json, const struct run_verdict *verdict)
{
	static const char *const topics[] = {
#define X(topic, name) [VERDICT_##topic] = name,
		VERDICT_TOPICS(X)
#undef X
	};
	struct row row;

	json_put_begin(json, "sentences", '[');
	for (size_t i = 0; i < VERDICT_TOPIC_COUNT; i++) {
		const struct verdict_place *place = &verdict->places[i];

		if (!verdict->sentences[i] || !*verdict->sentences[i])
			continue;
		json_write_begin(json, '{');
		json_put_string(json, "topic", topics[i]);
		json_put_string(json, "text", verdict->sentences[i]);
		if (place->node) {
			row = tree_row(
				verdict->process, verdict->process->profile->tree, place->node);
			json_write_key(json, "path");
			print_json_path(json, &row);
			json_put_unsigned(json, "amount", place->amount);
			json_put_unsigned(json, "whole", place->whole);
		}
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void write_busy(
	struct json_writer *json, const char *key, uint64_t busy_ns, uint64_t idle_ns)
{
	const uint64_t sum = busy_ns + idle_ns;

	json_put_begin(json, key, '{');
	json_put_unsigned(json, "busy_ns", busy_ns);
	json_put_unsigned(json, "idle_ns", idle_ns);
	json_put_known_double(
		json, "busy_share", sum ? (double)busy_ns / (double)sum : 0, sum != 0);
	json_write_end(json, '}');
}

void run_verdict_write_json(struct json_writer *json, const struct run_verdict *verdict)
{
	json_write_begin(json, '{');
	json_put_string(json, "bound", verdict->bound);
	json_put_string(json, "confidence", verdict->confidence);
	write_sentences(json, verdict);
	json_put_string(json, "command", verdict->command);
	write_busy(json, "usual_steps", verdict->steps_busy_ns, verdict->steps_idle_ns);
	write_busy(json, "run", verdict->busy_ns, verdict->idle_ns);
	json_write_end(json, '}');
}
