/* SPDX-License-Identifier: MIT */
#include "report/analysis/baseline.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/stats/mann_whitney.h"
#include "report/text/json_writer.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "{\"schema\":\"pperf.baseline/1\"";

void baseline_write(const struct baseline *baseline, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.baseline/1");
	json_put_string(&json, "basis", baseline->by_steps ? "step" : "run");
	json_put_unsigned(&json, "steps", baseline->steps);
	json_write_key(&json, "rank");
	json_write_rank(&json, baseline->rank);
	json_write_key(&json, "figures");
	json_write_begin(&json, '[');
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_metric *figure = &baseline->figures[i];

		json_write_begin(&json, '{');
		json_put_string(&json, "name", figure->name);
		json_put_string(&json, "unit",
			figure->unit == UNIT_TIME    ? "ns"
			: figure->unit == UNIT_BYTES ? "bytes"
						     : "count");
		json_write_key(&json, "value");
		json_write_double(&json, figure->value);
		json_write_key(&json, "values");
		json_write_begin(&json, '[');
		for (size_t value = 0; value < figure->value_count; value++)
			json_write_double(&json, figure->values[value]);
		json_write_end(&json, ']');
		json_write_key(&json, "rows");
		json_write_begin(&json, '[');
		for (size_t row = 0; row < figure->row_count; row++) {
			json_write_begin(&json, '[');
			json_write_string(&json, figure->rows[row].path);
			json_write_double(&json, figure->rows[row].value);
			json_write_end(&json, ']');
		}
		json_write_end(&json, ']');
		json_write_end(&json, '}');
	}
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

/* Opens `path` if it is a baseline, at its beginning. NULL: it is none. */
static FILE *open_file(const char *path)
{
	char head[sizeof HEAD - 1];
	FILE *file = fopen(path, "rb");

	if (file && fread(head, 1, sizeof head, file) == sizeof head &&
		memcmp(head, HEAD, sizeof head) == 0) {
		rewind(file);
		return file;
	}
	if (file)
		fclose(file);
	return NULL;
}

/* false: it is no number. */
static bool read_number(const json_t *value, double *number)
{
	*number = json_number_value(value);
	return json_is_number(value) && isfinite(*number);
}

static bool read_baseline_row(struct baseline_metric *figure, const json_t *pair)
{
	const char *path = json_string_value(json_array_get(pair, 0));
	double number;

	if (!path || !read_number(json_array_get(pair, 1), &number))
		return false;
	array_grow_zeroed(
		&figure->rows, &figure->row_room, figure->row_count + 1, sizeof *figure->rows);
	figure->rows[figure->row_count].path = strcpy(xcalloc(strlen(path) + 1), path);
	figure->rows[figure->row_count++].value = number;
	return true;
}

static int by_row_path(const void *a, const void *b)
{
	return strcmp(
		((const struct baseline_row *)a)->path, ((const struct baseline_row *)b)->path);
}

static bool read_baseline_rows(struct baseline_metric *figure, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!read_baseline_row(figure, json_array_get(list, i)))
			return false;
	if (figure->row_count)
		qsort(figure->rows, figure->row_count, sizeof *figure->rows, by_row_path);
	return !list || json_is_array(list);
}

static bool read_values(struct baseline_metric *figure, const json_t *list)
{
	const size_t count = json_array_size(list);

	figure->values = count ? xcalloc(count * sizeof *figure->values) : NULL;
	for (; figure->value_count < count; figure->value_count++)
		if (!read_number(json_array_get(list, figure->value_count),
			    &figure->values[figure->value_count]))
			return false;
	return !list || json_is_array(list);
}

static enum unit read_unit(const char *name)
{
	return !name                        ? UNIT_COUNT
	       : strcmp(name, "ns") == 0    ? UNIT_TIME
	       : strcmp(name, "bytes") == 0 ? UNIT_BYTES
					    : UNIT_COUNT;
}

static bool read_baseline_figure(struct baseline *baseline, const json_t *object)
{
	struct baseline_metric figure = { .unit = read_unit(json_string_value(
						  json_object_get(object, "unit"))) };
	const char *name = json_string_value(json_object_get(object, "name"));

	if (!name || !*name || strlen(name) >= sizeof figure.name ||
		!read_number(json_object_get(object, "value"), &figure.value) ||
		!read_values(&figure, json_object_get(object, "values")) ||
		!read_baseline_rows(&figure, json_object_get(object, "rows")))
		return false;
	strcpy(figure.name, name);
	array_grow_zeroed(&baseline->figures, &baseline->room, baseline->count + 1,
		sizeof *baseline->figures);
	baseline->figures[baseline->count++] = figure;
	return true;
}

/* A count that is not negative; absent: *count stays. */
static bool read_count(const json_t *value, int64_t *count)
{
	if (json_is_integer(value))
		*count = json_integer_value(value);
	return !value || (json_is_integer(value) && *count >= 0);
}

/* false: a member is missing or has a wrong type. */
static bool read_baseline(struct baseline *baseline, const json_t *root)
{
	const char *basis = json_string_value(json_object_get(root, "basis"));
	const json_t *rank = json_object_get(root, "rank");
	const json_t *figures = json_object_get(root, "figures");
	int64_t steps = 0;

	if (!read_count(json_object_get(root, "steps"), &steps) ||
		!(json_is_null(rank) || read_count(rank, &baseline->rank)))
		return false;
	baseline->by_steps = basis && strcmp(basis, "step") == 0;
	baseline->steps = (size_t)steps;
	for (size_t i = 0; i < json_array_size(figures); i++)
		if (!read_baseline_figure(baseline, json_array_get(figures, i)))
			return false;
	return baseline->count > 0;
}

static void load_baseline(struct baseline *baseline, FILE *file, const char *path)
{
	json_error_t error;
	json_t *root = json_loadf(file, 0, &error);

	if (!root)
		fatal(STATUS_UNREADABLE, "%s is a damaged baseline: line %d: %s", path, error.line,
			error.text);
	if (!read_baseline(baseline, root))
		fatal(STATUS_UNREADABLE,
			"%s is a damaged baseline: a member is missing or has a wrong type", path);
	json_decref(root);
}

struct baseline *baseline_open(const struct options *options, const char *path)
{
	struct baseline *baseline = xcalloc(sizeof *baseline);
	FILE *file = open_file(path);

	baseline->rank = -1;
	baseline->path = path;
	if (file) {
		load_baseline(baseline, file, path);
		fclose(file);
		return baseline;
	}
	baseline->processes = processes_read_side(options, path);
	baseline->process = baseline->processes.all;
	baseline->rank = baseline->process->rank;
	baseline->steps = metric_samples_steps(baseline->process);
	baseline->by_steps = baseline->steps >= MANN_WHITNEY_VALUES_MIN;
	return baseline;
}
