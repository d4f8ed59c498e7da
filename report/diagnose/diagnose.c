/* SPDX-License-Identifier: MIT
 * diagnose.c: the table of rules, how they are asked, and what they say as rows. See diagnose.h.
 */
#include "report/diagnose/diagnose.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/base/alloc.h"
#include "report/print/next_command.h"
#include "report/table/computed_row.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct diagnose_rule diagnose_rules[] = {
	{ "overhead-bound", "the GPU waits for launches", NEED_TIMES | NEED_LAUNCHES | OF_STEPS_TOO, diagnose_overhead_bound },
	{ "compute-bound", "the GPU is busy nearly all the time", NEED_TIMES | OF_STEPS_TOO, diagnose_compute_bound },
	{ "dominant-event", "one kernel, or without a GPU one operator, has most of the time", OF_STEPS_TOO, diagnose_dominant },
	{ "tiny-calls", "many kernels that are shorter than their launch", NEED_TIMES | NEED_LAUNCHES | OF_STEPS_TOO, diagnose_tiny },
	{ "launch-starvation", "fewer blocks than multiprocessors", NEED_TIMES | OF_STEPS_TOO, diagnose_starved },
	{ "dead-windows", "long moments with nothing launched", NEED_TIMES | NEED_LAUNCHES | OF_STEPS_TOO, diagnose_dead },
	{ "data-loading", "steps that wait for the next batch", NEED_STEPS, diagnose_data },
	{ "cold-start", "first steps that are much slower", NEED_STEPS, diagnose_cold_start },
	{ "copy-before-gemm", "copies on the device before matrix products", NEED_TIMES | NEED_LAUNCHES | NEED_RANGES | OF_STEPS_TOO,
		diagnose_before_gemm },
	{ "planning-queries", "attributes and heuristics asked for in steady state", NEED_CALLS, diagnose_queries },
	{ "synchronisation", "waits that make the GPU idle", NEED_TIMES | NEED_LAUNCHES | OF_STEPS_TOO, diagnose_synchronisation },
	{ "pageable-copies", "copies from and to pageable memory", NEED_TIMES | OF_STEPS_TOO, diagnose_pageable },
	{ "steady-allocation", "memory of the driver taken or given back in steady state", NEED_CALLS, diagnose_allocation },
	{ "compile-tax", "what each call of a compiled function costs beside it", NEED_RANGES, diagnose_compile_tax },
	{ "recompilation", "compiling in steady state", NEED_RANGES, diagnose_recompilation },
	{ "kernel-variability", "different times for the same launch", NEED_TIMES, diagnose_variability },
	{ "forward-backward", "backward out of proportion to forward", NEED_TIMES | NEED_RANGES | OF_STEPS_TOO, diagnose_backward },
	{ "another-process", "the GPU was somebody else's, as far as the trace can tell", NEED_TIMES | NEED_LAUNCHES,
		diagnose_other_process },
	{ "profiler-cost", "measuring itself", 0, diagnose_cost },
	{ .name = NULL },
};
static_assert(sizeof diagnose_rules / sizeof *diagnose_rules == DIAGNOSE_RULES + 1, "findings are kept by rule");

/* What the trace lacks of it; NULL: nothing. */
static const char *lacking(const struct diagnosis *diagnosis, unsigned needs)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	if ((needs & NEED_TIMES) && !facts->works)
		return "no work of a GPU with times is in it";
	if ((needs & NEED_LAUNCHES) && !facts->launched)
		return "no launch of that work is in it";
	if ((needs & NEED_CALLS) && !facts->calls)
		return "no call to CUDA is in it";
	if ((needs & NEED_STEPS) && (!diagnosis->process->steps || !diagnosis->process->steps->count))
		return "no steps were found in it (--step-marker NAME says what one is)";
	if ((needs & NEED_RANGES) && !diagnosis->fold->totals.cpu_self_ns)
		return "no ranges or operators are in it";
	return NULL;
}

static void ask(struct diagnosis *diagnosis, struct finding *finding)
{
	const char *lacks = lacking(diagnosis, finding->rule->needs);

	if (lacks)
		diagnose_lacks(finding, lacks);
	else
		finding->rule->look(diagnosis, finding);
}

/* What was found by what it costs; then notes, then nothing, then what was not checked; each in the order of the table. */
static int by_impact(const void *a, const void *b)
{
	const struct finding *left = a, *right = b;
	static const int order[] = { [FINDING_FOUND] = 0, [FINDING_NOTE] = 1, [FINDING_CLEAR] = 2, [FINDING_UNCHECKED] = 3 };

	if (left->state != right->state)
		return order[left->state] - order[right->state];
	if (left->state == FINDING_FOUND && left->impact_ns != right->impact_ns)
		return left->impact_ns > right->impact_ns ? -1 : 1;
	if (left->state == FINDING_FOUND && left->impact_bytes != right->impact_bytes)
		return left->impact_bytes > right->impact_bytes ? -1 : 1;
	return (left->rule > right->rule) - (left->rule < right->rule);
}

/* The path of a node as a word that --focus and `distribution` take. */
static void add_path(struct command *command, const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->fold->tree;
	const size_t depth = tree->nodes[node].depth + 1u;
	uint32_t *nodes = need(depth * sizeof *nodes);
	struct trace_text *path = need(depth * sizeof *path);

	for (size_t i = depth; i-- && node; node = tree->nodes[node].parent)
		nodes[i] = node;
	for (size_t i = 0; i < depth; i++) {
		const struct text name = text_of(diagnosis->process->texts, tree->nodes[nodes[i]].name);

		path[i] = (struct trace_text){ name.bytes, name.length, true };
	}
	next_path(command, path, depth);
	free(nodes);
	free(path);
}

static void add_number(struct command *command, const char *option, uint64_t value)
{
	char text[64];

	snprintf(text, sizeof text, " %s %llu", option, (unsigned long long)value);
	command_add(command, text);
}

/* What was asked for decides what the figures are, and is asked for there too. */
static void add_selection(struct command *command, const struct options *options)
{
	static const char *const forms[] = {
#define X(form, text) text,
		DEMANGLE_FORMS(X)
#undef X
	};
	char steps[64];

	next_files(command, options);
	if (options->all)
		command_add(command, " --all");
	if (options->device >= 0)
		add_number(command, "--device", (uint64_t)options->device);
	if (options->steps) {
		snprintf(steps, sizeof steps, " --steps %llu-%llu", (unsigned long long)options->first_step,
			(unsigned long long)options->last_step);
		command_add(command, steps);
	}
	if (options->demangle != DEMANGLE_SHORT) {
		command_add(command, " --demangle ");
		command_add(command, forms[options->demangle]);
	}
}

static void tell_command(const struct diagnosis *diagnosis, struct tally *tally, const struct finding *finding)
{
	struct command command = { .ascii = diagnosis->options->style.ascii };

	next_begin(&command, finding->view);
	if (finding->at_path && finding->node)
		add_path(&command, diagnosis, finding->node);
	add_selection(&command, diagnosis->options);
	tally_text(tally, "command", command.text, command.used);
	free(command.text);
}

static const char *kind_of(enum finding_state state)
{
	static const char *const kinds[] = { [FINDING_CLEAR] = "clear", [FINDING_UNCHECKED] = "not checked", [FINDING_NOTE] = "note",
		[FINDING_FOUND] = "finding" };

	return kinds[state];
}

static void tell(struct process *process, struct rows *rows, const struct finding *finding)
{
	static const char *const confidences[] = { "low", "medium", "high" };
	struct tally *tally = tally_new(process, finding->node);

	tally->row.tree = finding->of->fold->tree;
	tally_name(tally, finding->rule->name, strlen(finding->rule->name));
	tally_words(tally, "kind", kind_of(finding->state));
	if (*finding->why && finding->state != FINDING_CLEAR)
		tally_words(tally, "why", finding->why);
	if (finding->state >= FINDING_NOTE) {
		tally_words(tally, "finding", finding->sentence);
		tally_words(tally, "evidence", finding->evidence);
		tally_words(tally, "next", finding->next);
		tally_words(tally, "confidence", confidences[finding->confidence]);
		tally_unsigned(tally, "count", finding->count);
		tell_command(finding->of, tally, finding);
	}
	if (finding->impact_ns || finding->state == FINDING_FOUND) {
		tally_unsigned(tally, "impact_ns", finding->impact_ns);
		tally_words(tally, "bound", finding->upper_bound ? "upper bound" : "measured");
	}
	if (finding->impact_bytes)
		tally_unsigned(tally, "impact_bytes", finding->impact_bytes);
	if (finding->has_example && finding->state == FINDING_FOUND)
		tally_unsigned(tally, "start_ns", finding->example_ns);
	rows_add(rows, &tally->row);
}

static struct diagnosis *begin(const struct options *options, struct processes *processes, struct process *process)
{
	struct diagnosis *diagnosis = need(sizeof *diagnosis);

	diagnosis->options = options;
	diagnosis->processes = processes;
	diagnosis->process = process;
	diagnosis->fold = process->fold;
	diagnose_facts_read(diagnosis);
	return diagnosis;
}

static void end(struct diagnosis *diagnosis)
{
	diagnose_facts_free(diagnosis);
	free(diagnosis);
}

/* Whether its usual steps are worth a look of their own; then options ask for them. */
static bool has_small_steps(const struct diagnosis *diagnosis, struct options *options)
{
	const struct steps *steps = diagnosis->process->steps;
	const struct diagnose_facts *facts = &diagnosis->facts;
	size_t count = 0;

	if (!facts->has_steps || !facts->works || options->steps || diagnosis->process->windows ||
		diagnose_is_share(facts->steady_ns, facts->whole_ns, LIMIT_STEPS_SMALL))
		return false;
	for (size_t i = 0; i < steps->count; i++)
		if (steps->steps[i].kind == STEP_USUAL) {
			options->first_step = count++ ? options->first_step : steps->steps[i].number;
			options->last_step = steps->steps[i].number;
		}
	options->steps = true;
	return count >= LIMIT_CALLS_FEW;
}

/* For what was not found in the whole. */
static void look_again(struct diagnosis *of_steps, struct finding *finding)
{
	struct finding again = { .rule = finding->rule, .of = of_steps };
	char sentence[sizeof again.sentence];

	ask(of_steps, &again);
	if (again.state < FINDING_NOTE || again.state <= finding->state)
		return;
	SAY(sentence, "%s", again.sentence);
	SAY(again.sentence, "In steps %llu to %llu: %s", (unsigned long long)of_steps->options->first_step,
		(unsigned long long)of_steps->options->last_step, sentence);
	*finding = again;
}

/* part: the process, with a fold of the steps alone, which stays with the process. */
static struct diagnosis *look_at_steps(const struct diagnosis *whole, const struct options *options, struct process *part, struct finding *findings)
{
	struct fold_options wanted = whole->fold->options;
	struct diagnosis *of_steps;

	wanted.steps = true;
	wanted.first_step = options->first_step;
	wanted.last_step = options->last_step;
	whole->process->of_steps = fold_run(whole->process->reader, whole->process->texts, &wanted);
	*part = *whole->process;
	part->fold = whole->process->of_steps;
	part->attachments = NULL;
	of_steps = begin(options, whole->processes, part);
	for (size_t i = 0; i < DIAGNOSE_RULES; i++)
		if (findings[i].rule->needs & OF_STEPS_TOO && findings[i].state < FINDING_FOUND)
			look_again(of_steps, &findings[i]);
	process_detach_all(part);
	return of_steps;
}

static void tell_all(const struct options *options, struct process *process, struct rows *rows, struct finding *findings)
{
	uint32_t found = 0;

	qsort(findings, DIAGNOSE_RULES, sizeof *findings, by_impact);
	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		if (findings[i].state == FINDING_FOUND && options->top && found++ >= options->top)
			rows->more++;
		else
			tell(process, rows, &findings[i]);
	}
}

static void diagnose(const struct options *options, struct processes *processes, struct process *process, struct rows *rows)
{
	struct diagnosis *const whole = begin(options, processes, process), *of_steps = NULL;
	struct finding *findings = need(DIAGNOSE_RULES * sizeof *findings);
	struct options narrowed = *options;
	struct process part;

	for (size_t i = 0; i < DIAGNOSE_RULES; i++) {
		findings[i].rule = &diagnose_rules[i];
		findings[i].of = whole;
		ask(whole, &findings[i]);
	}
	if (has_small_steps(whole, &narrowed))
		of_steps = look_at_steps(whole, &narrowed, &part, findings);
	tell_all(options, process, rows, findings);
	if (of_steps)
		end(of_steps);
	end(whole);
	free(findings);
}

void arrange_diagnose(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		diagnose(options, processes, &processes->all[i], rows);
}
