/* SPDX-License-Identifier: MIT */
#include "report/analysis/compared_run.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char HEAD[] = "{\"schema\":\"pperf.baseline/1\"";

static void write_metric(struct json_writer *json, const struct run_metric *metric)
{
	json_write_begin(json, '{');
	json_put_string(json, "name", metric->kind->name);
	json_put_string(json, "unit", json_unit_name(run_metric_unit(metric)));
	json_put_double(json, "value", metric->value);
	json_put_begin(json, "values", '[');
	for (size_t i = 0; i < metric->value_count; i++)
		json_write_double(json, metric->values[i]);
	json_write_end(json, ']');
	json_put_begin(json, "rows", '[');
	for (size_t row = 0; row < metric->row_count; row++) {
		json_write_begin(json, '[');
		json_write_string(json, metric->rows[row].path);
		json_write_double(json, metric->rows[row].value);
		json_write_end(json, ']');
	}
	json_write_end(json, ']');
	json_write_end(json, '}');
}

void baseline_write(const struct compared_run *run, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.baseline/1");
	json_put_string(&json, "basis", run->by_steps ? "step" : "run");
	json_put_unsigned(&json, "steps", run->steps);
	json_write_key(&json, "rank");
	json_write_rank(&json, run->rank);
	json_put_begin(&json, "figures", '[');
	for (size_t i = 0; i < run->metric_count; i++)
		write_metric(&json, &run->metrics[i]);
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

/* Returns false if `value` is not a finite number. */
static bool read_number(const json_t *value, double *number)
{
	*number = json_number_value(value);
	return json_is_number(value) && isfinite(*number);
}

/* Returns the bytes of a path, which the caller frees. */
static char *restored_path(const char *path)
{
	char *bytes = strcpy(xcalloc(strlen(path) + 1), path);

	bytes[output_restore_json_text(bytes, strlen(bytes))] = '\0';
	return bytes;
}

static bool read_rows(struct run_metric *metric, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);
		const char *path = json_string_value(json_array_get(pair, 0));
		double value;

		if (!path || !read_number(json_array_get(pair, 1), &value))
			return false;
		run_metric_add_row(metric, restored_path(path), value);
	}
	run_metric_order_rows(metric);
	return !list || json_is_array(list);
}

static bool read_values(struct run_metric *metric, const json_t *list)
{
	metric->value_count = json_array_size(list);
	metric->values = metric->value_count ? xcalloc(metric->value_count * sizeof(double)) : NULL;
	for (size_t i = 0; i < metric->value_count; i++)
		if (!read_number(json_array_get(list, i), &metric->values[i]))
			return false;
	return !list || json_is_array(list);
}

/* Keeps the metric unless its name is unknown or was read before. */
static bool read_metric(struct compared_run *run, const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	struct run_metric metric = { .kind = name ? run_metric_find(name) : NULL };

	if (!name || !*name || !read_number(json_object_get(object, "value"), &metric.value) ||
		!read_values(&metric, json_object_get(object, "values")) ||
		!read_rows(&metric, json_object_get(object, "rows")))
		return false;
	if (metric.kind && !compared_run_metric(run, metric.kind))
		run->metrics[run->metric_count++] = metric;
	else
		run_metric_free(&metric);
	return true;
}

/* Reads a count that is not negative. Absent: *count stays. */
static bool read_count(const json_t *value, int64_t *count)
{
	if (json_is_integer(value))
		*count = json_integer_value(value);
	return !value || (json_is_integer(value) && *count >= 0);
}

/* Returns false if a member is missing or has a wrong type. */
static bool read_baseline(struct compared_run *run, const json_t *root)
{
	const char *basis = json_string_value(json_object_get(root, "basis"));
	const json_t *rank = json_object_get(root, "rank");
	const json_t *list = json_object_get(root, "figures");
	int64_t steps = 0;

	if (!read_count(json_object_get(root, "steps"), &steps) ||
		!(json_is_null(rank) || read_count(rank, &run->rank)))
		return false;
	run->by_steps = basis && strcmp(basis, "step") == 0;
	run->steps = (size_t)steps;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!read_metric(run, json_array_get(list, i)))
			return false;
	return json_array_size(list) > 0;
}

bool baseline_load(struct compared_run *run, const char *path)
{
	FILE *file = open_file(path);
	json_error_t error;
	json_t *root;

	if (!file)
		return false;
	root = json_loadf(file, 0, &error);
	if (!root)
		fatal(STATUS_UNREADABLE, "%s is a damaged baseline: line %d: %s", path, error.line,
			error.text);
	if (!read_baseline(run, root))
		fatal(STATUS_UNREADABLE,
			"%s is a damaged baseline: a member is missing or has a wrong type", path);
	json_decref(root);
	fclose(file);
	return true;
}
