/* SPDX-License-Identifier: MIT */
#include "report/cli/command_line.h"
#include "report/cli/view_list.h"
#include "report/base/error.h"
#include "report/text/paragraph.h"
#include "report/table/view.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* X(id, short form or 0, long form, argument or NULL, help) */
#define OPTIONS(X)                                                                             \
	X(FORMAT, 'f', "format", "text|json|csv", "output format (text)")                      \
	X(OUTPUT, 'o', "output", "FILE", "write to this file (standard output)")               \
	X(METRIC, 'm', "metric", "NAME",                                                       \
		"gpu, cpu, wall, idle, calls, reserved, allocated, alloc, tensors, or a "      \
		"counter's name")                                                              \
	X(SORT, 's', "sort", "KEY", "sort rows by this column, largest first; see --legend")   \
	X(COLUMNS, 0, "columns", "KEYS", "show these columns, comma-separated; see --legend")  \
	X(BY, 0, "by", "KEY",                                                                  \
		"one row of the view table per name, shape, module, stack, category, stream, " \
		"thread, rank or step (name)")                                                 \
	X(CATEGORIES, 0, "categories", "FILE",                                                 \
		"rules for categories, in place of the built-in ones")                         \
	X(PEAKS, 0, "peaks", "FILE",                                                           \
		"roofline: peak rates of GPUs, in place of the built-in table")                \
	X(ASSUME_TYPE, 0, "assume-type", "TYPE",                                               \
		"roofline: type assumed for tensors without a type in the "                    \
		"trace: fp64, fp32, fp16, bf16, fp8 or int8")                                  \
	X(INSTANCES, 0, "instances", "WHICH",                                                  \
		"tree and critical: one instance of --focus (or of each root): "               \
		"worst, first or last; tree: also all, one row each")                          \
	X(DEPTH, 'd', "depth", "N", "at most N levels")                                        \
	X(TOP, 'n', "top", "N", "at most N rows per level; 0: all")                            \
	X(MIN_PERCENT, 0, "min-percent", "P",                                                  \
		"hide rows below P % of the total (1 in text of tree and critical)")           \
	X(FOCUS, 0, "focus", "PATH",                                                           \
		"tree, critical and tui: only the node with this path (critical starts "       \
		"there); names joined by /, a / in a name written \\/")                        \
	X(STEPS, 0, "steps", "A-B", "only the steps with these numbers")                       \
	X(NO_STEPS, 0, "no-steps", NULL, "do not detect steps that the program does not mark") \
	X(STEP_MARKER, 0, "step-marker", "NAME",                                               \
		"ranges named NAME, or NAME and a number, are the steps")                      \
	X(DEVICE, 0, "device", "N", "only this GPU")                                           \
	X(RANK, 0, "rank", "N", "only the process with this rank")                             \
	X(ALL, 0, "all", NULL, "all processes of the run")                                     \
	X(BRIEF, 0, "brief", NULL,                                                             \
		"diagnose: at most 8 KB, for other programs to read; text or JSON")            \
	X(COLOR, 0, "color", "WHEN", "auto, always or never; also NO_COLOR, FORCE_COLOR")      \
	X(ASCII, 0, "ascii", NULL, "print ASCII characters only")                              \
	X(WIDTH, 0, "width", "N",                                                              \
		"width of text in columns; also COLUMNS (default: the terminal's, else 80)")   \
	X(IEC, 0, "iec", NULL, "KiB, MiB, GiB in place of kB, MB, GB")                         \
	X(NO_FOLD, 0, "no-fold", NULL, "do not fold labels that differ only in numbers")       \
	X(SOURCES, 0, "sources", NULL,                                                         \
		"source line where each module was first called; memory: native "              \
		"functions that allocated")                                                    \
	X(DEMANGLE, 0, "demangle", "FORM",                                                     \
		"form of kernel names: short, base, full or no (short)")                       \
	X(MAX_REGRESSION, 0, "max-regression", "P", "gate: allowed increase in percent (5)")   \
	X(WRITE_BASELINE, 0, "write-baseline", "FILE",                                         \
		"gate: write a baseline for later comparisons")                                \
	X(NO_PAGER, 0, "no-pager", NULL, "do not use a pager (PPERF_PAGER, PAGER or less)")    \
	X(NO_PROGRESS, 0, "no-progress", NULL,                                                 \
		"do not show the progress of reading on a terminal")                           \
	X(REDACT, 0, "redact", NULL,                                                           \
		"leave out the program's arguments, folders and host, to share the report")    \
	X(STRICT, 0, "strict", NULL, "exit with 2 if data are missing or inconsistent")        \
	X(LEGEND, 0, "legend", NULL, "explain all figures and columns")                        \
	X(VERSION, 0, "version", NULL, "print the version")                                    \
	X(HELP, 'h', "help", NULL, "this")

enum option_id {
	OPTION_NONE = 255, /* above every short form */
#define X(id, letter, name, argument, text) OPTION_##id,
	OPTIONS(X)
#undef X
		OPTION_END
};

static const struct {
	enum option_id id;
	char letter;
	const char *name, *argument, *help;
} option_list[] = {
#define X(which, short_form, long_form, value, text) \
	{ .id = OPTION_##which,                      \
		.letter = short_form,                \
		.name = long_form,                   \
		.argument = value,                   \
		.help = text },
	OPTIONS(X)
#undef X
};

#define OPTION_COUNT (sizeof option_list / sizeof *option_list)

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

static enum element_type parse_assumed_type(const char *text)
{
	const enum element_type element = element_find(text, strlen(text));

	if (element == ELEMENT_UNKNOWN || element == ELEMENT_TF32 || element > ELEMENT_INT8)
		fatal(STATUS_USAGE,
			"--assume-type is one of fp64, fp32, fp16, bf16, fp8 and int8, not `%s`",
			text);
	return element;
}

static double parse_percentage(const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= 100))
		fatal(STATUS_USAGE, "--min-percent needs a number from 0 to 100, not `%s`", text);
	return value;
}

/* Parses 5 or 5%. */
static double parse_regression(const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 1e6))
		fatal(STATUS_USAGE, "--max-regression needs a percentage such as 5%%, not `%s`",
			text);
	return value;
}

/* Returns the index of `text` in `words`. An unknown word ends the program. */
static unsigned parse_word(
	const char *name, const char *text, const char *const *words, unsigned count)
{
	char known[256] = "";

	for (unsigned i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0)
			return i;
		strcat(strcat(known, i ? ", " : ""), words[i]);
	}
	fatal(STATUS_USAGE, "--%s needs one of %s, not `%s`", name, known, text);
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

/* Returns the member that holds the value of option `id` unchanged, or NULL if the value has to be
 * parsed. */
static const char **string_option(struct options *options, enum option_id id)
{
	switch (id) {
	case OPTION_SORT:
		return &options->sort;
	case OPTION_COLUMNS:
		return &options->columns;
	case OPTION_CATEGORIES:
		return &options->categories;
	case OPTION_PEAKS:
		return &options->peaks;
	case OPTION_WRITE_BASELINE:
		return &options->baseline;
	case OPTION_FOCUS:
		return &options->focus;
	case OPTION_STEP_MARKER:
		return &options->step_marker;
	default:
		return NULL;
	}
}

/* Returns the member that option `id`, which takes no value, sets to true. */
static bool *flag_option(struct options *options, enum option_id id)
{
	switch (id) {
	case OPTION_ALL:
		return &options->all;
	case OPTION_BRIEF:
		return &options->brief;
	case OPTION_ASCII:
		return &options->style.ascii;
	case OPTION_IEC:
		return &options->style.iec;
	case OPTION_NO_FOLD:
		return &options->no_fold;
	case OPTION_SOURCES:
		return &options->sources;
	case OPTION_NO_STEPS:
		return &options->no_steps;
	case OPTION_STRICT:
		return &options->strict;
	case OPTION_NO_PAGER:
		return &options->no_pager;
	case OPTION_NO_PROGRESS:
		return &options->no_progress;
	case OPTION_REDACT:
		return &options->redact;
	case OPTION_LEGEND:
		return &options->legend;
	case OPTION_VERSION:
		return &options->version;
	default:
		return &options->help;
	}
}

static void set_option(struct options *options, enum option_id id, const char *value)
{
	static const char *const formats[] = { "text", "json", "csv" }, *const when[] = { "auto",
		"always", "never" };
	static const char *const instances[] = { "worst", "first", "last", "all" };
	static const char *const forms[] = {
#define X(form, text) text,
		DEMANGLE_FORMS(X)
#undef X
	};
	static const char *const keys[] = {
#define X(by, name) #name,
		ROWS_BY(X)
#undef X
	};
	const char **text = string_option(options, id);

	if (text) {
		*text = value;
		return;
	}
	switch (id) {
	case OPTION_FORMAT:
		options->format = (enum format)parse_word("format", value, formats, 3);
		break;
	case OPTION_OUTPUT:
		options->output = strcmp(value, "-") == 0 ? NULL : value;
		break;
	case OPTION_METRIC:
		options->metric_name = value;
		options->metric = metric_find(value);
		break;
	case OPTION_BY:
		options->by = (enum rows_by)parse_word("by", value, keys, BY_COUNT);
		options->all |= options->by == BY_RANK;
		break;
	case OPTION_ASSUME_TYPE:
		options->assumed = parse_assumed_type(value);
		break;
	case OPTION_INSTANCES:
		options->instances = INSTANCES_WORST + parse_word("instances", value, instances, 4);
		break;
	case OPTION_DEPTH:
		options->depth = (uint32_t)parse_number("depth", value, UINT32_MAX);
		break;
	case OPTION_TOP:
		options->top = (uint32_t)parse_number("top", value, UINT32_MAX);
		if (options->top == 0)
			options->top = UINT32_MAX;
		break;
	case OPTION_MIN_PERCENT:
		options->min_percent = parse_percentage(value);
		break;
	case OPTION_MAX_REGRESSION:
		options->max_regression = parse_regression(value);
		break;
	case OPTION_STEPS:
		parse_steps(options, value);
		break;
	case OPTION_DEVICE:
		options->device = (int64_t)parse_number("device", value, UINT32_MAX);
		break;
	case OPTION_RANK:
		options->rank = (int64_t)parse_number("rank", value, UINT32_MAX);
		break;
	case OPTION_COLOR:
		options->style.color = (enum color_when)parse_word("color", value, when, 3);
		break;
	case OPTION_WIDTH:
		options->style.width = (unsigned)parse_number("width", value, 10000);
		if (options->style.width < 20)
			fatal(STATUS_USAGE, "--width needs at least 20 columns, not %s", value);
		break;
	case OPTION_DEMANGLE:
		options->demangle = (enum demangle_form)parse_word(
			"demangle", value, forms, DEMANGLE_FORM_COUNT);
		break;
	default:
		*flag_option(options, id) = true;
	}
}

static enum option_id option_of(int found)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (found == (int)option_list[i].id ||
			(found == option_list[i].letter && option_list[i].letter))
			return option_list[i].id;
	return OPTION_NONE;
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
			.val = (int)option_list[i].id };
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
		if (found == '?' && optopt && optopt < OPTION_NONE)
			fatal(STATUS_USAGE, "unknown option -%c; see pperf-report --help", optopt);
		if (found == '?')
			fatal(STATUS_USAGE,
				optopt ? "%s takes no value; see pperf-report --help"
				       : "unknown option or ambiguous abbreviation %s; see "
					 "pperf-report --help",
				text);
		set_option(options, option_of(found), optarg);
	}
}

/* Returns true if a word could only be a misspelt view: lower-case letters, and no such file. */
static bool is_misspelt_view(const char *word)
{
	return word[strspn(word, "abcdefghijklmnopqrstuvwxyz-")] == '\0' && access(word, F_OK) &&
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
				"the output file %s is also an input; give -o another name",
				output);
}

/* Ends the program if the first of several files does not exist and looks like a view. */
static void check_view(const struct options *options, const struct view *view)
{
	if (view || options->file_count < 2 || strpbrk(options->files[0], "./") ||
		access(options->files[0], F_OK) == 0)
		return;
	fatal(STATUS_USAGE,
		"there is no view and no file named `%s`; pperf-report --help lists the views",
		options->files[0]);
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
		fatal(STATUS_USAGE,
			"there is no view and no file named `%s`; see pperf-report --help",
			options.files[0]);
	check_view(&options, view);
	options.view = view_for_instances(&options);
	options.no_percentiles = options.view->no_percentiles || options.by != BY_NAME;
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
	if (options.by != BY_NAME && strcmp(options.view->name, "table") != 0)
		fatal(STATUS_USAGE,
			"--by works with the view table only: pperf-report table --by KEY FILE");
	if (options.focus && !options.view->focus && !options.help)
		fatal(STATUS_USAGE, "--focus works with the views tree, critical and tui only: "
				    "pperf-report tree "
				    "--focus PATH FILE");
	if (options.brief && (!options.view->brief || options.format == FORMAT_CSV))
		fatal(STATUS_USAGE,
			"--brief works with the view diagnose only, as text or JSON: pperf-report "
			"diagnose --brief FILE");
	if (!options.file_count && !options.help && !options.version && !options.legend)
		fatal(STATUS_USAGE, "no trace file given; try pperf-report trace.bin, or --help");
	return options;
}

void command_line_help(const struct style *style)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		struct paragraph paragraph = { .style = style, .indent = 29 };
		char form[64];

		snprintf(form, sizeof form, "  %s%c%c --%s%s%s", option_list[i].letter ? "-" : " ",
			option_list[i].letter ? option_list[i].letter : ' ',
			option_list[i].letter ? ',' : ' ', option_list[i].name,
			option_list[i].argument ? " " : "",
			option_list[i].argument ? option_list[i].argument : "");
		paragraph_add(&paragraph, "%s", option_list[i].help);
		paragraph_print(&paragraph, form);
	}
}
