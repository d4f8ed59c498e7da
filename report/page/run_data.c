/* SPDX-License-Identifier: MIT */
#include "report/page/run_data.h"
#include "report/analysis/sample_cells.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/temporary_file.h"
#include "report/diagnose/diagnose.h"
#include "report/page/flame_build.h"
#include "report/page/flame_functions.h"
#include "report/page/page_head.h"
#include "report/page/page_memory_map.h"
#include "report/page/page_table.h"
#include "report/page/page_text.h"
#include "report/print/print_json.h"
#include "report/scene/scene_json.h"
#include "report/summary/verdict.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"
#include "report/views/functions.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINDINGS_SHOWN 5u

/* A page has at most 6 MB, whatever the trace has. These are its large parts. The rest is the
 * tables, with at most some thousand rows, and the code. */
#define SCENE_BYTES_MAX 3100000u
#define FLAME_BYTES_MAX 1800000u
#define FLAME_FRAMES_LEAST 500u

/* That of steps is the first. */
static const struct page_table tables[] = {
	{ .view = "steps",
		.columns = "step state outlier start_ns duration_ns busy_ns idle_ns gaps kernels "
			   "allocated_peak_bytes reserved_peak_bytes",
		.most = 2000 },
	{ .view = "kernels",
		.columns = "gpu_total_ns share calls p50_ns p95_ns max_ns grid block registers "
			   "shared_bytes occupancy_theoretical occupancy_limit waves_per_sm "
			   "device",
		.most = 1000,
		.has_paths = true },
	{ .view = "categories", .columns = "gpu_total_ns gpu_self_share calls", .most = 2000 },
	{ .view = "idle",
		.columns = "cause gap_ns share time_share gaps gap_max_ns",
		.most = 1000,
		.has_paths = true },
	{ .view = "memory",
		.columns = "at_peak_bytes held_bytes most_bytes allocs frees peak_ns",
		.most = 400,
		.has_paths = true },
};

static void arrange_sampled_functions(
	const struct options *given, struct process *process, struct rows *rows)
{
	struct options options = *given;

	options.by = BY_FUNCTION;
	options.only_telling = true;
	arrange_functions(&options, process, rows);
}

/* Only of traces with samples. */
static const struct page_table functions_table = {
	.view = "table",
	.key = "functions",
	.arrange = arrange_sampled_functions,
	.columns = "cpu_sampled_ns cpu_sampled_error_ns cpu_sampled_share cpu_sampled_total_ns "
		   "samples waits_for_core_ns blocked_ns",
	.most = 1000,
};

/* ---- parts in temporary files ---- */

/* Writes a part of a page into a temporary file. */
static struct run_spool spool_part(
	void (*write_part)(struct json_writer *json, void *context), void *context)
{
	const int file = temporary_file_create();
	struct run_spool spool = { .file = file + 1 };
	struct output *out = xcalloc(sizeof *out);
	struct json_writer json = { .out = out, .write_string = page_write_foreign_text };
	struct stat status;

	out->fd = file < 0 ? -1 : dup(file);
	if (out->fd < 0)
		fatal(STATUS_UNREADABLE, "no temporary file for a part of the page:");
	write_part(&json, context);
	output_close(out, "a temporary file for a part of the page");
	spool.bytes = fstat(file, &status) ? 0 : (uint64_t)status.st_size;
	return spool;
}

void run_spool_copy(struct json_writer *json, const struct run_spool *spool)
{
	char buffer[65536];
	uint64_t at = 0;

	if (json->needs_comma)
		output_char(json->out, ',');
	while (at < spool->bytes) {
		const ssize_t got = pread(spool->file - 1, buffer, sizeof buffer, (off_t)at);

		if (got <= 0)
			fatal(STATUS_UNREADABLE, "a part of the page cannot be read back:");
		output_bytes(json->out, buffer, (size_t)got);
		at += (uint64_t)got;
	}
	json->needs_comma = true;
}

void run_spool_free(struct run_spool *spool)
{
	if (spool->file)
		close(spool->file - 1);
	*spool = (struct run_spool){ .file = 0 };
}

/* ---- verdict and timeline ---- */

/* Writes what a finding costs, as the first screen says it. */
static void put_cost(struct json_writer *json, const struct row *row)
{
	const struct style style = { .ascii = false, .whole_names = true };
	struct paragraph cost = { .style = &style };

	if (computed_row_number(row, "impact_ns") || computed_row_number(row, "impact_bytes"))
		finding_add_cost(&cost, row);
	json_put_string(json, "cost", cost.built.text ? cost.built.text : "");
	free(cost.built.text);
}

static void write_finding(struct json_writer *json, const struct row *row)
{
	static const char *const texts[] = { "finding", "evidence", "next", "command",
		"confidence" };

	json_write_begin(json, '{');
	json_put_text(json, "name", row_name(row));
	put_cost(json, row);
	json->write_string = page_write_foreign_sentence;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		json_put_text(json, texts[i], computed_row_text(row, texts[i]));
	json->write_string = page_write_foreign_text;
	if (row->node && row->tree) {
		json_write_key(json, "path");
		print_json_path(json, row);
	}
	json_write_end(json, '}');
}

static void write_findings(struct json_writer *json, const struct rows *rows)
{
	size_t shown = 0, found = 0;

	json_put_begin(json, "findings", '[');
	for (size_t i = 0; i < rows->count; i++) {
		if (!computed_row_is(&rows->rows[i], "kind", "finding"))
			continue;
		found++;
		if (shown == FINDINGS_SHOWN)
			continue;
		write_finding(json, &rows->rows[i]);
		shown++;
	}
	json_write_end(json, ']');
	json_put_unsigned(json, "found", found);
}

/* Writes the kind of each node of the tree, by its number: a letter from `a` on. */
static void write_node_kinds(struct json_writer *json, const struct process *process)
{
	const struct tree *tree = process->profile->tree;

	json_write_key(json, "node_kinds");
	output_char(json->out, '"');
	for (uint32_t id = 0; id < tree->count; id++)
		output_char(
			json->out, id ? (char)('a' + (int)flame_kind_of(&tree->nodes[id])) : 'a');
	output_char(json->out, '"');
	json->needs_comma = true;
}

static bool scene_has_events(const struct scene *scene)
{
	for (size_t i = 0; i < scene->whole.lane_count; i++)
		if (scene->whole.lanes[i].events)
			return true;
	return false;
}

static struct scene *read_scene(
	struct process *process, const struct rows *findings, const struct run_detail *detail)
{
	struct scene_window_list windows = { .count = 0 };
	struct scene *scene;

	if (detail->has_events) {
		scene_windows_add_usual(&windows, process);
		scene_windows_add_findings(&windows, process, findings);
	}
	scene = scene_read(process, &windows);
	if (!detail->has_events)
		scene_drop_events(scene);
	return scene;
}

static void write_scene_part(struct json_writer *json, void *context)
{
	scene_json_write(json, context, NULL);
}

/* Writes the scene. Of one that is too large, windows are left out, the last ones first, and then
 * all events. */
static void write_scene(struct json_writer *json, struct scene *scene)
{
	const size_t windows = scene->window_count;
	struct run_spool spool = spool_part(write_scene_part, scene);

	while (spool.bytes > SCENE_BYTES_MAX && (scene->window_count || scene_has_events(scene))) {
		if (scene->window_count)
			scene->window_count--;
		else
			scene_drop_events(scene);
		run_spool_free(&spool);
		spool = spool_part(write_scene_part, scene);
	}
	scene->window_count = windows;
	run_spool_copy(json, &spool);
	run_spool_free(&spool);
}

/* Writes the verdict, the findings and the scene. */
static void write_story(struct json_writer *json, const struct options *options,
	struct processes *processes, const struct run_detail *detail)
{
	struct process *process = &processes->all[0];
	struct rows rows = { .count = 0 };
	struct run_verdict *verdict = run_verdict_read(options, processes, process, &rows);
	struct scene *scene = read_scene(process, &rows, detail);

	json_write_key(json, "verdict");
	json->write_string = page_write_foreign_sentence;
	run_verdict_write_json(json, verdict);
	json->write_string = page_write_foreign_text;
	write_findings(json, &rows);
	json_write_key(json, "scene");
	write_scene(json, scene);
	write_node_kinds(json, process);
	scene_free(scene);
	run_verdict_free(verdict);
	free(rows.rows);
}

static void write_tables(struct json_writer *json, const struct options *options,
	struct processes *processes, const struct run_detail *detail)
{
	json_put_begin(json, "tables", '{');
	for (size_t i = 0; i < (detail->is_side ? 1 : sizeof tables / sizeof *tables); i++) {
		struct page_table table = tables[i];

		table.most = table.most < detail->rows_max ? table.most : detail->rows_max;
		page_table_write(json, &table, options, processes);
	}
	if (!detail->is_side && process_has_samples(&processes->all[0])) {
		struct page_table table = functions_table;

		table.most = table.most < detail->rows_max ? table.most : detail->rows_max;
		page_table_write(json, &table, options, processes);
	}
	json_write_end(json, '}');
}

static void write_flame_part(struct json_writer *json, void *context)
{
	struct flame *flame = context;
	struct page_strings strings = { .from = flame->texts };

	flame_data_write(json, flame, &strings, NULL,
		flame->has_shape[FLAME_FOLDED] ? FLAME_FOLDED : FLAME_EACH);
	page_strings_write(json, &strings);
	page_strings_free(&strings);
}

/* Writes the flame graph and its strings into a temporary file. If it is too large, it has fewer
 * small frames. */
static struct run_spool spool_flame(
	const struct options *options, struct processes *processes, const struct run_detail *detail)
{
	struct flame *flame = flame_build(options, processes);
	size_t most = detail->frames_max;
	struct run_spool spool;

	flame_add_functions(flame, &processes->all[0]);

	for (;; most = most * 3 / 4) {
		for (size_t i = 0; i < FLAME_SHAPES; i++)
			flame_prune(&flame->shapes[i], flame->texts, most);
		spool = spool_part(write_flame_part, flame);
		if (spool.bytes <= FLAME_BYTES_MAX || most < FLAME_FRAMES_LEAST)
			break;
		run_spool_free(&spool);
	}
	flame_free(flame);
	return spool;
}

/* The flame graph comes last and is made first: before the verdict keeps the activities and
 * profiles of its own, so that the memory of one is reused for the other. */
void run_data_write(struct json_writer *json, const struct options *options,
	struct processes *processes, const struct run_detail *detail)
{
	struct run_spool flame = { .file = 0 };

	if (detail->frames_max)
		flame = spool_flame(options, processes, detail);
	write_story(json, options, processes, detail);
	write_tables(json, options, processes, detail);
	if (detail->has_events)
		page_memory_map_write(json, options, processes);
	if (flame.file)
		run_spool_copy(json, &flame);
	run_spool_free(&flame);
}

/* ---- a run in a temporary file ---- */

struct run_part {
	const struct options *options;
	struct processes *processes;
	const struct run_detail *detail;
};

static void write_run_part(struct json_writer *json, void *context)
{
	const struct run_part *part = context;

	json_write_begin(json, '{');
	page_head_write(json, part->options, part->processes, 1);
	run_data_write(json, part->options, part->processes, part->detail);
	json_write_end(json, '}');
}

struct run_spool run_spool_write(
	const struct options *options, struct processes *processes, const struct run_detail *detail)
{
	struct run_part part = { options, processes, detail };

	return spool_part(write_run_part, &part);
}
