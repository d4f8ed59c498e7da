/* SPDX-License-Identifier: MIT
 *
 * https://www.speedscope.app: a profile for each process and each amount that is not zero. The
 * frames are the names, so that speedscope's sandwich view adds equal names up.
 */
#include "report/export/export.h"
#include "report/export/tree_frames.h"
#include "report/base/alloc.h"
#include "report/text/json_writer.h"
#include "report/text/string_table.h"
#include <stdio.h>
#include <stdlib.h>

struct speedscope {
	struct json_writer json;
	struct string_table *names; /* of all frames; text 1 is frame 0 */
	uint32_t frame_count;
	uint32_t *frames; /* by node of the process being written */
};

/* Sets the frame of each node. */
static void number_frames(struct speedscope *scope, const struct process *process)
{
	const uint32_t count = process->profile->tree->count;

	free(scope->frames);
	scope->frames = xcalloc(count * sizeof *scope->frames);
	for (uint32_t node = 0; node < count; node++) {
		const struct string_view name = frame_name(process, node);
		const uint32_t text = string_table_intern(scope->names, name.bytes, name.length);

		scope->frames[node] = text - 1;
		if (text > scope->frame_count)
			scope->frame_count = text;
	}
}

static void put_samples(
	struct speedscope *scope, const struct process *process, const uint64_t *amounts)
{
	struct frame_path path = { .count = 0 };

	json_put_begin(&scope->json, "samples", '[');
	for (uint32_t node = 0; node < process->profile->tree->count; node++) {
		if (!amounts[node])
			continue;
		frame_path_set(&path, process, node);
		json_write_begin(&scope->json, '[');
		if (!path.count)
			json_write_unsigned(&scope->json, scope->frames[0]);
		for (size_t i = 0; i < path.count; i++)
			json_write_unsigned(&scope->json, scope->frames[path.nodes[i]]);
		json_write_end(&scope->json, ']');
	}
	json_write_end(&scope->json, ']');
	frame_path_free(&path);
}

static void put_weights(
	struct speedscope *scope, const struct process *process, const uint64_t *amounts)
{
	json_put_begin(&scope->json, "weights", '[');
	for (uint32_t node = 0; node < process->profile->tree->count; node++)
		if (amounts[node])
			json_write_unsigned(&scope->json, amounts[node]);
	json_write_end(&scope->json, ']');
}

static void put_profile(struct speedscope *scope, const struct process *process,
	enum tree_amount amount, bool names_process)
{
	const struct tree_amount_facts *facts = &tree_amounts[amount];
	uint64_t sum, *amounts = tree_amounts_of(process->profile, amount, &sum);
	char name[160];

	if (sum) {
		snprintf(name, sizeof name, "%s%s%s", facts->title, names_process ? " of " : "",
			names_process ? process_name(process) : "");
		json_write_begin(&scope->json, '{');
		json_put_string(&scope->json, "type", "sampled");
		json_put_string(&scope->json, "name", name);
		json_put_string(
			&scope->json, "unit", amount == AMOUNT_CALLS ? "none" : facts->unit);
		json_put_unsigned(&scope->json, "startValue", 0);
		json_put_unsigned(&scope->json, "endValue", sum);
		put_samples(scope, process, amounts);
		put_weights(scope, process, amounts);
		json_write_end(&scope->json, '}');
	}
	free(amounts);
}

static void put_frames(struct speedscope *scope)
{
	json_put_begin(&scope->json, "shared", '{');
	json_put_begin(&scope->json, "frames", '[');
	for (uint32_t i = 0; i < scope->frame_count; i++) {
		json_write_begin(&scope->json, '{');
		json_put_text(&scope->json, "name", string_table_get(scope->names, i + 1));
		json_write_end(&scope->json, '}');
	}
	json_write_end(&scope->json, ']');
	json_write_end(&scope->json, '}');
}

void export_speedscope(
	const struct options *options, struct processes *processes, struct output *out)
{
	struct speedscope scope = { .json = { .out = out }, .names = string_table_new() };
	const struct frame_amounts amounts = frame_amounts_of(options);

	json_write_begin(&scope.json, '{');
	json_put_string(
		&scope.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_put_string(&scope.json, "exporter", "pperf-report");
	json_put_string(&scope.json, "name", processes->all[0].command);
	json_put_begin(&scope.json, "profiles", '[');
	for (size_t i = 0; i < processes->shown; i++) {
		number_frames(&scope, &processes->all[i]);
		for (int amount = 0; amount < AMOUNT_COUNT; amount++)
			if (amounts.chosen[amount])
				put_profile(&scope, &processes->all[i], (enum tree_amount)amount,
					processes->shown > 1);
	}
	json_write_end(&scope.json, ']');
	put_frames(&scope);
	json_write_end(&scope.json, '}');
	output_char(out, '\n');
	string_table_free(scope.names);
	free(scope.frames);
}
