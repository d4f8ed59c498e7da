/* SPDX-License-Identifier: MIT */
#include "report/page/flame_data.h"
#include "report/base/alloc.h"
#include "report/page/flame_values.h"
#include "report/page/page_text.h"
#include "report/table/column.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

uint32_t page_string(struct page_strings *strings, uint32_t text)
{
	ARRAY_GROW(strings->number, strings->number_room, (size_t)text + 1);
	if (!strings->number[text]) {
		*ARRAY_ADD(strings->texts, strings->room, strings->count) = text;
		strings->number[text] = (uint32_t)strings->count;
	}
	return strings->number[text] - 1;
}

/* The writer has no function for a value that is escaped already. This one adds the comma. */
static void write_page_text(struct json_writer *json, const char *text, size_t length)
{
	if (json->needs_comma)
		output_char(json->out, ',');
	page_write_json_text(json->out, text, length);
	json->needs_comma = true;
}

void page_put_text(struct json_writer *json, const char *key, const char *text, size_t length)
{
	struct page_text page = page_text_of(text, length);

	json_write_key(json, key);
	page_write_json_text(json->out, page.text, page.length);
	json->needs_comma = true;
	free(page.text);
}

void page_strings_write(struct json_writer *json, const struct page_strings *strings)
{
	bool *changed = xcalloc(strings->count + 1);

	json_put_begin(json, "strings", '[');
	for (size_t i = 0; i < strings->count; i++) {
		const struct string_view text = string_table_get(strings->from, strings->texts[i]);
		struct page_text page = page_text_of(text.bytes, text.length);

		write_page_text(json, page.text, page.length);
		changed[i] = page.changed;
		free(page.text);
	}
	json_write_end(json, ']');
	json_put_begin(json, "changed", '[');
	for (size_t i = 0; i < strings->count; i++)
		if (changed[i])
			json_write_unsigned(json, i);
	json_write_end(json, ']');
	free(changed);
}

void page_strings_free(struct page_strings *strings)
{
	free(strings->number);
	free(strings->texts);
}

/* ---- trees ---- */

long double flame_sum(const struct flame_tree *tree, size_t value)
{
	long double sum = 0;

	for (size_t i = 0; i < tree->count; i++)
		sum += tree->values[i * tree->stride + value];
	return sum;
}

static void write_number(struct json_writer *json, long double value)
{
	if (value >= 0 && value < 18446744073709551616.0L && value == (long double)(uint64_t)value)
		json_write_unsigned(json, (uint64_t)value);
	else
		json_write_double(json, (double)value);
}

/* Writes the cells of a column of the nodes of all frames: 0 where there is none. */
static void write_column(struct json_writer *json, const struct flame *flame,
	const struct flame_tree *tree, const char *member, const char *key)
{
	const struct column *column = column_find(key, strlen(key));

	json_put_begin(json, member, '[');
	for (size_t i = 1; i < tree->count; i++) {
		const struct flame_frame *frame = &tree->frames[i];
		long double number = 0;

		if (frame->node) {
			struct process *process = &flame->processes[frame->process];
			const struct row row = tree_row(
				process, process->profile->tree, frame->node);
			const struct rows rows = { .count = 0 };
			const struct cell cell = column_value(column, &row, &rows);

			if (!cell_number(&cell, &number))
				number = 0;
		}
		write_number(json, number);
	}
	json_write_end(json, ']');
}

static void write_frames(
	struct json_writer *json, const struct flame_tree *tree, struct page_strings *strings)
{
	json_put_begin(json, "parent", '[');
	for (size_t i = 1; i < tree->count; i++)
		json_write_signed(json, (int64_t)tree->frames[i].parent - 1);
	json_write_end(json, ']');
	JSON_PUT_COLUMN(
		json, "name", i, tree->count, i > 0, page_string(strings, tree->frames[i].name));
	JSON_PUT_COLUMN(
		json, "label", i, tree->count, i > 0, page_string(strings, tree->frames[i].label));
	JSON_PUT_COLUMN(json, "kind", i, tree->count, i > 0, tree->frames[i].kind);
	JSON_PUT_COLUMN(json, "outside", i, tree->count, tree->frames[i].is_outside, i - 1);
}

/* Writes the own values of a metric: of the only trace, or of the second one; and of the first. */
static void write_values(struct json_writer *json, const struct flame *flame,
	const struct flame_tree *tree, size_t metric)
{
	for (uint32_t side = flame->sides; side-- > 0;) {
		const size_t index = flame_value_index(flame, metric, side);

		json_put_begin(json, side + 1 == flame->sides ? "own" : "before", '[');
		for (size_t i = 1; i < tree->count; i++)
			write_number(json, tree->values[i * tree->stride + index]);
		json_write_end(json, ']');
	}
}

const char *flame_shape_name(enum flame_shape shape)
{
	static const char *const names[FLAME_SHAPES] = { [FLAME_FOLDED] = "folded",
		[FLAME_EACH] = "each",
		[FLAME_STACKS] = "stack",
		[FLAME_FUNCTIONS] = "functions",
		[FLAME_PYTHON] = "python",
		[FLAME_NATIVE] = "native",
		[FLAME_ALL] = "all" };

	return names[shape];
}

static bool has_value(const struct flame *flame, enum flame_shape shape, size_t metric)
{
	for (uint32_t side = 0; side < flame->sides; side++)
		if (flame_sum(&flame->shapes[shape], flame_value_index(flame, metric, side)) > 0)
			return true;
	return false;
}

bool flame_shows(const struct flame *flame, enum flame_shape shape, size_t metric)
{
	return flame->has_shape[shape] && has_value(flame, shape, metric);
}

static void write_shape(struct json_writer *json, struct flame *flame, struct page_strings *strings,
	enum flame_shape shape)
{
	const struct flame_tree *tree = &flame->shapes[shape];

	json_put_begin(json, flame_shape_name(shape), '{');
	write_frames(json, tree, strings);
	if (shape < FLAME_STACKS && flame->sides == 1) {
		write_column(json, flame, tree, "calls", "calls");
		write_column(json, flame, tree, "cpu", "cpu_total_ns");
		write_column(json, flame, tree, "median", "p50_ns");
		write_column(json, flame, tree, "longest", "max_ns");
		write_column(json, flame, tree, "latency", "delay_p50_ns");
	}
	json_put_begin(json, "values", '{');
	for (size_t metric = 0; metric < flame->metric_count; metric++) {
		char number[24];

		if (!flame_shows(flame, shape, metric))
			continue;
		snprintf(number, sizeof number, "%zu", metric);
		json_put_begin(json, number, '{');
		write_values(json, flame, tree, metric);
		json_write_end(json, '}');
	}
	json_write_end(json, '}');
	json_write_end(json, '}');
}

/* Whether the graph of a metric can have this shape. Where functions are known, samples are shown
 * with them only. */
static bool offers_shape(const struct flame *flame, enum flame_shape shape, size_t metric)
{
	const bool is_sampled = metric == FLAME_SAMPLED || metric == FLAME_SAMPLED_WALL;

	if (is_sampled && flame->has_shape[FLAME_FUNCTIONS] && shape < FLAME_STACKS)
		return false;
	return flame_shows(flame, shape, metric);
}

static const char *unit_word(enum unit unit)
{
	return unit == UNIT_TIME ? "time" : unit == UNIT_BYTES ? "bytes" : "number";
}

static void write_metric(
	struct json_writer *json, const struct flame *flame, size_t index, bool *is_shown)
{
	const struct flame_metric *metric = &flame->metrics[index];

	*is_shown = false;
	for (size_t shape = 0; shape < FLAME_SHAPES; shape++)
		*is_shown |= flame_shows(flame, (enum flame_shape)shape, index);
	if (!*is_shown)
		return;
	json_write_begin(json, '{');
	json_put_unsigned(json, "number", index);
	page_put_text(json, "key", metric->key, strlen(metric->key));
	page_put_text(json, "title", metric->title, strlen(metric->title));
	json_put_string(json, "note", metric->note);
	json_put_string(json, "view", metric->view);
	json_put_string(json, "unit", unit_word(metric->unit));
	page_put_text(json, "unit_name", metric->unit_name, strlen(metric->unit_name));
	json_put_bool(json, "is_counter", metric->is_counter);
	json_put_bool(json, "is_memory", metric->is_memory);
	json_put_begin(json, "shapes", '[');
	for (size_t shape = 0; shape < FLAME_SHAPES; shape++)
		if (offers_shape(flame, (enum flame_shape)shape, index))
			json_write_string(json, flame_shape_name((enum flame_shape)shape));
	json_write_end(json, ']');
	json_write_end(json, '}');
}

void flame_data_write(struct json_writer *json, struct flame *flame, struct page_strings *strings,
	const char *selected, enum flame_shape shape)
{
	bool is_shown;

	json_put_begin(json, "flame", '{');
	json_put_unsigned(json, "sides", flame->sides);
	json_put_bool(json, "more_stacks", flame->has_more_stacks);
	json_put_string(json, "shape", flame_shape_name(shape));
	json_write_key(json, "metric");
	json_write_string(json, selected);
	json_put_begin(json, "kinds", '[');
	for (int kind = 0; kind < FLAME_KIND_COUNT; kind++)
		json_write_string(json, flame_kind_name((enum flame_kind)kind));
	json_write_end(json, ']');
	json_put_begin(json, "metrics", '[');
	for (size_t metric = 0; metric < flame->metric_count; metric++)
		write_metric(json, flame, metric, &is_shown);
	json_write_end(json, ']');
	json_put_begin(json, "shapes", '{');
	for (size_t i = 0; i < FLAME_SHAPES; i++)
		if (flame->has_shape[i])
			write_shape(json, flame, strings, (enum flame_shape)i);
	json_write_end(json, '}');
	json_write_end(json, '}');
}
