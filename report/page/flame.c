/* SPDX-License-Identifier: MIT */
#include "report/page/flame.h"
#include "report/analysis/sample_tree.h"
#include "report/base/error.h"
#include "report/base/text_builder.h"
#include "report/page/flame_build.h"
#include "report/page/flame_data.h"
#include "report/page/flame_svg.h"
#include "report/run/output_file.h"
#include "report/page/page_head.h"
#include "report/page/page_writer.h"
#include "report/run/warnings.h"
#include <stdlib.h>
#include <string.h>

static const enum page_asset assets[] = { PAGE_STYLE_TOKENS, PAGE_STYLE_PAGE, PAGE_STYLE_FLAME,
	PAGE_SCRIPT_BASE, PAGE_SCRIPT_NUMBERS, PAGE_SCRIPT_FLAME_TREE, PAGE_SCRIPT_FLAME,
	PAGE_SCRIPT_HEAD, PAGE_SCRIPT_FLAME_PAGE };
#define ASSETS (sizeof assets / sizeof *assets)

static bool options_by_frames(const struct options *options)
{
	return options->by == BY_PYTHON || options->by == BY_NATIVE || options->by == BY_ALL;
}

/* The traces: one set of processes, or before and after. */
struct flame_input {
	const struct options *options;
	struct processes sides[2];
	size_t count;
};

/* Profiles without folded labels have all that the flame graph shows with and without. */
static struct flame_input read_input(const struct options *options)
{
	struct flame_input input = { .options = options, .count = options->file_count };
	struct options wanted = *options;

	wanted.no_fold = true;

	if (options->file_count > 2)
		fatal(STATUS_USAGE, "flame shows one trace or compares two: pperf-report flame "
				    "TRACE, or pperf-report flame BEFORE AFTER");
	if (options->file_count == 2) {
		for (size_t i = 0; i < 2; i++)
			input.sides[i] = processes_read_side(&wanted, options->files[i]);
		return input;
	}
	input.sides[0] = processes_read(&wanted);
	warnings_check_selection(options, &input.sides[0]);
	warnings_collect(options, &input.sides[0]);
	return input;
}

static bool shows_in_any_shape(const struct flame *flame, size_t metric)
{
	for (int shape = 0; shape < FLAME_SHAPES; shape++)
		if (flame_shows(flame, (enum flame_shape)shape, metric))
			return true;
	return false;
}

/* Ends the program: the trace has nothing of the metric of -m. */
static _Noreturn void refuse_metric(const struct options *options, const struct flame *flame)
{
	struct text_builder known = { .text = NULL };

	for (size_t metric = 0; metric < flame->metric_count; metric++)
		if (shows_in_any_shape(flame, metric))
			text_add(
				&known, "%s%s", known.used ? ", " : "", flame->metrics[metric].key);
	fatal(STATUS_USAGE, "no flame graph of `%s`: the trace has %s", options->metric_name,
		known.used ? known.text : "no values at all");
}

/* Returns the metric of -m, else the first that the trace has, with --by stack the first that has
 * call stacks. metric_count: the trace has no metric at all. */
static size_t select_metric(const struct options *options, const struct flame *flame)
{
	size_t metric;

	if (options_by_frames(options) && !options->metric_name &&
		flame_has_metric(flame, "sampled", &metric))
		return metric;
	if (options->metric_name) {
		if (!flame_has_metric(flame, options->metric_name, &metric) ||
			!shows_in_any_shape(flame, metric))
			refuse_metric(options, flame);
		return metric;
	}
	for (metric = 0; options->by == BY_STACK && metric < flame->metric_count; metric++)
		if (flame_shows(flame, FLAME_STACKS, metric))
			return metric;
	for (metric = 0; metric < flame->metric_count; metric++)
		if (shows_in_any_shape(flame, metric))
			break;
	return metric;
}

/* Returns the shape of --by and --no-fold, or the first that shows the metric. */
static enum flame_shape select_shape(
	const struct options *options, const struct flame *flame, size_t metric)
{
	if (metric == flame->metric_count)
		return FLAME_FOLDED;
	if (options->by == BY_STACK && flame_shows(flame, FLAME_STACKS, metric))
		return FLAME_STACKS;
	if (options->by == BY_STACK)
		fatal(STATUS_USAGE,
			"--by stack needs GPU time (-m gpu) or a metric of memory (-m allocated, "
			"reserved, tensors or alloc), and launches or allocations that were "
			"recorded with call stacks");
	return flame_shows(flame, FLAME_FOLDED, metric) ? FLAME_FOLDED : FLAME_EACH;
}

static void write_page(struct output *out, const struct flame_input *input, struct flame *flame,
	size_t metric, enum flame_shape shape)
{
	struct json_writer json = { .out = out };
	struct page_strings strings = { .from = flame->texts };
	char *title = page_title(input->options, input->count);

	page_begin(out, title, assets, ASSETS);
	json_write_begin(&json, '{');
	page_head_write(&json, input->options, input->sides, input->count);
	flame_data_write(&json, flame, &strings,
		metric < flame->metric_count ? flame->metrics[metric].key : NULL, shape);
	page_strings_write(&json, &strings);
	json_write_end(&json, '}');
	page_end(out, assets, ASSETS);
	page_strings_free(&strings);
	free(title);
}

static void write_svg(struct output *out, const struct flame_input *input, struct flame *flame,
	size_t metric, enum flame_shape shape)
{
	char *title = page_title(input->options, input->count);

	if (metric == flame->metric_count)
		fatal(STATUS_UNREADABLE, "the trace has nothing to draw");
	flame_svg_write(
		out, flame, shape, metric, title, input->options->whole, input->options->style.iec);
	free(title);
}

static int strict_status(const struct flame_input *input)
{
	for (size_t side = 0; input->options->strict && side < input->count; side++)
		for (size_t i = 0; i < input->sides[side].shown; i++)
			if (!input->sides[side].all[i].integrity.complete)
				return STATUS_UNREADABLE;
	return STATUS_OK;
}

/* Adds the functions of samples to the call trees, which nothing else shows. */
static void add_functions(const struct options *options, const struct processes *processes)
{
	bool has_samples = false;

	for (size_t i = 0; i < processes->shown; i++) {
		if (!process_has_samples(&processes->all[i]))
			continue;
		has_samples = true;
		sample_tree_graft(sample_cells_of(&processes->all[i]), options->by);
	}
	if (options_by_frames(options) && !has_samples)
		fatal(STATUS_USAGE,
			"--by %s needs CPU samples, and the trace has none; set PPERF_SAMPLE=99 "
			"when the program is started",
			options->by == BY_PYTHON   ? "python"
			: options->by == BY_NATIVE ? "native"
						   : "all");
}

int flame_view(const struct options *given)
{
	const bool is_svg = given->format == FORMAT_SVG;
	struct options wanted = *given;
	const struct options *const options = &wanted;
	struct flame_input input;
	struct flame *flame;
	enum flame_shape shape;
	struct output_file file;
	size_t metric;
	int status;

	wanted.format = is_svg ? FORMAT_SVG : FORMAT_HTML;
	input = read_input(options);
	for (size_t side = 0; side < input.count; side++)
		add_functions(options, &input.sides[side]);
	flame = input.count == 2 ? flame_build_diff(options, &input.sides[0], &input.sides[1])
				 : flame_build(options, &input.sides[0]);
	metric = select_metric(options, flame);
	shape = select_shape(options, flame, metric);
	status = strict_status(&input);
	for (size_t i = 0; i < FLAME_SHAPES; i++)
		flame_prune(&flame->shapes[i], flame->texts, FLAME_FRAMES_MAX);
	file = output_file_open(options, is_svg ? ".flame.svg" : ".flame.html");
	if (is_svg)
		write_svg(file.out, &input, flame, metric, shape);
	else
		write_page(file.out, &input, flame, metric, shape);
	if (!output_file_close(&file))
		status = STATUS_UNREADABLE;
	flame_free(flame);
	for (size_t i = 0; i < input.count; i++)
		processes_free(&input.sides[i]);
	return status;
}
