/* SPDX-License-Identifier: MIT */
#include "report/scene/scene_json.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* The strings and nodes that were used. Their order is that of their first use. */
struct json_scene {
	struct json_writer *json;
	const struct scene *scene;
	uint32_t *string_of; /* by text: index in `strings` + 1; 0: not used */
	size_t string_of_room;
	uint32_t *strings; /* texts */
	size_t string_count, string_room;
	uint8_t *is_node_used; /* by node */
};

static uint32_t string_index(struct json_scene *out, uint32_t text)
{
	ARRAY_GROW(out->string_of, out->string_of_room, (size_t)text + 1);
	if (!out->string_of[text]) {
		*ARRAY_ADD(out->strings, out->string_room, out->string_count) = text;
		out->string_of[text] = (uint32_t)out->string_count;
	}
	return out->string_of[text] - 1;
}

static uint32_t use_node(struct json_scene *out, uint32_t node)
{
	const struct tree *tree = out->scene->process->profile->tree;

	if (node >= tree->count)
		return 0;
	for (uint32_t at = node; at && !out->is_node_used[at]; at = tree->nodes[at].parent)
		out->is_node_used[at] = 1;
	return node;
}

/* ---- columns ---- */

static bool has_column(const struct scene_series *series, size_t column)
{
	return series->ns[column] || series->counts[column];
}

static void write_series(
	struct json_scene *out, const struct scene_lane *lane, const struct scene_series *series)
{
	struct json_writer *json = out->json;
	const char *name = scene_series_name(out->scene, lane, series->kind);
	uint64_t before = 0;

	json_write_begin(json, '{');
	if (name)
		json_put_string(json, "name", name);
	else
		json_put_unsigned(json, "level", series->kind);
	json_put_unsigned(json, "total_ns", series->total_ns);
	json_put_unsigned(json, "count", series->count);
	JSON_PUT_COLUMN(
		json, "at", i, SCENE_COLUMNS, has_column(series, i), json_difference(&before, i));
	JSON_PUT_COLUMN(json, "ns", i, SCENE_COLUMNS, has_column(series, i), series->ns[i]);
	JSON_PUT_COLUMN(json, "counts", i, SCENE_COLUMNS, has_column(series, i), series->counts[i]);
	json_write_end(json, '}');
}

static void write_dominants_of_level(
	struct json_scene *out, const struct scene_dominant *of, uint64_t level)
{
	struct json_writer *json = out->json;
	uint64_t before = 0;

	json_write_begin(json, '{');
	json_put_unsigned(json, "level", level);
	JSON_PUT_COLUMN(json, "at", i, SCENE_COLUMNS, of[i].ns, json_difference(&before, i));
	JSON_PUT_COLUMN(json, "node", i, SCENE_COLUMNS, of[i].ns, use_node(out, of[i].node));
	JSON_PUT_COLUMN(json, "ns", i, SCENE_COLUMNS, of[i].ns, of[i].ns);
	json_write_end(json, '}');
}

static void write_dominants(struct json_scene *out, const struct scene_lane *lane)
{
	json_put_begin(out->json, "dominants", '[');
	for (size_t level = 0; level < SCENE_LEVELS; level++) {
		const struct scene_dominant *of = &lane->dominants[level * SCENE_COLUMNS];
		bool is_used = false;

		for (size_t i = 0; i < SCENE_COLUMNS && !is_used; i++)
			is_used = of[i].ns > 0;
		if (is_used)
			write_dominants_of_level(out, of, level);
	}
	json_write_end(out->json, ']');
}

/* ---- events ---- */

/* Writes the names of the kinds of events, and stores the index of each in `index_of`. */
static void write_event_kinds(
	struct json_scene *out, const struct scene_lane *lane, uint32_t index_of[CATEGORIES_MAX])
{
	bool is_used[CATEGORIES_MAX] = { false };
	uint32_t count = 0;

	for (size_t i = 0; i < lane->event_count; i++)
		is_used[lane->events[i].kind % CATEGORIES_MAX] = true;
	json_put_begin(out->json, "kinds", '[');
	for (uint32_t kind = 0; kind < CATEGORIES_MAX; kind++) {
		const char *name = is_used[kind] ? scene_series_name(out->scene, lane, kind) : NULL;

		if (!is_used[kind])
			continue;
		index_of[kind] = count++;
		if (name)
			json_write_string(out->json, name);
		else
			json_write_unsigned(out->json, kind);
	}
	json_write_end(out->json, ']');
}

static void write_events(struct json_scene *out, const struct scene_lane *lane)
{
	struct json_writer *json = out->json;
	const struct scene_event *events = lane->events;
	uint32_t index_of[CATEGORIES_MAX] = { 0 };
	uint64_t before = 0;

	json_put_begin(json, "events", '{');
	write_event_kinds(out, lane, index_of);
	JSON_PUT_COLUMN(json, "begin_ns", i, lane->event_count, true,
		json_difference(&before, events[i].begin_ns));
	JSON_PUT_COLUMN(json, "duration_ns", i, lane->event_count, true, events[i].duration_ns);
	JSON_PUT_COLUMN(json, "kind", i, lane->event_count, true,
		index_of[events[i].kind % CATEGORIES_MAX]);
	JSON_PUT_COLUMN(json, "node", i, lane->event_count, true, use_node(out, events[i].node));
	JSON_PUT_COLUMN(
		json, "name", i, lane->event_count, true, string_index(out, events[i].name));
	json_write_end(json, '}');
}

static void write_lane(struct json_scene *out, const struct scene_lane *lane)
{
	static const char *const kinds[] = { [SCENE_GPU] = "gpu",
		[SCENE_STREAM] = "stream",
		[SCENE_THREAD] = "thread",
		[SCENE_RANK] = "rank",
		[SCENE_COLLECTIVES] = "collectives" };
	struct json_writer *json = out->json;

	json_write_begin(json, '{');
	json_put_string(json, "kind", kinds[lane->kind]);
	json_put_string(json, "label", lane->label);
	if (lane->kind == SCENE_GPU || lane->kind == SCENE_STREAM)
		json_put_unsigned(json, "device", lane->device);
	if (lane->kind == SCENE_RANK)
		json_put_unsigned(json, "gpus", lane->device);
	if (lane->kind == SCENE_STREAM && !lane->is_rest)
		json_put_unsigned(json, "stream", lane->stream);
	if (lane->kind == SCENE_THREAD && !lane->is_rest)
		json_put_unsigned(json, "thread", lane->tid);
	if (lane->is_rest)
		json_put_bool(json, "rest", true);
	json_put_unsigned(json, "events_seen", lane->events_seen);
	if (lane->is_in_whole)
		json_put_bool(json, "in_whole", true);
	if (lane->series_count) {
		json_put_begin(json, "series", '[');
		for (size_t i = 0; i < lane->series_count; i++)
			write_series(out, lane, &lane->series[i]);
		json_write_end(json, ']');
	}
	if (lane->dominants)
		write_dominants(out, lane);
	if (lane->events)
		write_events(out, lane);
	json_write_end(json, '}');
}

/* ---- memory ---- */

/* Returns true if a column is written: it is the first one, or its bytes are not those of the
 * column before. */
static bool is_column_written(const struct scene_memory *memory, size_t column)
{
	const struct scene_memory_column *now = &memory->columns[column],
					 *before = &memory->columns[column ? column - 1 : 0];

	return !column || memcmp(now->owners, before->owners, sizeof now->owners) != 0 ||
	       now->level != before->level || now->reserved != before->reserved ||
	       now->reserved_max != before->reserved_max || now->others != before->others ||
	       now->before != before->before;
}

#define PUT_MEMORY_COLUMN(key, value) \
	JSON_PUT_COLUMN(json, key, i, columns, is_column_written(memory, i), value)

static void write_memory_columns(
	struct json_writer *json, const struct scene_memory *memory, size_t columns)
{
	const struct scene_memory_column *of = memory->columns;
	uint64_t before = 0, before_ns = 0;

	PUT_MEMORY_COLUMN("at", json_difference(&before, i));
	PUT_MEMORY_COLUMN("at_ns", json_difference(&before_ns, of[i].at_ns));
	PUT_MEMORY_COLUMN("level", of[i].level);
	if (memory->has_reserved) {
		PUT_MEMORY_COLUMN("reserved", of[i].reserved);
		PUT_MEMORY_COLUMN("reserved_max", of[i].reserved_max);
	}
	json_put_begin(json, "owner", '[');
	for (size_t owner = 0; owner < memory->owner_count; owner++) {
		json_write_begin(json, '[');
		for (size_t i = 0; i < columns; i++)
			if (is_column_written(memory, i))
				json_write_unsigned(json, of[i].owners[owner]);
		json_write_end(json, ']');
	}
	json_write_end(json, ']');
	PUT_MEMORY_COLUMN("others", of[i].others);
	PUT_MEMORY_COLUMN("before", of[i].before);
}

static void write_memory(struct json_scene *out, const struct scene_memory *memory, size_t columns)
{
	struct json_writer *json = out->json;

	json_write_begin(json, '{');
	json_put_known_unsigned(json, "device", memory->device, memory->device != UINT32_MAX);
	json_put_string(json, "of", memory->is_tensors ? "tensors" : "device memory");
	json_put_unsigned(json, "peak_bytes", memory->peak);
	json_put_unsigned(json, "peak_ns", memory->peak_ns);
	json_put_begin(json, "owners", '[');
	for (size_t i = 0; i < memory->owner_count; i++) {
		json_write_begin(json, '{');
		json_put_unsigned(json, "node", use_node(out, memory->owners[i].node));
		json_put_bool(json, "remainder", memory->owners[i].is_remainder);
		json_put_unsigned(json, "at_peak_bytes", memory->owners[i].at_peak);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
	json_put_unsigned(json, "others_at_peak_bytes", memory->others_at_peak);
	json_put_unsigned(json, "before_at_peak_bytes", memory->before_at_peak);
	write_memory_columns(json, memory, columns);
	json_write_end(json, '}');
}

/* ---- spans ---- */

static void write_span(struct json_scene *out, const struct scene_span *span)
{
	struct json_writer *json = out->json;

	json_write_begin(json, '{');
	json_put_unsigned(json, "origin_ns", span->origin_ns);
	json_put_unsigned(json, "end_ns", span->end_ns);
	json_put_unsigned(json, "width_ns", UINT64_C(1) << span->shift);
	json_put_unsigned(json, "columns", span->columns);
	json_put_begin(json, "lanes", '[');
	for (size_t i = 0; i < span->lane_count; i++)
		write_lane(out, &span->lanes[i]);
	json_write_end(json, ']');
	json_put_begin(json, "memory", '[');
	for (size_t i = 0; i < span->memory_count; i++)
		write_memory(out, &span->memories[i], span->columns);
	json_write_end(json, ']');
	json_write_end(json, '}');
}

static void write_window(
	struct json_scene *out, const struct scene_window *window, const struct scene_span *span)
{
	static const char *const kinds[] = { "worst step", "median step", "first usual step",
		"memory peak", "finding", "out of memory" };
	const unsigned of_step = SCENE_WORST_STEP | SCENE_MEDIAN_STEP | SCENE_FIRST_USUAL;
	struct json_writer *json = out->json;

	json_write_begin(json, '{');
	json_put_unsigned(json, "begin_ns", window->begin_ns);
	json_put_unsigned(json, "end_ns", window->end_ns);
	json_put_begin(json, "kinds", '[');
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (window->kinds >> i & 1)
			json_write_string(json, kinds[i]);
	json_write_end(json, ']');
	if (window->kinds & of_step)
		json_put_unsigned(json, "step", window->step);
	json_put_begin(json, "findings", '[');
	for (unsigned i = 0; i < 64; i++)
		if (window->findings >> i & 1)
			json_write_unsigned(json, i);
	json_write_end(json, ']');
	json_write_key(json, "span");
	write_span(out, span);
	json_write_end(json, '}');
}

static void write_nodes(struct json_scene *out)
{
	const struct tree *tree = out->scene->process->profile->tree;
	struct json_writer *json = out->json;

	json_put_begin(json, "nodes", '{');
	JSON_PUT_COLUMN(json, "id", id, tree->count, out->is_node_used[id], id);
	JSON_PUT_COLUMN(
		json, "parent", id, tree->count, out->is_node_used[id], tree->nodes[id].parent);
	JSON_PUT_COLUMN(json, "name", id, tree->count, out->is_node_used[id],
		string_index(out, tree->nodes[id].name));
	json_write_end(json, '}');
}

void scene_json_write(struct json_writer *json, const struct scene *scene,
	void (*write_name)(struct json_writer *json, struct string_view name))
{
	struct json_scene out = { .json = json,
		.scene = scene,
		.is_node_used = xcalloc(scene->process->profile->tree->count + 1) };

	json_write_begin(json, '{');
	json_write_key(json, "whole");
	string_index(&out, 0);
	write_span(&out, &scene->whole);
	json_put_begin(json, "windows", '[');
	for (size_t i = 0; i < scene->window_count; i++)
		write_window(&out, &scene->windows[i], &scene->window_spans[i]);
	json_write_end(json, ']');
	write_nodes(&out);
	json_put_begin(json, "strings", '[');
	for (size_t i = 0; i < out.string_count; i++)
		(write_name ? write_name : json_write_text)(
			json, string_table_get(scene->process->texts, out.strings[i]));
	json_write_end(json, ']');
	json_write_end(json, '}');
	free(out.string_of);
	free(out.strings);
	free(out.is_node_used);
}
