/* SPDX-License-Identifier: MIT */
#include "report/cli/command_line.h"
#include "report/cli/view_list.h"
#include "report/views/functions.h"
#include "report/base/error.h"
#include "report/profile/call_tree.h"
#include "report/text/paragraph.h"
#include "report/text/suggest.h"
#include "report/table/view.h"
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const formats[] = { "text", "json", "csv", "html", "svg", NULL };
static const char *const color_whens[] = { "auto", "always", "never", NULL };
static const char *const instance_words[] = { "worst", "first", "last", "all", NULL };
static const char *const demangle_forms[] = {
#define X(form, text) text,
	DEMANGLE_FORMS(X)
#undef X
		NULL
};
static const char *const native_words[] = { "program", "all", NULL };
static const char *const row_keys[] = {
#define X(by, name) #name,
	ROWS_BY(X)
#undef X
		NULL
};

/* Returns a decimal number of at most `most`. Ends the program if `text` is anything else. */
static uint64_t parse_number(const char *name, const char *text, uint64_t most)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || value > most)
		fatal(STATUS_USAGE, "--%s needs a whole number up to %llu, not `%s`", name,
			(unsigned long long)most, text);
	return value;
}

static void parse_assumed_type(struct options *options, const char *text)
{
	static const char *const names[] = { "fp64", "fp32", "fp16", "bf16", "fp8", "int8" };
	const enum element_type element = element_find(text, strlen(text));
	struct suggestion near = suggest_for(text, strlen(text));

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		suggest_offer(&near, names[i]);
	if (element == ELEMENT_UNKNOWN || element == ELEMENT_TF32 || element > ELEMENT_INT8)
		fatal(STATUS_USAGE,
			"--assume-type is one of fp64, fp32, fp16, bf16, fp8 and int8, not `%s`%s",
			text, suggest_text(&near, NULL));
	options->assumed = element;
}

static void parse_percentage(struct options *options, const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= 100))
		fatal(STATUS_USAGE, "--min-percent needs a number from 0 to 100, not `%s`", text);
	options->min_percent = value;
}

static void parse_quorum(struct options *options, const char *text)
{
	options->quorum = (uint32_t)parse_number("quorum", text, 100);
	if (!options->quorum)
		fatal(STATUS_USAGE, "--quorum needs a percentage from 1 to 100, not 0");
}

/* 5 or 5%. */
static void parse_regression(struct options *options, const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 1e6))
		fatal(STATUS_USAGE, "--max-regression needs a percentage such as 5%%, not `%s`",
			text);
	options->max_regression = value;
}

/* Which of `words` it is. */
static unsigned parse_word(const char *name, const char *text, const char *const *words)
{
	char known[256] = "";
	struct suggestion near = suggest_for(text, strlen(text));

	for (unsigned i = 0; words[i]; i++) {
		suggest_offer(&near, words[i]);
		if (strcmp(text, words[i]) == 0)
			return i;
		strcat(strcat(known, i ? ", " : ""), words[i]);
	}
	fatal(STATUS_USAGE, "--%s needs one of %s, not `%s`%s", name, known, text,
		suggest_text(&near, NULL));
}

static void parse_steps(struct options *options, const char *text)
{
	char first[32];
	const char *dash = strchr(text, '-');
	const size_t length = dash ? (size_t)(dash - text) : strlen(text);

	if (length == 0 || length >= sizeof first || strspn(text, "0123456789-") != strlen(text) ||
		(dash && !dash[1]))
		fatal(STATUS_USAGE, "--steps needs numbers such as 10-20 or 7, not `%s`", text);
	snprintf(first, sizeof first, "%.*s", (int)length, text);
	options->steps = true;
	options->first_step = parse_number("steps", first, UINT64_MAX);
	options->last_step = dash ? parse_number("steps", dash + 1, UINT64_MAX)
				  : options->first_step;
	if (options->last_step < options->first_step)
		fatal(STATUS_USAGE, "--steps %s ends before it begins", text);
}

static void parse_output(struct options *options, const char *value)
{
	if (!*value)
		fatal(STATUS_USAGE, "-o needs the name of a file or folder, and has an empty one");
	options->output = strcmp(value, "-") == 0 ? NULL : value;
}

static void parse_metric(struct options *options, const char *value)
{
	options->metric_name = value;
	options->metric = metric_find(value);
}

/* Checks the kinds of nodes, which the column `kind` shows. */
static void parse_kinds(struct options *options, const char *value)
{
	for (const char *word = value; *word; word += strspn(word, ",")) {
		const size_t length = strcspn(word, ",");
		struct suggestion near = suggest_for(word, length);
		bool known = false;

		for (int kind = 0; kind < NODE_KIND_COUNT; kind++) {
			const char *name = node_kind_name((enum node_kind)kind);

			suggest_offer(&near, name);
			known |= strlen(name) == length && !memcmp(name, word, length);
		}
		if (!known)
			fatal(STATUS_USAGE, "--kind: there is no kind `%.*s`%s",
				(int)(length < 100 ? length : 100), word,
				suggest_text(&near,
					"kinds are those of the column kind, such as kernel, op, "
					"module and range"));
		word += length;
	}
	options->kinds = value;
}

static void parse_instances(struct options *options, const char *value)
{
	options->instances = INSTANCES_WORST + parse_word("instances", value, instance_words);
}

static void parse_top(struct options *options, const char *value)
{
	options->top = (uint32_t)parse_number("top", value, UINT32_MAX);
	if (options->top == 0)
		options->top = UINT32_MAX;
}

static void parse_width(struct options *options, const char *value)
{
	options->style.width = (unsigned)parse_number("width", value, 10000);
	if (options->style.width < 20)
		fatal(STATUS_USAGE, "--width needs at least 20 columns, not %s", value);
}

/* How the value of an option is stored in struct options. */
enum value_kind {
	VALUE_STRING, /* const char *: the argument itself */
	VALUE_FLAG,   /* bool: true */
	VALUE_NUMBER, /* uint32_t */
	VALUE_INDEX,  /* int64_t: of a device or rank; -1 if not given */
	VALUE_WORD,   /* an enum: the index in `words` */
	VALUE_OWN,    /* by a function of its own, `parse` */
};

#define STRING(member) VALUE_STRING, offsetof(struct options, member), NULL, NULL
#define FLAG(member) VALUE_FLAG, offsetof(struct options, member), NULL, NULL
#define NUMBER(member) VALUE_NUMBER, offsetof(struct options, member), NULL, NULL
#define INDEX(member) VALUE_INDEX, offsetof(struct options, member), NULL, NULL
#define WORD(member, list) VALUE_WORD, offsetof(struct options, member), list, NULL
#define OWN(function) VALUE_OWN, 0, NULL, function

static const struct option_entry {
	char letter; /* 0: no short form */
	const char *name;
	const char *argument; /* NULL: takes none */
	enum value_kind kind;
	size_t offset;            /* of a member of struct options */
	const char *const *words; /* ends with NULL; the member is the index */
	void (*parse)(struct options *options, const char *value);
	const char *help;
} option_list[] = {
	{ 'f', "format", "text|json|csv|html|svg", WORD(format, formats),
		"output format (text); flame: html or svg (html)" },
	{ 'o', "output", "FILE", OWN(parse_output), "write to this file (standard output)" },
	{ 'm', "metric", "NAME", OWN(parse_metric),
		"gpu, cpu, wall, idle, calls, reserved, allocated, reserved_peak, allocated_peak, "
		"alloc, tensors, or a counter's name" },
	{ 's', "sort", "KEY", STRING(sort),
		"sort rows by this column, largest first; see --legend" },
	{ 0, "columns", "KEYS", STRING(columns),
		"show these columns, comma-separated, or all; see --legend" },
	{ 0, "by", "KEY", WORD(by, row_keys),
		"table: one row per name, shape, module, stack, category, stream, thread, rank or "
		"step (name), or by CPU samples per function, line or library; diff: CPU samples "
		"per function, line or library; memory: per path, "
		"module, step, line, size or library (path), or "
		"class, how long memory lived; flame: path, stack, or by CPU samples python, "
		"native "
		"or all (path); export: the same without stack" },
	{ 0, "callers", NULL, FLAG(callers),
		"table --by function, line or library: the callers of each, by CPU samples" },
	{ 0, "functions", NULL, FLAG(functions),
		"tree: the functions that CPU samples found, below each node" },
	{ 0, "native", "WHICH", WORD(native_all, native_words),
		"table --by function, line or library: program, or all to show the interpreter's "
		"own C "
		"functions and PyTorch's dispatcher (program)" },
	{ 0, "at", "WHEN", STRING(at),
		"memory: what was live at peak, oom, end, the end of a step (its number) or a time "
		"such as 12.5ms; several, comma-separated" },
	{ 0, "map", NULL, FLAG(map),
		"memory: each segment of device memory with its tensors and gaps, at --at (oom, "
		"else peak)" },
	{ 0, "over-time", NULL, FLAG(over_time),
		"memory: reserved memory, tensors and fragmentation over time" },
	{ 0, "ledger", NULL, FLAG(ledger),
		"memory: who uses the capacity of each GPU, when it was fullest: PyTorch, each "
		"library, the program, the CUDA context, others" },
	{ 0, "snapshot", "FILE", STRING(snapshot),
		"memory: also write a snapshot (.pickle) that pytorch.org/memory_viz opens" },
	{ 0, "kind", "KINDS", OWN(parse_kinds),
		"table: only rows of these kinds, comma-separated: kernel, memcpy, memset, op, "
		"module, range, step, backward, optimizer, api, sync, alloc ..." },
	{ 0, "categories", "FILE", STRING(categories),
		"rules for categories, in place of the built-in ones or (include built-in) in "
		"addition" },
	{ 0, "peaks", "FILE", STRING(peaks),
		"roofline: peak rates of GPUs, in place of the built-in table" },
	{ 0, "assume-type", "TYPE", OWN(parse_assumed_type),
		"roofline: type assumed for tensors without a type in the trace: fp64, fp32, fp16, "
		"bf16, fp8 or int8" },
	{ 0, "instances", "WHICH", OWN(parse_instances),
		"tree and critical: one instance of --focus (or of each root): worst, first or "
		"last; tree: also all, one row each" },
	{ 'd', "depth", "N", NUMBER(depth), "at most N levels" },
	{ 'n', "top", "N", OWN(parse_top), "at most N rows per level; 0: all" },
	{ 0, "min-percent", "P", OWN(parse_percentage),
		"hide rows below P % of the total (1 in text of tree and critical)" },
	{ 0, "focus", "PATH", STRING(focus),
		"tree, critical and tui: only the node with this path (critical starts there); "
		"names joined by /, a / in a name written \\/" },
	{ 0, "steps", "A-B", OWN(parse_steps), "only the steps with these numbers" },
	{ 0, "no-steps", NULL, FLAG(no_steps),
		"do not detect steps that the program does not mark" },
	{ 0, "graphs", "FILE", STRING(graphs),
		"imported traces: the file of torch.profiler or nsys with the captures of the "
		"CUDA graphs that the trace launches" },
	{ 0, "step-marker", "NAME", STRING(step_marker),
		"ranges named NAME, or NAME and a number, are the steps" },
	{ 0, "device", "N", INDEX(device), "only this GPU" },
	{ 0, "rank", "N", INDEX(rank), "only the process with this rank" },
	{ 0, "all", NULL, FLAG(all), "all processes of the run" },
	{ 0, "quorum", "P", OWN(parse_quorum),
		"ranks: compare the collectives that P % of the ranks of a communicator have "
		"(95); at least two" },
	{ 0, "run", "ID", STRING(run), "ranks: the run to show, if the traces are of several" },
	{ 0, "share", NULL, FLAG(share),
		"part: only this task's share of the traces, by the variables of Slurm, MPI or "
		"Kubernetes" },
	{ 0, "no-findings", NULL, FLAG(no_findings),
		"part: leave out the findings of diagnose, which cost most of the time" },
	{ 0, "stretches", "FILE", STRING(stretches),
		"part: print where one trace spent its time in these stretches, for pperf ranks" },
	{ 0, "tasks", "N", NUMBER(tasks), "part: number of tasks that share the traces" },
	{ 0, "brief", NULL, FLAG(brief),
		"diagnose: at most 8 KB, for other programs to read; text or JSON" },
	{ 0, "growth", NULL, FLAG(growth), "memory: what grows from step to step, and where" },
	{ 0, "color", "WHEN", WORD(style.color, color_whens),
		"auto, always or never; also NO_COLOR, FORCE_COLOR" },
	{ 0, "ascii", NULL, FLAG(style.ascii), "print ASCII characters only" },
	{ 0, "width", "N", OWN(parse_width),
		"width of text in columns; also COLUMNS (default: the terminal's, else 80)" },
	{ 0, "iec", NULL, FLAG(style.iec), "KiB, MiB, GiB in place of kB, MB, GB" },
	{ 0, "no-fold", NULL, FLAG(no_fold), "do not fold labels that differ only in numbers" },
	{ 0, "trends", NULL, FLAG(trends),
		"html: the page of nightly runs, of the file that pperf history html makes" },
	{ 0, "whole", NULL, FLAG(whole),
		"flame -f svg: the whole run, also if most of the time is outside of the steps" },
	{ 0, "sources", NULL, FLAG(sources),
		"source line where each module was first called; memory: native functions that "
		"allocated" },
	{ 0, "demangle", "FORM", WORD(demangle, demangle_forms),
		"form of kernel names: short, base, full or no (short)" },
	{ 0, "max-regression", "P", OWN(parse_regression),
		"gate: allowed increase in percent (5)" },
	{ 0, "write-baseline", "FILE", STRING(baseline),
		"gate: write a baseline for later comparisons" },
	{ 0, "no-pager", NULL, FLAG(no_pager), "do not use a pager (PPERF_PAGER, PAGER or less)" },
	{ 0, "no-progress", NULL, FLAG(no_progress),
		"do not show the progress of reading on a terminal" },
	{ 0, "no-cache", NULL, FLAG(no_cache),
		"neither use nor write ~/.cache/pperf, which makes later commands on the same "
		"trace faster; also PPERF_CACHE=0" },
	{ 'j', "jobs", "N", NUMBER(jobs),
		"use at most N cores (default: all); 1: one thread. The output is the same" },
	{ 0, "redact", NULL, FLAG(redact),
		"leave out the program's arguments, folders and host, to share the report" },
	{ 0, "strict", NULL, FLAG(strict), "exit with 2 if data are missing or inconsistent" },
	{ 0, "legend", NULL, FLAG(legend), "explain all figures and columns" },
	{ 0, "version", NULL, FLAG(version), "print the version" },
	{ 'h', "help", NULL, FLAG(help), "this" },
};

#define OPTION_COUNT (sizeof option_list / sizeof *option_list)

static void set_option(struct options *options, const struct option_entry *entry, const char *value)
{
	void *const member = (char *)options + entry->offset;

	switch (entry->kind) {
	case VALUE_STRING:
		*(const char **)member = value;
		break;
	case VALUE_FLAG:
		*(bool *)member = true;
		break;
	case VALUE_NUMBER:
		*(uint32_t *)member = (uint32_t)parse_number(entry->name, value, UINT32_MAX);
		break;
	case VALUE_INDEX:
		*(int64_t *)member = (int64_t)parse_number(entry->name, value, UINT32_MAX);
		break;
	case VALUE_WORD:
		*(unsigned *)member = parse_word(entry->name, value, entry->words);
		break;
	case VALUE_OWN:
		entry->parse(options, value);
	}
}

/* getopt_long returns a short form's letter, or this and the index of a long form. */
#define LONG_FORMS 256

static const struct option_entry *entry_of(int found)
{
	size_t i = 0;

	if (found >= LONG_FORMS)
		return &option_list[found - LONG_FORMS];
	while (option_list[i].letter != found)
		i++;
	return &option_list[i];
}

/* Ends the program because of an argument that getopt_long does not accept. */
static _Noreturn void refuse_option(const char *text)
{
	const size_t dashes = strspn(text, "-");
	struct suggestion near = suggest_for(text + dashes, strcspn(text + dashes, "="));

	for (size_t i = 0; dashes == 2 && i < OPTION_COUNT; i++)
		suggest_offer(&near, option_list[i].name);
	if (optopt && optopt < LONG_FORMS)
		fatal(STATUS_USAGE, "unknown option -%c; see pperf-report --help", optopt);
	if (optopt)
		fatal(STATUS_USAGE, "%s takes no value; see pperf-report --help", text);
	if (*near.best)
		fatal(STATUS_USAGE,
			"unknown option or ambiguous abbreviation %s; did you mean `--%s`?", text,
			near.best);
	fatal(STATUS_USAGE, "unknown option or ambiguous abbreviation %s; see pperf-report --help",
		text);
}

static void parse_arguments(struct options *options, int argc, char **argv)
{
	struct option known[OPTION_COUNT + 1] = { { .name = NULL } };
	char letters[2 * OPTION_COUNT + 2] = ":";
	size_t used = 1;
	int found;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		known[i] = (struct option){ .name = option_list[i].name,
			.has_arg = option_list[i].argument ? required_argument : no_argument,
			.val = LONG_FORMS + (int)i };
		if (!option_list[i].letter)
			continue;
		letters[used++] = option_list[i].letter;
		if (option_list[i].argument)
			letters[used++] = ':';
	}
	opterr = 0;
	while ((found = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		const char *text = argv[optind - 1];

		if (found == ':')
			fatal(STATUS_USAGE, "%s needs a value; see pperf-report --help", text);
		if (found == '?')
			refuse_option(text);
		set_option(options, entry_of(found), optarg);
	}
}

static _Noreturn void refuse_view(const char *word, const char *otherwise)
{
	struct suggestion near = suggest_for(word, strlen(word));

	for (const struct view *view = view_list; view->name; view++)
		if (!view->is_hidden)
			suggest_offer(&near, view->name);
	fatal(STATUS_USAGE, "there is no view and no file named `%s`%s", word,
		suggest_text(&near, otherwise));
}

/* Returns true if a word could only be a misspelt view: lower-case letters, and no such file. */
static bool is_misspelt_view(const char *word)
{
	return strcmp(word, "-") != 0 &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyz-")] == '\0' && access(word, F_OK) &&
	       errno == ENOENT;
}

/* Ends the program if the output file is also an input, since opening it would truncate the
 * trace. */
static void check_output(const struct options *options, const char *output)
{
	struct stat written, read;

	for (size_t i = 0; output && i < options->file_count; i++)
		if (!stat(output, &written) && !stat(options->files[i], &read) &&
			S_ISREG(read.st_mode) && written.st_dev == read.st_dev &&
			written.st_ino == read.st_ino)
			fatal(STATUS_USAGE,
				"the output file %s is also an input; give the output another name",
				output);
}

/* Ends the program if the first of several files does not exist and looks like a view. */
static void check_view(const struct options *options, const struct view *view)
{
	if (view || options->file_count < 2 || strpbrk(options->files[0], "./") ||
		!strcmp(options->files[0], "-") || access(options->files[0], F_OK) == 0)
		return;
	refuse_view(options->files[0], "pperf-report --help lists the views");
}

/* The keys of --by that the view memory has. It has no others than these, and table has only the
 * first two of them. */
static bool is_memory_key(enum rows_by by)
{
	return by == BY_MODULE || by == BY_STEP || by == BY_PATH || by == BY_LINE ||
	       by == BY_SIZE || by == BY_LIBRARY || by == BY_CLASS;
}

static void check_by(const struct options *options)
{
	const bool of_table = options->by != BY_PATH && options->by != BY_SIZE &&
			      options->by != BY_CLASS && options->by != BY_PYTHON &&
			      options->by != BY_NATIVE && options->by != BY_ALL;

	if (options->by == BY_NAME)
		return;
	if (!strcmp(options->view->name, "memory") && !is_memory_key(options->by))
		fatal(STATUS_USAGE,
			"the view memory has --by path, module, step, line, size, library and "
			"class");
	if (!strcmp(options->view->name, "table") && !of_table)
		fatal(STATUS_USAGE, "the view table has --by name, shape, module, stack, category, "
				    "stream, thread, rank, step, function, line and library");
	if (!strcmp(options->view->name, "flame") && options->by != BY_PATH &&
		options->by != BY_STACK && options->by != BY_PYTHON && options->by != BY_NATIVE &&
		options->by != BY_ALL)
		fatal(STATUS_USAGE, "the view flame has --by path, stack, python, native and all");
	if (!strcmp(options->view->name, "export") && options->by != BY_PATH &&
		options->by != BY_PYTHON && options->by != BY_NATIVE && options->by != BY_ALL)
		fatal(STATUS_USAGE, "the view export has --by path, python, native and all, the "
				    "frames of CPU samples");
	if (!strcmp(options->view->name, "diff") && !rows_by_samples(options->by))
		fatal(STATUS_USAGE,
			"the view diff has --by function, line and library, of CPU samples");
	if (strcmp(options->view->name, "table") != 0 && strcmp(options->view->name, "diff") != 0 &&
		strcmp(options->view->name, "memory") != 0 &&
		strcmp(options->view->name, "export") != 0 &&
		strcmp(options->view->name, "flame") != 0)
		fatal(STATUS_USAGE, "--by works with the views table, diff, memory, flame and "
				    "export only: pperf-report "
				    "table --by KEY FILE");
}

static void check_format(const struct options *options)
{
	const bool is_page = !strcmp(options->view->name, "flame");

	if (!strcmp(options->view->name, "html")) {
		if (options->format != FORMAT_TEXT && options->format != FORMAT_HTML)
			fatal(STATUS_USAGE,
				"the view html writes HTML only; summary, idle, memory, "
				"steps and kernels have its values as JSON and CSV");
		return;
	}
	if (!strcmp(options->view->name, "scene") && options->format == FORMAT_CSV)
		fatal(STATUS_USAGE, "the view scene writes JSON only");
	if (is_page && (options->format == FORMAT_JSON || options->format == FORMAT_CSV))
		fatal(STATUS_USAGE, "the view flame writes -f html or svg; tree and memory have "
				    "its values as JSON and CSV");
	if (!is_page && options->format > FORMAT_CSV)
		fatal(STATUS_USAGE, "only the view flame writes %s: pperf-report flame -f %s FILE",
			formats[options->format], formats[options->format]);
}

static void check_whole(const struct options *options)
{
	if (options->whole && options->format != FORMAT_SVG)
		fatal(STATUS_USAGE, "--whole works with flame -f svg only: pperf-report flame -f "
				    "svg --whole FILE; the page has a button");
}

static void check_memory_options(const struct options *options)
{
	const char *given = options->map         ? "--map"
			    : options->growth    ? "--growth"
			    : options->over_time ? "--over-time"
			    : options->ledger    ? "--ledger"
			    : options->at        ? "--at"
			    : options->snapshot  ? "--snapshot"
						 : NULL;

	if (!given)
		return;
	if (strcmp(options->view->name, "memory") != 0)
		fatal(STATUS_USAGE,
			"%s works with the view memory only: pperf-report memory %s%s FILE", given,
			given,
			(options->at && !options->map && !options->over_time && !options->growth &&
				!options->ledger)
				? " peak"
			: !strcmp(given, "--snapshot") ? " OUT.pickle"
						       : "");
	if (options->map + options->over_time + options->growth + options->ledger +
			(options->by != BY_NAME) >
		1)
		fatal(STATUS_USAGE, "--map, --over-time, --growth, --ledger and --by are different "
				    "tables; give one");
	if (options->snapshot &&
		(options->at || options->map || options->over_time || options->growth ||
			options->ledger || options->by != BY_NAME || options->all))
		fatal(STATUS_USAGE, "--snapshot has one process at its end, and no other table: "
				    "pperf-report memory --snapshot OUT.pickle FILE");
	if (options->at && (options->over_time || options->growth || options->by == BY_CLASS))
		fatal(STATUS_USAGE, "%s shows the whole run, and needs no --at",
			options->over_time ? "--over-time"
			: options->growth  ? "--growth"
					   : "--by class");
	if (options->at && options->ledger)
		fatal(STATUS_USAGE, "--ledger chooses its time itself, and needs no --at");
}

static void check_samples_options(const struct options *options)
{
	if (options->functions && strcmp(options->view->name, "tree") != 0)
		fatal(STATUS_USAGE, "--functions works with the view tree only: pperf-report tree "
				    "--functions FILE");
	if (options->callers &&
		(strcmp(options->view->name, "table") != 0 || !rows_by_samples(options->by)))
		fatal(STATUS_USAGE, "--callers works with functions, lines and libraries only: "
				    "pperf-report table --by function --callers FILE");
	if (!strcmp(options->view->name, "diff") && rows_by_samples(options->by) &&
		options->metric_name)
		fatal(STATUS_USAGE, "diff --by compares CPU samples, and has no -m");
	if (options->native_all && !rows_by_samples(options->by))
		fatal(STATUS_USAGE, "--native works with functions, lines and libraries only: "
				    "pperf-report table --by function --native all FILE");
}

struct options command_line_parse(int argc, char **argv)
{
	struct options options = { .depth = UINT32_MAX,
		.min_percent = -1,
		.max_regression = -1,
		.device = -1,
		.rank = -1,
		.metric = METRIC_CPU,
		.demangle = DEMANGLE_SHORT };
	const struct view *view;

	views_set(view_list);
	parse_arguments(&options, argc, argv);
	options.all |= options.by == BY_RANK;
	options.view = view_default();
	options.files = (const char **)argv + optind;
	options.file_count = (size_t)(argc - optind);
	view = options.file_count ? view_find(options.files[0]) : NULL;
	if (view) {
		options.view = view;
		options.files++;
		options.file_count--;
	}
	if (options.focus && options.instances == INSTANCES_SUM &&
		strcmp(options.view->name, "critical") == 0)
		options.instances = INSTANCES_WORST;
	if (!view && options.file_count && is_misspelt_view(options.files[0]))
		refuse_view(options.files[0], "see pperf-report --help");
	check_view(&options, view);
	options.view = view_for_samples(
		&options, view_for_memory(&options, view_for_instances(&options)));
	options.no_percentiles = options.view->no_percentiles ||
				 (options.by != BY_NAME &&
					 strcmp(options.view->name, "flame") != 0);
	options.shows_samples = options.view->shows_samples || rows_by_samples(options.by);
	if (options.view->subject && options.file_count) {
		options.subject = *options.files++;
		options.file_count--;
	}
	if (options.view->subject && !options.file_count && !options.help && !options.version &&
		!options.legend)
		fatal(STATUS_USAGE,
			"the view %s needs a %s before the trace: pperf-report %s %s trace.bin",
			options.view->name, options.view->subject, options.view->name,
			options.view->subject);
	check_output(&options, options.output);
	check_output(&options, options.baseline);
	check_output(&options, options.snapshot);
	check_by(&options);
	check_format(&options);
	check_whole(&options);
	check_memory_options(&options);
	check_samples_options(&options);
	if (options.kinds && (options.by != BY_NAME || strcmp(options.view->name, "table") != 0))
		fatal(STATUS_USAGE, "--kind works with the view table only, and not with --by: "
				    "pperf-report table --kind KINDS FILE");
	if (options.focus && !options.view->focus && !options.help)
		fatal(STATUS_USAGE, "--focus works with the views tree, critical and tui only: "
				    "pperf-report tree --focus PATH FILE");
	if (options.brief && (!options.view->brief || options.format == FORMAT_CSV))
		fatal(STATUS_USAGE, "--brief works with the view diagnose only, as text or JSON: "
				    "pperf-report diagnose --brief FILE");
	if (!options.file_count && !options.help && !options.version && !options.legend)
		fatal(STATUS_USAGE, "no trace file given; try pperf-report trace.bin, or --help");
	return options;
}

#define HELP_INDENT 29 /* column of the descriptions; a longer option has a line of its own */

void command_line_help(const struct style *style)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		struct paragraph paragraph = { .style = style, .indent = HELP_INDENT };
		char form[64];
		int length;

		length = snprintf(form, sizeof form, "  %s%c%c --%s%s%s",
			option_list[i].letter ? "-" : " ",
			option_list[i].letter ? option_list[i].letter : ' ',
			option_list[i].letter ? ',' : ' ', option_list[i].name,
			option_list[i].argument ? " " : "",
			option_list[i].argument ? option_list[i].argument : "");
		if (length >= HELP_INDENT) {
			output_string(style->out, form);
			output_char(style->out, '\n');
			form[0] = '\0';
		}
		paragraph_add(&paragraph, "%s", option_list[i].help);
		paragraph_print(&paragraph, form);
	}
}
